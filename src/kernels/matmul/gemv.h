/* Matrix products where one side has only a few rows or columns: reading the
 * other side is all the work, so nothing is packed.
 *
 *   out[f, i] = sum over k of few[k, f] * many[k, i]
 *
 * in f32. Where both lie along k in memory each sum is one dot product, and rows of
 * many stream past; where many lies along i its rows stream past, four at a time,
 * while the sums stay in the first cache. Else blocks of k through buffers. */
#ifndef MICA_KERNELS_MATMUL_GEMV_H
#define MICA_KERNELS_MATMUL_GEMV_H

#include "kernels/matmul/gemm.h"

enum {
    MICA__GEMV_FEW = 3,      /* any layout and dtype: at most                   */
    MICA__GEMV_MANY = 256,   /* of them in one call                             */
    MICA__GEMV_STREAM = 1024 /* the same where mica__gemv_streams: rows of 4 KB */
};

typedef struct mica__gemv {
    const mica__gemm_variant *variant;
    int64_t n_few, k;
    mica__gemm_view few, many;
    char *out;
    int64_t few_step, many_step; /* of out */
} mica__gemv;

/* f32 in a layout that takes up to MICA__GEMM_FEW few, and any number in a call? */
bool mica__gemv_streams(const mica__gemv *gemv);
/* The same, and by dots: other bits than a chain over k. */
bool mica__gemv_by_dots(const mica__gemv *gemv);
/* Columns i ... i+n-1 of many. */
void mica__gemv_part(const mica__gemv *gemv, int64_t i, int64_t n);

#endif
