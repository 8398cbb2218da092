/* The cache folder: compiled kernels (metal_archive.h) and measured shapes (metal_tuning.h). File
 * names contain a hash of the device, the system and the version, so other machines ignore them. */
#ifndef MICA_BACKEND_METAL_CACHE_H
#define MICA_BACKEND_METAL_CACHE_H

#include "backend/metal/metal_device.h"

enum { MICA__CACHE_PATH = 1024 };

/* Writes the path for hash and suffix on this device. False: there is no cache (off, or no HOME). */
bool mica__cache_path(const mica__metal_device *device, uint64_t hash, const char *suffix, char path[MICA__CACHE_PATH]);
/* Makes the folder of the path and its parent folder. */
void mica__cache_make_folders(const char *path);

#endif
