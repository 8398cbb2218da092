/* The common part of compute and blit encoders: end, labels, fences. Also the blit
 * encoder, which copies and fills. */
#include "metal/metal.h"

#include <string.h>

static const sm_method encoder_no_methods[] = {SM_METHODS_END};

bool sm_encoder_open(mtl_encoder *self, SEL s)
{
    if (!self->ended) return true;
    sm_invalid(self->buffer, "%s, %s: the encoder has ended", self->name, sel_getName(s));
    return false;
}

bool sm_check_range(mtl_encoder *self, SEL s, mtl_buffer *buffer, size_t offset, size_t length)
{
    if (!sm_is_a(buffer, &sm_mtl_buffer)) {
        sm_invalid(self->buffer, "%s, %s: the buffer is nil or not an MTLBuffer", self->name, sel_getName(s));
        return false;
    }
    if (offset <= buffer->length && length <= buffer->length - offset) return true;
    sm_invalid(self->buffer, "%s, %s: bytes %zu to %zu of a buffer of %zu", self->name, sel_getName(s), offset,
               offset + length, buffer->length);
    return false;
}

static void encoder_end(mtl_encoder *self, SEL s)
{
    if (!sm_encoder_open(self, s)) return;
    self->ended = true;
    self->buffer->encoder = NULL;
}

static void encoder_destroy(id object)
{
    mtl_encoder *self = object;
    if (!self->ended) {
        sm_invalid(self->buffer, "%s: released without endEncoding", self->name);
        self->buffer->encoder = NULL;
    }
    objc_release(self->buffer);
}

static mtl_pass *encoder_pass(mtl_encoder *self) { return &self->buffer->passes[self->pass]; }
static id encoder_label(mtl_encoder *self, SEL s) { return encoder_pass(self)->label; }
static void encoder_set_label(mtl_encoder *self, SEL s, id label)
{
    id slot = encoder_pass(self)->label;
    sm_set(&slot, label);
    encoder_pass(self)->label = slot;
}

static void encoder_fence(mtl_encoder *self, SEL s, id fence, bool update)
{
    if (!sm_encoder_open(self, s)) return;
    mtl_pass *pass = encoder_pass(self);
    if (!sm_is_a(fence, &sm_mtl_fence)) {
        sm_invalid(self->buffer, "%s, %s: the fence is nil or not an MTLFence", self->name, sel_getName(s));
        return;
    }
    for (size_t i = 0; !update && i < pass->fences_count; i++)
        if (pass->fences[i].update && pass->fences[i].fence == fence) {
            sm_invalid(self->buffer, "%s, waitForFence: after updateFence of the same fence in one encoder",
                       self->name);
            return;
        }
    if (!sm_room_for(self->buffer, &pass->fences, pass->fences_count, &pass->fences_capacity, sizeof *pass->fences))
        return;
    pass->fences[pass->fences_count++] = (mtl_pass_fence){objc_retain(fence), update};
    if (update) atomic_store(&((mtl_fence *)fence)->updated, true);
}
static void encoder_update_fence(mtl_encoder *self, SEL s, id fence) { encoder_fence(self, s, fence, true); }
static void encoder_wait_fence(mtl_encoder *self, SEL s, id fence) { encoder_fence(self, s, fence, false); }

/* Samples are taken at pass boundaries only: Apple GPUs support no other point and report so. */
static void encoder_sample(mtl_encoder *self, SEL s, id samples, unsigned long index, BOOL barrier)
{
    sm_invalid(self->buffer, "%s, %s: the device samples at stage boundaries only (supportsCounterSampling:)",
               self->name, sel_getName(s));
}

static void encoder_ignore(id self, SEL s, id argument) {}
static void encoder_nothing(id self, SEL s) {}

