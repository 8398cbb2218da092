/* Compute pipelines: a function compiled with its constants. */
#include "metal/metal.h"

#include <stdlib.h>
#include <string.h>

enum { OPTION_FAIL_ON_ARCHIVE_MISS = 1 << 2, PIPELINE_ERROR = 3 };

static const sm_method pipeline_no_methods[] = {SM_METHODS_END};

/* ---- MTLComputePipelineDescriptor --------------------------------------------------------- */

typedef struct mtl_pipeline_descriptor {
    mtl_labelled base;
    id function, archives;
    BOOL width_multiple, indirect;
    unsigned long max_threads;
} mtl_pipeline_descriptor;

static void pipeline_descriptor_destroy(id object)
{
    mtl_pipeline_descriptor *self = object;
    objc_release(self->function);
    objc_release(self->archives);
    sm_labelled_destroy(self);
}

#define DESCRIBED(type, field)                                                               \
    static type pipeline_get_##field(mtl_pipeline_descriptor *d, SEL s) { return d->field; } \
    static void pipeline_set_##field(mtl_pipeline_descriptor *d, SEL s, type v)
DESCRIBED(id, function) { sm_set(&d->function, v); }
DESCRIBED(id, archives) { sm_set_copy(&d->archives, v); }
DESCRIBED(BOOL, width_multiple) { d->width_multiple = v; }
DESCRIBED(BOOL, indirect) { d->indirect = v; }
DESCRIBED(unsigned long, max_threads) { d->max_threads = v; }

static id pipeline_descriptor_copy(const mtl_pipeline_descriptor *self, SEL s)
{
    mtl_pipeline_descriptor *copy = sm_copy_labelled(self);
    if (copy == NULL) return NULL;
    objc_retain(copy->function);
    objc_retain(copy->archives);
    return copy;
}

static const sm_method pipeline_descriptor_methods[] = {
    SM_LABEL_METHODS,
    SM_COPY_METHODS(pipeline_descriptor_copy),
    SM_METHOD("computeFunction", pipeline_get_function),
    SM_METHOD("setComputeFunction:", pipeline_set_function),
    SM_METHOD("binaryArchives", pipeline_get_archives),
    SM_METHOD("setBinaryArchives:", pipeline_set_archives),
    SM_METHOD("threadGroupSizeIsMultipleOfThreadExecutionWidth", pipeline_get_width_multiple),
    SM_METHOD("setThreadGroupSizeIsMultipleOfThreadExecutionWidth:", pipeline_set_width_multiple),
    SM_METHOD("supportIndirectCommandBuffers", pipeline_get_indirect),
    SM_METHOD("setSupportIndirectCommandBuffers:", pipeline_set_indirect),
    SM_METHOD("maxTotalThreadsPerThreadgroup", pipeline_get_max_threads),
    SM_METHOD("setMaxTotalThreadsPerThreadgroup:", pipeline_set_max_threads),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_pipeline_descriptor, "MTLComputePipelineDescriptor", &sm_ns_object, mtl_pipeline_descriptor,
         pipeline_descriptor_destroy, pipeline_descriptor_methods, pipeline_no_methods, "NSCopying", true);

/* ---- MTLComputePipelineState --------------------------------------------------------------- */

static sm_kernel *kernel_of(const mtl_function *function, char **message)
{
    const mtl_constant_values *given = function->constants;
    const int count = given == NULL ? 0 : given->count;
    sm_constant *values = count == 0 ? NULL : calloc((size_t)count, sizeof *values);
    if (count > 0 && values == NULL) return NULL;
    for (int i = 0; i < count; i++) {
        const mtl_constant *c = &given->values[i];
        values[i] = (sm_constant){c->name, c->index, c->type, c->width, c->value};
    }
    sm_kernel *kernel =
        sm_kernel_build(function->library->core, sm_string_bytes(function->name), values, count, message);
    free(values);
    return kernel;
}

