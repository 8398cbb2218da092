/* Matrix products of operands that are narrower than their accumulators: 8-bit
 * integers with 32-bit accumulators, exactly; f16 and bf16 with f32 accumulators.
 *
 * Both operands are packed into cells of four bytes. A cell has as many elements
 * of k as one instruction processes: one f32, two 16-bit or four 8-bit values. A
 * block of A is stored by rows, a strip of B is stored with its nr columns adjacent:
 *
 *   a   [mr rows][cells]     b   [cells][nr columns]
 *
 * A kernel broadcasts one cell of A and multiplies it with a vector of cells of B
 * (gemm_dot_body.inc). The matrix instructions of ARM process two cells and two
 * rows at a time (gemm_dot_paired.inc). CPUs differ only in the instructions that
 * add the product of two cells to the accumulators:
 *
 *   int    8-bit cells if the CPU has dot products of bytes. Otherwise 16-bit
 *          cells, multiplied by Winograd's inner product: for elements of k
 *              a0 b0 + a1 b1 = (a0 + b1) (a1 + b0) - a0 a1 - b0 b1
 *          needs half the multiplications; the last two terms depend on one row or
 *          one column and are added once, at the end.
 *   half   f32 cells, converted while packing
 *   bf16   pairs of bf16, if the CPU has instructions that multiply them
 *
 * Integers are exact modulo 2^32. Sums of floats are split into blocks of k of a
 * fixed depth, added in order; the bits do not depend on the number of threads. */
#ifndef MICA_KERNELS_MATMUL_GEMM_DOT_H
#define MICA_KERNELS_MATMUL_GEMM_DOT_H

#include "kernels/matmul/gemm.h"

typedef enum mica__dot_kind { MICA__DOT_INT, MICA__DOT_HALF, MICA__DOT_BF16 } mica__dot_kind;

enum {
    MICA__DOT_MAX_MR = 8,     /* maximum of all variants                           */
    MICA__DOT_MAX_NR = 32,
    MICA__DOT_ROWS = 96,      /* of A at a time: a multiple of every mr            */
    MICA__DOT_COLS = 1024,    /* of B at a time: a multiple of every nr            */
    MICA__DOT_MAX_CELLS = 256, /* of a row in a block                              */
    MICA__LINES_MOST = 4096
};

/* Packs rows i ... i+n-1 (of A, n <= mr) or columns (of B, n <= nr), k ... k+depth-1,
 * into cells; missing elements are 0. add, for integers: a term for each row or column
 * that is added to its sums; it depends on the dtype of the other operand. */
typedef void (*mica__dot_pack)(const mica__gemm_view *view, mica_dtype other, int64_t k, int64_t depth, int64_t i,
                               int64_t n, char *to, int32_t *add);

/* c (mr, nr) of 4-byte sums, with row stride `row`, = a * b, added to c if `add`;
 * plus, for integers, a term for each row and each column. */
typedef void (*mica__dot_kernel)(int64_t depth, const char *a, const char *b, void *c, int64_t row, bool add,
                                 const int32_t *row_add, const int32_t *col_add);

typedef struct mica__dot_variant {
    const char *name;
    mica__dot_kind kind;
    unsigned needs;           /* CPU features                                      */
    int mr, nr, cells;        /* tile; most cells of a row in a block              */
    int64_t depth;            /* elements of k in that many cells                  */
    mica__dot_pack pack_a, pack_b;
    mica__dot_kernel kernel;
} mica__dot_variant;

/* Bytes of mr rows of A, or nr columns of B, in a block of any depth. */
static inline size_t mica__dot_a_bytes(const mica__dot_variant *v) { return (size_t)v->mr * (size_t)v->cells * 4; }
static inline size_t mica__dot_b_bytes(const mica__dot_variant *v) { return (size_t)v->nr * (size_t)v->cells * 4; }

/* Functions on lines of narrow elements, for thin products (gemv_narrow.c) and results. Wide
 * elements and sums are int16_t and int32_t for 8-bit dtypes, float for the others. */
typedef struct mica__lines {
    const char *name;
    unsigned needs;
    void (*widen)(mica_dtype dtype, int64_t n, const char *from, void *to);
    /* reorders wide elements for dot and dots with a w of this dtype */
    void (*spread)(mica_dtype dtype, int64_t n, const void *from, void *to);
    /* the sum of x * w, n <= MICA__LINES_MOST. x has the dtype of w, f16 or bf16, and is not
     * reordered; or it is wide and reordered by spread, with x_dtype i16 or f32 */
    void (*dot)(mica_dtype x_dtype, mica_dtype w_dtype, int64_t n, const void *x, const char *w, void *sum);
    /* the same for four lines of w with a stride of `step` bytes */
    void (*dots)(mica_dtype x_dtype, mica_dtype w_dtype, int64_t n, const void *x, const char *w, int64_t step,
                 void *sums);
    /* y += x[0] * w0 + x[1] * w1 */
    void (*axpy)(mica_dtype dtype, int64_t n, const void *x, const char *w0, const char *w1, void *y);
    /* floats to f16 or bf16 */
    void (*narrow)(mica_dtype dtype, int64_t n, const float *from, char *to);
} mica__lines;

/* The best for this CPU (respects MICA_CPU); NULL: there is no variant of this kind. */
const mica__dot_variant *mica__dot_best(mica__dot_kind kind);
const mica__lines *mica__lines_best(void);
/* All variants, better ones later; for tests, which skip those that need more than
 * mica__cpu_features(). */
const mica__dot_variant *mica__dot_variants(size_t *n);
const mica__lines *mica__lines_variants(size_t *n);

/* ------------------------------------------------------------------ products -- */

typedef struct mica__dot_product {
    const mica__dot_variant *v;
    const mica__lines *lines; /* rounds sums to `dtype` if that is f16 or bf16    */
    mica__gemm_view a, b;
    int64_t m, n, k;          /* k > 0                                             */
    char *out;                /* rows of n elements                                */
    mica_dtype dtype;         /* i32, u32; f32, f16, bf16                          */
    const mica__epilogue *epilogue; /* may be NULL                                 */
    int64_t first;            /* number of C's first element in the result         */
} mica__dot_product;

size_t mica__dot_scratch(const mica__dot_variant *v, mica_dtype dtype, int64_t m, int64_t n);
void mica__dot_run(mica__pool *pool, const mica__dot_product *product, void *scratch);

#endif
