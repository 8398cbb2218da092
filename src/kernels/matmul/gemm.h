/* The inner part of every f32 matrix product: C (m, n) = A (m, k) * B (k, n).
 *
 * At the bottom a kernel that keeps a small block of C in registers (gemm_body.inc;
 * one variant for each kind of CPU, gemm.def). Above it three ways to feed it:
 *
 *   tile     any layout, f16, bf16, the patches of a convolution: operands come
 *            through packing functions, one tile of C at a time
 *   direct   small row-major f32 operands, read where they are
 *   blocked  large f32 operands: B is packed once for all rows, a block at a time
 *
 * The sum over k is cut into blocks of a fixed depth; each block is summed in
 * order from 0 and then added to the sum of those before. The order depends on
 * the sizes and the CPU, not on threads. */
#ifndef MICA_KERNELS_MATMUL_GEMM_H
#define MICA_KERNELS_MATMUL_GEMM_H

#include "kernels/walk.h"

enum {
    MICA__GEMM_MAX_MR = 8,   /* of any variant                         */
    MICA__GEMM_MAX_NR = 32,
    MICA__GEMM_ROWS = 96,    /* of a tile: multiples of every MR, NR   */
    MICA__GEMM_COLS = 128,
    MICA__GEMM_DEPTH = 256   /* of a packed block                      */
};

/* c (mr, nr), rows `row` floats apart = strip a (depth, mr) * strip b (depth, nr),
 * added to what is there if `add`. */
typedef void (*mica__gemm_packed_fn)(int64_t depth, const float *a, const float *b, float *c, int64_t row, bool add);
/* c (m, nr) = a (m, depth) * b (depth, nr), rows of each so many floats apart;
 * m = 1 ... mr. */
typedef void (*mica__gemm_direct_fn)(int m, int64_t depth, const float *a, int64_t a_row, const float *b, int64_t b_row,
                                     float *c, int64_t c_row);

typedef struct mica__gemm_variant {
    const char *name;
    unsigned needs;          /* CPU features                           */
    int mr, nr;
    mica__gemm_packed_fn packed;
    mica__gemm_direct_fn direct;
    float (*dot)(int64_t n, const float *x, const float *y);
    void (*axpy)(int64_t n, float a, const float *x, float *y); /* y += a * x */
} mica__gemm_variant;

/* The best one for this CPU (MICA_CPU considered). */
const mica__gemm_variant *mica__gemm_best(void);
/* All that this CPU can run, for tests; *n of them. */
const mica__gemm_variant *mica__gemm_variants(size_t *n);

/* ---------------------------------------------------------------- packing --- */

/* A strip: elements (k ... k+depth-1, i ... i+n-1) of an operand to
 * to[kk * width + ii], with 0 for ii = n ... width-1. width is mr for A, where
 * i counts rows, and nr for B, where i counts columns. */
typedef void (*mica__gemm_pack)(const void *operand, int64_t k, int64_t depth, int64_t i, int64_t n, int width,
                                float *to);

/* An operand in memory: element (k, i) at data + (k * k_step + i * i_step). */
typedef struct mica__gemm_view {
    const char *data;
    mica_dtype dtype;
    int64_t k_step, i_step;
} mica__gemm_view;

/* A mica__gemm_pack for views. */
void mica__gemm_pack_view(const void *view, int64_t k, int64_t depth, int64_t i, int64_t n, int width, float *to);

/* ---------------------------------------------------------------- products -- */

typedef struct mica__gemm {
    const mica__gemm_variant *variant;
    int64_t m, n, k;
    mica__gemm_pack pack_a, pack_b;
    const void *a, *b;
    char *out;              /* C: rows `row` elements apart, columns next to each other */
    int64_t row;
    mica_dtype dtype;       /* f32, f16 or bf16                                         */
} mica__gemm;

/* The tile that begins at (i, j), multiples of GEMM_ROWS and GEMM_COLS. Needs
 * about 180 KB of stack. */
void mica__gemm_tile(const mica__gemm *gemm, int64_t i, int64_t j);

/* Small enough, and laid out, to be read in place? a's k_step and b's i_step
 * must be 1, all f32. */
bool mica__gemm_is_direct(const mica__gemm_view *a, const mica__gemm_view *b, int64_t n, int64_t k);
/* Rows i ... i+m-1 of the product of such operands. */
void mica__gemm_direct(const mica__gemm_variant *v, const mica__gemm_view *a, const mica__gemm_view *b, int64_t i,
                       int64_t m, int64_t n, int64_t k, float *out);

/* The whole product of two views into f32 rows, on the pool's threads, with the
 * epilogue (may be NULL; first: number of C's first element in the result).
 * scratch: mica__gemm_scratch(n, k) bytes. */
size_t mica__gemm_scratch(int64_t n, int64_t k);
void mica__gemm_blocked(mica__pool *pool, const mica__gemm_view *a, const mica__gemm_view *b, int64_t m, int64_t n,
                        int64_t k, float *out, void *scratch, const mica__epilogue *epilogue, int64_t first);

/* Tells the epilogue about rows i ... i+m-1, columns j ... j+n-1 of a matrix
 * with `row` columns that begins at element `first` of the result. */
void mica__gemm_epilogue(const mica__epilogue *epilogue, int64_t first, int64_t row, int64_t i, int64_t m, int64_t j,
                         int64_t n);

#endif
