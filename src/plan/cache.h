/* A bounded cache of plans, keyed by the structure of their graph; evicts the least
 * recently used. Keys are compared in full. Entries are reference-counted: an entry
 * that is evicted while it runs is freed when it has finished. Thread-safe. */
#ifndef MICA_PLAN_CACHE_H
#define MICA_PLAN_CACHE_H

#include <stdatomic.h>

#include "plan/planner.h"

typedef struct mica__cached {
    atomic_int refs;
    uint64_t hash;
    size_t key_size;
    mica__plan *plan;
    struct mica__cached *chain;          /* next in the same bucket                  */
    struct mica__cached *newer, *older;  /* by last use                              */
    unsigned char key[];
} mica__cached;

typedef struct mica__plan_cache mica__plan_cache;

typedef struct mica__plan_cache_stats {
    uint64_t hits, misses, evictions, count;
} mica__plan_cache_stats;

mica_status mica__plan_cache_new(uint32_t limit, mica__plan_cache **out);
void mica__plan_cache_free(mica__plan_cache *cache);

/* A new reference to an entry, or NULL; counts a hit or a miss. */
mica__cached *mica__plan_cache_find(mica__plan_cache *cache, const void *key, size_t key_size);
/* Takes over the plan (frees it on failure). If another thread was faster, returns
 * its entry and frees this plan. */
mica_status mica__plan_cache_put(mica__plan_cache *cache, const void *key, size_t key_size, mica__plan *plan,
                                 mica__cached **out);
/* A reference-counted entry outside any cache, for compiled functions. Takes over the plan. */
mica_status mica__cached_new(const void *key, size_t key_size, mica__plan *plan, mica__cached **out);
void mica__cached_drop(mica__cached *entry);

void mica__plan_cache_stats_get(mica__plan_cache *cache, mica__plan_cache_stats *out);

#endif
