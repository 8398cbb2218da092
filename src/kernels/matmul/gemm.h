/* The inner part of every f32 matrix product: C (m, n) = A (m, k) * B (k, n).
 *
 * At the bottom kernels that keep a small block of C in registers (gemm_body.inc;
 * one variant for each kind of CPU, gemm.def). Above them the ways to feed them:
 *
 *   direct   small f32 operands, read where they are (gemm_feed.c)
 *   blocked  all other f32 operands: A by rows, B in strips that were packed a
 *            moment ago, or once and for all (gemm_blocked.c)
 *   tile     f16, bf16, the patches of a convolution: operands come through
 *            packing functions, one tile of C at a time (gemm.c)
 *   gemv     a few rows or columns (gemv.c)
 *
 * Each sum over k is one chain of multiply-adds from 0 on, in the order of k. So
 * the bits depend neither on how a product is cut nor on which of the first three
 * ways it took (on gemv only where rows of both operands are multiplied: there a
 * sum is kept in lanes). */
#ifndef MICA_KERNELS_MATMUL_GEMM_H
#define MICA_KERNELS_MATMUL_GEMM_H

#include "kernels/walk.h"

enum {
    MICA__GEMM_MAX_MR = 8,   /* of any variant                         */
    MICA__GEMM_MAX_NR = 32,
    MICA__GEMM_ROWS = 96,    /* of a tile: multiples of every MR, NR   */
    MICA__GEMM_COLS = 128,
    MICA__GEMM_DEPTH = 256,  /* of a packed block: 16 columns of it are half the first cache */
    MICA__GEMM_FEW = 8       /* rows that dots and rows take           */
};

/* A strip of C, nr columns (narrow: one vector) of m rows: to = from + A * B.
 * Row r of the block of A that begins at row i is at a + i * a_block + r * a_row. */
typedef struct mica__gemm_strip {
    int64_t m, depth;
    const float *a;
    int64_t a_row, a_k, a_block;
    bool a_packed;               /* a_k is not read: as many as the block has rows, see below */
    const float *b;
    int64_t b_k;
    const float *ahead;          /* what will be read next, to be fetched meanwhile; may be NULL */
    int64_t ahead_bytes;
    const float *from;           /* NULL: 0 */
    int64_t from_row;
    float *to;
    int64_t to_row;
} mica__gemm_strip;

/* How many of the `left` rows the next block takes; packed rows of A lie in such
 * blocks. The last two share evenly: blocks of few rows are slow. */
static inline int64_t mica__gemm_block_rows(int64_t most, int64_t left)
{
    return left <= most ? left : left >= 2 * most ? most : (left + 1) / 2;
}

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
    int mr, nr, lanes;       /* a block; a vector                      */
    mica__gemm_packed_fn packed;
    mica__gemm_direct_fn direct;
    void (*strip)(const mica__gemm_strip *strip);
    void (*narrow)(const mica__gemm_strip *strip);
    /* out (m, n) = rows of x times rows of w, m = 1 ... GEMM_FEW. */
    void (*dots)(int m, int64_t n, int64_t k, const float *x, int64_t x_row, const float *w, int64_t w_row, float *out,
                 int64_t out_row, int64_t out_col);
    /* y (m, n) += x (m, k) * w (k, n), rows of w and y without gaps in a row. */
    void (*rows)(int m, int64_t n, int64_t k, const float *x, int64_t x_row, int64_t x_k, const float *w, int64_t w_row,
                 float *y, int64_t y_row);
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

/* Small enough, and laid out, to be read in place? f32, b's i_step 1. */
bool mica__gemm_is_direct(const mica__gemm_view *a, const mica__gemm_view *b, int64_t n, int64_t k);
/* Rows i ... i+m-1 of the product of such operands. */
void mica__gemm_direct(const mica__gemm_variant *v, const mica__gemm_view *a, const mica__gemm_view *b, int64_t i,
                       int64_t m, int64_t n, int64_t k, float *out);

/* A whole B in strips: for each GEMM_DEPTH of k, strips of nr columns, each
 * (depth, nr), zeros for the columns that the last one lacks. */
size_t mica__gemm_packed_floats(const mica__gemm_variant *v, int64_t n, int64_t k);
void mica__gemm_pack_all(mica__pool *pool, const mica__gemm_variant *v, const mica__gemm_view *b, int64_t n, int64_t k,
                         float *to);

/* The whole product of two f32 views into f32 rows, on the pool's threads, with
 * the epilogue (may be NULL; first: number of C's first element in the result). */
typedef struct mica__gemm_blocked {
    const mica__gemm_variant *variant;
    mica__gemm_view a, b;
    const float *packed;        /* all of b, as mica__gemm_pack_all left it; NULL: not packed yet */
    int64_t m, n, k;
    float *out;
    void *scratch;              /* mica__gemm_scratch(...) bytes; not used with packed           */
    const mica__epilogue *epilogue;
    int64_t first;
} mica__gemm_blocked;
size_t mica__gemm_scratch(const mica__gemm_view *a, int64_t m, int64_t n, int64_t k);
void mica__gemm_blocked_run(mica__pool *pool, const mica__gemm_blocked *product);

/* Tells the epilogue about rows i ... i+m-1, columns j ... j+n-1 of a matrix
 * with `row` columns that begins at element `first` of the result. */
void mica__gemm_epilogue(const mica__epilogue *epilogue, int64_t first, int64_t row, int64_t i, int64_t m, int64_t j,
                         int64_t n);

#endif
