/* Compiled kernels on disk: one binary archive a pipeline, in a folder of the user's, named
 * by a hash of the text, the constants, the device, the system's build and mica's version.
 * An archive that does not hold the function is a miss; anything that goes wrong is one
 * too, never an error. */
#ifndef MICA_BACKEND_METAL_ARCHIVE_H
#define MICA_BACKEND_METAL_ARCHIVE_H

#include "backend/metal/metal_device.h"

/* What a pipeline is made from, ours to release; label and archive may be NULL. NULL without memory. */
mica__id mica__pipeline_descriptor(mica__id function, const char *label, mica__id archive);
/* The pipeline of a function if the archive of this hash has it, ours to release, and how long
 * it took to compile; else NULL. */
mica__id mica__archive_load(const mica__metal_device *device, uint64_t hash, mica__id function, const char *label,
                            uint64_t *compile_ns);
/* Writes that archive: to another name first, which then takes its place. */
void mica__archive_store(const mica__metal_device *device, uint64_t hash, mica__id function, uint64_t compile_ns);

#endif
