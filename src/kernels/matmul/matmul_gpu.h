/* Which kernel multiplies two matrices on a GPU, and in which tiles; pure functions. */
#ifndef MICA_KERNELS_MATMUL_GPU_H
#define MICA_KERNELS_MATMUL_GPU_H

#include "kernels/gpu.h"

typedef struct mica__gpu_tile {
    const char *kernel[2];      /* operands in threadgroup memory as float, as half      */
    uint32_t m, n, k[2];        /* of the result; of both operands, float and half       */
    uint32_t threads;
    uint32_t bytes[2];          /* threadgroup memory                                    */
} mica__gpu_tile;

/* NULL: none fits the device. */
const mica__gpu_tile *mica__gpu_tile_for(const mica__gpu_limits *gpu, int64_t m, int64_t n, int64_t batches, bool half);
/* How many parts k is cut in, so that there is work for every core. */
uint32_t mica__gpu_parts_of_k(const mica__gpu_limits *gpu, int64_t tiles, int64_t k);

#endif
