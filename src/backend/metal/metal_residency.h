/* Which buffers stay mapped for the GPU between command buffers: one residency set (macOS 15)
 * for the device, on the queue of every engine, never larger than what the system
 * recommends as a working set. What is left out is as right as before: a buffer that an
 * encoder binds is made resident for that command buffer by Metal, each time. */
#ifndef MICA_BACKEND_METAL_RESIDENCY_H
#define MICA_BACKEND_METAL_RESIDENCY_H

#include "backend/metal/metal_device.h"

/* Nothing where the device has no such sets. */
void mica__residency_attach(const mica__metal_device *device, mica__id queue);
void mica__residency_detach(mica__id queue);

/* Is it in the set now? From the next mica__residency_commit on. */
bool mica__residency_add(const mica__metal_device *device, mica__id buffer, uint64_t nbytes);
/* Before its memory goes; at once. */
void mica__residency_remove(mica__id buffer, uint64_t nbytes, bool resident);
/* Before a command buffer is committed. */
void mica__residency_commit(void);

/* Bytes of buffers in the set, and of those it has no room for. */
void mica__residency_count(uint64_t *in, uint64_t *out);

#endif
