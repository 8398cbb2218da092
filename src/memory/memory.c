/* Buffers, limits and accounting. One lock guards all fields of a memory object.
 * Release callbacks of foreign memory run outside the lock, because they may free
 * other buffers. */
#include "memory/memory.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "memory/block_cache.h"
#include "memory/packed.h"
#include "memory/slab.h"

struct mica__memory {
    pthread_mutex_t lock;
    uint64_t limit, cache_limit;
    bool owned;                 /* mica__memory_free was not called yet */
    uint64_t buffers;           /* live ones; the last frees the object */
    mica__buffer *records;      /* free records, for reuse              */
    mica__cache cache;
    mica__memory_stats stats;   /* all but largest_cached and packed    */
    mica__packed_set packed;
    void (*release_device)(void *device); /* may be NULL                 */
    mica__slab *slabs;          /* only with release_device             */
};

size_t mica__memory_round(size_t nbytes)
{
    const size_t unit = nbytes < ((size_t)1 << 20) ? 256 : 16384;
    size_t padded;
    if (!mica__add_size(nbytes ? nbytes : 1, unit - 1, &padded)) return SIZE_MAX;
    return padded - padded % unit;
}

mica_status mica__memory_new(uint64_t limit, uint64_t cache_limit, mica__memory **out)
{
    *out = NULL;
    mica__memory *m = mica__alloc_zero(1, sizeof *m);
    if (!m) return mica__fail_memory("the memory pool", sizeof *m);
    if (pthread_mutex_init(&m->lock, NULL)) {
        mica__free(m);
        return mica__fail(MICA_ERR_MEMORY, "out of memory: the lock of the memory pool");
    }
    if (!mica__packed_init(&m->packed)) {
        pthread_mutex_destroy(&m->lock);
        mica__free(m);
        return mica__fail(MICA_ERR_MEMORY, "out of memory: the lock of the packed copies");
    }
    m->limit = limit;
    m->cache_limit = cache_limit;
    m->owned = true;
    *out = m;
    return MICA_OK;
}

void mica__memory_on_release(mica__memory *m, void (*release)(void *device)) { m->release_device = release; }

/* ------------------------------------------------- under the lock ---------- */

static mica__buffer *record_take(mica__memory *m)
{
    mica__buffer *b = m->records;
    if (b) m->records = b->next;
    else b = mica__alloc(sizeof *b);
    return b;
}

static void record_give(mica__memory *m, mica__buffer *b)
{
    b->next = m->records;
    m->records = b;
}

static void device_release(mica__memory *m, mica__buffer *b)
{
    void *device = atomic_exchange_explicit(&b->device, NULL, memory_order_acquire);
    if (device && m->release_device) m->release_device(device);
}

/* With a device, small blocks are parts of slabs. Otherwise each block is a separate allocation,
 * so that sanitizers detect writes past its end. */
static bool block_pages(mica__memory *m, mica__buffer *b, size_t capacity)
{
    const bool small = m->release_device && capacity < MICA__SLAB_BELOW;
    b->slab = NULL;
    b->data = small ? mica__slab_take(&m->slabs, capacity, &b->slab) : mica__alloc_pages(capacity);
    b->whole = b->slab ? b->slab->data : NULL;
    b->whole_nbytes = b->slab ? MICA__SLAB_BYTES : 0;
    return b->data != NULL;
}

static void block_to_system(mica__memory *m, mica__buffer *b)
{
    device_release(m, b);
    if (b->slab) mica__slab_give(b->slab, b->data, b->capacity);
    else mica__free_pages(b->data, b->capacity);
    m->stats.freed += b->capacity;
    record_give(m, b);
}

static void evict_block(mica__memory *m)
{
    mica__buffer *b = m->cache.oldest;
    mica__cache_remove(&m->cache, b);
    m->stats.cached -= b->capacity;
    block_to_system(m, b);
}

static void evict_down_to(mica__memory *m, uint64_t cached)
{
    while (m->stats.cached > cached) {
        evict_block(m);
        m->stats.evictions++;
    }
}

