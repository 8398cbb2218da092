/* Events, shared events with their listeners, and fences. */
#include "metal/metal.h"

#include <stdlib.h>

static const sm_method event_no_methods[] = {SM_METHODS_END};

typedef struct mtl_notice {
    struct mtl_notice *next;
    sm_block *block; /* void (^)(id<MTLSharedEvent>, uint64_t value) */
    uint64_t value;
} mtl_notice;

id sm_device_event(id self, SEL s) { return sm_new(&sm_mtl_event); }
id sm_device_shared_event(id self, SEL s) { return sm_new(&sm_mtl_shared_event); }
id sm_device_fence(id self, SEL s) { return sm_fault(SM_FAULT_FENCE, NULL) ? NULL : sm_new(&sm_mtl_fence); }

static void event_destroy(id object)
{
    mtl_event *self = object;
    while (self->notices != NULL) {
        mtl_notice *next = self->notices->next;
        _Block_release(self->notices->block);
        free(self->notices);
        self->notices = next;
    }
    sm_labelled_destroy(self);
}

void sm_event_notify(mtl_event *event)
{
    mtl_notice **link = &event->notices;
    while (*link != NULL) {
        mtl_notice *notice = *link;
        if (notice->value > event->value) {
            link = &notice->next;
            continue;
        }
        *link = notice->next;
        sm_call_notice(notice->block, event, event->value);
        free(notice);
    }
}

/* Reading the value counts as waiting, as with the status of a command buffer. */
static uint64_t event_value(mtl_event *self, SEL s)
{
    sm_lock();
    const uint64_t value = self->value;
    sm_demand();
    sm_unlock();
    return value;
}

static void event_set_value(mtl_event *self, SEL s, uint64_t value)
{
    sm_lock();
    self->value = value;
    sm_event_notify(self);
    sm_wake();
    sm_unlock();
}

static BOOL event_wait(mtl_event *self, SEL s, uint64_t value, uint64_t milliseconds)
{
    const double deadline = milliseconds > 1000000000u ? 0 : sm_now() + (double)milliseconds / 1000;
    sm_lock();
    bool in_time = true;
    while (self->value < value && in_time) {
        sm_demand();
        in_time = sm_wait_change(deadline);
    }
    const bool reached = self->value >= value;
    sm_unlock();
    return reached;
}

static void event_on_value(mtl_event *self, SEL s, id listener, uint64_t value, const sm_block *block)
{
    if (listener == NULL || block == NULL) {
        sm_failed("-[MTLSharedEvent %s]: the listener or the block is nil", sel_getName(s));
        return;
    }
    mtl_notice *notice = malloc(sizeof *notice);
    sm_block *copy = _Block_copy(block);
    if (notice == NULL || copy == NULL) {
        free(notice);
        _Block_release(copy);
        sm_failed("-[MTLSharedEvent %s]: out of memory", sel_getName(s));
        return;
    }
    sm_lock();
    *notice = (mtl_notice){self->notices, copy, value};
    self->notices = notice;
    sm_event_notify(self);
    sm_unlock();
}

static const sm_method event_methods[] = {SM_LABEL_METHODS, SM_METHOD("device", sm_device_of), SM_METHODS_END};
static const sm_method shared_event_methods[] = {
    SM_METHOD("signaledValue", event_value),
    SM_METHOD("setSignaledValue:", event_set_value),
    SM_METHOD("waitUntilSignaledValue:timeoutMS:", event_wait),
    SM_METHOD("notifyListener:atValue:block:", event_on_value),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_event, "MTLEvent", &sm_ns_object, mtl_event, event_destroy, event_methods, event_no_methods, "MTLEvent",
         false);
SM_CLASS(sm_mtl_shared_event, "MTLSharedEvent", &sm_mtl_event, mtl_event, NULL, shared_event_methods, event_no_methods,
         "MTLSharedEvent", false);
SM_CLASS(sm_mtl_fence, "MTLFence", &sm_ns_object, mtl_fence, sm_labelled_destroy, event_methods, event_no_methods,
         "MTLFence", false);

/* A listener has no state: notifications run on the handler thread, whatever its queue. */
static id listener_on_queue(id self, SEL s, id queue) { return self; }
static id listener_queue(id self, SEL s) { return NULL; }
static sm_object the_listener = {&sm_mtl_listener, -1};
static id listener_shared(id class, SEL s) { return &the_listener; }
static const sm_method listener_methods[] = {SM_METHOD("initWithDispatchQueue:", listener_on_queue),
                                             SM_METHOD("dispatchQueue", listener_queue), SM_METHODS_END};
static const sm_method listener_class_methods[] = {SM_METHOD("sharedListener", listener_shared), SM_METHODS_END};
SM_CLASS(sm_mtl_listener, "MTLSharedEventListener", &sm_ns_object, sm_object, NULL, listener_methods,
         listener_class_methods, NULL, true);
