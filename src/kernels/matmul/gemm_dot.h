/* Matrix products with operands that are narrower than the accumulators: 8-bit
 * integers into 32 bits, exactly; f16 and bf16 into f32.
 *
 * Both operands are packed into cells of four bytes. A cell holds as many elements of k as
 * one instruction multiplies: one f32, two 16-bit or four 8-bit
 * values. A block of A is rows of cells; a strip of B is nr adjacent columns, cell by cell:
 *
 *   a   [mr rows][cells]     b   [cells][nr columns]
 *
 * So a kernel broadcasts one cell of A and reads a vector of cells of B, for any cell type
 * (gemm_dot_body.inc). The matrix instructions of ARM take two cells and two rows at a time
 * (gemm_dot_paired.inc). Variants only differ in the step from two cells to sums:
 *
 *   int    8-bit values where the CPU has dot products of bytes. Elsewhere 16-bit values,
 *          multiplied as Winograd's inner product: for two elements of k,
 *              a0 b0 + a1 b1 = (a0 + b1) (a1 + b0) - a0 a1 - b0 b1
 *          needs half the multiplications; the last two terms depend on one row or
 *          one column and are added once, at the end.
 *   half   f32 cells, converted while packing
 *   bf16   pairs, where the CPU has an instruction for them
 *
 * Integers are exact modulo 2^32. Float sums are split into blocks of k of a fixed depth, added in order. Nothing
 * depends on
 * the number of threads. */
#ifndef MICA_KERNELS_MATMUL_GEMM_DOT_H
#define MICA_KERNELS_MATMUL_GEMM_DOT_H

#include "kernels/matmul/gemm.h"

typedef enum mica__dot_kind { MICA__DOT_INT, MICA__DOT_HALF, MICA__DOT_BF16 } mica__dot_kind;

enum {
    MICA__DOT_MAX_MR = 8,     /* maximum of all variants                           */
    MICA__DOT_MAX_NR = 32,
    MICA__DOT_ROWS = 96,      /* rows of A at a time: a multiple of every mr       */
    MICA__DOT_COLS = 1024,    /* columns of B at a time: a multiple of every nr    */
    MICA__DOT_MAX_CELLS = 256, /* per row of a block                               */
    MICA__LINES_MOST = 4096
};

/* Packs rows i ... i+n-1 (of A, n <= mr) or columns (of B, n <= nr), k ... k+depth-1, into cells; missing elements
 * are 0. add: for integers, a number per row or column that is added to its sums (it depends on the other operand's
 * dtype). */
typedef void (*mica__dot_pack)(const mica__gemm_view *view, mica_dtype other, int64_t k, int64_t depth, int64_t i,
                               int64_t n, char *to, int32_t *add);

/* c (mr, nr) of 4-byte sums, rows `row` sums apart, = a * b (added to c if requested), plus, for integers, a number per
 * row and per column. */
typedef void (*mica__dot_kernel)(int64_t depth, const char *a, const char *b, void *c, int64_t row, bool add,
                                 const int32_t *row_add, const int32_t *col_add);

typedef struct mica__dot_variant {
    const char *name;
    mica__dot_kind kind;
    unsigned needs;           /* CPU features                                      */
    int mr, nr, cells;        /* tile; most cells per row of a block               */
    int64_t depth;            /* elements of k in that many cells                  */
    mica__dot_pack pack_a, pack_b;
    mica__dot_kernel kernel;
} mica__dot_variant;

/* Bytes of mr rows of A and nr columns of B in a block of any depth. */
static inline size_t mica__dot_a_bytes(const mica__dot_variant *v) { return (size_t)v->mr * (size_t)v->cells * 4; }
static inline size_t mica__dot_b_bytes(const mica__dot_variant *v) { return (size_t)v->nr * (size_t)v->cells * 4; }

/* Operations on rows of narrow elements, for thin products (gemv_narrow.c) and results. Wide elements and sums are
 * int16_t and int32_t for 8-bit dtypes, float for the others. */
typedef struct mica__lines {
    const char *name;
    unsigned needs;
    void (*widen)(mica_dtype dtype, int64_t n, const char *from, void *to);
    /* reorders wide elements as dot and dots need them for a w of this dtype */
    void (*spread)(mica_dtype dtype, int64_t n, const void *from, void *to);
    /* the sum of x * w, n <= MICA__LINES_MOST. x has w's dtype, f16 or bf16, in plain order; or it is wide and spread,
     * with x_dtype i16 or f32 */
    void (*dot)(mica_dtype x_dtype, mica_dtype w_dtype, int64_t n, const void *x, const char *w, void *sum);
    /* the same for four rows, `step` bytes apart */
    void (*dots)(mica_dtype x_dtype, mica_dtype w_dtype, int64_t n, const void *x, const char *w, int64_t step,
                 void *sums);
    /* y += x[0] * w0 + x[1] * w1 */
    void (*axpy)(mica_dtype dtype, int64_t n, const void *x, const char *w0, const char *w1, void *y);
    /* floats to f16 or bf16 */
    void (*narrow)(mica_dtype dtype, int64_t n, const float *from, char *to);
} mica__lines;

/* The best for this CPU (respects MICA_CPU); NULL: none of this kind. */
const mica__dot_variant *mica__dot_best(mica__dot_kind kind);
const mica__lines *mica__lines_best(void);
/* All variants, better ones later; for tests, which skip those that need more than mica__cpu_features(). */
const mica__dot_variant *mica__dot_variants(size_t *n);
const mica__lines *mica__lines_variants(size_t *n);

/* ------------------------------------------------------------------ products -- */

typedef struct mica__dot_product {
    const mica__dot_variant *v;
    const mica__lines *lines; /* rounds sums to `dtype` if that is f16 or bf16    */
    mica__gemm_view a, b;
    int64_t m, n, k;          /* k > 0                                             */
    char *out;                /* contiguous rows of n elements                     */
    mica_dtype dtype;         /* i32, u32; f32, f16, bf16                          */
    const mica__epilogue *epilogue; /* may be NULL                                 */
    int64_t first;            /* number of C's first element in the result         */
} mica__dot_product;

size_t mica__dot_scratch(const mica__dot_variant *v, mica_dtype dtype, int64_t m, int64_t n);
void mica__dot_run(mica__pool *pool, const mica__dot_product *product, void *scratch);

#endif
