/* Large f32 products by a BLAS: on macOS by Apple's Accelerate, which reaches a
 * matrix unit that no public instruction does. Its cblas_sgemm is looked up when first
 * needed, so that nothing has to be linked. f16 and bf16 are widened first: what the
 * matrix unit gains on a product is more than that costs. The sums have an order of
 * their own: bits differ from ours, but not from run to run.
 *
 * MICA_ACCELERATE=0 leaves it alone; MICA_ACCELERATE=<path> takes another library, on
 * any system, so that this way is tested on all of them. */
#ifndef MICA_KERNELS_MATMUL_GEMM_ACCELERATE_H
#define MICA_KERNELS_MATMUL_GEMM_ACCELERATE_H

#include "kernels/matmul/gemm.h"

/* cblas_sgemm. order: 101, rows; transposes: 111 no, 112 yes. */
typedef void (*mica__sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                               int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* NULL where there is none. */
mica__sgemm_fn mica__accelerate_sgemm(void);
/* Which library that is, or why there is none, for a person. */
const char *mica__accelerate_note(void);
/* Fails if MICA_ACCELERATE names a library that cannot be used. */
mica_status mica__accelerate_check(void);

/* c (m, n), rows without gaps, by sgemm. False, and nothing done, where it is too
 * small to be worth it, a layout is not one of BLAS's, or a size is too large. */
bool mica__gemm_by_sgemm(mica__sgemm_fn sgemm, const mica__gemm_view *a, const mica__gemm_view *b, int64_t m, int64_t n,
                         int64_t k, float *c);

/* The same for operands of f16, bf16 or f32 in any layout, and a result of any of them:
 * widened into scratch of so many bytes (0: not worth it, or too large). */
size_t mica__sgemm_scratch(mica_dtype out, int64_t m, int64_t n, int64_t k);
void mica__gemm_by_wide_sgemm(mica__sgemm_fn sgemm, mica__pool *pool, const mica__gemm_view *a,
                              const mica__gemm_view *b, int64_t m, int64_t n, int64_t k, char *c, mica_dtype out,
                              void *scratch);

#endif
