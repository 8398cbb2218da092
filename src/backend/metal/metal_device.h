/* The Metal device of this process: found once, shared by all engines. */
#ifndef MICA_BACKEND_METAL_DEVICE_H
#define MICA_BACKEND_METAL_DEVICE_H

#include <stdatomic.h>

#include "backend/metal/objc.h"
#include "base/text.h"
#include "kernels/gpu.h"

typedef struct mica__metal_device {
    mica__id device;
    mica__gpu_limits limits;
    unsigned long language;     /* MTLLanguageVersion to compile for; 0: what the system takes   */
    bool archives, residency;   /* binary archives, residency sets                       */
    bool counters;              /* timestamps at the ends of an encoder                  */
} mica__metal_device;

/* The device; NULL and why not. Thread-safe. */
const mica__metal_device *mica__metal_get(const char **why_not);
/* Shapes for the plans made from now on (kernels/gpu_tune.h); none is being made meanwhile. */
mica_status mica__metal_tune(const mica__gpu_tuning *tuning);
/* Lines for `mica doctor`. */
void mica__metal_print(mica__text *text);

/* How Metal says where a command buffer is and why it failed. */
enum { MICA__MTL_COMPLETED = 4, MICA__MTL_FAILED = 5 };

#endif
