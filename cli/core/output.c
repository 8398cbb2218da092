/* Output files. A result is written to a temporary file in the same folder, which is renamed
 * when it is complete. A path that exists and is not a regular file (/dev/null, a pipe)
 * is written directly: a rename would replace it with a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cli.h"

static bool output_failed(const char *command, const char *path)
{
    fprintf(stderr, "%s: cannot write '%s': %s\n", command, path, strerror(errno));
    return false;
}

static void drop_output(const char *beside)
{
    (void)remove(beside);
    mica_temporary_done(beside);
}

bool cli_output_open(const char *command, const char *path, cli_output *out)
{
    struct stat info;
    *out = (cli_output){.to = stdout};
    if (!path) return true;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode)) {
        const size_t n = strlen(path) + MICA_TEMPORARY_SUFFIX;
        int fd;
        out->beside = malloc(n);
        if (!out->beside) return output_failed(command, path);
        if (mica_temporary_create(path, out->beside, n, &fd) != MICA_OK) out->to = NULL;
        else if (!(out->to = fdopen(fd, "w"))) close(fd), drop_output(out->beside);
    } else out->to = fopen(path, "w");
    if (out->to) return true;
    output_failed(command, path);
    free(out->beside);
    out->beside = NULL;
    return false;
}

bool cli_output_close(const char *command, const char *path, cli_output *out, bool keep)
{
    if (!path) return true;
    bool good = !ferror(out->to);
    if (fclose(out->to) != 0) good = false;
    if (out->beside && keep && good) good = rename(out->beside, path) == 0;
    if (!good) output_failed(command, path);
    if (out->beside && !(keep && good)) drop_output(out->beside);
    else if (out->beside) mica_temporary_done(out->beside);
    free(out->beside);
    return good;
}

bool cli_write_whole(const char *command, const char *path, void (*print)(FILE *to, const void *user), const void *user)
{
    cli_output out;
    if (!cli_output_open(command, path, &out)) return false;
    print(out.to, user);
    return cli_output_close(command, path, &out, true);
}
