/* Command queues and command buffers: recording, and the calls of the host.
 *
 * A rule broken while encoding makes the command buffer invalid. It can still be
 * encoded and committed; it then completes with an error that names the broken rule. */
#include "metal/metal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_PATIENCE = 120 }; /* seconds; Metal waits without limit, a test should not */

static const sm_method command_no_methods[] = {SM_METHODS_END};

/* ---- MTLCommandQueue ------------------------------------------------------------------------ */

id sm_device_queue_of(id self, SEL s, unsigned long limit)
{
    if (limit == 0) {
        sm_failed("%s: the count is 0", sel_getName(s));
        return NULL;
    }
    if (sm_device_removed() || sm_fault(SM_FAULT_QUEUE, NULL)) return NULL;
    mtl_queue *queue = sm_new(&sm_mtl_queue);
    if (queue != NULL) queue->limit = limit;
    return queue;
}

id sm_device_queue(id self, SEL s) { return sm_device_queue_of(self, s, MTL_QUEUE_BUFFERS); }

static void queue_destroy(id object)
{
    mtl_queue *self = object;
    objc_release(self->residency);
    sm_labelled_destroy(self);
}

/* Blocks, as Metal does, while the number of uncompleted command buffers is at the limit. */
static id queue_buffer(mtl_queue *self, const char *call, bool retained)
{
    mtl_command_buffer *buffer = sm_fault(SM_FAULT_COMMAND_BUFFER, NULL) ? NULL : sm_new(&sm_mtl_command_buffer);
    if (buffer == NULL) return NULL;
    buffer->retained = retained;
    buffer->queue = objc_retain(self);
    sm_lock();
    const double deadline = sm_now() + (double)QUEUE_PATIENCE;
    bool in_time = true;
    while (self->open >= self->limit && in_time) {
        sm_demand();
        in_time = sm_wait_change(deadline);
    }
    if (in_time) self->open++, buffer->counted = true;
    sm_unlock();
    if (in_time) return objc_autorelease(buffer);
    sm_failed("%s: %lu command buffers of this queue have not completed for %d s", call, self->limit, QUEUE_PATIENCE);
    objc_release(buffer);
    return NULL;
}

static id queue_command_buffer(mtl_queue *self, SEL s) { return queue_buffer(self, sel_getName(s), true); }
static id queue_unretained(mtl_queue *self, SEL s) { return queue_buffer(self, sel_getName(s), false); }

typedef struct mtl_command_buffer_descriptor {
    sm_object object;
    BOOL retained;
    unsigned long error_options;
} mtl_command_buffer_descriptor;

static id command_descriptor_init(mtl_command_buffer_descriptor *self, SEL s)
{
    self->retained = 1;
    return self;
}
static BOOL command_descriptor_retained(mtl_command_buffer_descriptor *d, SEL s) { return d->retained; }
static void command_descriptor_set_retained(mtl_command_buffer_descriptor *d, SEL s, BOOL v) { d->retained = v; }
static unsigned long command_descriptor_errors(mtl_command_buffer_descriptor *d, SEL s) { return d->error_options; }
static void command_descriptor_set_errors(mtl_command_buffer_descriptor *d, SEL s, unsigned long v)
{
    d->error_options = v;
}
static id command_descriptor_copy(const mtl_command_buffer_descriptor *d, SEL s) { return sm_copy(d); }
static const sm_method command_descriptor_methods[] = {
    SM_METHOD("init", command_descriptor_init),
    SM_COPY_METHODS(command_descriptor_copy),
    SM_METHOD("retainedReferences", command_descriptor_retained),
    SM_METHOD("setRetainedReferences:", command_descriptor_set_retained),
    SM_METHOD("errorOptions", command_descriptor_errors),
    SM_METHOD("setErrorOptions:", command_descriptor_set_errors),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_command_buffer_descriptor, "MTLCommandBufferDescriptor", &sm_ns_object, mtl_command_buffer_descriptor,
         NULL, command_descriptor_methods, command_no_methods, "NSCopying", true);

