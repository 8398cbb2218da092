/* Matrix products in which one side has only a few rows or columns. Reading the other
 * side is most of the work, so nothing is packed.
 *
 *   out[f, i] = sum over k of few[k, f] * many[k, i]
 *
 * in f32. If both are contiguous along k, each sum is one dot product, and rows of `many` are
 * streamed. If `many` is contiguous along i, its rows are streamed, four at a time, while the
 * sums stay in the L1 cache. Other layouts copy blocks of k to buffers. */
#ifndef MICA_KERNELS_MATMUL_GEMV_H
#define MICA_KERNELS_MATMUL_GEMV_H

#include "kernels/matmul/gemm.h"

enum {
    MICA__GEMV_FEW = 3,      /* at most, for any layout and dtype               */
    MICA__GEMV_MANY = 256,   /* at most, per call                               */
    MICA__GEMV_STREAM = 1024 /* the same where mica__gemv_streams: rows of 4 KB */
};

typedef struct mica__gemv {
    const mica__gemm_variant *variant;
    int64_t n_few, k;
    mica__gemm_view few, many;
    char *out;
    int64_t few_step, many_step; /* strides of out */
} mica__gemv;

/* Is it f32 in a layout that supports up to MICA__GEMM_FEW few, and any number of columns per call? */
bool mica__gemv_streams(const mica__gemv *gemv);
/* The same, and computed by dots: other bits than a chain over k. */
bool mica__gemv_by_dots(const mica__gemv *gemv);
/* Columns i ... i+n-1 of many. */
void mica__gemv_part(const mica__gemv *gemv, int64_t i, int64_t n);

#endif