static mtl_pipeline *pipeline_new(mtl_function *function, id *error)
{
    char *message = NULL;
    sm_kernel *kernel = NULL;
    if (sm_fault(SM_FAULT_PIPELINE, NULL)) message = strdup("the compiler failed: injected by SM_FAULT");
    else kernel = kernel_of(function, &message);
    mtl_pipeline *self = kernel == NULL ? NULL : sm_new(&sm_mtl_pipeline);
    if (self == NULL) {
        sm_kernel_close(kernel);
        sm_set_error(error, &sm_library_domain, PIPELINE_ERROR, message == NULL ? "out of memory" : message);
    } else {
        self->kernel = kernel;
        self->function = objc_retain(function);
        sm_kernel_describe(kernel, &self->facts);
        sm_library_function(function->library->core, sm_string_bytes(function->name), &self->description);
    }
    free(message);
    return self;
}

id sm_device_pipeline(id self, SEL s, id function, id *error)
{
    if (error != NULL) *error = NULL;
    const char *problem = NULL;
    if (!sm_is_a(function, &sm_mtl_function)) problem = "the function is nil or not an MTLFunction";
    else if (sm_device_removed()) problem = "the device was removed";
    if (problem == NULL) return pipeline_new(function, error);
    sm_failed("%s: %s", sel_getName(s), problem);
    sm_set_error(error, &sm_library_domain, PIPELINE_ERROR, problem);
    return NULL;
}

id sm_device_pipeline_reflected(id self, SEL s, id function, unsigned long options, id *reflection, id *error)
{
    if (reflection != NULL) *reflection = NULL; /* reflection is not supported */
    return sm_device_pipeline(self, s, function, error);
}

void sm_device_pipeline_later(id self, SEL s, id function, const sm_block *handler)
{
    id error = NULL, pipeline = sm_device_pipeline(self, s, function, &error);
    sm_hand_over(handler, pipeline, error);
    objc_release(pipeline);
}

id sm_device_pipeline_described(id self, SEL s, id given, unsigned long options, id *reflection, id *error)
{
    if (reflection != NULL) *reflection = NULL;
    if (error != NULL) *error = NULL;
    if (!sm_is_a(given, &sm_mtl_pipeline_descriptor)) {
        sm_failed("%s: the descriptor is nil or not an MTLComputePipelineDescriptor", sel_getName(s));
        return NULL;
    }
    const mtl_pipeline_descriptor *descriptor = given;
    if ((options & OPTION_FAIL_ON_ARCHIVE_MISS) != 0 && sm_is_a(descriptor->function, &sm_mtl_function) &&
        !sm_archives_have(descriptor->archives, descriptor->function)) {
        sm_set_error(error, &sm_library_domain, PIPELINE_ERROR, "no binary archive contains the pipeline");
        return NULL;
    }
    mtl_pipeline *pipeline = sm_device_pipeline(self, s, descriptor->function, error);
    if (pipeline == NULL) return NULL;
    pipeline->base.label = objc_retain(descriptor->base.label);
    if (descriptor->max_threads > 0 && descriptor->max_threads < (unsigned long)pipeline->facts.max_threads)
        pipeline->facts.max_threads = (int)descriptor->max_threads;
    return pipeline;
}

id sm_pipeline_descriptor_function(id descriptor)
{
    return sm_is_a(descriptor, &sm_mtl_pipeline_descriptor) ? ((mtl_pipeline_descriptor *)descriptor)->function : NULL;
}

static void pipeline_destroy(id object)
{
    mtl_pipeline *self = object;
    sm_kernel_close(self->kernel);
    objc_release(self->function);
    sm_labelled_destroy(self);
}

static unsigned long pipeline_max(mtl_pipeline *self, SEL s) { return (unsigned long)self->facts.max_threads; }
static unsigned long pipeline_width(mtl_pipeline *self, SEL s) { return (unsigned long)self->facts.simd_width; }
static unsigned long pipeline_memory(mtl_pipeline *self, SEL s) { return self->facts.threadgroup_bytes; }
static BOOL pipeline_no(id self, SEL s) { return 0; }

static const sm_method pipeline_methods[] = {
    SM_METHOD("label", sm_label),
    SM_METHOD("maxTotalThreadsPerThreadgroup", pipeline_max),
    SM_METHOD("threadExecutionWidth", pipeline_width),
    SM_METHOD("staticThreadgroupMemoryLength", pipeline_memory),
    SM_METHOD("supportIndirectCommandBuffers", pipeline_no),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_pipeline, "MTLComputePipelineState", &sm_ns_object, mtl_pipeline, pipeline_destroy, pipeline_methods,
         pipeline_no_methods, "MTLComputePipelineState", false);