static id queue_described(mtl_queue *self, SEL s, id descriptor)
{
    if (sm_is_a(descriptor, &sm_mtl_command_buffer_descriptor))
        return queue_buffer(self, sel_getName(s), ((mtl_command_buffer_descriptor *)descriptor)->retained != 0);
    sm_failed("%s: the descriptor is nil or not an MTLCommandBufferDescriptor", sel_getName(s));
    return NULL;
}

static void queue_add_residency(mtl_queue *self, SEL s, id set)
{
    if (self->residency == NULL) self->residency = sm_array_new(&sm_ns_array, NULL, 0);
    if (self->residency == NULL || !sm_array_add(self->residency, set))
        sm_failed("-[MTLCommandQueue %s]: the set is nil, or out of memory", sel_getName(s));
}

static void queue_remove_residency(mtl_queue *self, SEL s, id set)
{
    for (unsigned long i = 0; self->residency != NULL && i < self->residency->count; i++)
        if (self->residency->items[i] == set) {
            sm_array_remove(self->residency, i);
            return;
        }
    sm_failed("-[MTLCommandQueue %s]: the queue does not have this set", sel_getName(s));
}

static void queue_add_residencies(mtl_queue *self, SEL s, const id *sets, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++) queue_add_residency(self, s, sets[i]);
}
static void queue_remove_residencies(mtl_queue *self, SEL s, const id *sets, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++) queue_remove_residency(self, s, sets[i]);
}

static const sm_method queue_methods[] = {
    SM_LABEL_METHODS,
    SM_METHOD("commandBuffer", queue_command_buffer),
    SM_METHOD("commandBufferWithUnretainedReferences", queue_unretained),
    SM_METHOD("commandBufferWithDescriptor:", queue_described),
    SM_METHOD("addResidencySet:", queue_add_residency),
    SM_METHOD("addResidencySets:count:", queue_add_residencies),
    SM_METHOD("removeResidencySet:", queue_remove_residency),
    SM_METHOD("removeResidencySets:count:", queue_remove_residencies),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_queue, "MTLCommandQueue", &sm_ns_object, mtl_queue, queue_destroy, queue_methods, command_no_methods,
         "MTLCommandQueue", false);

/* ---- recording ------------------------------------------------------------------------------- */

struct mtl_bytes {
    mtl_bytes *next;
    size_t length;
    _Alignas(16) unsigned char bytes[];
};

void sm_invalid(mtl_command_buffer *buffer, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    sm_failed("%s", text);
    if (buffer != NULL && buffer->invalid == NULL) buffer->invalid = strdup(text);
}

bool sm_room_for(mtl_command_buffer *buffer, void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) return true;
    const size_t wanted = *capacity == 0 ? 8 : *capacity * 2;
    void *old;
    memcpy(&old, items, sizeof old);
    void *grown = realloc(old, wanted * size);
    if (grown == NULL) {
        sm_invalid(buffer, "encoding: out of memory");
        return false;
    }
    memcpy(items, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}

mtl_pass *sm_pass_add(mtl_command_buffer *buffer, mtl_pass_kind kind)
{
    if (!sm_room_for(buffer, &buffer->passes, buffer->count, &buffer->capacity, sizeof *buffer->passes)) return NULL;
    mtl_pass *pass = &buffer->passes[buffer->count++];
    *pass = (mtl_pass){.kind = kind, .sample_start = ~0ul, .sample_end = ~0ul};
    return pass;
}

mtl_command *sm_command_add(mtl_command_buffer *buffer, size_t pass_index, mtl_command_kind kind)
{
    mtl_pass *pass = &buffer->passes[pass_index];
    if (!sm_room_for(buffer, &pass->commands, pass->count, &pass->capacity, sizeof *pass->commands)) return NULL;
    mtl_command *command = &pass->commands[pass->count++];
    memset(command, 0, sizeof *command);
    command->kind = kind;
    return command;
}

