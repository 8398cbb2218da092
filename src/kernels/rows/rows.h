/* The common part of softmax, log-softmax, log-sum-exp, layer norm and RMS norm.
 * Each makes two or three passes over a row. A row is read from memory once, stays in
 * the first-level caches between the passes, and is written once.
 *
 * The passes are in rows_body.inc, for f32, f16 and bf16 in f32 arithmetic, compiled
 * once for each vector width (rows.def). rows.c splits the rows into tasks, decides
 * whether the result is stored past the caches, and runs the epilogue. */
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

/* Longer rows are processed in pieces of this size and are read from memory in each pass. */
enum { MICA__ROW_PIECE = 16384 };

/* The properties that all rows of a call have in common. */
typedef struct mica__rows {
    int64_t n;                  /* elements of a row                                     */
    mica_dtype in, out;         /* f32, f16 or bf16                                      */
    int64_t step;               /* stride of the elements of a row of x                  */
    double eps;                 /* of a norm                                             */
    mica__affine affine;        /* of a norm; scale.data NULL: none                      */
    const float *origin;        /* of LOGSUMEXP, one a row; NULL: none                   */
    bool stream;                /* f32 results are stored past the caches; see mica__rows_can_stream */
} mica__rows;

/* Computes count rows: rows of x have a stride of x_row bytes, rows of the result are contiguous. */
typedef void mica__rows_kernel(const mica__rows *r, const char *x, int64_t x_row, char *y, int64_t count);

typedef struct mica__rows_variant {
    const char *name;
    unsigned needs;             /* CPU features                                          */
    mica__rows_kernel *kernel[MICA__ROW_KINDS];
} mica__rows_variant;

/* The *n variants that this CPU can run, the best last. */
const mica__rows_variant *mica__rows_variants(size_t *n);

/* Are all rows of the result aligned to the widest vector? */
static inline bool mica__rows_can_stream(const mica__rows *r, const char *y)
{
    return r->out == MICA_F32 && r->n % 16 == 0 && (uintptr_t)y % 64 == 0;
}

/* Runs the whole launch, for any dtype but f64. */
mica_status mica__rows_run(const mica__launch *launch, mica__row_kind kind, double eps);

#endif
