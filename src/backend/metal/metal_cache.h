/* The folder of what can be made again: compiled kernels (metal_archive.h) and measured shapes
 * (metal_tuning.h). Names there have a hash of what makes them useless elsewhere. */
#ifndef MICA_BACKEND_METAL_CACHE_H
#define MICA_BACKEND_METAL_CACHE_H

#include "backend/metal/metal_device.h"

enum { MICA__CACHE_PATH = 1024 };

/* The path of hash and suffix for this device, into a buffer; false: nothing is kept (off, or no home). */
bool mica__cache_path(const mica__metal_device *device, uint64_t hash, const char *suffix, char path[MICA__CACHE_PATH]);
/* Makes the folder of that path, and the one it is in. */
void mica__cache_make_folders(const char *path);

#endif
