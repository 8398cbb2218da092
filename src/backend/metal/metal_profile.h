/* Where steps are seen from outside: by name in a capture, and when they ran.
 *
 * Apple's GPUs give timestamps at the ends of an encoder only, so a timed step has an encoder
 * of its own; a device that gives none has a command buffer a step, whose times Metal
 * always knows. */
#ifndef MICA_BACKEND_METAL_PROFILE_H
#define MICA_BACKEND_METAL_PROFILE_H

#include "backend/backend.h"
#include "backend/metal/metal_device.h"

enum { MICA__METAL_SAMPLED = 256 }; /* steps between two waits */

typedef struct mica__metal_profile {
    mica__id samples;           /* two for each step; NULL: the device has none          */
    mica__step_times *times;    /* of this run                                           */
    uint32_t step[MICA__METAL_SAMPLED]; /* which of these a pair belongs to              */
    uint32_t n;
    uint64_t gpu_first, now_first; /* both clocks when the first was taken               */
} mica__metal_profile;

/* NULL without memory. */
mica__metal_profile *mica__metal_profile_new(const mica__metal_device *device);
void mica__metal_profile_free(mica__metal_profile *profile);
/* An encoder whose ends are the times of the last step of times; NULL: none. Only while n is
 * less than MICA__METAL_SAMPLED. */
mica__id mica__metal_profile_encoder(mica__metal_profile *profile, const mica__metal_device *device, mica__id command,
                                     mica__step_times *times);
/* All of them have run: their times are written down. */
void mica__metal_profile_take(mica__metal_profile *profile, const mica__metal_device *device);

#endif
