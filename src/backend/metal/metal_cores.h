/* The number of GPU cores, from the I/O registry; Metal does not report it. */
#ifndef MICA_BACKEND_METAL_CORES_H
#define MICA_BACKEND_METAL_CORES_H

#include <stdint.h>

/* 0: unknown. Call mica__objc_load first. */
uint32_t mica__metal_cores(void);

#endif
