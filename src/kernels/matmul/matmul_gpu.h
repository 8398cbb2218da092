/* Choice of the kernel and tile for a matrix product on a GPU; pure functions. */
#ifndef MICA_KERNELS_MATMUL_GPU_H
#define MICA_KERNELS_MATMUL_GPU_H

#include "kernels/gpu.h"

/* half: both operands are f16. NULL: none fits the device. */
const mica__gpu_shape *mica__gpu_tile_for(const mica__gpu_limits *gpu, int64_t m, int64_t n, int64_t batches,
                                          bool half);
/* Number of parts that k is split into, so that every core has work. */
uint32_t mica__gpu_parts_of_k(const mica__gpu_limits *gpu, int64_t tiles, int64_t k);

#endif
