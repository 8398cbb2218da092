/* See metal_device.h. */
#include "backend/metal/metal_device.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/metal/metal_cores.h"
#include "backend/metal/metal_tuning.h"
#include "base/fork.h"

static struct {
    pthread_mutex_t lock;
    bool found;
    mica__metal_device device;
    char why[600];
} metal = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* MTLGPUFamily: Apple1 is 1001. M1 is Apple7, the oldest family that mica supports. */
enum { FAMILY_APPLE = 1000, FAMILY_OLDEST = 7, FAMILY_NEWEST = 12, FAMILY_METAL3 = 5001 };
enum { SAMPLING_AT_STAGES = 0 }; /* MTLCounterSamplingPointAtStageBoundary */
/* MTLLanguageVersion: 3.0 (macOS 13) is the oldest that mica supports, 3.1 (macOS 14) the first with bfloat. */
enum { LANGUAGE_3_0 = 3 << 16, LANGUAGE_3_1 = (3 << 16) + 1 };

static uint32_t metal_family(mica__id device)
{
    for (uint32_t n = FAMILY_NEWEST; n >= FAMILY_OLDEST; n--)
        if (MICA__SEND1(bool, device, supportsFamily, long, (long)(FAMILY_APPLE + n))) return n;
    return 0;
}

static mica__mtl_size metal_max_threads(mica__id device)
{
    return ((mica__mtl_size(*)(mica__id, mica__sel))mica__objc.send_stret)(device,
                                                                           mica__objc.sel.maxThreadsPerThreadgroup);
}

/* Every text of a kernel begins like this: types need the header in some versions of the language. */
#define METAL_HEAD "#include <metal_stdlib>\nusing namespace metal;\n"

/* Tests a language feature by compiling a kernel: no version number of the system is a reliable test. */
static bool metal_compiles(mica__id device, const char *source, unsigned long language)
{
    mica__id text = mica__objc_string(source), error = NULL;
    mica__id options =
        MICA__SEND0(mica__id, MICA__SEND0(mica__id, mica__objc.get_class("MTLCompileOptions"), alloc), init);
    if (options) MICA__SEND1(void, options, setLanguageVersion, unsigned long, language);
    mica__id library = text && options ? MICA__SEND3(mica__id, device, newLibraryWithSource, mica__id, text, mica__id,
                                                     options, mica__id *, &error)
                                       : NULL;
    mica__objc.release(library);
    mica__objc.release(options);
    mica__objc.release(text);
    return library != NULL;
}

static void metal_describe(mica__id device, mica__metal_device *d)
{
    mica__gpu_limits *l = &d->limits;
    mica__id name = MICA__SEND0(mica__id, device, name);
    const char *utf8 = name ? MICA__SEND0(const char *, name, UTF8String) : NULL;
    *d = (mica__metal_device){.device = device};
    snprintf(l->name, sizeof l->name, "%.40s%s", utf8 ? utf8 : "a Metal device",
             mica__objc.software && !(utf8 && strstr(utf8, "software")) ? " (software, no GPU)" : "");
    l->family = metal_family(device);
    l->cores = mica__metal_cores();
    l->max_threads = (uint32_t)metal_max_threads(device).width;
    l->threadgroup_bytes = (uint32_t)MICA__SEND0(unsigned long, device, maxThreadgroupMemoryLength);
    l->simd_width = 32;
    l->simdgroup_matrix = l->family >= FAMILY_OLDEST;
    l->software = mica__objc.software;
    l->max_buffer_bytes = MICA__SEND0(unsigned long, device, maxBufferLength);
    l->budget_bytes = MICA__SEND0(uint64_t, device, recommendedMaxWorkingSetSize);
    l->bfloat = metal_compiles(
        device, METAL_HEAD "kernel void k(device bfloat *x [[buffer(0)]]) { x[0] = bfloat(1.0f); }", LANGUAGE_3_1);
    if (l->bfloat) d->language = LANGUAGE_3_1;
    else if (metal_compiles(device, METAL_HEAD "kernel void k(device float *x [[buffer(0)]]) { x[0] = 1.0f; }",
                            LANGUAGE_3_0))
        d->language = LANGUAGE_3_0;
    d->archives = mica__objc.get_class("MTLBinaryArchiveDescriptor") && MICA__RESPONDS(device, newBinaryArchive);
    d->counters = MICA__RESPONDS(device, supportsCounterSampling) &&
                  MICA__SEND1(bool, device, supportsCounterSampling, unsigned long, SAMPLING_AT_STAGES) &&
                  mica__objc.get_class("MTLComputePassDescriptor");
    d->residency = mica__objc.get_class("MTLResidencySetDescriptor") && MICA__RESPONDS(device, newResidencySet);
}

