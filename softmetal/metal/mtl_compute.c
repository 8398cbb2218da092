/* The compute encoder: bindings, dispatches, barriers. The rules of a dispatch are
 * checked when it is encoded, because that is the call which breaks them. */
#include "metal/metal.h"

#include <string.h>

typedef struct compute_binding {
    mtl_buffer *buffer; /* not retained; NULL: bytes, or nothing bound */
    unsigned char *bytes;
    size_t offset, length;
} compute_binding;

typedef struct mtl_compute {
    mtl_encoder base;
    bool concurrent;
    mtl_pipeline *pipeline;
    compute_binding bindings[SM_BUFFERS];
    size_t threadgroup_bytes[SM_BUFFERS];
    uint32_t threadgroup_set; /* bit i: a length was set at index i; 0 is a length (ggml sets it) */
} mtl_compute;

id sm_compute_encoder_new(mtl_command_buffer *buffer, bool concurrent)
{
    mtl_compute *self = sm_encoder_begin(&sm_mtl_compute_encoder, buffer, MTL_PASS_COMPUTE, "compute encoder");
    if (self == NULL) return NULL;
    self->concurrent = concurrent;
    buffer->passes[self->base.pass].concurrent = concurrent;
    return self;
}

static void compute_destroy(id object) { objc_release(((mtl_compute *)object)->pipeline); }

/* ---- bindings --------------------------------------------------------------------------------- */

static bool index_known(mtl_compute *self, SEL s, unsigned long index)
{
    if (index < SM_BUFFERS) return true;
    sm_invalid(self->base.buffer, "compute encoder, %s: index %lu, must be below %d", sel_getName(s), index,
               SM_BUFFERS);
    return false;
}

static void compute_set_pipeline(mtl_compute *self, SEL s, id pipeline)
{
    if (!sm_encoder_open(&self->base, s)) return;
    if (!sm_is_a(pipeline, &sm_mtl_pipeline)) {
        sm_invalid(self->base.buffer, "compute encoder, %s: the pipeline is nil or not a pipeline", sel_getName(s));
        return;
    }
    id slot = self->pipeline;
    sm_set(&slot, pipeline);
    self->pipeline = slot;
}

static void compute_set_buffer(mtl_compute *self, SEL s, mtl_buffer *buffer, unsigned long offset, unsigned long index)
{
    if (!sm_encoder_open(&self->base, s) || !index_known(self, s, index)) return;
    if (buffer == NULL) {
        self->bindings[index] = (compute_binding){NULL, NULL, 0, 0};
        return;
    }
    if (!sm_check_range(&self->base, s, buffer, offset, 1)) return;
    self->bindings[index] = (compute_binding){buffer, buffer->address, offset, buffer->length};
}

static void compute_set_offset(mtl_compute *self, SEL s, unsigned long offset, unsigned long index)
{
    if (!sm_encoder_open(&self->base, s) || !index_known(self, s, index)) return;
    compute_binding *binding = &self->bindings[index];
    if (binding->buffer == NULL) {
        sm_invalid(self->base.buffer, "compute encoder, %s: no buffer is bound at index %lu", sel_getName(s), index);
        return;
    }
    if (sm_check_range(&self->base, s, binding->buffer, offset, 1)) binding->offset = offset;
}

static void compute_set_buffers(mtl_compute *self, SEL s, mtl_buffer *const *buffers, const unsigned long *offsets,
                                ns_range range)
{
    for (unsigned long i = 0; i < range.length; i++)
        compute_set_buffer(self, s, buffers[i], offsets[i], range.location + i);
}

static void compute_set_bytes(mtl_compute *self, SEL s, const void *bytes, unsigned long length, unsigned long index)
{
    if (!sm_encoder_open(&self->base, s) || !index_known(self, s, index)) return;
    if (bytes == NULL || length == 0 || length > MTL_SET_BYTES_LIMIT) {
        sm_invalid(self->base.buffer, "compute encoder, %s: %lu bytes%s at index %lu; 1 to %d are allowed",
                   sel_getName(s), length, bytes == NULL ? " at NULL" : "", index, MTL_SET_BYTES_LIMIT);
        return;
    }
    unsigned char *copy = sm_bytes_add(self->base.buffer, bytes, length);
    if (copy != NULL) self->bindings[index] = (compute_binding){NULL, copy, 0, length};
}

static void compute_set_threadgroup(mtl_compute *self, SEL s, unsigned long length, unsigned long index)
{
    if (!sm_encoder_open(&self->base, s) || !index_known(self, s, index)) return;
    if (length % MTL_THREADGROUP_MULTIPLE != 0 || length > SM_MAX_THREADGROUP_BYTES) {
        sm_invalid(self->base.buffer, "compute encoder, %s: %lu bytes at index %lu; must be a multiple of %d up to %d",
                   sel_getName(s), length, index, MTL_THREADGROUP_MULTIPLE, SM_MAX_THREADGROUP_BYTES);
        return;
    }
    self->threadgroup_bytes[index] = length;
    self->threadgroup_set |= 1u << index;
}

