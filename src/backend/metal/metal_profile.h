/* Times of single steps on the GPU.
 *
 * Apple GPUs have timestamps only at the start and end of an encoder, so a timed step has a
 * separate encoder. On a device without timestamps each step has a separate command buffer, whose
 * times Metal always reports. */
#ifndef MICA_BACKEND_METAL_PROFILE_H
#define MICA_BACKEND_METAL_PROFILE_H

#include "backend/backend.h"
#include "backend/metal/metal_device.h"

enum { MICA__METAL_SAMPLED = 256 }; /* most steps between two waits */

typedef struct mica__metal_profile {
    mica__id samples;           /* two timestamps per step; NULL: not supported          */
    mica__step_times *times;    /* of this run                                           */
    uint32_t step[MICA__METAL_SAMPLED]; /* the entry of times of each pair of samples    */
    uint32_t n;                 /* pairs of samples                                      */
    uint64_t gpu_first, now_first; /* both clocks before the first step                  */
} mica__metal_profile;

/* NULL: out of memory. */
mica__metal_profile *mica__metal_profile_new(const mica__metal_device *device);
void mica__metal_profile_free(mica__metal_profile *profile);
/* An encoder whose start and end become the times of the last entry of times; NULL: failure. Only
 * allowed while n is less than MICA__METAL_SAMPLED. */
mica__id mica__metal_profile_encoder(mica__metal_profile *profile, const mica__metal_device *device, mica__id command,
                                     mica__step_times *times);
/* Stores the times of all sampled steps, which have run. */
void mica__metal_profile_collect(mica__metal_profile *profile, const mica__metal_device *device);

#endif
