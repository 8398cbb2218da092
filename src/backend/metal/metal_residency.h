/* Keeps buffers mapped for the GPU between command buffers: one residency set (macOS 15) for the
 * device, attached to the queue of every engine. It is never larger than the working set that the
 * system recommends. Buffers outside the set work too: Metal makes a buffer that an encoder binds
 * resident for that command buffer. */
#ifndef MICA_BACKEND_METAL_RESIDENCY_H
#define MICA_BACKEND_METAL_RESIDENCY_H

#include "backend/metal/metal_device.h"

/* Adds the set to a queue. Does nothing if the device has no residency sets. */
void mica__residency_attach(const mica__metal_device *device, mica__id queue);
void mica__residency_detach(mica__id queue);

/* Adds a buffer, with effect from the next mica__residency_commit. False: it does not fit, or there is no set. */
bool mica__residency_add(const mica__metal_device *device, mica__id buffer, uint64_t nbytes);
/* Called before the memory of the buffer is freed; takes effect at once. */
void mica__residency_remove(mica__id buffer, uint64_t nbytes, bool resident);
/* Called before a command buffer is committed. */
void mica__residency_commit(void);

/* Bytes of the buffers in the set, and of those outside it. */
void mica__residency_count(uint64_t *in, uint64_t *out);

#endif