/* ---- dispatch ----------------------------------------------------------------------------------- */

static bool dispatch_bound(mtl_compute *self, const char *call)
{
    const mtl_pipeline *pipeline = self->pipeline;
    size_t memory = pipeline->facts.threadgroup_bytes;
    for (int i = 0; i < pipeline->description.arguments_count; i++) {
        const sm_argument *argument = &pipeline->description.arguments[i];
        const char *what = NULL;
        if (argument->kind == SM_ARGUMENT_THREADGROUP) {
            memory += self->threadgroup_bytes[argument->index];
            if ((self->threadgroup_set >> argument->index & 1) == 0) what = "threadgroup memory without a length";
        } else if ((pipeline->facts.buffers_used >> argument->index & 1) != 0) {
            const compute_binding *binding = &self->bindings[argument->index];
            if (binding->bytes == NULL) what = "no buffer";
            else if (argument->constant && binding->offset % MTL_CONSTANT_ALIGNMENT != 0)
                what = "the offset of a constant buffer is not a multiple of 4";
        }
        if (what != NULL) {
            sm_invalid(self->base.buffer, "%s: %s at index %d, the argument '%s' of kernel %s", call, what,
                       argument->index, argument->name == NULL ? "?" : argument->name, pipeline->description.name);
            return false;
        }
    }
    if (memory <= SM_MAX_THREADGROUP_BYTES) return true;
    sm_invalid(self->base.buffer, "%s: kernel %s uses %zu bytes of threadgroup memory; the limit is %d", call,
               pipeline->description.name, memory, SM_MAX_THREADGROUP_BYTES);
    return false;
}

static bool dispatch_sized(mtl_compute *self, const char *call, mtl_size grid, mtl_size group)
{
    const unsigned long most = UINT32_MAX, limit = (unsigned long)self->pipeline->facts.max_threads;
    const char *kernel = self->pipeline->description.name;
    if (grid.width == 0 || grid.height == 0 || grid.depth == 0 || group.width == 0 || group.height == 0 ||
        group.depth == 0) {
        sm_invalid(self->base.buffer, "%s: a size is 0 (grid %lu x %lu x %lu, threadgroup %lu x %lu x %lu), kernel %s",
                   call, grid.width, grid.height, grid.depth, group.width, group.height, group.depth, kernel);
        return false;
    }
    if (group.width > limit || group.height > limit || group.depth > limit ||
        group.width * group.height * group.depth > limit) {
        sm_invalid(self->base.buffer, "%s: a threadgroup of %lu x %lu x %lu threads; kernel %s allows %lu", call,
                   group.width, group.height, group.depth, kernel, limit);
        return false;
    }
    if (grid.width <= most && grid.height <= most && grid.depth <= most) return true;
    sm_invalid(self->base.buffer, "%s: a grid of %lu x %lu x %lu threads; the limit is 2^32 - 1 each", call, grid.width,
               grid.height, grid.depth);
    return false;
}

static mtl_command *dispatch_add(mtl_compute *self, SEL s, mtl_size grid, mtl_size group)
{
    if (!sm_encoder_open(&self->base, s)) return NULL;
    mtl_command_buffer *buffer = self->base.buffer;
    if (self->pipeline == NULL) {
        sm_invalid(buffer, "%s: no pipeline is set", sel_getName(s));
        return NULL;
    }
    if (!dispatch_sized(self, sel_getName(s), grid, group) || !dispatch_bound(self, sel_getName(s))) return NULL;
    mtl_command *command = sm_command_add(buffer, self->base.pass, MTL_COMMAND_DISPATCH);
    if (command == NULL) return NULL;
    command->as.run.pipeline = self->pipeline;
    sm_keep(buffer, self->pipeline);
    sm_dispatch *dispatch = &command->as.run.dispatch;
    const unsigned long threads[3] = {grid.width, grid.height, grid.depth};
    const unsigned long groups[3] = {group.width, group.height, group.depth};
    for (int i = 0; i < 3; i++) {
        dispatch->threads[i] = (uint32_t)threads[i];
        dispatch->group[i] = (uint32_t)groups[i];
    }
    for (int i = 0; i < SM_BUFFERS; i++) {
        const compute_binding *binding = &self->bindings[i];
        dispatch->threadgroup_bytes[i] = self->threadgroup_bytes[i];
        if (binding->bytes == NULL || (self->pipeline->facts.buffers_used >> i & 1) == 0) continue;
        dispatch->buffers[i] = (sm_buffer){binding->bytes + binding->offset, binding->length - binding->offset};
        if (binding->buffer != NULL) sm_use(buffer, self->base.pass, binding->buffer);
    }
    return command;
}

