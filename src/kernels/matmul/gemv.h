/* Matrix products where one side has at most three rows or columns: reading the
 * other side is all the work, so nothing is packed.
 *
 *   out[f, i] = sum over k of few[k, f] * many[k, i]
 *
 * in f32. Where both lie along k in memory each sum is one dot product, so that a
 * matrix of weights streams past once, row by row; else blocks of k as in gemm.h. */
#ifndef MICA_KERNELS_MATMUL_GEMV_H
#define MICA_KERNELS_MATMUL_GEMV_H

#include "kernels/matmul/gemm.h"

enum { MICA__GEMV_FEW = 3, MICA__GEMV_MANY = 256 }; /* at most; per call */

typedef struct mica__gemv {
    const mica__gemm_variant *variant;
    int64_t n_few, k;
    mica__gemm_view few, many;
    char *out;
    int64_t few_step, many_step; /* of out */
} mica__gemv;

/* Columns i ... i+n-1 of many, n <= GEMV_MANY. */
void mica__gemv_part(const mica__gemv *gemv, int64_t i, int64_t n);

#endif
