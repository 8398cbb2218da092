/* A 64-bit hash for table look-ups. Whoever uses it compares the full keys as
 * well, so a collision costs time and never a wrong answer; that is why no
 * library is needed here. */
#ifndef MICA_BASE_HASH_H
#define MICA_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t mica__hash(const void *data, size_t nbytes, uint64_t seed);
uint64_t mica__hash_u64(uint64_t value);

#endif
