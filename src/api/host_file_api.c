/* mica_text_read (a whole text in memory, up to a limit) and the public functions of temporary files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/map.h"
#include "io/temporary.h"

enum { FIRST_ROOM = 1 << 16, STREAM_LIMIT = 1 << 30 };

typedef struct text_input {
    const char *path;
    int fd;
    bool standard;      /* standard input, which is not closed           */
    bool stream;        /* a pipe, a socket or a terminal: no known size */
    uint64_t limit;
    char *text;
    size_t length, room; /* bytes used, bytes allocated                  */
} text_input;

static mica_status input_failed(const text_input *in, const char *doing)
{
    char text[MICA__ERRNO_TEXT];
    return mica__fail(MICA_ERR_FILE, "%s: cannot %s: %s", in->path, doing, mica__errno_text(errno, text));
}

static mica_status too_long(const text_input *in)
{
    return mica__fail(MICA_ERR_FILE, "%s: has more than %llu bytes, the limit of a text%s", in->path,
                      (unsigned long long)in->limit, in->stream ? " from a pipe" : "");
}

/* Checks the kind of the file and sets the size of the first allocation. */
static mica_status inspect_input(text_input *in)
{
    struct stat s;
    if (fstat(in->fd, &s) != 0) return input_failed(in, "read its attributes");
    const bool terminal = S_ISCHR(s.st_mode) && isatty(in->fd);
    const bool empty_device = in->standard && S_ISCHR(s.st_mode); /* < /dev/null; the limit stops < /dev/zero */
    in->stream = S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode) || terminal || empty_device;
    if (!S_ISREG(s.st_mode) && !in->stream)
        return mica__fail(MICA_ERR_FILE, "%s: is %s, not a file", in->path,
                          S_ISDIR(s.st_mode) ? "a folder" : "a device");
    if (in->stream && in->limit > STREAM_LIMIT) in->limit = STREAM_LIMIT;
    if (!in->stream && (uintmax_t)s.st_size > in->limit) return too_long(in);
    in->room = in->stream ? FIRST_ROOM : (size_t)s.st_size + 2; /* the NUL, and a byte so that read can return 0 */
    return MICA_OK;
}

/* A pipe is opened without waiting for a program that writes to it. */
static mica_status open_input(text_input *in)
{
    if (in->standard) return inspect_input(in);
    do in->fd = open(in->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (in->fd < 0 && errno == EINTR);
    if (in->fd < 0) return input_failed(in, "open it");
    return inspect_input(in);
}

static mica_status input_room(text_input *in)
{
    if (in->text && in->length + 1 < in->room) return MICA_OK;
    if (in->text) in->room *= 2;
    char *grown = mica__realloc(in->text, in->room);
    if (!grown) return mica__fail_memory("a text", in->room);
    in->text = grown;
    return MICA_OK;
}

/* EAGAIN: a pipe has a writer that has not written yet. After this call, read waits for it. */
static bool wait_for_writer(const text_input *in)
{
    const int flags = fcntl(in->fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) && fcntl(in->fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

static mica_status read_input(text_input *in)
{
    for (;;) {
        MICA_TRY(input_room(in));
        const size_t room = in->room - in->length - 1;
        const ssize_t n = read(in->fd, in->text + in->length, room < (1u << 30) ? room : 1u << 30);
        if (n < 0 && (errno == EINTR || (errno == EAGAIN && wait_for_writer(in)))) continue;
        if (n < 0) return input_failed(in, "read it");
        if (n == 0) break;
        in->length += (size_t)n;
        if (in->length > in->limit) return too_long(in);
    }
    in->text[in->length] = '\0';
    return MICA_OK;
}

mica_status mica_text_read(const char *path, uint64_t limit, char **text, size_t *length)
{
    if (text) *text = NULL;
    if (length) *length = 0;
    if (!path || !text || !length)
        return mica__fail(MICA_ERR_ARGUMENT, "text_read: %s is NULL", !path ? "path" : !text ? "text" : "length");
    const bool standard = strcmp(path, "-") == 0;
    text_input in = {.path = standard ? "standard input" : path,
                     .fd = standard ? STDIN_FILENO : -1,
                     .standard = standard,
                     .limit = limit && limit < SIZE_MAX / 4 ? limit : SIZE_MAX / 4};
    mica_status status = open_input(&in);
    if (status == MICA_OK) status = read_input(&in);
    if (in.fd >= 0 && !standard) (void)close(in.fd);
    if (status != MICA_OK) {
        mica__free(in.text);
        return status;
    }
    *text = in.text;
    *length = in.length;
    return MICA_OK;
}

void mica_text_free(char *text) { mica__free(text); }

mica_status mica_temporary_create(const char *path, char *name, size_t cap, int *fd)
{
    if (!path || !name || !fd)
        return mica__fail(MICA_ERR_ARGUMENT, "temporary_create: %s is NULL", !path ? "path" : !name ? "name" : "fd");
    return mica__temporary_create(path, name, cap, fd);
}

void mica_temporary_done(const char *name)
{
    if (name) mica__temporary_done(name);
}

void mica_remove_temporaries(void) { mica__temporaries_remove(); }
