/* Heaps: one mapping in which buffers are allocated, first fit, at multiples of 256 bytes.
 * Buffers of a heap are untracked by default: the program orders its accesses. */
#include "metal/metal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { HEAP_ALIGNMENT = 256, HEAP_AUTOMATIC = 0, HEAP_PLACEMENT = 1 };

typedef struct mtl_heap_descriptor {
    sm_object object;
    unsigned long size, storage, cache, tracking, type;
} mtl_heap_descriptor;

typedef struct piece {
    size_t offset, length;
} piece;

struct mtl_heap {
    mtl_labelled base;
    size_t size;
    unsigned long options, type;
    unsigned char *memory;
    pthread_mutex_t lock;
    piece *pieces; /* allocated ranges, sorted by offset */
    size_t count, capacity, used;
};

/* ---- the descriptor ------------------------------------------------------------------- */

#define DESCRIBED(field)                                                                      \
    static unsigned long heap_get_##field(mtl_heap_descriptor *d, SEL s) { return d->field; } \
    static void heap_set_##field(mtl_heap_descriptor *d, SEL s, unsigned long v) { d->field = v; }
DESCRIBED(size)
DESCRIBED(storage)
DESCRIBED(cache)
DESCRIBED(tracking)
DESCRIBED(type)

static id heap_descriptor_init(mtl_heap_descriptor *self, SEL s)
{
    self->storage = 2; /* private, the documented default */
    return self;
}

static unsigned long heap_get_resource_options(mtl_heap_descriptor *self, SEL s)
{
    return self->cache | self->storage << 4 | self->tracking << 8;
}

static void heap_set_resource_options(mtl_heap_descriptor *self, SEL s, unsigned long options)
{
    self->cache = options & 15;
    self->storage = options >> 4 & 15;
    self->tracking = options >> 8 & 3;
}

static id heap_descriptor_copy(const mtl_heap_descriptor *self, SEL s) { return sm_copy(self); }

static const sm_method heap_descriptor_methods[] = {
    SM_METHOD("init", heap_descriptor_init),
    SM_COPY_METHODS(heap_descriptor_copy),
    SM_METHOD("size", heap_get_size),
    SM_METHOD("setSize:", heap_set_size),
    SM_METHOD("storageMode", heap_get_storage),
    SM_METHOD("setStorageMode:", heap_set_storage),
    SM_METHOD("cpuCacheMode", heap_get_cache),
    SM_METHOD("setCpuCacheMode:", heap_set_cache),
    SM_METHOD("hazardTrackingMode", heap_get_tracking),
    SM_METHOD("setHazardTrackingMode:", heap_set_tracking),
    SM_METHOD("resourceOptions", heap_get_resource_options),
    SM_METHOD("setResourceOptions:", heap_set_resource_options),
    SM_METHOD("type", heap_get_type),
    SM_METHOD("setType:", heap_set_type),
    SM_METHODS_END,
};
static const sm_method heap_no_methods[] = {SM_METHODS_END};
SM_CLASS(sm_mtl_heap_descriptor, "MTLHeapDescriptor", &sm_ns_object, mtl_heap_descriptor, NULL, heap_descriptor_methods,
         heap_no_methods, "NSCopying", true);

/* ---- the heap ------------------------------------------------------------------------- */

id sm_device_heap(id self, SEL s, id given)
{
    const mtl_heap_descriptor *descriptor = sm_is_a(given, &sm_mtl_heap_descriptor) ? given : NULL;
    if (descriptor == NULL || descriptor->size == 0) {
        sm_failed("%s: the descriptor is nil or its size is 0", sel_getName(s));
        return NULL;
    }
    if (sm_device_removed() || sm_fault(SM_FAULT_BUFFER, NULL)) return NULL;
    mtl_heap *heap = sm_new(&sm_mtl_heap);
    if (heap == NULL) return NULL;
    pthread_mutex_init(&heap->lock, NULL);
    heap->options = heap_get_resource_options(given, s);
    heap->type = descriptor->type;
    if (sm_device_reserve(descriptor->size)) {
        heap->size = descriptor->size;
        heap->memory = sm_memory_open(heap->size, false);
        if (heap->memory != NULL) return heap;
    }
    objc_release(heap);
    return NULL;
}

static void heap_destroy(id object)
{
    mtl_heap *self = object;
    if (self->memory != NULL) sm_memory_close(self->memory, self->size);
    if (self->size > 0) sm_device_unreserve(self->size);
    free(self->pieces);
    pthread_mutex_destroy(&self->lock);
    sm_labelled_destroy(self);
}

static size_t heap_round(size_t length, size_t alignment) { return (length + alignment - 1) / alignment * alignment; }

/* Finds the first gap of that length: its offset and its index in the list; false: none. */
static bool heap_gap(const mtl_heap *self, size_t length, size_t alignment, size_t *offset, size_t *place)
{
    size_t at = 0;
    for (size_t i = 0; i <= self->count; i++) {
        const size_t end = i < self->count ? self->pieces[i].offset : self->size;
        const size_t start = heap_round(at, alignment);
        if (start <= end && length <= end - start) {
            *offset = start;
            *place = i;
            return true;
        }
        if (i < self->count) at = end + self->pieces[i].length;
    }
    return false;
}

