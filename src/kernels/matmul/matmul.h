/* MATMUL: a (..., M, K) times b (..., K, N) into (..., M, N); the batch axes of
 * both are those of the result, with any strides. K = 0 gives 0.
 *
 * ref   floats add in double in the order of k; integers wrap.
 * cpu   f32, f16, bf16: in f32, blocks of K in order, each summed on its own
 *       (gemm.h); f64 and integers as ref. Takes the epilogue: in pieces of
 *       rows, each piece as soon as its tile is finished. */
#ifndef MICA_KERNELS_MATMUL_H
#define MICA_KERNELS_MATMUL_H

#include "kernels/launch.h"

mica_status mica__matmul_ref(const mica__launch *launch);
mica_status mica__matmul_cpu(const mica__launch *launch);
size_t mica__matmul_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);

#endif
