/* The kernel shapes that mica_tune found fastest on this device (kernels/gpu_tune.h), in a small
 * text file in the cache folder. A file that is incomplete or has other candidates is not used,
 * and `mica doctor` reports it. */
#ifndef MICA_BACKEND_METAL_TUNING_H
#define MICA_BACKEND_METAL_TUNING_H

#include "backend/metal/metal_device.h"

/* Reads the file into device->limits.tuning when the device is opened. */
void mica__tuning_load(mica__metal_device *device);
/* Writes the path of the file to path[MICA__CACHE_PATH]; MICA_ERR_UNSUPPORTED if there is no cache folder. */
mica_status mica__tuning_path(const mica__metal_device *device, char *path);
mica_status mica__tuning_store(const mica__metal_device *device, const mica__gpu_tuning *tuning);
/* Removes the file; it is not an error if there is none. */
mica_status mica__tuning_remove(const mica__metal_device *device);
/* Adds a line for `mica doctor`. */
void mica__tuning_print(const mica__metal_device *device, mica__text *text);

#endif
