/* The tuner: measures each choice of the GPU kernels (kernels/gpu_tune.h) on the Metal device of this
 * machine. */
#ifndef MICA_PROFILE_TUNER_H
#define MICA_PROFILE_TUNER_H

#include "base/status.h"

/* mica_tune with options that were read and checked. */
mica_status mica__tune(const mica_tune_options *options, char *path, size_t cap);
/* Removes the file of this device and returns to the rules. */
mica_status mica__tune_reset(void);

#endif
