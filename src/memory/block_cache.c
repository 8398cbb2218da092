/* Free blocks are in two kinds of lists: one of all blocks by age, and one for each
 * size by age. A hash bucket links only the newest block of each size, so it stays
 * short however many blocks of a size are free. */
#include "memory/block_cache.h"

#include "base/hash.h"

static mica__buffer **size_slot(mica__cache *cache, size_t capacity)
{
    mica__buffer **slot = &cache->bucket[mica__hash_u64(capacity) % MICA__CACHE_BUCKETS];
    while (*slot && (*slot)->capacity != capacity) slot = &(*slot)->next;
    return slot;
}

void mica__cache_add(mica__cache *cache, mica__buffer *block)
{
    block->newer = NULL;
    block->older = cache->newest;
    if (cache->newest) cache->newest->newer = block;
    else cache->oldest = block;
    cache->newest = block;

    mica__buffer **slot = size_slot(cache, block->capacity);
    mica__buffer *same = *slot;
    block->newer_same = NULL;
    block->older_same = same;
    block->next = same ? same->next : NULL;
    if (same) same->newer_same = block;
    *slot = block;
}

void mica__cache_remove(mica__cache *cache, mica__buffer *block)
{
    if (block->newer) block->newer->older = block->older;
    else cache->newest = block->older;
    if (block->older) block->older->newer = block->newer;
    else cache->oldest = block->newer;

    mica__buffer *older = block->older_same;
    if (older) older->newer_same = block->newer_same;
    if (block->newer_same) {
        block->newer_same->older_same = older;
    } else {
        mica__buffer **slot = size_slot(cache, block->capacity);
        if (older) older->next = block->next;
        *slot = older ? older : block->next;
    }
    block->newer = block->older = block->newer_same = block->older_same = block->next = NULL;
}

mica__buffer *mica__cache_take(mica__cache *cache, size_t capacity)
{
    mica__buffer *block = *size_slot(cache, capacity);
    if (block) mica__cache_remove(cache, block);
    return block;
}

size_t mica__cache_largest(const mica__cache *cache)
{
    size_t largest = 0;
    for (int i = 0; i < MICA__CACHE_BUCKETS; i++)
        for (const mica__buffer *b = cache->bucket[i]; b; b = b->next)
            if (b->capacity > largest) largest = b->capacity;
    return largest;
}
