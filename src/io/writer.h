/* Writes a file that appears complete or not at all: bytes are written to a temporary
 * file in the same folder, which is renamed when everything is on the disk. The
 * first failure sticks, so a caller may check once, at the end. */
#ifndef MICA_IO_WRITER_H
#define MICA_IO_WRITER_H

#include "base/status.h"

typedef struct mica__writer {
    int fd;             /* -1: not open */
    char *path, *temporary;
    uint8_t *buffer;
    size_t used;
    uint64_t total;     /* bytes written so far */
    mica__error error;  /* the first failure */
} mica__writer;

mica_status mica__writer_open(mica__writer *w, const char *path);
mica_status mica__writer_put(mica__writer *w, const void *data, size_t nbytes);
mica_status mica__writer_zeros(mica__writer *w, uint64_t nbytes);
/* Writes zeros up to a multiple of alignment. */
mica_status mica__writer_align(mica__writer *w, size_t alignment);
/* Replaces bytes that were written before. */
mica_status mica__writer_patch(mica__writer *w, uint64_t offset, const void *data, size_t nbytes);
/* Renames the file to its path, or removes it after a failure. Closes the writer in both cases. */
mica_status mica__writer_finish(mica__writer *w);
/* Removes the temporary file, if finish was not called. */
void mica__writer_abandon(mica__writer *w);

#endif