/* Call with the lock held. Buffers of placement heaps may overlap; the list is sorted by offset all the same. */
static bool heap_insert(mtl_heap *self, size_t place, size_t offset, size_t length)
{
    if (self->count == self->capacity) {
        const size_t capacity = self->capacity == 0 ? 16 : self->capacity * 2;
        piece *pieces = realloc(self->pieces, capacity * sizeof *pieces);
        if (pieces == NULL) return false;
        self->pieces = pieces;
        self->capacity = capacity;
    }
    memmove(self->pieces + place + 1, self->pieces + place, (self->count - place) * sizeof(piece));
    self->pieces[place] = (piece){offset, length};
    self->count++;
    self->used += length;
    return true;
}

void sm_heap_free_range(mtl_heap *self, size_t offset, size_t length)
{
    pthread_mutex_lock(&self->lock);
    const size_t rounded = heap_round(length, HEAP_ALIGNMENT);
    for (size_t i = 0; i < self->count; i++)
        if (self->pieces[i].offset == offset && self->pieces[i].length == rounded) {
            memmove(self->pieces + i, self->pieces + i + 1, (self->count - i - 1) * sizeof(piece));
            self->count--;
            self->used -= rounded;
            break;
        }
    pthread_mutex_unlock(&self->lock);
    objc_release(self);
}

static id heap_cut(mtl_heap *self, SEL s, size_t length, unsigned long options, size_t offset, bool placed)
{
    const size_t rounded = heap_round(length, HEAP_ALIGNMENT);
    size_t place = 0;
    if (placed && (self->type != HEAP_PLACEMENT || offset % HEAP_ALIGNMENT != 0)) {
        sm_failed("-[MTLHeap %s]: offset %zu; it needs a placement heap and a multiple of %d", sel_getName(s), offset,
                  HEAP_ALIGNMENT);
        return NULL;
    }
    pthread_mutex_lock(&self->lock);
    bool ok = length > 0 && rounded >= length;
    if (ok && placed) {
        ok = offset <= self->size && rounded <= self->size - offset;
        while (place < self->count && self->pieces[place].offset < offset) place++;
    } else if (ok) ok = heap_gap(self, rounded, HEAP_ALIGNMENT, &offset, &place);
    ok = ok && heap_insert(self, place, offset, rounded);
    pthread_mutex_unlock(&self->lock);
    if (!ok) return NULL;
    id buffer = sm_buffer_in_heap(sel_getName(s), self, self->memory, offset, length, options);
    if (buffer == NULL) {
        objc_retain(self); /* sm_heap_free_range releases it */
        sm_heap_free_range(self, offset, length);
    }
    return buffer;
}

static id heap_buffer(mtl_heap *self, SEL s, unsigned long length, unsigned long options)
{
    return heap_cut(self, s, length, options, 0, false);
}
static id heap_buffer_at(mtl_heap *self, SEL s, unsigned long length, unsigned long options, unsigned long offset)
{
    return heap_cut(self, s, length, options, offset, true);
}

static unsigned long heap_size(mtl_heap *self, SEL s) { return self->size; }
static unsigned long heap_used(mtl_heap *self, SEL s)
{
    pthread_mutex_lock(&self->lock);
    const unsigned long used = self->used;
    pthread_mutex_unlock(&self->lock);
    return used;
}
static unsigned long heap_available(mtl_heap *self, SEL s, unsigned long alignment)
{
    const size_t step = alignment < HEAP_ALIGNMENT ? HEAP_ALIGNMENT : alignment;
    size_t best = 0, at = 0;
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i <= self->count; i++) {
        const size_t end = i < self->count ? self->pieces[i].offset : self->size, start = heap_round(at, step);
        if (start < end && end - start > best) best = end - start;
        if (i < self->count) at = end + self->pieces[i].length;
    }
    pthread_mutex_unlock(&self->lock);
    return best;
}
static unsigned long heap_type(mtl_heap *self, SEL s) { return self->type; }
static unsigned long heap_options(mtl_heap *self, SEL s) { return self->options; }
static unsigned long heap_storage(mtl_heap *self, SEL s) { return self->options >> 4 & 15; }
static unsigned long heap_purgeable(id self, SEL s, unsigned long state) { return 2; }

/* The result is an MTLSizeAndAlign: two words, as a range. */
ns_range sm_device_heap_size(id self, SEL s, unsigned long length, unsigned long options)
{
    return (ns_range){heap_round(length, HEAP_ALIGNMENT), HEAP_ALIGNMENT};
}

static const sm_method heap_methods[] = {
    SM_LABEL_METHODS,
    SM_METHOD("newBufferWithLength:options:", heap_buffer),
    SM_METHOD("newBufferWithLength:options:offset:", heap_buffer_at),
    SM_METHOD("size", heap_size),
    SM_METHOD("currentAllocatedSize", heap_size),
    SM_METHOD("allocatedSize", heap_size),
    SM_METHOD("usedSize", heap_used),
    SM_METHOD("maxAvailableSizeWithAlignment:", heap_available),
    SM_METHOD("type", heap_type),
    SM_METHOD("resourceOptions", heap_options),
    SM_METHOD("storageMode", heap_storage),
    SM_METHOD("setPurgeableState:", heap_purgeable),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_heap, "MTLHeap", &sm_ns_object, mtl_heap, heap_destroy, heap_methods, heap_no_methods,
         "MTLHeap MTLAllocation", false);
