/* Large f32 products by a BLAS: on macOS Apple's Accelerate, which uses a matrix unit that has no public instructions.
 * cblas_sgemm is looked up at the first use, so nothing has to be linked. f16 and bf16 are widened first: the matrix
 * unit saves more time than widening costs. The order of its sums differs from ours, so the bits differ, but they are
 * the same in every run.
 *
 * MICA_ACCELERATE=0 disables it. MICA_ACCELERATE=<path> loads another library, on any system, so that all systems can
 * test this code. */
#ifndef MICA_KERNELS_MATMUL_GEMM_ACCELERATE_H
#define MICA_KERNELS_MATMUL_GEMM_ACCELERATE_H

#include "kernels/matmul/gemm.h"

/* cblas_sgemm. order: 101 = row-major; transposes: 111 = no, 112 = yes. */
typedef void (*mica__sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                               int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* NULL if not available. */
mica__sgemm_fn mica__accelerate_sgemm(void);
/* The name of the library, or the reason why it is not available, for display. */
const char *mica__accelerate_note(void);
/* Fails if MICA_ACCELERATE names a library that cannot be used. */
mica_status mica__accelerate_check(void);

/* c (m, n), contiguous rows, by sgemm. Returns false and does nothing if the product is too small to be faster, a
 * layout is not a BLAS layout, or a size is too large. */
bool mica__gemm_by_sgemm(mica__sgemm_fn sgemm, const mica__gemm_view *a, const mica__gemm_view *b, int64_t m, int64_t n,
                         int64_t k, float *c);

/* The same for operands of f16, bf16 or f32 in any layout, and a result of any of these. Operands are widened into
 * scratch of this many bytes (0: too small to be faster, or too large). */
size_t mica__sgemm_scratch(mica_dtype out, int64_t m, int64_t n, int64_t k);
void mica__gemm_by_wide_sgemm(mica__sgemm_fn sgemm, mica__pool *pool, const mica__gemm_view *a,
                              const mica__gemm_view *b, int64_t m, int64_t n, int64_t k, char *c, mica_dtype out,
                              void *scratch);

#endif