static uint64_t cache_empty(mica__memory *m)
{
    const uint64_t nbytes = m->stats.cached;
    while (m->cache.oldest) evict_block(m);
    return nbytes;
}

static void records_free(mica__memory *m)
{
    for (mica__buffer *next; m->records; m->records = next) {
        next = m->records->next;
        mica__free(m->records);
    }
}

static uint64_t room_left(const mica__memory *m)
{
    if (m->limit == 0) return UINT64_MAX;
    return m->limit > m->stats.in_use ? m->limit - m->stats.in_use : 0;
}

static mica_status fail_limit(const mica__memory *m, const char *what, uint64_t nbytes)
{
    return mica__fail(MICA_ERR_MEMORY,
                      "%s needs %" PRIu64 " bytes; %" PRIu64 " of the memory limit of %" PRIu64 " bytes are left", what,
                      nbytes, room_left(m), m->limit);
}

static mica_status block_from_system(mica__memory *m, size_t capacity, mica__buffer **out)
{
    const uint64_t room = room_left(m);
    if (capacity > room) return fail_limit(m, "an array", capacity);
    if (m->limit) evict_down_to(m, room - capacity);
    mica__buffer *b = record_take(m);
    if (!b) return mica__fail_memory("an array's record", sizeof *b);
    bool there = block_pages(m, b, capacity);
    if (!there && m->cache.oldest) {
        evict_down_to(m, 0);
        there = block_pages(m, b, capacity);
    }
    if (!there) {
        record_give(m, b);
        return mica__fail_memory("an array", capacity);
    }
    b->capacity = capacity;
    atomic_init(&b->device, NULL);
    m->stats.allocated += capacity;
    m->stats.misses++;
    *out = b;
    return MICA_OK;
}

static mica_status block_new(mica__memory *m, size_t capacity, mica__buffer **out)
{
    *out = mica__cache_take(&m->cache, capacity);
    if (*out) {
        m->stats.cached -= capacity;
        m->stats.hits++;
    } else {
        MICA_TRY(block_from_system(m, capacity, out));
    }
    m->stats.in_use += capacity;
    if (m->stats.in_use > m->stats.peak) m->stats.peak = m->stats.in_use;
    m->buffers++;
    return MICA_OK;
}

/* -------------------------------------------------------------------------- */

/* Unlocks, and frees the object if it has no owner and no buffers. */
static void memory_unlock(mica__memory *m)
{
    const bool last = !m->owned && m->buffers == 0;
    pthread_mutex_unlock(&m->lock);
    if (!last) return;
    cache_empty(m);
    records_free(m);
    mica__packed_destroy(&m->packed);
    pthread_mutex_destroy(&m->lock);
    mica__free(m);
}

void mica__memory_free(mica__memory *m)
{
    if (!m) return;
    pthread_mutex_lock(&m->lock);
    m->owned = false;
    cache_empty(m);
    memory_unlock(m);
}

/* Packed copies are optional: frees them if nbytes would exceed the limit. */
static void make_room(mica__memory *m, uint64_t nbytes)
{
    if (m->limit && atomic_load(&m->packed.count) && nbytes > mica__memory_room(m)) mica__packed_trim(&m->packed);
}

mica_status mica__buffer_new(mica__memory *m, size_t nbytes, mica__buffer **out)
{
    *out = NULL;
    const size_t capacity = mica__memory_round(nbytes);
    if (capacity == SIZE_MAX) return mica__fail(MICA_ERR_SIZE, "an array of %zu bytes cannot be represented", nbytes);
    mica__buffer *b;
    make_room(m, capacity);
    pthread_mutex_lock(&m->lock);
    const mica_status status = block_new(m, capacity, &b);
    pthread_mutex_unlock(&m->lock);
    if (status != MICA_OK) return status;
    atomic_init(&b->refs, 1);
    b->nbytes = nbytes;
    b->memory = m;
    b->release = NULL;
    b->user = NULL;
    b->check = NULL;
    b->file_pages = false;
    b->below = 0;
    b->packed = NULL;
    b->packed_seen = 0;
    b->packing = false;
    b->changes = false;
    *out = b;
    return MICA_OK;
}

