/* The inner part of every f32 matrix product: C (m, n) = A (m, k) * B (k, n),
 * one tile at a time. Operands come through packing functions, so that any
 * layout, f16, bf16 and the patches of a convolution need no copy of the whole.
 *
 * The sum over k is cut into blocks of GEMM_DEPTH; each block is summed in order
 * from 0 and then added to the sum of those before. The order depends on k only,
 * not on the tile nor on threads. A tile needs about 110 KB of stack. */
#ifndef MICA_KERNELS_MATMUL_GEMM_H
#define MICA_KERNELS_MATMUL_GEMM_H

#include "kernels/walk.h"

enum {
    MICA__GEMM_ROWS = 64,   /* of a tile                              */
    MICA__GEMM_COLS = 128,
    MICA__GEMM_DEPTH = 256, /* of a packed block                      */
    MICA__GEMM_MR = 4,      /* rows of a strip of A                   */
    MICA__GEMM_NR = 8       /* columns of a strip of B                */
};

/* A strip: elements (k ... k+depth-1, i ... i+n-1) of an operand to
 * to[kk * width + ii], with 0 for ii = n ... width-1. width is MR for A, where
 * i counts rows, and NR for B, where i counts columns. */
typedef void (*mica__gemm_pack)(const void *operand, int64_t k, int64_t depth, int64_t i, int64_t n, int width,
                                float *to);

typedef struct mica__gemm {
    int64_t m, n, k;
    mica__gemm_pack pack_a, pack_b;
    const void *a, *b;
    char *out;              /* C: rows `row` elements apart, columns next to each other */
    int64_t row;
    mica_dtype dtype;       /* f32, f16 or bf16                                         */
} mica__gemm;

/* The tile that begins at (i, j), multiples of GEMM_ROWS and GEMM_COLS. */
void mica__gemm_tile(const mica__gemm *gemm, int64_t i, int64_t j);

/* c (MR, NR), rows `row` floats apart = strip a (depth, MR) * strip b (depth, NR),
 * added to what is there if `add`. */
void mica__gemm_kernel(int64_t depth, const float *a, const float *b, float *c, int64_t row, bool add);

/* An operand in memory: element (k, i) at data + (k * k_step + i * i_step). */
typedef struct mica__gemm_view {
    const char *data;
    mica_dtype dtype;
    int64_t k_step, i_step;
} mica__gemm_view;

/* A mica__gemm_pack for views. */
void mica__gemm_pack_view(const void *view, int64_t k, int64_t depth, int64_t i, int64_t n, int width, float *to);

/* Tells the epilogue about rows i ... i+m-1, columns j ... j+n-1 of a matrix
 * with `row` columns that begins at element `first` of the result. */
void mica__gemm_epilogue(const mica__epilogue *epilogue, int64_t first, int64_t row, int64_t i, int64_t m, int64_t j,
                         int64_t n);

#endif
