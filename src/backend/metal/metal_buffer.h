/* MTLBuffers of array memory. */
#ifndef MICA_BACKEND_METAL_BUFFER_H
#define MICA_BACKEND_METAL_BUFFER_H

#include "backend/metal/metal_device.h"
#include "memory/memory.h"

/* The MTLBuffer that contains the memory of a buffer, and the offset in it of the byte at
 * data + nbytes. It is made at the first call and kept with the buffer. data NULL or a buffer
 * without bytes: a dummy page that is never read. */
mica_status mica__metal_buffer(const mica__metal_device *device, mica__buffer *buffer, const char *data, int64_t nbytes,
                               mica__id *out, unsigned long *offset);
/* Releases mica__buffer.device; NULL is allowed. */
void mica__metal_buffer_release(void *device);
/* The number of MTLBuffers of all engines. */
uint64_t mica__metal_buffers(void);

#endif