void sm_keep(mtl_command_buffer *buffer, id object)
{
    if (buffer->kept == NULL) buffer->kept = sm_array_new(&sm_ns_array, NULL, 0);
    /* Consecutive objects are often the same. */
    if (buffer->kept != NULL && buffer->kept->count > 0 && buffer->kept->items[buffer->kept->count - 1] == object)
        return;
    if (buffer->kept == NULL || !sm_array_add(buffer->kept, object)) sm_invalid(buffer, "encoding: out of memory");
}

void sm_use(mtl_command_buffer *buffer, size_t pass_index, mtl_buffer *resource)
{
    if (buffer->retained) sm_keep(buffer, resource);
    bool known = false;
    for (size_t i = 0; i < buffer->used_count && !known; i++) known = buffer->used[i].serial == resource->serial;
    if (!known && sm_room_for(buffer, &buffer->used, buffer->used_count, &buffer->used_capacity, sizeof *buffer->used))
        buffer->used[buffer->used_count++] = (mtl_used){resource, resource->serial};
    mtl_pass *pass = &buffer->passes[pass_index];
    if (!sm_buffer_tracked(resource)) return;
    for (size_t i = 0; i < pass->tracked_count; i++)
        if (pass->tracked[i] == resource) return;
    if (sm_room_for(buffer, &pass->tracked, pass->tracked_count, &pass->tracked_capacity, sizeof *pass->tracked))
        pass->tracked[pass->tracked_count++] = resource;
}

void *sm_bytes_add(mtl_command_buffer *buffer, const void *bytes, size_t length)
{
    mtl_bytes *copy = malloc(sizeof *copy + length);
    if (copy == NULL) {
        sm_invalid(buffer, "setBytes: out of memory");
        return NULL;
    }
    copy->next = buffer->bytes;
    copy->length = length;
    buffer->bytes = copy;
    memcpy(copy->bytes, bytes, length);
    return copy->bytes;
}

static void buffer_passes_free(mtl_command_buffer *self)
{
    for (size_t i = 0; i < self->count; i++) {
        mtl_pass *pass = &self->passes[i];
        objc_release(pass->label);
        objc_release(pass->event);
        objc_release(pass->samples);
        for (size_t f = 0; f < pass->fences_count; f++) objc_release(pass->fences[f].fence);
        free(pass->commands);
        free(pass->fences);
        free(pass->tracked);
    }
    free(self->passes);
    while (self->bytes != NULL) {
        mtl_bytes *next = self->bytes->next;
        free(self->bytes);
        self->bytes = next;
    }
}

static void command_buffer_destroy(id object)
{
    mtl_command_buffer *self = object;
    if (self->counted) {
        sm_lock();
        self->queue->open--;
        sm_wake();
        sm_unlock();
    }
    buffer_passes_free(self);
    for (size_t i = 0; i < self->scheduled_count; i++) _Block_release(self->scheduled[i]);
    for (size_t i = 0; i < self->completed_count; i++) _Block_release(self->completed[i]);
    free(self->scheduled);
    free(self->completed);
    free(self->used);
    free(self->invalid);
    objc_release(self->kept);
    objc_release(self->error);
    objc_release(self->queue);
    sm_labelled_destroy(self);
}

/* ---- encoders ---------------------------------------------------------------------------------- */

/* Returns whether a new encoder or an event can be added now. */
static bool can_encode(mtl_command_buffer *self, const char *call)
{
    if (self->committed) {
        sm_failed("-[MTLCommandBuffer %s]: the command buffer was committed", call);
        return false;
    }
    if (self->encoder == NULL) return true;
    sm_invalid(self, "-[MTLCommandBuffer %s]: the previous encoder was not ended (endEncoding)", call);
    return false;
}

