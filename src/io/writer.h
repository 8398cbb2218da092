/* A file that appears whole or not at all: bytes go to a temporary name in the
 * same folder, which becomes the final name when everything is on the disk. The
 * first failure sticks, so a caller may check once, at the end. */
#ifndef MICA_IO_WRITER_H
#define MICA_IO_WRITER_H

#include "base/status.h"

typedef struct mica__writer {
    int fd;             /* -1: not open */
    char *path, *temporary;
    uint8_t *buffer;
    size_t used;
    uint64_t total;     /* bytes put so far */
    mica__error error;  /* the first failure */
} mica__writer;

mica_status mica__writer_open(mica__writer *w, const char *path);
mica_status mica__writer_put(mica__writer *w, const void *data, size_t nbytes);
mica_status mica__writer_zeros(mica__writer *w, uint64_t nbytes);
/* Zeros up to a multiple of alignment. */
mica_status mica__writer_align(mica__writer *w, size_t alignment);
/* Replaces bytes that were put before. */
mica_status mica__writer_patch(mica__writer *w, uint64_t offset, const void *data, size_t nbytes);
/* Makes it visible, or removes it. The writer is closed either way. */
mica_status mica__writer_finish(mica__writer *w);
/* Removes what was written, if finish was not called. */
void mica__writer_abandon(mica__writer *w);

#endif
