/* Deflate (RFC 1951), decoding only, into a buffer of known size; and the
 * checksum of zip. */
#ifndef MICA_IO_INFLATE_H
#define MICA_IO_INFLATE_H

#include "io/map.h"

typedef enum mica__inflate_result {
    MICA__INFLATE_OK,   /* it ended, *written bytes came out          */
    MICA__INFLATE_FULL, /* there was more than the buffer holds       */
    MICA__INFLATE_BAD   /* no valid stream, or it ends too early      */
} mica__inflate_result;

mica__inflate_result mica__inflate(mica__span in, uint8_t *out, size_t cap, size_t *written);

/* Starts with crc 0; the crc of two pieces is the second's with the first's. */
uint32_t mica__crc32(uint32_t crc, const void *data, size_t size);

#endif
