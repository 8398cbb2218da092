/* A Deflate decoder (RFC 1951) into a buffer of known size, and the CRC-32 of zip. */
#ifndef MICA_IO_INFLATE_H
#define MICA_IO_INFLATE_H

#include "io/map.h"

typedef enum mica__inflate_result {
    MICA__INFLATE_OK,   /* complete; *written bytes were decoded      */
    MICA__INFLATE_FULL, /* the data are larger than the buffer        */
    MICA__INFLATE_BAD   /* not a valid stream, or it ends too early   */
} mica__inflate_result;

mica__inflate_result mica__inflate(mica__span in, uint8_t *out, size_t cap, size_t *written);

/* crc is 0 for the first piece of data, then the result for the previous piece. */
uint32_t mica__crc32(uint32_t crc, const void *data, size_t size);

#endif
