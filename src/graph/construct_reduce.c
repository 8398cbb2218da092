/* Reductions and functions built from them. Means, variances and norms of f16 and bf16
 * are computed in f32 and rounded once at the end, because the sums would overflow long
 * before the result does. */
#include <inttypes.h>
#include <math.h>

#include "graph/construct.h"

/* The checks at the start of every reduction. */
static bool reduction(mica_scope *s, const char *op, mica_array *x, const int *axes, int n_axes, int64_t *mask)
{
    return mica__usable1(s, op, x) && mica__axes(s, op, x, axes, n_axes, mask);
}

#define REDUCTION(NAME, name)                                                                     \
    mica_array *mica_##name(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep) \
    {                                                                                             \
        int64_t mask;                                                                             \
        if (!reduction(s, #name, x, axes, n_axes, &mask)) return NULL;                            \
        return mica__reduce(s, MICA__OP_##NAME, x, mask, keep);                                   \
    }
REDUCTION(SUM, sum)
REDUCTION(PROD, prod)
REDUCTION(MAX, max)
REDUCTION(MIN, min)
REDUCTION(ANY, any)
REDUCTION(ALL, all)
#undef REDUCTION

/* x has the dtype of the accumulator. The mean of no elements is NaN. */
static mica_array *mean_over(mica_scope *s, mica_array *x, int64_t mask, bool keep)
{
    if (!x) return NULL;
    mica_array *count = mica__constant(s, (mica_dtype)x->spec.dtype, (double)mica__folded(x, mask));
    return mica_div(s, mica__reduce(s, MICA__OP_SUM, x, mask, keep), count);
}

/* Casts from the dtype of the accumulator to that of the result. */
static mica_array *narrowed(mica_scope *s, mica_array *y, const mica_array *x)
{
    return mica_cast(s, y, mica__float_dtype((mica_dtype)x->spec.dtype));
}

mica_array *mica_mean(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep)
{
    int64_t mask;
    if (!reduction(s, "mean", x, axes, n_axes, &mask)) return NULL;
    return narrowed(s, mean_over(s, mica__widen(s, x), mask, keep), x);
}

static mica_array *variance(mica_scope *s, mica_array *x, int64_t mask, int ddof, bool keep)
{
    mica_array *wide = mica__widen(s, x);
    if (!wide) return NULL;
    mica_array *away = mica_sub(s, wide, mean_over(s, wide, mask, true));
    const int64_t free = mica__max_i64(mica__folded(x, mask) - ddof, 0);
    mica_array *count = mica__constant(s, (mica_dtype)wide->spec.dtype, (double)free);
    return mica_div(s, mica__reduce(s, MICA__OP_SUM, mica_square(s, away), mask, keep), count);
}

mica_array *mica_var(mica_scope *s, mica_array *x, const int *axes, int n_axes, int ddof, bool keep)
{
    int64_t mask;
    if (!reduction(s, "var", x, axes, n_axes, &mask)) return NULL;
    return narrowed(s, variance(s, x, mask, ddof, keep), x);
}

/* x^power for x >= 0. The derivative at 0 may be infinite; the gradient there is defined as 0, because
 * sqrt and pow never get the 0. */
static mica_array *root_of(mica_scope *s, mica_array *x, double power)
{
    mica_array *zero = mica_equal(s, x, mica_scalar(s, 0)), *safe = mica_where(s, zero, mica_scalar(s, 1), x);
    mica_array *y = power == 0.5 ? mica_sqrt(s, safe) : mica_pow(s, safe, mica_scalar(s, power));
    return mica_where(s, zero, mica_scalar(s, power > 0 ? 0 : INFINITY), y);
}

mica_array *mica_std(mica_scope *s, mica_array *x, const int *axes, int n_axes, int ddof, bool keep)
{
    int64_t mask;
    if (!reduction(s, "std", x, axes, n_axes, &mask)) return NULL;
    return narrowed(s, root_of(s, variance(s, x, mask, ddof, keep), 0.5), x);
}

mica_array *mica_norm(mica_scope *s, mica_array *x, double order, const int *axes, int n_axes, bool keep)
{
    int64_t mask;
    if (!reduction(s, "norm", x, axes, n_axes, &mask)) return NULL;
    if (isnan(order)) return mica__scope_fail(s, MICA_ERR_ARGUMENT, "norm: order is NaN");
    mica_array *wide = mica__widen(s, x), *y;
    if (order == 0) {
        y = mica_cast(s, mica_not_equal(s, wide, mica_scalar(s, 0)), MICA_F32);
        y = mica__reduce(s, MICA__OP_SUM, wide && y ? mica_cast(s, y, (mica_dtype)wide->spec.dtype) : NULL, mask, keep);
    } else if (isinf(order)) {
        y = mica__reduce(s, order > 0 ? MICA__OP_MAX : MICA__OP_MIN, mica_abs(s, wide), mask, keep);
    } else if (order == 1) {
        y = mica__reduce(s, MICA__OP_SUM, mica_abs(s, wide), mask, keep);
    } else if (order == 2) {
        y = root_of(s, mica__reduce(s, MICA__OP_SUM, mica_square(s, wide), mask, keep), 0.5);
    } else {
        y = root_of(s, mica_abs(s, wide), order);
        y = root_of(s, mica__reduce(s, MICA__OP_SUM, y, mask, keep), 1 / order);
    }
    return narrowed(s, y, x);
}

/* Moves the reduced axes (at least one) to the end and joins them into one. */
static mica_array *folded_last(mica_scope *s, mica_array *x, int64_t mask)
{
    int axes[MICA_MAX_DIMS], n = 0;
    int64_t shape[MICA_MAX_DIMS], folded = 1;
    for (int d = 0; d < x->spec.ndim; d++)
        if (!(mask >> d & 1)) shape[n] = x->spec.shape[d], axes[n++] = d;
    const int kept = n;
    for (int d = 0; d < x->spec.ndim; d++)
        if (mask >> d & 1) folded *= x->spec.shape[d], axes[n++] = d;
    shape[kept] = folded;
    return mica_reshape(s, mica_permute(s, x, axes), kept + 1, shape);
}

mica_array *mica_logsumexp(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep)
{
    int64_t mask;
    if (!reduction(s, "logsumexp", x, axes, n_axes, &mask)) return NULL;
    mica_array *floats = mica__to_float(s, x);
    if (!floats || mask == 0) return floats;
    mica_array *y = mica__build1(s, MICA__OP_LOGSUMEXP, folded_last(s, floats, mask), NULL, 0);
    if (!keep) return y;
    mica__spec spec = x->spec;
    for (int d = 0; d < spec.ndim; d++)
        if (mask >> d & 1) spec.shape[d] = 1;
    return mica_reshape(s, y, spec.ndim, spec.shape);
}

static mica_array *arg_extreme(mica_scope *s, mica__op op, mica_array *x, int axis, bool keep)
{
    const char *name = mica__op_get((uint16_t)op)->name;
    if (!mica__usable1(s, name, x) || !mica__axis(s, name, x->spec.ndim, axis, &axis)) return NULL;
    mica_array *y = mica__build1(s, op, mica__axis_last(s, x, axis), NULL, 0);
    return keep ? mica_expand_dims(s, y, axis) : y;
}

mica_array *mica_argmax(mica_scope *s, mica_array *x, int axis, bool keep)
{
    return arg_extreme(s, MICA__OP_ARGMAX, x, axis, keep);
}

mica_array *mica_argmin(mica_scope *s, mica_array *x, int axis, bool keep)
{
    return arg_extreme(s, MICA__OP_ARGMIN, x, axis, keep);
}

static mica_array *running(mica_scope *s, mica__op op, mica_array *x, int axis)
{
    const char *name = mica__op_get((uint16_t)op)->name;
    if (!mica__usable1(s, name, x) || !mica__axis(s, name, x->spec.ndim, axis, &axis)) return NULL;
    return mica__axis_back(s, mica__cumulative(s, op, mica__axis_last(s, x, axis), false, false), axis);
}

mica_array *mica_cumsum(mica_scope *s, mica_array *x, int axis) { return running(s, MICA__OP_CUMSUM, x, axis); }
mica_array *mica_cumprod(mica_scope *s, mica_array *x, int axis) { return running(s, MICA__OP_CUMPROD, x, axis); }
mica_array *mica_cummax(mica_scope *s, mica_array *x, int axis) { return running(s, MICA__OP_CUMMAX, x, axis); }
