/* See metal_buffer.h. Pages are wrapped as MTLBuffers without a copy. If an array is part of
 * a slab or of a mapped file, the whole is wrapped once and all its arrays share that MTLBuffer.
 * Otherwise the pages that contain the array are wrapped. They may contain other data too: two
 * MTLBuffers of the same page are the same memory. */
#include "backend/metal/metal_buffer.h"

#include <pthread.h>
#include <unistd.h>

#include "backend/metal/metal_residency.h"
#include "base/alloc.h"

enum { BUFFER_BUCKETS = 64 };

/* mica__buffer.device: an MTLBuffer and the pages that it wraps. */
typedef struct metal_region {
    mica__id buffer;
    uintptr_t begin;
    size_t nbytes;
    int refs;                   /* buffers that use it               */
    bool resident;
    struct metal_region *next;  /* in its bucket                     */
    struct metal_region **link; /* the pointer to this region; NULL: not shared */
} metal_region;

static struct {
    pthread_mutex_t lock;
    metal_region *bucket[BUFFER_BUCKETS]; /* shared regions, by begin */
    uint64_t alive;
} regions = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A dummy page for buffers without elements. It and its region are never freed. */
static _Alignas(16384) char metal_empty_page[16384];

static metal_region metal_empty_region;
static mica__buffer metal_empty_buffer = {.data = metal_empty_page, .nbytes = sizeof metal_empty_page};

/* MTLResourceStorageModeShared | MTLResourceHazardTrackingModeUntracked */
enum { BUFFER_OPTIONS = 0x100 };

static uintptr_t page_size(void)
{
    static atomic_ulong size;
    unsigned long n = atomic_load_explicit(&size, memory_order_relaxed);
    if (n == 0) {
        n = (unsigned long)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&size, n, memory_order_relaxed);
    }
    return n;
}

/* The whole pages around some memory. */
static metal_region region_around(const void *data, size_t nbytes)
{
    const uintptr_t page = page_size(), at = (uintptr_t)data, begin = at / page * page;
    return (metal_region){.begin = begin, .nbytes = (at + nbytes + page - 1) / page * page - begin, .refs = 1};
}

static mica_status region_new(const mica__metal_device *device, const metal_region *from, metal_region **out)
{
    const bool stays = from->begin == (uintptr_t)metal_empty_page;
    metal_region *r = stays ? &metal_empty_region : mica__alloc(sizeof *r);
    if (!r) return mica__fail_memory("metal: a buffer", sizeof *r);
    *r = *from;
    void *pool = mica__objc.pool_push();
    r->buffer = MICA__SEND4(mica__id, device->device, newBufferWithBytesNoCopy, void *, (void *)r->begin, unsigned long,
                            r->nbytes, unsigned long, BUFFER_OPTIONS, void *, NULL);
    if (r->buffer) r->resident = mica__residency_add(device, r->buffer, r->nbytes);
    mica__objc.pool_pop(pool);
    if (!r->buffer) {
        if (!stays) mica__free(r);
        return mica__fail(MICA_ERR_MEMORY, "metal: the device cannot use %zu more bytes", from->nbytes);
    }
    regions.alive++;
    *out = r;
    return MICA_OK;
}

/* Under the lock. Finds or makes the shared region of a slab or mapped file. */
static mica_status region_share(const mica__metal_device *device, const metal_region *whole, metal_region **out)
{
    metal_region **bucket = &regions.bucket[whole->begin / page_size() % BUFFER_BUCKETS], *r = *bucket;
    while (r && (r->begin != whole->begin || r->nbytes != whole->nbytes)) r = r->next;
    if (r) {
        r->refs++;
        *out = r;
        return MICA_OK;
    }
    MICA_TRY(region_new(device, whole, &r));
    r->next = *bucket;
    r->link = bucket;
    if (r->next) r->next->link = &r->next;
    *out = *bucket = r;
    return MICA_OK;
}

/* Under the lock. Wraps the whole slab or file, or only the array if the whole exceeds the device's limits. */
static mica_status buffer_wrap(const mica__metal_device *device, mica__buffer *buffer, metal_region **out)
{
    const mica__gpu_limits *l = &device->limits;
    if (buffer->whole_nbytes) {
        const metal_region whole = region_around(buffer->whole, buffer->whole_nbytes);
        if (whole.nbytes <= l->max_buffer_bytes && whole.nbytes <= l->budget_bytes)
            return region_share(device, &whole, out);
    }
    const metal_region own =
        region_around((char *)buffer->data - buffer->below, buffer->capacity ? buffer->capacity : buffer->nbytes);
    if (own.nbytes > l->max_buffer_bytes)
        return mica__fail(MICA_ERR_MEMORY, "metal: an array of %zu bytes; %s takes at most %llu in one buffer",
                          buffer->nbytes, l->name, (unsigned long long)l->max_buffer_bytes);
    return region_new(device, &own, out);
}

static mica_status buffer_region(const mica__metal_device *device, mica__buffer *buffer, metal_region **out)
{
    mica_status status = MICA_OK;
    pthread_mutex_lock(&regions.lock);
    *out = atomic_load_explicit(&buffer->device, memory_order_relaxed); /* another thread may have been faster */
    if (!*out) {
        status = buffer_wrap(device, buffer, out);
        if (status == MICA_OK) atomic_store_explicit(&buffer->device, *out, memory_order_release);
    }
    pthread_mutex_unlock(&regions.lock);
    return status;
}

mica_status mica__metal_buffer(const mica__metal_device *device, mica__buffer *buffer, const char *data, int64_t nbytes,
                               mica__id *out, unsigned long *offset)
{
    if (!buffer || !data || buffer->nbytes == 0) {
        buffer = &metal_empty_buffer;
        data = metal_empty_page;
        nbytes = 0;
    }
    metal_region *r = atomic_load_explicit(&buffer->device, memory_order_acquire);
    if (!r) MICA_TRY(buffer_region(device, buffer, &r));
    *out = r->buffer;
    *offset = (unsigned long)((uintptr_t)data + (uintptr_t)nbytes - r->begin);
    return MICA_OK;
}

void mica__metal_buffer_release(void *device)
{
    metal_region *r = device;
    if (!r) return;
    pthread_mutex_lock(&regions.lock);
    const bool last = --r->refs == 0;
    if (last) {
        if (r->link) *r->link = r->next;
        if (r->link && r->next) r->next->link = r->link;
        regions.alive--;
        void *pool = mica__objc.pool_push();
        mica__residency_remove(r->buffer, r->nbytes, r->resident);
        mica__objc.release(r->buffer);
        mica__objc.pool_pop(pool);
        mica__free(r);
    }
    pthread_mutex_unlock(&regions.lock);
}

uint64_t mica__metal_buffers(void)
{
    pthread_mutex_lock(&regions.lock);
    const uint64_t n = regions.alive;
    pthread_mutex_unlock(&regions.lock);
    return n;
}
