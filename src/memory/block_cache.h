/* The free blocks of a memory object, found by size and by age. Not thread-safe
 * and without accounting: memory.c does both. The links are fields of the buffer
 * records, so nothing here allocates or fails. */
#ifndef MICA_MEMORY_BLOCK_CACHE_H
#define MICA_MEMORY_BLOCK_CACHE_H

#include "memory/memory.h"

enum { MICA__CACHE_BUCKETS = 256 };

typedef struct mica__cache {
    mica__buffer *newest, *oldest;
    /* The newest block of each size. `next` links the other sizes of the bucket,
     * `older_same` the other blocks of the same size. */
    mica__buffer *bucket[MICA__CACHE_BUCKETS];
} mica__cache;

void mica__cache_add(mica__cache *cache, mica__buffer *block);
void mica__cache_remove(mica__cache *cache, mica__buffer *block);
/* Removes and returns the newest block of this capacity, because it is most likely
 * still in the CPU caches. NULL if there is no such block. */
mica__buffer *mica__cache_take(mica__cache *cache, size_t capacity);
size_t mica__cache_largest(const mica__cache *cache);

#endif
