/* A file as read-only memory, mapped or read.
 *
 * Mapping costs the same for any size: pages are read when they are used. If another program makes the file shorter,
 * using a page past the new end raises SIGBUS. mica__map_check detects that the file changed after it was opened; it is
 * called before each evaluation that reads a mapped file (docs/adr/0010-mapped-files.md). A file that was read into
 * memory is a copy and cannot change. */
#ifndef MICA_IO_MAP_H
#define MICA_IO_MAP_H

#include "base/status.h"

typedef struct mica__span {
    const uint8_t *data;
    size_t size;
} mica__span;

typedef struct mica__map {
    mica__span span;
    int fd;            /* of a mapped file; -1: the span is memory of the caller or a copy */
    bool from_file;    /* opened by a path, so files beside it can be opened too           */
    bool owned;        /* the span is a copy                                               */
    size_t size;       /* size of the file when it was opened                              */
    uint64_t identity; /* hash of device, inode, size and time of change                   */
} mica__map;

/* Maps a regular file. MICA_ERR_FILE with the reason for anything else; never waits for a pipe. */
mica_status mica__map_open(const char *path, mica__map *out);
/* The same, but reads the file into memory. MICA_ERR_FILE also if it changes while it is read. */
mica_status mica__map_read(const char *path, mica__map *out);
/* Wraps memory of the caller, which must live as long as the map. */
void mica__map_wrap(const void *data, size_t size, mica__map *out);
void mica__map_close(mica__map *map);
/* MICA_ERR_FILE if a mapped file has changed since it was opened: its size or its time of change. */
mica_status mica__map_check(const mica__map *map, const char *path);

/* The text of an errno, such as "No such file or directory"; thread-safe, unlike strerror. */
enum { MICA__ERRNO_TEXT = 128 };
const char *mica__errno_text(int number, char buffer[MICA__ERRNO_TEXT]);

/* Formats a name from a file for an error message: quoted, without control
 * characters, at most 80 bytes of it. Returns buffer. */
enum { MICA__QUOTE_TEXT = 340 };
const char *mica__quote(char buffer[MICA__QUOTE_TEXT], const char *text, size_t length);

#endif
