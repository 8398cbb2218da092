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
    unsigned long language;     /* MTLLanguageVersion to compile for; 0: none works, the device is refused */
    bool archives, residency;   /* binary archives, residency sets                       */
    bool counters;              /* timestamps at the start and end of an encoder         */
} mica__metal_device;

/* The device; NULL: *why_not is the reason. Thread-safe. */
const mica__metal_device *mica__metal_get(const char **why_not);
/* Sets the shapes for plans that are made later (kernels/gpu_tune.h). No plan may be made during the call. */
mica_status mica__metal_tune(const mica__gpu_tuning *tuning);
/* Adds lines for `mica doctor`. */
void mica__metal_print(mica__text *text);

/* MTLCommandBufferStatus. */
enum { MICA__MTL_COMPLETED = 4, MICA__MTL_FAILED = 5 };

#endif
