/* Small expressions that gradient rules share. Like all constructors they return NULL
 * for NULL. The reverse pass checks the scope after each rule, so rules do not
 * check. */
#ifndef MICA_GRAPH_VJP_UTIL_H
#define MICA_GRAPH_VJP_UTIL_H

#include "graph/build.h"

static inline mica_array *vjp_times(mica_scope *s, mica_array *x, double c)
{
    return mica_mul(s, x, mica_scalar(s, c));
}
static inline mica_array *vjp_plus(mica_scope *s, mica_array *x, double c) { return mica_add(s, x, mica_scalar(s, c)); }

/* c - x */
static inline mica_array *vjp_rsub(mica_scope *s, double c, mica_array *x) { return mica_sub(s, mica_scalar(s, c), x); }

/* x where the condition holds, else 0 */
static inline mica_array *vjp_or_zero(mica_scope *s, mica_array *condition, mica_array *x)
{
    return mica_where(s, condition, x, mica_scalar(s, 0));
}

/* x, but 1 where it is 0: a divisor for quotients that are 0 there by convention */
static inline mica_array *vjp_not_zero(mica_scope *s, mica_array *x)
{
    return mica_where(s, mica_equal(s, x, mica_scalar(s, 0)), mica_scalar(s, 1), x);
}

static inline mica_dtype vjp_dtype(const mica_array *x) { return (mica_dtype)x->spec.dtype; }

/* Rules with sums and squares inside work in f32 when the array is narrower:
 * squares of f16 overflow at 256. */
static inline mica_array *vjp_widen(mica_scope *s, mica_array *x)
{
    return x && mica_dtype_size(vjp_dtype(x)) < 4 ? mica_cast(s, x, MICA_F32) : x;
}
static inline mica_array *vjp_narrow(mica_scope *s, mica_array *x, mica_dtype dtype)
{
    return x && vjp_dtype(x) != dtype ? mica_cast(s, x, dtype) : x;
}

static inline mica_array *vjp_reshape_like(mica_scope *s, mica_array *x, const mica_array *like)
{
    return mica_reshape(s, x, like->spec.ndim, like->spec.shape);
}

/* Sum and mean over the last axis, which stays with size 1. */
static inline mica_array *vjp_row_sum(mica_scope *s, mica_array *x)
{
    return mica_sum(s, x, (const int[]){-1}, 1, true);
}
static inline mica_array *vjp_row_mean(mica_scope *s, mica_array *x)
{
    return mica_mean(s, x, (const int[]){-1}, 1, true);
}

#endif
