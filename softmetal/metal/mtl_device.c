/* The only device: its properties, its limits, and the methods that create objects.
 *
 * Its name states that it is software. Its limits are those of an Apple7 GPU (M1), the
 * oldest in a Mac with Apple silicon, so what runs here runs on all of them. */
#include "metal/metal.h"
#include "settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

sm_object sm_the_device = {&sm_mtl_device, -1};

/* ---- labels ------------------------------------------------------------------------ */

id sm_label(mtl_labelled *self, SEL s) { return self->label; }
void sm_set_label(mtl_labelled *self, SEL s, id label)
{
    id slot = self->label;
    sm_set_copy(&slot, label);
    self->label = slot;
}
void sm_labelled_destroy(id self) { objc_release(((mtl_labelled *)self)->label); }
id sm_copy_labelled(const void *object)
{
    mtl_labelled *copy = sm_copy(object);
    if (copy != NULL) objc_retain(copy->label);
    return copy;
}
const char *sm_label_text(const mtl_labelled *self)
{
    const char *text = sm_string_bytes(self->label);
    return text == NULL ? "" : text;
}
id sm_device_of(id self, SEL s) { return &sm_the_device; }

/* ---- memory ------------------------------------------------------------------------ */

static atomic_size_t allocated;

static unsigned long long physical_memory(void)
{
    return (unsigned long long)sysconf(_SC_PHYS_PAGES) * (unsigned long long)sysconf(_SC_PAGESIZE);
}

/* SM_MEMORY=bytes limits the memory of the device. */
static unsigned long long memory_limit(void) { return sm_setting_integer(SM_SET_MEMORY, physical_memory() / 4 * 3); }

bool sm_device_reserve(size_t bytes)
{
    const size_t before = atomic_fetch_add(&allocated, bytes);
    if (before + bytes <= memory_limit()) return true;
    atomic_fetch_sub(&allocated, bytes);
    return false;
}

void sm_device_unreserve(size_t bytes) { atomic_fetch_sub(&allocated, bytes); }

static unsigned long device_allocated(id self, SEL s) { return atomic_load(&allocated); }
static unsigned long device_working_set(id self, SEL s) { return (unsigned long)memory_limit(); }
static unsigned long device_buffer_limit(id self, SEL s) { return (unsigned long)(memory_limit() / 4 * 3); }

/* ---- facts ------------------------------------------------------------------------- */

static sm_string device_name_text = SM_STRING("softmetal: Metal in software, no GPU");

static id device_name(id self, SEL s) { return &device_name_text; }
static unsigned long device_registry(id self, SEL s) { return 0x736f66746d65746cu; }
static BOOL device_yes(id self, SEL s) { return 1; }
static BOOL device_no(id self, SEL s) { return 0; }
static unsigned long device_zero(id self, SEL s) { return 0; }
static mtl_size device_max_threads(id self, SEL s)
{
    return (mtl_size){SM_MAX_THREADS, SM_MAX_THREADS, SM_MAX_THREADS};
}
static unsigned long device_threadgroup_memory(id self, SEL s) { return SM_MAX_THREADGROUP_BYTES; }

/* Families are numbered within their kind: Apple 1001.., Mac 2001.., Common 3001..,
 * Metal3 5001. SM_FAMILY=9 selects Apple9. */
static BOOL device_family(id self, SEL s, long family)
{
    const long apple = (long)sm_setting_integer(SM_SET_FAMILY, 7);
    return (family > 1000 && family <= 1000 + apple) || (family >= 2001 && family <= 2002) ||
           (family >= 3001 && family <= 3003) || (family == 5001 && apple >= 7);
}

static BOOL device_samples_at(id self, SEL s, unsigned long point)
{
    return point == 0; /* at pass boundaries, as on Apple GPUs */
}

typedef struct mtl_architecture {
    sm_object object;
} mtl_architecture;
static sm_string architecture_text = SM_STRING("softmetal");
static id architecture_name(id self, SEL s) { return &architecture_text; }
static const sm_method architecture_methods[] = {SM_METHOD("name", architecture_name), SM_METHODS_END};
static const sm_method nothing[] = {SM_METHODS_END};
SM_CLASS(sm_mtl_architecture, "MTLArchitecture", &sm_ns_object, mtl_architecture, NULL, architecture_methods, nothing,
         NULL, false);
static sm_object architecture = {&sm_mtl_architecture, -1};
static id device_architecture(id self, SEL s) { return &architecture; }

