/* Thin products of narrow operands; gemv.h is the same for f32. Reading the large side is
 * most of the work, so it is streamed once, without a widened copy.
 *
 *   out[f, i] = sum over k of few[k, f] * many[k, i] */
#ifndef MICA_KERNELS_MATMUL_GEMV_NARROW_H
#define MICA_KERNELS_MATMUL_GEMV_NARROW_H

#include "kernels/matmul/gemm_dot.h"

enum { MICA__THIN_FEW = 3, MICA__THIN_MANY = 512 }; /* at most; per call */

typedef struct mica__thin {
    const mica__lines *lines;
    int64_t n_few, k;
    mica__gemm_view few, many;
    char *out;
    mica_dtype dtype;            /* of out                                  */
    int64_t few_step, many_step; /* strides of out                          */
} mica__thin;

/* Columns i ... i+n-1 of many, n <= THIN_MANY. */
void mica__thin_part(const mica__thin *thin, int64_t i, int64_t n);

#endif
