/* See metal_residency.h. Additions are collected until a command buffer is committed. Removals
 * take effect at once, because the memory is freed next. */
#include "backend/metal/metal_residency.h"

#include <pthread.h>

enum { RESIDENCY_CAPACITY = 256, RESIDENCY_REQUEST = 1 << 20 };

static struct {
    pthread_mutex_t lock;
    mica__id set;               /* NULL: not made yet, or not supported */
    uint64_t in, out, added;    /* bytes inside, outside, added since the last commit */
    atomic_bool changed;
} residency = {.lock = PTHREAD_MUTEX_INITIALIZER};

static mica__id residency_set(const mica__metal_device *device)
{
    if (residency.set || !device->residency) return residency.set;
    mica__id class = mica__objc.get_class("MTLResidencySetDescriptor"), error = NULL;
    mica__id made = class ? MICA__SEND0(mica__id, class, alloc) : NULL;
    mica__id descriptor = made ? MICA__SEND0(mica__id, made, init) : NULL, label = mica__objc_string("mica");
    if (descriptor && label) {
        MICA__SEND1(void, descriptor, setLabel, mica__id, label);
        MICA__SEND1(void, descriptor, setInitialCapacity, unsigned long, RESIDENCY_CAPACITY);
        residency.set =
            MICA__SEND2(mica__id, device->device, newResidencySet, mica__id, descriptor, mica__id *, &error);
    }
    mica__objc.release(label);
    mica__objc.release(descriptor);
    return residency.set;
}

void mica__residency_attach(const mica__metal_device *device, mica__id queue)
{
    void *pool = mica__objc.pool_push();
    pthread_mutex_lock(&residency.lock);
    mica__id set = residency_set(device);
    if (set) MICA__SEND1(void, queue, addResidencySet, mica__id, set);
    pthread_mutex_unlock(&residency.lock);
    mica__objc.pool_pop(pool);
}

void mica__residency_detach(mica__id queue)
{
    pthread_mutex_lock(&residency.lock);
    if (residency.set) MICA__SEND1(void, queue, removeResidencySet, mica__id, residency.set);
    pthread_mutex_unlock(&residency.lock);
}

bool mica__residency_add(const mica__metal_device *device, mica__id buffer, uint64_t nbytes)
{
    pthread_mutex_lock(&residency.lock);
    const bool fits = residency.set && residency.in <= device->limits.budget_bytes &&
                      nbytes <= device->limits.budget_bytes - residency.in;
    if (fits) {
        MICA__SEND1(void, residency.set, addAllocation, mica__id, buffer);
        residency.in += nbytes;
        residency.added += nbytes;
        atomic_store_explicit(&residency.changed, true, memory_order_relaxed);
    } else {
        residency.out += nbytes;
    }
    pthread_mutex_unlock(&residency.lock);
    return fits;
}

void mica__residency_remove(mica__id buffer, uint64_t nbytes, bool resident)
{
    pthread_mutex_lock(&residency.lock);
    if (resident) {
        MICA__SEND1(void, residency.set, removeAllocation, mica__id, buffer);
        MICA__SEND0(void, residency.set, commit);
        residency.in -= nbytes;
    } else {
        residency.out -= nbytes;
    }
    pthread_mutex_unlock(&residency.lock);
}

void mica__residency_commit(void)
{
    if (!atomic_load_explicit(&residency.changed, memory_order_relaxed)) return;
    pthread_mutex_lock(&residency.lock);
    MICA__SEND0(void, residency.set, commit);
    /* starts now, so that the first kernel does not wait for it */
    if (residency.added >= RESIDENCY_REQUEST) MICA__SEND0(void, residency.set, requestResidency);
    residency.added = 0;
    atomic_store_explicit(&residency.changed, false, memory_order_relaxed);
    pthread_mutex_unlock(&residency.lock);
}

void mica__residency_count(uint64_t *in, uint64_t *out)
{
    pthread_mutex_lock(&residency.lock);
    *in = residency.in;
    *out = residency.out;
    pthread_mutex_unlock(&residency.lock);
}