static id command_compute(mtl_command_buffer *self, const char *call, bool concurrent)
{
    return can_encode(self, call) ? objc_autorelease(sm_compute_encoder_new(self, concurrent)) : NULL;
}
static id command_compute_serial(mtl_command_buffer *self, SEL s)
{
    return command_compute(self, sel_getName(s), false);
}
static id command_compute_typed(mtl_command_buffer *self, SEL s, unsigned long type)
{
    return command_compute(self, sel_getName(s), type == 1);
}
static id command_compute_described(mtl_command_buffer *self, SEL s, id descriptor)
{
    bool concurrent = false;
    if (!sm_pass_descriptor_concurrent(descriptor, &concurrent)) {
        sm_failed("%s: the descriptor is nil or not an MTLComputePassDescriptor", sel_getName(s));
        return NULL;
    }
    id encoder = command_compute(self, sel_getName(s), concurrent);
    if (encoder != NULL) sm_pass_descriptor_apply(descriptor, &self->passes[self->count - 1]);
    return encoder;
}
static id command_blit(mtl_command_buffer *self, SEL s)
{
    return can_encode(self, sel_getName(s)) ? objc_autorelease(sm_blit_encoder_new(self)) : NULL;
}
static id command_blit_described(mtl_command_buffer *self, SEL s, id descriptor) { return command_blit(self, s); }

static void command_event(mtl_command_buffer *self, SEL s, id event, uint64_t value, mtl_pass_kind kind)
{
    if (!sm_is_a(event, &sm_mtl_event)) {
        sm_invalid(self, "-[MTLCommandBuffer %s]: the event is nil or not an MTLEvent", sel_getName(s));
        return;
    }
    if (!can_encode(self, sel_getName(s))) return;
    mtl_pass *pass = sm_pass_add(self, kind);
    if (pass == NULL) return;
    pass->event = objc_retain(event);
    pass->value = value;
}
static void command_wait_event(mtl_command_buffer *self, SEL s, id event, uint64_t value)
{
    command_event(self, s, event, value, MTL_PASS_WAIT);
}
static void command_signal_event(mtl_command_buffer *self, SEL s, id event, uint64_t value)
{
    command_event(self, s, event, value, MTL_PASS_SIGNAL);
}

/* ---- handlers, commit, wait ----------------------------------------------------------------------- */

static void add_handler(mtl_command_buffer *self, SEL s, const sm_block *block, sm_block ***list, size_t *count,
                        size_t *capacity)
{
    if (block == NULL || self->committed) {
        sm_failed("-[MTLCommandBuffer %s]: %s", sel_getName(s),
                  block == NULL ? "the block is nil" : "the command buffer was committed");
        return;
    }
    sm_block *copy = _Block_copy(block);
    if (copy != NULL && sm_room_for(self, list, *count, capacity, sizeof **list)) (*list)[(*count)++] = copy;
    else _Block_release(copy);
}

static void command_on_completed(mtl_command_buffer *self, SEL s, const sm_block *block)
{
    add_handler(self, s, block, &self->completed, &self->completed_count, &self->completed_capacity);
}
static void command_on_scheduled(mtl_command_buffer *self, SEL s, const sm_block *block)
{
    add_handler(self, s, block, &self->scheduled, &self->scheduled_count, &self->scheduled_capacity);
}

static void command_enqueue(mtl_command_buffer *self, SEL s)
{
    if (self->status != MTL_NOT_ENQUEUED) {
        sm_failed("-[MTLCommandBuffer %s]: it was enqueued or committed before", sel_getName(s));
        return;
    }
    sm_enqueue(self);
}

static void command_commit(mtl_command_buffer *self, SEL s)
{
    if (self->committed) {
        sm_failed("-[MTLCommandBuffer %s]: it was committed before; a command buffer runs once", sel_getName(s));
        return;
    }
    if (self->encoder != NULL) sm_invalid(self, "-[MTLCommandBuffer commit]: an encoder was not ended (endEncoding)");
    self->committed = true;
    sm_capture_note(self);
    self->is_faulty = sm_fault(SM_FAULT_COMMAND, &self->fault);
    if (!self->is_faulty && sm_device_removed()) self->is_faulty = true, self->fault = MTL_ERROR_DEVICE_REMOVED;
    sm_submit(self);
}

