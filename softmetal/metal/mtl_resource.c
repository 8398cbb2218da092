/* Buffers. Host and device share memory, so all storage modes are the same memory;
 * with private storage the host does not get the address.
 *
 * SM_GUARD=1 puts the end of each buffer at an inaccessible page. Otherwise buffers begin at
 * a page, as on a Mac, and memory past their end is readable, as it usually is there: known
 * kernels read whole tiles at the edge of a matrix and use only a part. */
#include "metal/metal.h"
#include "settings/settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STORAGE_SHIFT = 4, STORAGE_PRIVATE = 2, STORAGE_MEMORYLESS = 3, TRACKING_SHIFT = 8, TRACKING_UNTRACKED = 1 };

/* ---- which buffers are alive --------------------------------------------------------- */

/* A set of live serials, which only increase: one bit for each buffer ever created. */
static pthread_mutex_t alive_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *alive_bits;
static uint64_t alive_capacity, alive_next = 1;

static bool alive_add(mtl_buffer *buffer)
{
    pthread_mutex_lock(&alive_lock);
    bool ok = true;
    if (alive_next >= alive_capacity) {
        const uint64_t capacity = alive_capacity == 0 ? 4096 : alive_capacity * 2;
        unsigned char *bits = realloc(alive_bits, capacity / 8);
        ok = bits != NULL;
        if (ok) {
            memset(bits + alive_capacity / 8, 0, (capacity - alive_capacity) / 8);
            alive_bits = bits;
            alive_capacity = capacity;
        }
    }
    if (ok) {
        buffer->serial = alive_next++;
        alive_bits[buffer->serial / 8] |= (unsigned char)(1u << buffer->serial % 8);
    }
    pthread_mutex_unlock(&alive_lock);
    return ok;
}

static void alive_remove(uint64_t serial)
{
    pthread_mutex_lock(&alive_lock);
    alive_bits[serial / 8] &= (unsigned char)~(1u << serial % 8);
    pthread_mutex_unlock(&alive_lock);
}

bool sm_buffer_alive(uint64_t serial)
{
    pthread_mutex_lock(&alive_lock);
    const bool alive = serial < alive_capacity && (alive_bits[serial / 8] >> serial % 8 & 1) != 0;
    pthread_mutex_unlock(&alive_lock);
    return alive;
}

/* ---- making them ---------------------------------------------------------------------- */

static bool options_known(const char *call, unsigned long options)
{
    const unsigned long storage = options >> STORAGE_SHIFT & 15, tracking = options >> TRACKING_SHIFT & 3;
    if ((options & 15) <= 1 && storage <= STORAGE_PRIVATE && tracking <= 2 && options >> 10 == 0) return true;
    sm_failed("%s: resource options 0x%lx%s", call, options,
              storage == STORAGE_MEMORYLESS ? "; a buffer cannot be memoryless" : " are not known");
    return false;
}

/* Allocates the struct with its serial, without memory for its contents. */
static mtl_buffer *buffer_begin(const char *call, unsigned long length, unsigned long options)
{
    if (sm_device_removed()) {
        sm_failed("%s: the device was removed", call);
        return NULL;
    }
    if (length == 0) {
        sm_failed("%s: the length is 0", call);
        return NULL;
    }
    if (!options_known(call, options)) return NULL;
    if (sm_fault(SM_FAULT_BUFFER, NULL)) return NULL;
    mtl_buffer *buffer = sm_new(&sm_mtl_buffer);
    if (buffer == NULL) return NULL;
    buffer->options = options;
    buffer->length = length;
    if (alive_add(buffer)) return buffer;
    objc_release(buffer);
    return NULL;
}

enum { GPU_PAGE = 16384, READABLE = 1 << 20 }; /* Apple's page size; readable bytes past the last page */

