/* Softmax, log-softmax, log-sum-exp, layer norm, RMS norm: what they have in common.
 * Each looks at a row two or three times and needs little else, so that a row is read
 * from memory once, stays in the first caches between the looks, and is written once.
 *
 * The looks themselves are in rows_body.inc, for f32, f16 and bf16 in f32 arithmetic,
 * once for each width of vectors (rows.def). rows.c cuts the rows into tasks, decides
 * whether the result goes around the caches, and runs the epilogue. */
#ifndef MICA_KERNELS_ROWS_H
#define MICA_KERNELS_ROWS_H

#include "kernels/walk.h"

typedef enum mica__row_kind {
    MICA__ROW_SOFTMAX,
    MICA__ROW_LOG_SOFTMAX,
    MICA__ROW_LOGSUMEXP,        /* one result a row                                      */
    MICA__ROW_LAYER_NORM,
    MICA__ROW_RMS_NORM,
    MICA__ROW_KINDS
} mica__row_kind;

/* Longer rows are looked at in pieces of this size, and read more often. */
enum { MICA__ROW_PIECE = 16384 };

/* Rows that are computed alike. */
typedef struct mica__rows {
    int64_t n;                  /* elements of a row                                     */
    mica_dtype in, out;         /* f32, f16 or bf16                                      */
    int64_t step;               /* elements from one of a row of x to the next           */
    double eps;                 /* of a norm                                             */
    mica__affine affine;        /* of a norm; scale.data NULL: none                      */
    const float *origin;        /* of LOGSUMEXP, one a row; NULL: none                   */
    bool stream;                /* f32 results pass the caches by; see mica__rows_can_stream */
} mica__rows;

/* count rows: those of x are x_row bytes apart, the results follow each other. */
typedef void mica__rows_kernel(const mica__rows *r, const char *x, int64_t x_row, char *y, int64_t count);

typedef struct mica__rows_variant {
    const char *name;
    unsigned needs;             /* CPU features                                          */
    mica__rows_kernel *kernel[MICA__ROW_KINDS];
} mica__rows_variant;

/* All that this CPU can run, the best last; *n of them. */
const mica__rows_variant *mica__rows_variants(size_t *n);

/* Are all rows of the result aligned to any vector? */
static inline bool mica__rows_can_stream(const mica__rows *r, const char *y)
{
    return r->out == MICA_F32 && r->n % 16 == 0 && (uintptr_t)y % 64 == 0;
}

/* The whole launch, for any but f64. */
mica_status mica__rows_run(const mica__launch *launch, mica__row_kind kind, double eps);

#endif
