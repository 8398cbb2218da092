/* See writer.h: temporary file, buffer, fsync, rename. A full disk is detected by write or fsync.
 * In both cases the temporary file is removed and an existing file is kept. */
#include "io/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/map.h"
#include "io/temporary.h"

enum { WRITER_BUFFER = 1 << 16 };

static mica_status writer_fail(mica__writer *w, const char *doing, int number)
{
    char text[MICA__ERRNO_TEXT];
    const mica_status status = mica__fail(MICA_ERR_FILE, "%s: cannot %s after %llu bytes: %s", w->path, doing,
                                          (unsigned long long)w->total, mica__errno_text(number, text));
    mica__error_capture(&w->error, status);
    return status;
}

mica_status mica__writer_open(mica__writer *w, const char *path)
{
    struct stat info;
    *w = (mica__writer){.fd = -1};
    /* a rename would replace /dev/null by a file */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return mica__fail(MICA_ERR_FILE, "%s: cannot create it: it exists and is not a regular file", path);
    const size_t length = strlen(path);
    w->path = mica__alloc(length + 1);
    w->temporary = mica__alloc(length + MICA__TEMPORARY_SUFFIX);
    w->buffer = mica__alloc(WRITER_BUFFER);
    if (!w->path || !w->temporary || !w->buffer) {
        mica__writer_abandon(w);
        return mica__fail_memory("writing a file", WRITER_BUFFER);
    }
    memcpy(w->path, path, length + 1);
    const mica_status status = mica__temporary_create(path, w->temporary, length + MICA__TEMPORARY_SUFFIX, &w->fd);
    if (status != MICA_OK) mica__writer_abandon(w);
    return status;
}

static mica_status write_all(mica__writer *w, const uint8_t *data, size_t nbytes)
{
    while (nbytes) {
        /* macOS refuses more than 2^31 - 1 bytes at once */
        const ssize_t n = write(w->fd, data, nbytes < (1u << 30) ? nbytes : 1u << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return writer_fail(w, "write", n < 0 ? errno : ENOSPC);
        data += n;
        nbytes -= (size_t)n;
    }
    return MICA_OK;
}

static mica_status writer_flush(mica__writer *w)
{
    const size_t used = w->used;
    w->used = 0;
    return write_all(w, w->buffer, used);
}

static mica_status writer_state(mica__writer *w)
{
    if (w->error.status != MICA_OK) return mica__error_raise(&w->error);
    return w->fd >= 0 ? MICA_OK : mica__fail(MICA_ERR_STATE, "the file is not open for writing");
}

mica_status mica__writer_put(mica__writer *w, const void *data, size_t nbytes)
{
    MICA_TRY(writer_state(w));
    if (nbytes > WRITER_BUFFER - w->used) MICA_TRY(writer_flush(w));
    if (nbytes >= WRITER_BUFFER) {
        MICA_TRY(write_all(w, data, nbytes));
    } else if (nbytes) {
        memcpy(w->buffer + w->used, data, nbytes);
        w->used += nbytes;
    }
    w->total += nbytes;
    return MICA_OK;
}

mica_status mica__writer_zeros(mica__writer *w, uint64_t nbytes)
{
    static const uint8_t zeros[4096];
    while (nbytes) {
        const size_t n = nbytes < sizeof zeros ? (size_t)nbytes : sizeof zeros;
        MICA_TRY(mica__writer_put(w, zeros, n));
        nbytes -= n;
    }
    return writer_state(w);
}

mica_status mica__writer_align(mica__writer *w, size_t alignment)
{
    return mica__writer_zeros(w, (alignment - w->total % alignment) % alignment);
}

mica_status mica__writer_patch(mica__writer *w, uint64_t offset, const void *data, size_t nbytes)
{
    MICA_TRY(writer_state(w));
    MICA_TRY(writer_flush(w));
    const uint8_t *p = data;
    while (nbytes) {
        const ssize_t n = pwrite(w->fd, p, nbytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return writer_fail(w, "write", n < 0 ? errno : ENOSPC);
        p += n;
        offset += (uint64_t)n;
        nbytes -= (size_t)n;
    }
    return MICA_OK;
}

/* The rename is durable only after an fsync of the folder. Failures are ignored: not every file
 * system supports it, and the data of the file is on the disk already. */
static void sync_folder(const char *path, char *scratch)
{
    const char *slash = strrchr(path, '/');
    const size_t length = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    memcpy(scratch, path, length);
    memcpy(scratch + length, length ? "" : ".", length ? 1 : 2);
    const int fd = open(scratch, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    (void)close(fd);
}

mica_status mica__writer_finish(mica__writer *w)
{
    mica_status status = writer_state(w);
    if (status == MICA_OK) status = writer_flush(w);
    if (status == MICA_OK && fsync(w->fd) != 0) status = writer_fail(w, "sync it to the disk", errno);
    if (w->fd >= 0) {
        const int fd = w->fd;
        w->fd = -1;
        if (close(fd) != 0 && status == MICA_OK) status = writer_fail(w, "close it", errno);
        if (status == MICA_OK && rename(w->temporary, w->path) != 0) status = writer_fail(w, "rename it", errno);
        if (status != MICA_OK) (void)unlink(w->temporary);
        mica__temporary_done(w->temporary);
        if (status == MICA_OK) sync_folder(w->path, w->temporary);
    }
    mica__writer_abandon(w);
    return status;
}

void mica__writer_abandon(mica__writer *w)
{
    if (w->fd >= 0) {
        (void)close(w->fd);
        (void)unlink(w->temporary);
        mica__temporary_done(w->temporary);
    }
    mica__free(w->path);
    mica__free(w->temporary);
    mica__free(w->buffer);
    *w = (mica__writer){.fd = -1, .error = w->error};
}