static bool open_memory(mtl_buffer *buffer, size_t length)
{
    const bool guarded = sm_setting_flag(SM_SET_GUARD),
               plain = !guarded && sm_setting_word(SM_SET_CHECK) == SM_CHECK_OFF && length < SIZE_MAX / 4;
    const size_t pages = plain ? (length + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE : length;
    const size_t mapped = plain ? pages + READABLE : length;
    buffer->address = sm_memory_open(mapped, guarded);
    if (buffer->address == NULL) return false;
    buffer->mapped = mapped;
    if (plain) mprotect((char *)buffer->address + pages, READABLE, PROT_READ);
    return true;
}

id sm_buffer_new(const char *call, unsigned long length, unsigned long options, const void *bytes)
{
    mtl_buffer *buffer = buffer_begin(call, length, options);
    if (buffer == NULL) return NULL;
    if (sm_device_reserve(length)) {
        if (open_memory(buffer, length)) {
            if (bytes != NULL) memcpy(buffer->address, bytes, length);
            return buffer;
        }
        sm_device_unreserve(length);
    }
    objc_release(buffer); /* out of memory returns nil; it is not an error of the caller */
    return NULL;
}

id sm_device_buffer(id self, SEL s, unsigned long length, unsigned long options)
{
    return sm_buffer_new(sel_getName(s), length, options, NULL);
}

id sm_device_buffer_of(id self, SEL s, const void *bytes, unsigned long length, unsigned long options)
{
    if (bytes == NULL) {
        sm_failed("%s: the bytes are NULL", sel_getName(s));
        return NULL;
    }
    return sm_buffer_new(sel_getName(s), length, options, bytes);
}

/* On a Mac with Apple silicon both must be multiples of 16 KB; here of this machine's pages. */
id sm_device_buffer_around(id self, SEL s, void *bytes, unsigned long length, unsigned long options,
                           const sm_block *deallocator)
{
    const unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    if (bytes == NULL || (uintptr_t)bytes % page != 0 || length % page != 0) {
        sm_failed("%s: address %p and length %lu must be multiples of the page size, %lu", sel_getName(s), bytes,
                  length, page);
        return NULL;
    }
    if ((options >> STORAGE_SHIFT & 15) == STORAGE_PRIVATE) {
        sm_failed("%s: memory of the host cannot have private storage", sel_getName(s));
        return NULL;
    }
    mtl_buffer *buffer = buffer_begin(sel_getName(s), length, options);
    if (buffer == NULL) return NULL;
    buffer->address = bytes;
    buffer->deallocator = _Block_copy(deallocator);
    return buffer;
}

static void buffer_destroy(id object)
{
    mtl_buffer *self = object;
    if (self->serial != 0) alive_remove(self->serial);
    if (self->mapped > 0) {
        sm_memory_close(self->address, self->mapped);
        sm_device_unreserve(self->length);
    }
    if (self->deallocator != NULL) {
        ((void (*)(sm_block *, void *, unsigned long))self->deallocator->invoke)(self->deallocator, self->address,
                                                                                 self->length);
        _Block_release(self->deallocator);
    }
    if (self->heap != NULL) sm_heap_free_range(self->heap, self->heap_offset, self->length);
    sm_labelled_destroy(self);
}

id sm_buffer_in_heap(const char *call, mtl_heap *heap, unsigned char *memory, size_t offset, size_t length,
                     unsigned long options)
{
    mtl_buffer *buffer = buffer_begin(call, length, options);
    if (buffer == NULL) return NULL;
    buffer->address = memory + offset;
    buffer->heap = objc_retain(heap);
    buffer->heap_offset = offset;
    return buffer;
}

/* ---- what a buffer answers -------------------------------------------------------------- */

static unsigned long buffer_storage(mtl_buffer *self, SEL s) { return self->options >> STORAGE_SHIFT & 15; }
static unsigned long buffer_cache(mtl_buffer *self, SEL s) { return self->options & 15; }
static unsigned long buffer_tracking(mtl_buffer *self, SEL s)
{
    return sm_buffer_tracked(self) ? 2 : TRACKING_UNTRACKED;
}
static unsigned long buffer_options(mtl_buffer *self, SEL s) { return self->options; }
static unsigned long buffer_length(mtl_buffer *self, SEL s) { return self->length; }
static unsigned long buffer_address(mtl_buffer *self, SEL s) { return (unsigned long)(uintptr_t)self->address; }
static id buffer_heap(mtl_buffer *self, SEL s) { return self->heap; }
static unsigned long buffer_heap_offset(mtl_buffer *self, SEL s) { return self->heap_offset; }

static void *buffer_contents(mtl_buffer *self, SEL s)
{
    if (buffer_storage(self, s) != STORAGE_PRIVATE) return self->address;
    sm_failed("-[MTLBuffer contents]: private storage; only the device can read it");
    return NULL;
}

static void buffer_modified(mtl_buffer *self, SEL s, ns_range range)
{
    if (range.location > self->length || range.length > self->length - range.location)
        sm_failed("-[MTLBuffer %s]: bytes %lu to %lu of %zu", sel_getName(s), range.location,
                  range.location + range.length, self->length);
}

/* Memory is never purged: returns the previous state, which is always non-volatile. */
static unsigned long buffer_purgeable(mtl_buffer *self, SEL s, unsigned long state) { return 2; }

/* Default tracking: on for separate buffers, off for buffers of a heap. */
bool sm_buffer_tracked(const mtl_buffer *buffer)
{
    const unsigned long mode = buffer->options >> TRACKING_SHIFT & 3;
    return mode == 0 ? buffer->heap == NULL : mode != TRACKING_UNTRACKED;
}

static void buffer_aliasable(mtl_buffer *self, SEL s)
{
    if (self->heap == NULL) sm_failed("-[MTLBuffer makeAliasable]: the buffer is in no heap");
}

static const sm_method buffer_methods[] = {
    SM_LABEL_METHODS,
    SM_METHOD("contents", buffer_contents),
    SM_METHOD("length", buffer_length),
    SM_METHOD("allocatedSize", buffer_length),
    SM_METHOD("gpuAddress", buffer_address),
    SM_METHOD("storageMode", buffer_storage),
    SM_METHOD("cpuCacheMode", buffer_cache),
    SM_METHOD("hazardTrackingMode", buffer_tracking),
    SM_METHOD("resourceOptions", buffer_options),
    SM_METHOD("didModifyRange:", buffer_modified),
    SM_METHOD("setPurgeableState:", buffer_purgeable),
    SM_METHOD("makeAliasable", buffer_aliasable),
    SM_METHOD("heap", buffer_heap),
    SM_METHOD("heapOffset", buffer_heap_offset),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
static const sm_method buffer_class_methods[] = {SM_METHODS_END};

SM_CLASS(sm_mtl_buffer, "MTLBuffer", &sm_ns_object, mtl_buffer, buffer_destroy, buffer_methods, buffer_class_methods,
         "MTLBuffer MTLResource MTLAllocation", false);
