/* See tables.h. */
#include "series/tables.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cli.h"

static int add_file(const char *command, const char *path, int header, mica_part part, cli_tables *t)
{
    if (t->n == t->room) {
        const size_t room = t->room ? 2 * t->room : 16;
        mica_table **at = realloc(t->at, room * sizeof *at);
        if (at) t->at = at;
        mica_part *parts = at ? realloc(t->parts, room * sizeof *parts) : NULL;
        if (!parts) return cli_no_memory(command);
        t->parts = parts;
        t->room = room;
    }
    mica_table_options o;
    mica_table_options_init(&o);
    o.header = header;
    const mica_status status = mica_table_open(path, &o, &t->at[t->n]);
    if (status != MICA_OK) return cli_file_failed(command, status);
    t->parts[t->n++] = part;
    return CLI_OK;
}

static bool is_table(const char *name)
{
    static const char *const ends[] = {".csv", ".tsv", ".txt", ".data", ".npy"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0] && name[0] != '.'; i++)
        if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0) return true;
    return false;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int add_folder(const char *command, const char *path, int header, mica_part part, cli_tables *t)
{
    char **names = NULL;
    size_t n = 0;
    int code = CLI_OK;
    DIR *folder = opendir(path);
    if (!folder) return cli_fail(CLI_FILE, "%s: %s: %s", command, path, strerror(errno));
    for (struct dirent *e; code == CLI_OK && (e = readdir(folder));) {
        if (!is_table(e->d_name)) continue;
        const size_t room = strlen(path) + strlen(e->d_name) + 2;
        char **more = realloc(names, (n + 1) * sizeof *names);
        if (more) names = more;
        char *full = more ? malloc(room) : NULL;
        if (full) snprintf(full, room, "%s/%s", path, e->d_name), names[n++] = full;
        else code = cli_no_memory(command);
    }
    closedir(folder);
    if (n) qsort(names, n, sizeof *names, by_name);
    else if (code == CLI_OK) {
        fprintf(stderr, "%s: %s: no file in it ends in .csv, .tsv, .txt, .data or .npy\n", command, path);
        code = CLI_FILE;
    }
    for (size_t i = 0; i < n; i++) {
        if (code == CLI_OK) code = add_file(command, names[i], header, part, t);
        free(names[i]);
    }
    free(names);
    return code;
}

int cli_tables_add(const char *command, const char *paths, int header, mica_part part, cli_tables *t)
{
    int code = CLI_OK;
    for (const char *at = paths; at && code == CLI_OK;) {
        const size_t length = strcspn(at, ",");
        struct stat info;
        char *path = malloc(length + 1);
        if (!path) return cli_no_memory(command);
        memcpy(path, at, length);
        path[length] = '\0';
        const bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
        code = folder ? add_folder(command, path, header, part, t) : add_file(command, path, header, part, t);
        free(path);
        at = at[length] ? at + length + 1 : NULL;
    }
    return code;
}

void cli_tables_close(cli_tables *t)
{
    for (size_t i = 0; i < t->n; i++) mica_table_free(t->at[i]);
    free(t->at);
    free(t->parts);
    *t = (cli_tables){0};
}