mica_status mica__buffer_wrap(mica__memory *m, const void *data, size_t nbytes, mica_release_fn release, void *user,
                              mica__buffer **out)
{
    *out = NULL;
    pthread_mutex_lock(&m->lock);
    mica__buffer *b = record_take(m);
    if (b) m->buffers++;
    pthread_mutex_unlock(&m->lock);
    void *memory = (void *)(uintptr_t)data;
    if (!b) {
        if (release) release(memory, user);
        return mica__fail_memory("an array's record", sizeof *b);
    }
    *b = (mica__buffer){.data = memory, .nbytes = nbytes, .memory = m, .release = release, .user = user};
    atomic_init(&b->refs, 1);
    atomic_init(&b->device, NULL);
    *out = b;
    return MICA_OK;
}

void mica__pages_leave(const void *data, size_t nbytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)data;
    const uintptr_t begin = (at + page - 1) / page * page, end = (at + nbytes) / page * page;
    if (end > begin) (void)madvise((char *)(uintptr_t)data + (begin - at), end - begin, MADV_DONTNEED);
}

mica__buffer *mica__buffer_keep(mica__buffer *buffer)
{
    if (buffer) atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
    return buffer;
}

void mica__buffer_drop(mica__buffer *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) > 1) return;
    mica__memory *m = b->memory;
    if (b->capacity == 0) device_release(m, b);
    if (b->release) b->release(b->data, b->user);
    if (b->packed_seen) mica__packed_release(&m->packed, b);
    pthread_mutex_lock(&m->lock);
    m->buffers--;
    m->stats.in_use -= b->capacity;
    if (b->capacity == 0) {
        record_give(m, b);
    } else if (!m->owned || b->capacity > m->cache_limit) {
        block_to_system(m, b);
    } else {
        /* Evict first: the cache never holds more than its limit. */
        evict_down_to(m, m->cache_limit - b->capacity);
        m->stats.cached += b->capacity;
        mica__cache_add(&m->cache, b);
    }
    memory_unlock(m);
}

mica_status mica__memory_check(mica__memory *m, const char *what, uint64_t nbytes)
{
    if (m->limit == 0) return MICA_OK; /* limit never changes: no lock needed */
    make_room(m, nbytes);
    pthread_mutex_lock(&m->lock);
    const mica_status status = nbytes > room_left(m) ? fail_limit(m, what, nbytes) : MICA_OK;
    pthread_mutex_unlock(&m->lock);
    return status;
}

uint64_t mica__memory_room(mica__memory *m)
{
    pthread_mutex_lock(&m->lock);
    const uint64_t room = room_left(m);
    pthread_mutex_unlock(&m->lock);
    return room;
}

mica__packed_set *mica__memory_packed(mica__memory *m) { return &m->packed; }

uint64_t mica__memory_trim(mica__memory *m)
{
    mica__packed_trim(&m->packed); /* their blocks go into the cache */
    pthread_mutex_lock(&m->lock);
    const uint64_t nbytes = cache_empty(m);
    records_free(m);
    pthread_mutex_unlock(&m->lock);
    return nbytes;
}

void mica__memory_stats_get(mica__memory *m, mica__memory_stats *out)
{
    pthread_mutex_lock(&m->lock);
    *out = m->stats;
    out->largest_cached = mica__cache_largest(&m->cache);
    out->packed = atomic_load(&m->packed.count);
    out->packed_bytes = atomic_load(&m->packed.nbytes);
    pthread_mutex_unlock(&m->lock);
}

void mica__memory_reset_peak(mica__memory *m)
{
    pthread_mutex_lock(&m->lock);
    m->stats.peak = m->stats.in_use;
    pthread_mutex_unlock(&m->lock);
}
