/* Memory the GPU sees: the pages a buffer lies in, wrapped without a copy. Pages that other
 * data shares do no harm; two wrappings of one page are the same memory. */
#include <unistd.h>

#include "backend/metal/metal_work.h"

/* Where nothing is read: a place for buffers without elements. */
static _Alignas(16384) char metal_nothing[16384];

static mica__buffer metal_nobody = {.data = metal_nothing, .nbytes = sizeof metal_nothing};

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

static mica_status buffer_wrap(const mica__metal_device *device, mica__buffer *buffer, mica__id *out)
{
    const uintptr_t page = page_size(), at = (uintptr_t)buffer->data - buffer->below, begin = at / page * page;
    const size_t nbytes = buffer->capacity ? buffer->capacity : buffer->nbytes;
    const uintptr_t end = (at + nbytes + page - 1) / page * page;
    if (end - begin > device->limits.max_buffer_bytes)
        return mica__fail(MICA_ERR_MEMORY, "metal: an array of %zu bytes; %s takes at most %llu in one buffer",
                          buffer->nbytes, device->limits.name, (unsigned long long)device->limits.max_buffer_bytes);
    void *pool = mica__objc.pool_push();
    mica__id made = MICA__SEND4(mica__id, device->device, newBufferWithBytesNoCopy, void *,
                                (char *)buffer->data - buffer->below - (at - begin), unsigned long, end - begin,
                                unsigned long, BUFFER_OPTIONS, void *, NULL);
    mica__objc.pool_pop(pool);
    if (!made) return mica__fail(MICA_ERR_MEMORY, "metal: the device cannot use %zu bytes more", nbytes);
    void *before = NULL; /* another thread may have been faster */
    if (!atomic_compare_exchange_strong(&buffer->device, &before, made)) {
        mica__objc.release(made);
        made = before;
    }
    *out = made;
    return MICA_OK;
}

mica_status mica__metal_buffer(const mica__metal_device *device, mica__buffer *buffer, const char *data, int64_t nbytes,
                               mica__id *out, unsigned long *offset)
{
    if (!buffer || !data || buffer->nbytes == 0) {
        buffer = &metal_nobody;
        data = metal_nothing;
        nbytes = 0;
    }
    *out = atomic_load_explicit(&buffer->device, memory_order_acquire);
    if (!*out) MICA_TRY(buffer_wrap(device, buffer, out));
    const uintptr_t lowest = (uintptr_t)buffer->data - buffer->below;
    *offset = (unsigned long)((uintptr_t)data + (uintptr_t)nbytes - lowest / page_size() * page_size());
    return MICA_OK;
}

void mica__metal_buffer_forget(void *device)
{
    void *pool = mica__objc.pool_push();
    mica__objc.release(device);
    mica__objc.pool_pop(pool);
}
