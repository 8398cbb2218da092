/* See metal_profile.h. The GPU clock has unknown units: both clocks are read before the first
 * step and after the last, and GPU times are converted linearly between these two points. */
#include "backend/metal/metal_profile.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { PROFILE_CONCURRENT = 1 /* MTLDispatchTypeConcurrent */ };

/* The counter set "timestamp"; NULL: the device has none. */
static mica__id timestamp_set(mica__id device)
{
    mica__id sets = MICA__SEND0(mica__id, device, counterSets);
    const unsigned long n = sets ? MICA__SEND0(unsigned long, sets, count) : 0;
    for (unsigned long i = 0; i < n; i++) {
        mica__id set = MICA__SEND1(mica__id, sets, objectAtIndex, unsigned long, i);
        mica__id name = MICA__SEND0(mica__id, set, name);
        const char *utf8 = name ? MICA__SEND0(const char *, name, UTF8String) : NULL;
        if (utf8 && strcmp(utf8, "timestamp") == 0) return set;
    }
    return NULL;
}

static mica__id profile_samples(const mica__metal_device *device)
{
    mica__id set = device->counters ? timestamp_set(device->device) : NULL, error = NULL, samples = NULL;
    mica__id class = set ? mica__objc.get_class("MTLCounterSampleBufferDescriptor") : NULL;
    mica__id made = class ? MICA__SEND0(mica__id, class, alloc) : NULL;
    mica__id descriptor = made ? MICA__SEND0(mica__id, made, init) : NULL;
    if (descriptor) {
        MICA__SEND1(void, descriptor, setCounterSet, mica__id, set);
        MICA__SEND1(void, descriptor, setStorageMode, unsigned long, 0); /* MTLStorageModeShared */
        MICA__SEND1(void, descriptor, setSampleCount, unsigned long, 2ul * MICA__METAL_SAMPLED);
        samples =
            MICA__SEND2(mica__id, device->device, newCounterSampleBuffer, mica__id, descriptor, mica__id *, &error);
    }
    mica__objc.release(descriptor);
    return samples;
}

mica__metal_profile *mica__metal_profile_new(const mica__metal_device *device)
{
    mica__metal_profile *p = mica__alloc_zero(1, sizeof *p);
    if (!p) return NULL;
    void *pool = mica__objc.pool_push();
    p->samples = profile_samples(device);
    mica__objc.pool_pop(pool);
    return p;
}

void mica__metal_profile_free(mica__metal_profile *p)
{
    if (!p) return;
    mica__objc.release(p->samples);
    mica__free(p);
}

static void read_clocks(const mica__metal_device *device, uint64_t *gpu, uint64_t *now)
{
    uint64_t cpu = 0;
    MICA__SEND2(void, device->device, sampleTimestamps, uint64_t *, &cpu, uint64_t *, gpu);
    *now = mica__now_ns();
}

mica__id mica__metal_profile_encoder(mica__metal_profile *p, const mica__metal_device *device, mica__id command,
                                     mica__step_times *times)
{
    if (!p->samples) return MICA__SEND1(mica__id, command, computeEncoder, unsigned long, PROFILE_CONCURRENT);
    mica__id pass = MICA__SEND0(mica__id, mica__objc.get_class("MTLComputePassDescriptor"), computePassDescriptor);
    mica__id all = pass ? MICA__SEND0(mica__id, pass, sampleBufferAttachments) : NULL;
    mica__id ends = all ? MICA__SEND1(mica__id, all, objectAtIndexedSubscript, unsigned long, 0) : NULL;
    if (!ends) return NULL;
    if (p->n == 0) read_clocks(device, &p->gpu_first, &p->now_first);
    MICA__SEND1(void, pass, setDispatchType, unsigned long, PROFILE_CONCURRENT);
    MICA__SEND1(void, ends, setSampleBuffer, mica__id, p->samples);
    MICA__SEND1(void, ends, setStartOfEncoder, unsigned long, 2ul * p->n);
    MICA__SEND1(void, ends, setEndOfEncoder, unsigned long, 2ul * p->n + 1);
    mica__id encoder = MICA__SEND1(mica__id, command, computeEncoderDescribed, mica__id, pass);
    if (!encoder) return NULL;
    p->times = times;
    p->step[p->n++] = times->n - 1;
    return encoder;
}

void mica__metal_profile_collect(mica__metal_profile *p, const mica__metal_device *device)
{
    uint64_t gpu_last, now_last;
    if (p->n == 0) return;
    const mica__ns_range range = {0, 2ul * p->n};
    mica__id data = MICA__SEND1(mica__id, p->samples, resolveCounterRange, mica__ns_range, range);
    const uint64_t *sample = data ? MICA__SEND0(const void *, data, bytes) : NULL;
    if (data && MICA__SEND0(unsigned long, data, length) < range.length * sizeof *sample) sample = NULL;
    read_clocks(device, &gpu_last, &now_last);
    const double ticks = (double)(gpu_last - p->gpu_first);
    const double ns_a_tick = ticks > 0 ? (double)(now_last - p->now_first) / ticks : 0;
    for (uint32_t i = 0; sample && ticks > 0 && i < p->n; i++) { /* ticks 0: the clock does not advance */
        mica__step_time *time = &p->times->time[p->step[i]];
        const uint64_t start = sample[2 * i], end = sample[2 * i + 1];
        if (start == UINT64_MAX || end == UINT64_MAX || end < start) continue; /* MTLCounterErrorValue */
        const double from = (double)((int64_t)start - (int64_t)p->gpu_first) * ns_a_tick;
        const double to = (double)((int64_t)end - (int64_t)p->gpu_first) * ns_a_tick;
        time->start_ns = (uint64_t)((int64_t)p->now_first + (int64_t)from);
        time->end_ns = (uint64_t)((int64_t)p->now_first + (int64_t)to);
    }
    p->n = 0;
}