static void compute_dispatch_threads(mtl_compute *self, SEL s, mtl_size threads, mtl_size group)
{
    dispatch_add(self, s, threads, group);
}

static unsigned long times(unsigned long a, unsigned long b)
{
    return a != 0 && b > (unsigned long)-1 / a ? (unsigned long)-1 : a * b;
}

static void compute_dispatch_groups(mtl_compute *self, SEL s, mtl_size groups, mtl_size group)
{
    const mtl_size grid = {times(groups.width, group.width), times(groups.height, group.height),
                           times(groups.depth, group.depth)};
    dispatch_add(self, s, grid, group);
}

static void compute_dispatch_indirect(mtl_compute *self, SEL s, mtl_buffer *counts, unsigned long offset,
                                      mtl_size group)
{
    if (!sm_encoder_open(&self->base, s) || !sm_check_range(&self->base, s, counts, offset, 3 * sizeof(uint32_t)))
        return;
    mtl_command *command = dispatch_add(self, s, group, group);
    if (command == NULL) return;
    command->kind = MTL_COMMAND_INDIRECT;
    command->as.run.indirect = counts->address + offset;
    sm_use(self->base.buffer, self->base.pass, counts);
}

/* ---- barriers ------------------------------------------------------------------------------------ */

static void compute_barrier_scope(mtl_compute *self, SEL s, unsigned long scope)
{
    if (!sm_encoder_open(&self->base, s)) return;
    if ((scope & 1) == 0) return; /* textures are not supported */
    sm_command_add(self->base.buffer, self->base.pass, MTL_COMMAND_BARRIER);
}

static void compute_barrier_resources(mtl_compute *self, SEL s, mtl_buffer *const *resources, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++) {
        if (!sm_encoder_open(&self->base, s) || !sm_check_range(&self->base, s, resources[i], 0, 0)) return;
        mtl_command *command = sm_command_add(self->base.buffer, self->base.pass, MTL_COMMAND_BARRIER);
        if (command == NULL) return;
        command->as.barrier.address = resources[i]->address;
        command->as.barrier.length = resources[i]->length;
    }
}

static void compute_use_one(mtl_compute *self, SEL s, id resource, unsigned long usage)
{
    if (sm_encoder_open(&self->base, s) && sm_check_range(&self->base, s, resource, 0, 0))
        sm_use(self->base.buffer, self->base.pass, resource);
}
static void compute_use_many(mtl_compute *self, SEL s, const id *resources, unsigned long count, unsigned long usage)
{
    for (unsigned long i = 0; i < count; i++) compute_use_one(self, s, resources[i], usage);
}
static void compute_use_heap(mtl_compute *self, SEL s, id heap)
{
    if (!sm_encoder_open(&self->base, s)) return;
    if (!sm_is_a(heap, &sm_mtl_heap)) sm_invalid(self->base.buffer, "compute encoder, %s: no heap", sel_getName(s));
}
static void compute_use_heaps(mtl_compute *self, SEL s, const id *heaps, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++) compute_use_heap(self, s, heaps[i]);
}
static unsigned long compute_type(mtl_compute *self, SEL s) { return self->concurrent ? 1 : 0; }

static const sm_method compute_methods[] = {
    SM_METHOD("setComputePipelineState:", compute_set_pipeline),
    SM_METHOD("setBuffer:offset:atIndex:", compute_set_buffer),
    SM_METHOD("setBufferOffset:atIndex:", compute_set_offset),
    SM_METHOD("setBuffers:offsets:withRange:", compute_set_buffers),
    SM_METHOD("setBytes:length:atIndex:", compute_set_bytes),
    SM_METHOD("setThreadgroupMemoryLength:atIndex:", compute_set_threadgroup),
    SM_METHOD("dispatchThreads:threadsPerThreadgroup:", compute_dispatch_threads),
    SM_METHOD("dispatchThreadgroups:threadsPerThreadgroup:", compute_dispatch_groups),
    SM_METHOD("dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:",
              compute_dispatch_indirect),
    SM_METHOD("memoryBarrierWithScope:", compute_barrier_scope),
    SM_METHOD("memoryBarrierWithResources:count:", compute_barrier_resources),
    SM_METHOD("useResource:usage:", compute_use_one),
    SM_METHOD("useResources:count:usage:", compute_use_many),
    SM_METHOD("useHeap:", compute_use_heap),
    SM_METHOD("useHeaps:count:", compute_use_heaps),
    SM_METHOD("dispatchType", compute_type),
    SM_METHODS_END,
};
static const sm_method compute_class_methods[] = {SM_METHODS_END};
SM_CLASS(sm_mtl_compute_encoder, "MTLComputeCommandEncoder", &sm_mtl_encoder, mtl_compute, compute_destroy,
         compute_methods, compute_class_methods, "MTLComputeCommandEncoder", false);
