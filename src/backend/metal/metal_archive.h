/* Compiled kernels on disk: one binary archive per pipeline in the cache folder. Its name is a
 * hash of the text, the constants, the device, the build of the system and the version of mica.
 * An archive without the function is a miss. Any failure is also a miss, never an error. */
#ifndef MICA_BACKEND_METAL_ARCHIVE_H
#define MICA_BACKEND_METAL_ARCHIVE_H

#include "backend/metal/metal_device.h"

/* A pipeline descriptor, which the caller releases; label and archive may be NULL. NULL: out of memory. */
mica__id mica__pipeline_descriptor(mica__id function, const char *label, mica__id archive);
/* The pipeline of a function from the archive of this hash, which the caller releases, and the
 * time that it took to compile; NULL: a miss. */
mica__id mica__archive_load(const mica__metal_device *device, uint64_t hash, mica__id function, const char *label,
                            uint64_t *compile_ns);
/* Writes that archive to a temporary file, which is then renamed. */
void mica__archive_store(const mica__metal_device *device, uint64_t hash, mica__id function, uint64_t compile_ns);

#endif
