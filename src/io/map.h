/* A file as read-only memory.
 *
 * Opening costs no more than the system calls, whatever the size: pages come in
 * when they are touched. A file that another program cuts short while it is
 * mapped cannot be read safely by anybody; mica__map_check tells before long work
 * whether it is still the file that was opened. */
#ifndef MICA_IO_MAP_H
#define MICA_IO_MAP_H

#include "base/status.h"

typedef struct mica__span {
    const uint8_t *data;
    size_t size;
} mica__span;

typedef struct mica__map {
    mica__span span;
    int fd;            /* -1: memory of the caller */
    uint64_t identity; /* of device, inode, size and time of change */
} mica__map;

/* MICA_ERR_FILE, with what the system says, for what is no readable file. */
mica_status mica__map_open(const char *path, mica__map *out);
/* Somebody else's memory, which must live as long. */
void mica__map_wrap(const void *data, size_t size, mica__map *out);
void mica__map_close(mica__map *map);
/* MICA_ERR_FILE if the file has changed since it was opened. */
mica_status mica__map_check(const mica__map *map, const char *path);

/* "No such file or directory": the text of an errno, without strerror's races. */
enum { MICA__ERRNO_TEXT = 128 };
const char *mica__errno_text(int number, char buffer[MICA__ERRNO_TEXT]);

/* A name out of a file, fit for a message: quotes, no control characters, no
 * more than 80 bytes. Returns buffer. */
enum { MICA__QUOTE_TEXT = 340 };
const char *mica__quote(char buffer[MICA__QUOTE_TEXT], const char *text, size_t length);

#endif
