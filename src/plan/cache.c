/* See cache.h. */
#include "plan/cache.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { BUCKETS = 1024 };

struct mica__plan_cache {
    pthread_mutex_t lock;
    uint32_t limit;
    mica__plan_cache_stats stats;
    mica__cached *newest, *oldest;
    mica__cached *bucket[BUCKETS];
};

mica_status mica__plan_cache_new(uint32_t limit, mica__plan_cache **out)
{
    *out = NULL;
    mica__plan_cache *c = mica__alloc_zero(1, sizeof *c);
    if (!c) return mica__fail_memory("open: the plan cache", sizeof *c);
    c->limit = limit ? limit : 1;
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return MICA_OK;
}

void mica__cached_drop(mica__cached *e)
{
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
    mica__plan_free(e->plan);
    mica__free(e);
}

void mica__plan_cache_free(mica__plan_cache *c)
{
    if (!c) return;
    for (mica__cached *e = c->newest, *older; e; e = older) {
        older = e->older;
        mica__cached_drop(e);
    }
    pthread_mutex_destroy(&c->lock);
    mica__free(c);
}

static void unlink_age(mica__plan_cache *c, mica__cached *e)
{
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_newest(mica__plan_cache *c, mica__cached *e)
{
    e->newer = NULL;
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static mica__cached *find_locked(mica__plan_cache *c, uint64_t hash, const void *key, size_t key_size)
{
    mica__cached *e = c->bucket[hash % BUCKETS];
    while (e && !(e->hash == hash && e->key_size == key_size && (key_size == 0 || memcmp(e->key, key, key_size) == 0)))
        e = e->chain;
    if (e) {
        unlink_age(c, e);
        link_newest(c, e);
        atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    }
    return e;
}

mica__cached *mica__plan_cache_find(mica__plan_cache *c, const void *key, size_t key_size)
{
    const uint64_t hash = mica__hash(key, key_size, 0);
    pthread_mutex_lock(&c->lock);
    mica__cached *e = find_locked(c, hash, key, key_size);
    if (e) c->stats.hits++;
    else c->stats.misses++;
    pthread_mutex_unlock(&c->lock);
    return e;
}

static mica__cached *evict_oldest(mica__plan_cache *c)
{
    mica__cached *e = c->oldest;
    unlink_age(c, e);
    mica__cached **at = &c->bucket[e->hash % BUCKETS];
    while (*at != e) at = &(*at)->chain;
    *at = e->chain;
    c->stats.evictions++;
    c->stats.count--;
    return e;
}

mica_status mica__cached_new(const void *key, size_t key_size, mica__plan *plan, mica__cached **out)
{
    mica__cached *e = mica__alloc_zero(1, sizeof *e + key_size);
    *out = e;
    if (!e) {
        mica__plan_free(plan);
        return mica__fail_memory("plan cache: an entry", sizeof *e + key_size);
    }
    atomic_init(&e->refs, 1);
    e->hash = mica__hash(key, key_size, 0);
    e->key_size = key_size;
    e->plan = plan;
    if (key_size) memcpy(e->key, key, key_size);
    return MICA_OK;
}

mica_status mica__plan_cache_put(mica__plan_cache *c, const void *key, size_t key_size, mica__plan *plan,
                                 mica__cached **out)
{
    mica__cached *fresh, *evicted = NULL;
    MICA_TRY(mica__cached_new(key, key_size, plan, &fresh));
    pthread_mutex_lock(&c->lock);
    mica__cached *there = find_locked(c, fresh->hash, key, key_size);
    if (!there) {
        if (c->stats.count == c->limit) evicted = evict_oldest(c);
        fresh->chain = c->bucket[fresh->hash % BUCKETS];
        c->bucket[fresh->hash % BUCKETS] = fresh;
        link_newest(c, fresh);
        atomic_fetch_add_explicit(&fresh->refs, 1, memory_order_relaxed);
        c->stats.count++;
    }
    pthread_mutex_unlock(&c->lock);
    mica__cached_drop(evicted);
    if (there) mica__cached_drop(fresh);
    *out = there ? there : fresh;
    return MICA_OK;
}

void mica__plan_cache_stats_get(mica__plan_cache *c, mica__plan_cache_stats *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->stats;
    pthread_mutex_unlock(&c->lock);
}
