/* The free blocks of a memory object, found by size and by age. Not
 * thread-safe and without accounting: memory.c has both. The links are in the
 * buffer records, so nothing here allocates or fails. */
#ifndef MICA_MEMORY_BLOCK_CACHE_H
#define MICA_MEMORY_BLOCK_CACHE_H

#include "memory/memory.h"

enum { MICA__CACHE_BUCKETS = 256 };

typedef struct mica__cache {
    mica__buffer *newest, *oldest;
    /* For each size the newest block of it; its `next` leads to other sizes of
     * the bucket, `older_same` to more of the same size. */
    mica__buffer *bucket[MICA__CACHE_BUCKETS];
} mica__cache;

void mica__cache_add(mica__cache *cache, mica__buffer *block);
void mica__cache_remove(mica__cache *cache, mica__buffer *block);
/* The newest block of this capacity, most likely still in the caches of the
 * processor; removed from the cache. NULL if there is none. */
mica__buffer *mica__cache_take(mica__cache *cache, size_t capacity);
size_t mica__cache_largest(const mica__cache *cache);

#endif
