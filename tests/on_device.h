/* Tests again on another device: with MICA_DEVICE=metal (tests/run.sh PROGRAM@metal) whatever
 * a program does on the cpu backend it does there, and has failed if nothing ever ran on
 * the GPU. */
#ifndef MICA_TEST_ON_DEVICE_H
#define MICA_TEST_ON_DEVICE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/metal/metal_pipeline.h"
#include "base/alloc.h"
#include "mica.h"

static inline bool on_metal(void)
{
    const char *device = getenv("MICA_DEVICE");
    return device && strcmp(device, "metal") == 0;
}

__attribute__((constructor)) static void device_is_here(void)
{
    const char *why = NULL;
    if (!on_metal() || mica__backend_metal.is_available(&why)) return;
    printf("SKIP all: no Metal: %s\n0 passed, 0 failed, 1 skipped\n", why);
    fflush(stdout);
    _exit(0);
}

static inline const char *device_for(const char *backend)
{
    return on_metal() && strcmp(backend, "cpu") == 0 ? "metal" : backend;
}

/* Allocations alive without those of compiled kernels, two each, which the process keeps. */
static inline int64_t live_blocks(void)
{
    mica__pipeline_stats kept;
    mica__pipeline_stats_get(&kept);
    return mica__alloc_live() - 2 * (int64_t)kept.alive;
}

static struct {
    unsigned long long kernels, cpu_steps;
    int engines;
} device_tally;

/* After the tests' own closing line, which could not know. */
static inline void device_report(void)
{
    printf("metal: %llu dispatches, %llu steps on the CPU, %d engines\n", device_tally.kernels, device_tally.cpu_steps,
           device_tally.engines);
    fflush(stdout);
    if (device_tally.kernels == 0) _exit(1);
}

static inline void close_on_device(mica_engine *e)
{
    mica_stats s = {.struct_size = sizeof s};
    if (e && on_metal()) {
        mica_engine_stats(e, &s);
        if (device_tally.engines++ == 0) atexit(device_report);
        device_tally.kernels += s.gpu_kernels;
        device_tally.cpu_steps += s.gpu_cpu_steps;
    }
    (mica_close)(e);
}

#define mica_close(e) close_on_device(e)

#endif