static const sm_method encoder_methods[] = {
    SM_METHOD("endEncoding", encoder_end),
    SM_METHOD("label", encoder_label),
    SM_METHOD("setLabel:", encoder_set_label),
    SM_METHOD("updateFence:", encoder_update_fence),
    SM_METHOD("waitForFence:", encoder_wait_fence),
    SM_METHOD("sampleCountersInBuffer:atSampleIndex:withBarrier:", encoder_sample),
    SM_METHOD("insertDebugSignpost:", encoder_ignore),
    SM_METHOD("pushDebugGroup:", encoder_ignore),
    SM_METHOD("popDebugGroup", encoder_nothing),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_encoder, "MTLCommandEncoder", &sm_ns_object, mtl_encoder, encoder_destroy, encoder_methods,
         encoder_no_methods, "MTLCommandEncoder", false);

/* ---- MTLBlitCommandEncoder ------------------------------------------------------------------ */

id sm_encoder_begin(const sm_class *class, mtl_command_buffer *buffer, mtl_pass_kind kind, const char *name)
{
    mtl_encoder *self = sm_new(class);
    if (self == NULL) {
        sm_invalid(buffer, "%s: out of memory", name);
        return NULL;
    }
    self->buffer = objc_retain(buffer);
    self->name = name;
    self->ended = true; /* until there is a pass that can be ended */
    if (sm_pass_add(buffer, kind) == NULL) {
        objc_release(self);
        return NULL;
    }
    self->pass = buffer->count - 1;
    self->ended = false;
    buffer->encoder = self;
    return self;
}

id sm_blit_encoder_new(mtl_command_buffer *buffer)
{
    return sm_encoder_begin(&sm_mtl_blit_encoder, buffer, MTL_PASS_BLIT, "blit encoder");
}

static void blit_copy(mtl_encoder *self, SEL s, mtl_buffer *from, unsigned long from_offset, mtl_buffer *to,
                      unsigned long to_offset, unsigned long length)
{
    if (!sm_encoder_open(self, s) || !sm_check_range(self, s, from, from_offset, length) ||
        !sm_check_range(self, s, to, to_offset, length))
        return;
    if (length == 0) {
        sm_invalid(self->buffer, "%s, %s: 0 bytes", self->name, sel_getName(s));
        return;
    }
    unsigned char *target = to->address + to_offset;
    const unsigned char *source = from->address + from_offset;
    if (target < source + length && source < target + length) {
        sm_invalid(self->buffer, "%s, %s: source and destination overlap", self->name, sel_getName(s));
        return;
    }
    mtl_command *command = sm_command_add(self->buffer, self->pass, MTL_COMMAND_COPY);
    if (command == NULL) return;
    command->as.move.to = target;
    command->as.move.from = source;
    command->as.move.length = length;
    sm_use(self->buffer, self->pass, from);
    sm_use(self->buffer, self->pass, to);
}

static void blit_fill(mtl_encoder *self, SEL s, mtl_buffer *to, ns_range range, unsigned char value)
{
    if (!sm_encoder_open(self, s) || !sm_check_range(self, s, to, range.location, range.length)) return;
    if (range.length == 0) {
        sm_invalid(self->buffer, "%s, %s: 0 bytes", self->name, sel_getName(s));
        return;
    }
    mtl_command *command = sm_command_add(self->buffer, self->pass, MTL_COMMAND_FILL);
    if (command == NULL) return;
    command->as.move.to = to->address + range.location;
    command->as.move.length = range.length;
    command->as.move.value = value;
    sm_use(self->buffer, self->pass, to);
}

static const sm_method blit_methods[] = {
    SM_METHOD("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", blit_copy),
    SM_METHOD("fillBuffer:range:value:", blit_fill),
    SM_METHOD("synchronizeResource:", encoder_ignore),
    SM_METHOD("optimizeContentsForGPUAccess:", encoder_ignore),
    SM_METHOD("optimizeContentsForCPUAccess:", encoder_ignore),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_blit_encoder, "MTLBlitCommandEncoder", &sm_mtl_encoder, mtl_encoder, NULL, blit_methods,
         encoder_no_methods, "MTLBlitCommandEncoder", false);