/* A login session without a screen has no default device, but the list may have one. */
static mica__id metal_first_device(void)
{
    mica__id device = mica__objc.default_device();
    if (device || !mica__objc.all_devices) return device;
    mica__id list = mica__objc.all_devices();
    if (list && MICA__SEND0(unsigned long, list, count) > 0)
        device = mica__objc.retain(MICA__SEND1(mica__id, list, objectAtIndex, unsigned long, 0));
    mica__objc.release(list);
    return device;
}

static bool metal_find(void)
{
    const char *why = mica__objc_load();
    if (why) {
        snprintf(metal.why, sizeof metal.why, "%s", why);
        return false;
    }
    void *pool = mica__objc.pool_push();
    mica__id device = metal_first_device();
    if (!device) {
        snprintf(metal.why, sizeof metal.why, "the system has no Metal device");
    } else {
        metal_describe(device, &metal.device);
        mica__tuning_load(&metal.device);
        const bool old = metal.device.limits.family < FAMILY_OLDEST;
        metal.found = !old && metal.device.language;
        if (!metal.found) {
            snprintf(metal.why, sizeof metal.why, "%s %s", metal.device.limits.name,
                     old ? "is older than Apple's family 7 (M1)"
                         : "cannot compile Metal 3.0: macOS 13 or later is needed");
            mica__objc.release(device);
        }
    }
    mica__objc.pool_pop(pool);
    return metal.found;
}

const mica__metal_device *mica__metal_get(const char **why_not)
{
    if (mica__fork_count() > 0) { /* Metal's state and threads exist in the parent only: base/fork.h */
        *why_not = "this process was made by fork() after mica was used; a GPU needs a new program (exec)";
        return NULL;
    }
    pthread_mutex_lock(&metal.lock);
    const bool found = metal.found || metal_find();
    pthread_mutex_unlock(&metal.lock);
    *why_not = found ? NULL : metal.why;
    return found ? &metal.device : NULL;
}

mica_status mica__metal_tune(const mica__gpu_tuning *tuning)
{
    const char *why;
    if (!mica__metal_get(&why)) return mica__fail(MICA_ERR_DEVICE, "metal: %s", why);
    pthread_mutex_lock(&metal.lock);
    metal.device.limits.tuning = *tuning;
    pthread_mutex_unlock(&metal.lock);
    return MICA_OK;
}

void mica__metal_print(mica__text *text)
{
    const char *why;
    const mica__metal_device *d = mica__metal_get(&why);
    if (!d) return;
    const mica__gpu_limits *l = &d->limits;
    mica__text_add(text, "  device %s: Apple family %u", l->name, l->family);
    if (l->cores) mica__text_add(text, ", %u cores", l->cores);
    mica__text_add(text,
                   "\n  threadgroups of up to %u threads with %u bytes; buffers of up to %" PRIu64 " bytes, %" PRIu64
                   " in all\n",
                   l->max_threads, l->threadgroup_bytes, l->max_buffer_bytes, l->budget_bytes);
    mica__text_add(text, "  bfloat %s, simdgroup matrices %s, binary archives %s, residency sets %s\n",
                   l->bfloat ? "yes" : "no", l->simdgroup_matrix ? "yes" : "no", d->archives ? "yes" : "no",
                   d->residency ? "yes" : "no");
    mica__tuning_print(d, text);
}
