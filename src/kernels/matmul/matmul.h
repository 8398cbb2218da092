/* MATMUL: a (..., M, K) times b (..., K, N) into (..., M, N); both have the batch axes of the
 * result, with any strides. K = 0 gives 0.
 *
 * ref   floats are added in double in the order of k; integers wrap.
 * cpu   f32: in f32, in the order of K (gemm.h); f16, bf16 and 8-bit integers with
 *       wider accumulators (gemm_dot.h); f64 and other integers as ref. Runs the epilogue
 *       itself, on pieces of rows as soon as their tile is finished. */
#ifndef MICA_KERNELS_MATMUL_H
#define MICA_KERNELS_MATMUL_H

#include "kernels/matmul/gemm.h"

/* Operand `which` of a batch; i counts a's rows, b's columns. */
static inline mica__gemm_view mica__matmul_view(const mica__launch *launch, int which, int64_t batch)
{
    const mica__tensor *t = &launch->in[which];
    const int outer = t->spec.ndim - 2;
    const int64_t offset = mica__offset_at(outer, t->spec.shape, t->strides, batch);
    const int64_t row = t->strides[outer], col = t->strides[outer + 1];
    return (mica__gemm_view){.data = mica__element(t, offset),
                             .dtype = mica__dtype_of(t),
                             .k_step = which ? row : col,
                             .i_step = which ? col : row};
}

/* f32, any sizes, but the result is not empty. */
void mica__matmul_f32(const mica__launch *launch);
bool mica__matmul_f32_prepack(const mica__launch *launch, mica__prepack *wish);
size_t mica__matmul_f32_workspace(const mica__tensor *in, const mica__spec *out);

mica_status mica__matmul_ref(const mica__launch *launch);
mica_status mica__matmul_cpu(const mica__launch *launch);
mica_status mica__matmul_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
size_t mica__matmul_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);
bool mica__matmul_prepack(const mica__launch *launch, mica__prepack *wish);

#endif
