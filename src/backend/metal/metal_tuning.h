/* The shapes of kernels that mica_tune found fastest on this device (kernels/gpu_tune.h), in a small
 * text file beside the compiled kernels. A file that is not whole, or of other candidates, is not
 * used, and `mica doctor` says so. */
#ifndef MICA_BACKEND_METAL_TUNING_H
#define MICA_BACKEND_METAL_TUNING_H

#include "backend/metal/metal_device.h"

/* What the file says, into the limits of a device that is being opened. */
void mica__tuning_load(mica__metal_device *device);
/* Where the file is, into path[MICA__CACHE_PATH]; MICA_ERR_UNSUPPORTED if nothing is kept (MICA_CACHE=off). */
mica_status mica__tuning_path(const mica__metal_device *device, char *path);
mica_status mica__tuning_store(const mica__metal_device *device, const mica__gpu_tuning *tuning);
/* Removes the file; that there was none is no failure. */
mica_status mica__tuning_forget(const mica__metal_device *device);
/* A line for `mica doctor`. */
void mica__tuning_print(const mica__metal_device *device, mica__text *text);

#endif
