/* See map.h. */
#include "io/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"

static const uint8_t empty_file[1];

const char *mica__errno_text(int number, char buffer[MICA__ERRNO_TEXT])
{
#if defined(__GLIBC__)
    return strerror_r(number, buffer, MICA__ERRNO_TEXT);
#else
    if (strerror_r(number, buffer, MICA__ERRNO_TEXT) != 0) snprintf(buffer, MICA__ERRNO_TEXT, "error %d", number);
    return buffer;
#endif
}

const char *mica__quote(char buffer[MICA__QUOTE_TEXT], const char *text, size_t length)
{
    enum { SHOWN = 80 };
    char *p = buffer;
    *p++ = '\'';
    for (size_t i = 0; i < length && i < SHOWN; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c < 0x7f) *p++ = (char)c;
        else p += snprintf(p, 5, "\\x%02x", c);
    }
    snprintf(p, 6, length > SHOWN ? "...'" : "'");
    return buffer;
}

static mica_status fail_errno(const char *path, const char *doing)
{
    char text[MICA__ERRNO_TEXT];
    return mica__fail(MICA_ERR_FILE, "%s: cannot %s: %s", path, doing, mica__errno_text(errno, text));
}

static uint64_t file_identity(const struct stat *s)
{
#if defined(__APPLE__)
    const struct timespec changed = s->st_mtimespec;
#else
    const struct timespec changed = s->st_mtim;
#endif
    const uint64_t facts[] = {(uint64_t)s->st_dev, (uint64_t)s->st_ino, (uint64_t)s->st_size, (uint64_t)changed.tv_sec,
                              (uint64_t)changed.tv_nsec};
    return mica__hash(facts, sizeof facts, 0);
}

/* Size and identity of a regular file that fits into memory. */
static mica_status look_at(const char *path, mica__map *map, size_t *size)
{
    struct stat s;
    if (fstat(map->fd, &s) != 0) return fail_errno(path, "read its attributes");
    if (!S_ISREG(s.st_mode))
        return mica__fail(MICA_ERR_FILE, "%s: is %s, not a file", path,
                          S_ISDIR(s.st_mode)    ? "a folder"
                          : S_ISFIFO(s.st_mode) ? "a pipe"
                                                : "a device");
    if ((uintmax_t)s.st_size > SIZE_MAX / 2)
        return mica__fail(MICA_ERR_FILE, "%s: its %jd bytes do not fit into the address space", path,
                          (intmax_t)s.st_size);
    map->identity = file_identity(&s);
    *size = map->size = (size_t)s.st_size;
    return MICA_OK;
}

/* O_NONBLOCK: opening a pipe without a writer must not wait. */
static mica_status open_file(const char *path, mica__map *out, size_t *size)
{
    *out = (mica__map){.span = {empty_file, 0}, .fd = -1, .from_file = true};
    do out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (out->fd < 0 && errno == EINTR);
    if (out->fd < 0) return fail_errno(path, "open it");
    return look_at(path, out, size);
}

mica_status mica__map_open(const char *path, mica__map *out)
{
    size_t size;
    mica_status status = open_file(path, out, &size);
    if (status == MICA_OK && size) {
        /* Shared: a GPU reads these pages through a buffer without a copy, and they must be those of the file. */
        void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, out->fd, 0);
        if (p == MAP_FAILED) status = fail_errno(path, "map it into memory");
        else out->span = (mica__span){p, size};
    }
    if (status != MICA_OK) mica__map_close(out);
    return status;
}

static mica_status read_all(const char *path, int fd, uint8_t *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        /* macOS refuses more than 2^31 - 1 bytes at once */
        const ssize_t n = read(fd, to + at, size - at < (1u << 30) ? size - at : 1u << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(path, "read it");
        if (n == 0)
            return mica__fail(MICA_ERR_FILE, "%s: became shorter while it was read: %zu of %zu bytes", path, at, size);
        at += (size_t)n;
    }
    return MICA_OK;
}

mica_status mica__map_read(const char *path, mica__map *out)
{
    size_t size;
    mica__map file;
    mica_status status = open_file(path, &file, &size);
    uint8_t *memory = status == MICA_OK && size ? mica__alloc_pages(size) : NULL;
    if (status == MICA_OK && size && !memory) status = mica__fail_memory("a file that is read", size);
    if (status == MICA_OK) status = read_all(path, file.fd, memory, size);
    if (status == MICA_OK) status = mica__map_check(&file, path);
    mica__map_close(&file);
    *out = (mica__map){.span = {empty_file, 0}, .fd = -1, .from_file = true};
    if (status == MICA_OK && memory) {
        out->span = (mica__span){memory, size};
        out->owned = true;
    } else if (memory) mica__free_pages(memory, size);
    return status;
}

void mica__map_wrap(const void *data, size_t size, mica__map *out)
{
    *out = (mica__map){.span = {size ? data : empty_file, size}, .fd = -1};
}

void mica__map_close(mica__map *map)
{
    if (map->fd >= 0) {
        if (map->span.size) (void)munmap((void *)(uintptr_t)map->span.data, map->span.size);
        (void)close(map->fd);
    }
    if (map->owned) mica__free_pages((void *)(uintptr_t)map->span.data, map->span.size);
    *map = (mica__map){.span = {empty_file, 0}, .fd = -1};
}

mica_status mica__map_check(const mica__map *map, const char *path)
{
    struct stat s;
    if (map->fd < 0) return MICA_OK;
    if (fstat(map->fd, &s) != 0) return fail_errno(path, "read its attributes");
    if (file_identity(&s) != map->identity)
        return mica__fail(MICA_ERR_FILE, "%s: was changed while it was in use: %zu bytes when opened, %jd now", path,
                          map->size, (intmax_t)s.st_size);
    return MICA_OK;
}
