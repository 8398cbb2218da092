/* A 64-bit hash for table look-ups. All users compare the full keys too, so a
 * collision costs time but never gives a wrong answer. That is why a simple
 * hash is enough and no library is needed. */
#ifndef MICA_BASE_HASH_H
#define MICA_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t mica__hash(const void *data, size_t nbytes, uint64_t seed);
uint64_t mica__hash_u64(uint64_t value);

#endif
