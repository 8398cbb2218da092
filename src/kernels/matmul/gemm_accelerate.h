/* Large f32 products on macOS by Apple's Accelerate, which reaches a matrix unit
 * that no public instruction does. Its sgemm is looked up when first needed, so
 * that nothing has to be linked; elsewhere there is none. Its sums have an order of
 * their own: bits differ from ours, but not from run to run.
 *
 * MICA_ACCELERATE=0 leaves it alone. */
#ifndef MICA_KERNELS_MATMUL_GEMM_ACCELERATE_H
#define MICA_KERNELS_MATMUL_GEMM_ACCELERATE_H

#include "kernels/matmul/gemm.h"

/* cblas_sgemm. order: 101, rows; transposes: 111 no, 112 yes. */
typedef void (*mica__sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                               int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* NULL where there is none. */
mica__sgemm_fn mica__accelerate_sgemm(void);

/* c (m, n), rows without gaps, by sgemm. False, and nothing done, where it is too
 * small to be worth it, a layout is not one of BLAS's, or a size is too large. */
bool mica__gemm_by_sgemm(mica__sgemm_fn sgemm, const mica__gemm_view *a, const mica__gemm_view *b, int64_t m, int64_t n,
                         int64_t k, float *c);

#endif
