/* Residency sets. All memory is resident here; the set counts what it holds, so that
 * a program's bookkeeping can be tested. Changes take effect at commit, as in Metal. */
#include "metal/metal.h"

static const sm_method residency_no_methods[] = {SM_METHODS_END};

typedef struct mtl_residency_descriptor {
    mtl_labelled base;
    unsigned long capacity;
} mtl_residency_descriptor;

typedef struct mtl_residency_set {
    mtl_labelled base;
    sm_array *allocations; /* includes additions that are not committed yet */
    unsigned long size;    /* bytes, as of the last commit */
} mtl_residency_set;

static unsigned long residency_capacity(mtl_residency_descriptor *self, SEL s) { return self->capacity; }
static void residency_set_capacity(mtl_residency_descriptor *self, SEL s, unsigned long v) { self->capacity = v; }
static id residency_descriptor_copy(const mtl_residency_descriptor *self, SEL s) { return sm_copy_labelled(self); }
static const sm_method residency_descriptor_methods[] = {
    SM_LABEL_METHODS,
    SM_COPY_METHODS(residency_descriptor_copy),
    SM_METHOD("initialCapacity", residency_capacity),
    SM_METHOD("setInitialCapacity:", residency_set_capacity),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_residency_descriptor, "MTLResidencySetDescriptor", &sm_ns_object, mtl_residency_descriptor,
         sm_labelled_destroy, residency_descriptor_methods, residency_no_methods, "NSCopying", true);

id sm_device_residency_set(id self, SEL s, id descriptor, id *error)
{
    if (error != NULL) *error = NULL;
    if (!sm_is_a(descriptor, &sm_mtl_residency_descriptor)) {
        sm_failed("%s: the descriptor is nil or not an MTLResidencySetDescriptor", sel_getName(s));
        return NULL;
    }
    mtl_residency_set *set = sm_new(&sm_mtl_residency_set);
    if (set == NULL) return NULL;
    set->base.label = objc_retain(((mtl_residency_descriptor *)descriptor)->base.label);
    set->allocations = sm_array_new(&sm_ns_array, NULL, 0);
    if (set->allocations != NULL) return set;
    objc_release(set);
    return NULL;
}

static void residency_destroy(id object)
{
    objc_release(((mtl_residency_set *)object)->allocations);
    sm_labelled_destroy(object);
}

static long residency_find(const mtl_residency_set *self, id allocation)
{
    for (unsigned long i = 0; i < self->allocations->count; i++)
        if (self->allocations->items[i] == allocation) return (long)i;
    return -1;
}

static void residency_add(mtl_residency_set *self, SEL s, id allocation)
{
    if (!sm_is_a(allocation, &sm_mtl_buffer) && !sm_is_a(allocation, &sm_mtl_heap)) {
        sm_failed("-[MTLResidencySet %s]: neither a buffer nor a heap", sel_getName(s));
        return;
    }
    if (residency_find(self, allocation) < 0 && !sm_array_add(self->allocations, allocation))
        sm_failed("-[MTLResidencySet %s]: out of memory", sel_getName(s));
}
static void residency_add_many(mtl_residency_set *self, SEL s, const id *list, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++) residency_add(self, s, list[i]);
}
static void residency_remove(mtl_residency_set *self, SEL s, id allocation)
{
    const long at = residency_find(self, allocation);
    if (at >= 0) sm_array_remove(self->allocations, (unsigned long)at);
}
static void residency_remove_many(mtl_residency_set *self, SEL s, const id *list, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++) residency_remove(self, s, list[i]);
}
static void residency_remove_all(mtl_residency_set *self, SEL s)
{
    while (self->allocations->count > 0) sm_array_remove(self->allocations, self->allocations->count - 1);
}
static BOOL residency_contains(mtl_residency_set *self, SEL s, id allocation)
{
    return residency_find(self, allocation) >= 0;
}
static void residency_commit(mtl_residency_set *self, SEL s)
{
    self->size = 0;
    SEL size = sel_registerName("allocatedSize");
    for (unsigned long i = 0; i < self->allocations->count; i++) {
        id one = self->allocations->items[i];
        self->size += ((unsigned long (*)(id, SEL))sm_objc_lookup(one, size))(one, size);
    }
}
static unsigned long residency_count(mtl_residency_set *self, SEL s) { return self->allocations->count; }
static unsigned long residency_size(mtl_residency_set *self, SEL s) { return self->size; }
static id residency_all(mtl_residency_set *self, SEL s)
{
    return objc_autorelease(sm_array_new(&sm_ns_array, self->allocations->items, self->allocations->count));
}
static void residency_nothing(id self, SEL s) {}

static const sm_method residency_methods[] = {
    SM_METHOD("label", sm_label),
    SM_METHOD("addAllocation:", residency_add),
    SM_METHOD("addAllocations:count:", residency_add_many),
    SM_METHOD("removeAllocation:", residency_remove),
    SM_METHOD("removeAllocations:count:", residency_remove_many),
    SM_METHOD("removeAllAllocations", residency_remove_all),
    SM_METHOD("containsAllocation:", residency_contains),
    SM_METHOD("commit", residency_commit),
    SM_METHOD("allocationCount", residency_count),
    SM_METHOD("allocatedSize", residency_size),
    SM_METHOD("allAllocations", residency_all),
    SM_METHOD("requestResidency", residency_nothing),
    SM_METHOD("endResidency", residency_nothing),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_residency_set, "MTLResidencySet", &sm_ns_object, mtl_residency_set, residency_destroy,
         residency_methods, residency_no_methods, "MTLResidencySet", false);
