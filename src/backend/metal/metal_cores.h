/* How many cores the GPU has. Metal does not say; the I/O registry does. */
#ifndef MICA_BACKEND_METAL_CORES_H
#define MICA_BACKEND_METAL_CORES_H

#include <stdint.h>

/* 0: unknown. After mica__objc_load. */
uint32_t mica__metal_cores(void);

#endif
