/* Runs a test program on another device. With MICA_DEVICE=metal (tests/run.sh PROGRAM@metal)
 * everything that the program does on the cpu backend runs on Metal instead. The program
 * fails if nothing was ever dispatched to the GPU. */
#ifndef MICA_TEST_ON_DEVICE_H
#define MICA_TEST_ON_DEVICE_H

#include <stdatomic.h>
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

/* Live allocations without those of compiled kernels (two each), which the process keeps. */
static inline int64_t live_blocks(void)
{
    mica__pipeline_stats kept;
    mica__pipeline_stats_get(&kept);
    return mica__alloc_live() - 2 * (int64_t)kept.alive;
}

/* Sums over all closed engines. Atomic, because tests close engines on several threads. */
static struct {
    atomic_ullong kernels, cpu_steps;
    atomic_int engines;
} device_totals;

/* Runs at exit, after the closing line of the tests: engines may be closed until then. */
static inline void device_report(void)
{
    const unsigned long long kernels = atomic_load(&device_totals.kernels);
    printf("metal: %llu dispatches, %llu steps on the CPU, %d engines\n", kernels,
           atomic_load(&device_totals.cpu_steps), atomic_load(&device_totals.engines));
    fflush(stdout);
    if (kernels == 0) _exit(1);
}

static inline void close_on_device(mica_engine *e)
{
    mica_stats s = {.struct_size = sizeof s};
    if (e && on_metal()) {
        mica_engine_stats(e, &s);
        if (atomic_fetch_add(&device_totals.engines, 1) == 0) atexit(device_report);
        atomic_fetch_add(&device_totals.kernels, s.gpu_kernels);
        atomic_fetch_add(&device_totals.cpu_steps, s.gpu_cpu_steps);
    }
    (mica_close)(e);
}

#define mica_close(e) close_on_device(e)

#endif