static const sm_method device_methods[] = {
    SM_METHOD("name", device_name),
    SM_METHOD("registryID", device_registry),
    SM_METHOD("architecture", device_architecture),
    SM_METHOD("maxThreadsPerThreadgroup", device_max_threads),
    SM_METHOD("maxThreadgroupMemoryLength", device_threadgroup_memory),
    SM_METHOD("maxBufferLength", device_buffer_limit),
    SM_METHOD("recommendedMaxWorkingSetSize", device_working_set),
    SM_METHOD("currentAllocatedSize", device_allocated),
    SM_METHOD("hasUnifiedMemory", device_yes),
    SM_METHOD("supportsFamily:", device_family),
    SM_METHOD("supportsCounterSampling:", device_samples_at),
    SM_METHOD("isLowPower", device_no),
    SM_METHOD("isHeadless", device_yes),
    SM_METHOD("isRemovable", device_no),
    SM_METHOD("supportsRaytracing", device_no),
    SM_METHOD("supportsFunctionPointers", device_no),
    SM_METHOD("supportsDynamicLibraries", device_no),
    SM_METHOD("argumentBuffersSupport", device_zero),
    SM_METHOD("readWriteTextureSupport", device_zero),
    SM_METHOD("location", device_zero),
    SM_METHOD("locationNumber", device_zero),
    SM_METHOD("maxTransferRate", device_zero),
    SM_METHOD("peerGroupID", device_zero),
    SM_METHOD("newCommandQueue", sm_device_queue),
    SM_METHOD("newCommandQueueWithMaxCommandBufferCount:", sm_device_queue_of),
    SM_METHOD("newBufferWithLength:options:", sm_device_buffer),
    SM_METHOD("newBufferWithBytes:length:options:", sm_device_buffer_of),
    SM_METHOD("newBufferWithBytesNoCopy:length:options:deallocator:", sm_device_buffer_around),
    SM_METHOD("newHeapWithDescriptor:", sm_device_heap),
    SM_METHOD("heapBufferSizeAndAlignWithLength:options:", sm_device_heap_size),
    SM_METHOD("newLibraryWithSource:options:error:", sm_library_from_source),
    SM_METHOD("newLibraryWithSource:options:completionHandler:", sm_library_later),
    SM_METHOD("newComputePipelineStateWithFunction:completionHandler:", sm_device_pipeline_later),
    SM_METHOD("newLibraryWithData:error:", sm_library_from_compiled),
    SM_METHOD("newLibraryWithURL:error:", sm_library_from_compiled),
    SM_METHOD("newLibraryWithFile:error:", sm_library_from_compiled),
    SM_METHOD("newDefaultLibrary", sm_library_default),
    SM_METHOD("newEvent", sm_device_event),
    SM_METHOD("newSharedEvent", sm_device_shared_event),
    SM_METHOD("newFence", sm_device_fence),
    SM_METHOD("counterSets", sm_device_counter_sets),
    SM_METHOD("newCounterSampleBufferWithDescriptor:error:", sm_device_samples),
    SM_METHOD("sampleTimestamps:gpuTimestamp:", sm_device_timestamps),
    SM_METHOD("newResidencySetWithDescriptor:error:", sm_device_residency_set),
    SM_METHOD("newBinaryArchiveWithDescriptor:error:", sm_device_archive),
    SM_METHOD("newComputePipelineStateWithFunction:error:", sm_device_pipeline),
    SM_METHOD("newComputePipelineStateWithFunction:options:reflection:error:", sm_device_pipeline_reflected),
    SM_METHOD("newComputePipelineStateWithDescriptor:options:reflection:error:", sm_device_pipeline_described),
    SM_METHODS_END,
};

SM_CLASS(sm_mtl_device, "SMDevice", &sm_ns_object, sm_object, NULL, device_methods, nothing, "MTLDevice", false);

SM_API id MTLCreateSystemDefaultDevice(void)
{
    char problem[256];
    if (sm_settings_problem(problem, sizeof problem)) {
        sm_failed("%s", problem);
        return NULL;
    }
    if (sm_fault(SM_FAULT_DEVICE, NULL) || sm_device_removed()) return NULL;
    return objc_retain(&sm_the_device);
}

SM_API id MTLCopyAllDevices(void)
{
    id device = MTLCreateSystemDefaultDevice();
    return sm_array_new(&sm_ns_array, &device, device == NULL ? 0 : 1);
}

/* Devices are never added or removed, so there is nothing to observe; metal-cpp needs the two symbols to link. */
SM_API id MTLCopyAllDevicesWithObserver(id *observer, const void *handler)
{
    if (observer != NULL) *observer = NULL;
    return MTLCopyAllDevices();
}
SM_API void MTLRemoveDeviceObserver(id observer) {}