static void wait_for(mtl_command_buffer *self, SEL s, mtl_status wanted)
{
    if (!self->committed) {
        sm_failed("-[MTLCommandBuffer %s]: the command buffer was not committed, so this would never return",
                  sel_getName(s));
        return;
    }
    sm_lock();
    /* Also waits until the handlers have returned, unless the handler thread itself waits. */
    while (self->status < wanted || (wanted == MTL_COMPLETED && !self->handled && !sm_on_handler_thread())) {
        sm_demand();
        sm_wait_change(0);
    }
    sm_unlock();
}

static void command_wait_completed(mtl_command_buffer *self, SEL s) { wait_for(self, s, MTL_COMPLETED); }
static void command_wait_scheduled(mtl_command_buffer *self, SEL s) { wait_for(self, s, MTL_SCHEDULED); }

/* ---- what it answers -------------------------------------------------------------------------------- */

/* Reading the status counts as waiting: the late mode must not hang a program that polls. */
static unsigned long command_status(mtl_command_buffer *self, SEL s)
{
    sm_lock();
    const mtl_status status = self->status;
    if (self->committed && status < MTL_COMPLETED) sm_demand();
    sm_unlock();
    return status;
}

static id command_error(mtl_command_buffer *self, SEL s)
{
    sm_lock();
    id error = self->error;
    sm_unlock();
    return error;
}

#define TIME_OF(field)                                             \
    static double command_##field(mtl_command_buffer *self, SEL s) \
    {                                                              \
        sm_lock();                                                 \
        const double time = self->field;                           \
        sm_unlock();                                               \
        return time;                                               \
    }
TIME_OF(start)
TIME_OF(end)
TIME_OF(kernel_start)
TIME_OF(kernel_end)

static id command_queue(mtl_command_buffer *self, SEL s) { return self->queue; }
static BOOL command_retained(mtl_command_buffer *self, SEL s) { return self->retained; }
static unsigned long command_zero(id self, SEL s) { return 0; }
static void command_ignore(id self, SEL s, id argument) {}
static void command_ignore_many(id self, SEL s, const id *list, unsigned long n) {}
static void command_nothing(id self, SEL s) {}

static const sm_method command_buffer_methods[] = {
    SM_LABEL_METHODS,
    SM_METHOD("computeCommandEncoder", command_compute_serial),
    SM_METHOD("computeCommandEncoderWithDispatchType:", command_compute_typed),
    SM_METHOD("computeCommandEncoderWithDescriptor:", command_compute_described),
    SM_METHOD("blitCommandEncoder", command_blit),
    SM_METHOD("blitCommandEncoderWithDescriptor:", command_blit_described),
    SM_METHOD("encodeWaitForEvent:value:", command_wait_event),
    SM_METHOD("encodeSignalEvent:value:", command_signal_event),
    SM_METHOD("addCompletedHandler:", command_on_completed),
    SM_METHOD("addScheduledHandler:", command_on_scheduled),
    SM_METHOD("enqueue", command_enqueue),
    SM_METHOD("commit", command_commit),
    SM_METHOD("waitUntilCompleted", command_wait_completed),
    SM_METHOD("waitUntilScheduled", command_wait_scheduled),
    SM_METHOD("status", command_status),
    SM_METHOD("error", command_error),
    SM_METHOD("errorOptions", command_zero),
    SM_METHOD("GPUStartTime", command_start),
    SM_METHOD("GPUEndTime", command_end),
    SM_METHOD("kernelStartTime", command_kernel_start),
    SM_METHOD("kernelEndTime", command_kernel_end),
    SM_METHOD("commandQueue", command_queue),
    SM_METHOD("retainedReferences", command_retained),
    SM_METHOD("useResidencySet:", command_ignore),
    SM_METHOD("useResidencySets:count:", command_ignore_many),
    SM_METHOD("pushDebugGroup:", command_ignore),
    SM_METHOD("popDebugGroup", command_nothing),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_command_buffer, "MTLCommandBuffer", &sm_ns_object, mtl_command_buffer, command_buffer_destroy,
         command_buffer_methods, command_no_methods, "MTLCommandBuffer", false);
