/* The inner part of every f32 matrix product: C (m, n) = A (m, k) * B (k, n).
 *
 * The inner kernels keep a small block of C in registers (gemm_body.inc; one variant for each instruction set,
 * gemm.def). These algorithms call them:
 *
 *   direct   small f32 operands, read in place (gemm_feed.c)
 *   blocked  all other f32 operands: A by rows, B in strips that are packed just before use or
 *            in advance (gemm_blocked.c)
 *   tile     f16, bf16, the patches of a convolution: operands are read by packing functions, one tile of C at a
 *            time (gemm.c)
 *   gemv     a few rows or columns (gemv.c)
 *
 * Each sum over k is one chain of multiply-adds that starts at 0, in the order of k. So the bits depend neither on the
 * split of a product nor on which of the first three algorithms computes it. gemv gives other bits only where both
 * operands are contiguous along k: there a sum is split over lanes. */
#ifndef MICA_KERNELS_MATMUL_GEMM_H
#define MICA_KERNELS_MATMUL_GEMM_H

#include "kernels/walk.h"

enum {
    MICA__GEMM_MAX_MR = 8,   /* maximum of all variants                */
    MICA__GEMM_MAX_NR = 32,
    MICA__GEMM_ROWS = 96,    /* rows of a tile: multiples of every MR, NR */
    MICA__GEMM_COLS = 128,
    MICA__GEMM_DEPTH = 256,  /* of a packed block: 16 columns of it are half the L1 cache */
    MICA__GEMM_FEW = 8       /* most rows of dots and rows             */
};

/* A strip of C, nr columns (narrow: one vector) of m rows: to = from + A * B. Row r of the block of A that begins at
 * row i is at a + i * a_block + r * a_row. */
typedef struct mica__gemm_strip {
    int64_t m, depth;
    const float *a;
    int64_t a_row, a_k, a_block;
    bool a_packed;               /* a_k is ignored: it is the number of rows of the block, see below */
    const float *b;
    int64_t b_k;
    const float *ahead;          /* data that is read next, to prefetch; may be NULL */
    int64_t ahead_bytes;
    const float *from;           /* NULL: 0 */
    int64_t from_row;
    float *to;
    int64_t to_row;
} mica__gemm_strip;

/* Rows of the next block when `left` rows remain; packed rows of A are stored in such blocks. The last two blocks have
 * nearly equal sizes, because blocks of few rows are slow. */
static inline int64_t mica__gemm_block_rows(int64_t most, int64_t left)
{
    return left <= most ? left : left >= 2 * most ? most : (left + 1) / 2;
}

/* c (mr, nr), with row stride `row`, = strip a (depth, mr) * strip b (depth, nr), added to c if `add`. */
typedef void (*mica__gemm_packed_fn)(int64_t depth, const float *a, const float *b, float *c, int64_t row, bool add);
/* c (m, nr) = a (m, depth) * b (depth, nr), with row strides in floats; m = 1 ... mr. */
typedef void (*mica__gemm_direct_fn)(int m, int64_t depth, const float *a, int64_t a_row, const float *b, int64_t b_row,
                                     float *c, int64_t c_row);

typedef struct mica__gemm_variant {
    const char *name;
    unsigned needs;          /* CPU features                           */
    int mr, nr, lanes;       /* block size; floats per vector          */
    mica__gemm_packed_fn packed;
    mica__gemm_direct_fn direct;
    void (*strip)(const mica__gemm_strip *strip);
    void (*narrow)(const mica__gemm_strip *strip);
    /* out (m, n) = rows of x times rows of w, m = 1 ... GEMM_FEW. */
    void (*dots)(int m, int64_t n, int64_t k, const float *x, int64_t x_row, const float *w, int64_t w_row, float *out,
                 int64_t out_row, int64_t out_col);
    /* y (m, n) += x (m, k) * w (k, n); columns of w and y are contiguous. */
    void (*rows)(int m, int64_t n, int64_t k, const float *x, int64_t x_row, int64_t x_k, const float *w, int64_t w_row,
                 float *y, int64_t y_row);
} mica__gemm_variant;

/* The best variant for this CPU (respects MICA_CPU). */
const mica__gemm_variant *mica__gemm_best(void);
/* All variants that this CPU can run, for tests; *n is their number. */
const mica__gemm_variant *mica__gemm_variants(size_t *n);

/* ---------------------------------------------------------------- packing --- */

/* Packs a strip: elements (k ... k+depth-1, i ... i+n-1) of an operand to to[kk * width + ii], with 0 for ii = n ...
 * width-1. width is mr for A, where i counts rows, and nr for B, where i counts columns. */
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
    char *out;              /* C: row stride `row`, columns contiguous */
    int64_t row;
    mica_dtype dtype;       /* f32, f16 or bf16                                         */
} mica__gemm;

/* Computes the tile that begins at (i, j), multiples of GEMM_ROWS and GEMM_COLS. Uses about 180 KB of stack. */
void mica__gemm_tile(const mica__gemm *gemm, int64_t i, int64_t j);

/* Can the operands be read in place? True for small f32 operands with suitable strides; b's i_step is 1. */
bool mica__gemm_is_direct(const mica__gemm_view *a, const mica__gemm_view *b, int64_t n, int64_t k);
/* Rows i ... i+m-1 of the product of such operands. */
void mica__gemm_direct(const mica__gemm_variant *v, const mica__gemm_view *a, const mica__gemm_view *b, int64_t i,
                       int64_t m, int64_t n, int64_t k, float *out);

/* A packed B: for each GEMM_DEPTH of k, strips of nr columns, each (depth, nr). Missing columns of the last strip are
 * 0. */
size_t mica__gemm_packed_floats(const mica__gemm_variant *v, int64_t n, int64_t k);
void mica__gemm_pack_all(mica__pool *pool, const mica__gemm_variant *v, const mica__gemm_view *b, int64_t n, int64_t k,
                         float *to);

/* The whole product of two f32 views into f32 rows, on the pool's threads. Runs the epilogue (may be NULL; first:
 * number of C's first element in the result). */
typedef struct mica__gemm_blocked {
    const mica__gemm_variant *variant;
    mica__gemm_view a, b;
    const float *packed;        /* b packed by mica__gemm_pack_all; NULL: not packed yet */
    int64_t m, n, k;
    float *out;
    void *scratch;              /* mica__gemm_scratch(...) bytes; unused if packed               */
    const mica__epilogue *epilogue;
    int64_t first;
} mica__gemm_blocked;
size_t mica__gemm_scratch(const mica__gemm_view *a, int64_t m, int64_t n, int64_t k);
void mica__gemm_blocked_run(mica__pool *pool, const mica__gemm_blocked *product);

/* Runs the epilogue for rows i ... i+m-1, columns j ... j+n-1 of a matrix with `row` columns that begins at element
 * `first` of the result. */
void mica__gemm_epilogue(const mica__epilogue *epilogue, int64_t first, int64_t row, int64_t i, int64_t m, int64_t j,
                         int64_t n);

#endif
