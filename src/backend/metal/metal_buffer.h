/* Arrays as Metal's buffers. */
#ifndef MICA_BACKEND_METAL_BUFFER_H
#define MICA_BACKEND_METAL_BUFFER_H

#include "backend/metal/metal_device.h"
#include "memory/memory.h"

/* The MTLBuffer that a buffer's memory is in, made when first asked for and kept with it,
 * and where in it the byte at data + nbytes is. data NULL or a buffer without bytes: some
 * memory that nobody reads. */
mica_status mica__metal_buffer(const mica__metal_device *device, mica__buffer *buffer, const char *data, int64_t nbytes,
                               mica__id *out, unsigned long *offset);
/* mica__buffer.device goes; NULL is none. */
void mica__metal_buffer_release(void *device);
/* MTLBuffers there are, of all engines. */
uint64_t mica__metal_buffers(void);

#endif
