/* Concatenation, split, padding and repetition. */
#include <inttypes.h>

#include "graph/construct.h"

/* --------------------------------------------------------- concat, split ---- */

static bool array_list(mica_scope *s, const char *op, mica_array *const *arrays, size_t n)
{
    if (mica__scope_check(s, op) != MICA_OK) return false;
    if (n == 0 || !arrays) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: %zu arrays%s", op, n,
                         arrays ? ", at least 1 is needed" : ", but the list is NULL");
        return false;
    }
    return mica__usable(s, op, arrays, n);
}

/* Casts the arrays to one dtype, adds an axis for stack, and concatenates. */
static mica_array *joined(mica_scope *s, const char *op, mica_array *const *arrays, size_t n, int axis, bool stack)
{
    for (size_t i = 1; i < n; i++) {
        if (arrays[i]->spec.ndim == arrays[0]->spec.ndim) continue;
        return mica__scope_fail(s, MICA_ERR_SHAPE, "%s: arrays with %d and %d axes cannot be joined", op,
                                (int)arrays[0]->spec.ndim, (int)arrays[i]->spec.ndim);
    }
    const int ndim = arrays[0]->spec.ndim + stack;
    if (ndim > MICA_MAX_DIMS)
        return mica__scope_fail(s, MICA_ERR_SHAPE, "%s: %d axes is out of range (0 to %d)", op, ndim, MICA_MAX_DIMS);
    if (!mica__axis(s, op, ndim, axis, &axis)) return NULL;
    mica_array **in = mica__alloc_zero(n, sizeof *in);
    if (!in) return mica__scope_failed(s, mica__fail_memory(op, n * sizeof *in));
    const mica_dtype dtype = mica__promote_all(arrays, n);
    for (size_t i = 0; i < n; i++) {
        in[i] = mica_cast(s, arrays[i], dtype);
        if (stack) in[i] = mica_expand_dims(s, in[i], axis);
    }
    mica_array *y = in[0];
    if (n > 1) y = mica__build(s, MICA__OP_CONCAT, in, n, &(mica__attr_axis){axis}, sizeof(mica__attr_axis));
    mica__free(in);
    return y;
}

mica_array *mica_concat(mica_scope *s, mica_array *const *arrays, size_t n, int axis)
{
    return array_list(s, "concat", arrays, n) ? joined(s, "concat", arrays, n, axis, false) : NULL;
}

mica_array *mica_stack(mica_scope *s, mica_array *const *arrays, size_t n, int axis)
{
    return array_list(s, "stack", arrays, n) ? joined(s, "stack", arrays, n, axis, true) : NULL;
}

static bool split_arguments(mica_scope *s, mica_array *x, int *axis, const int64_t *sizes, size_t n, mica_array **out)
{
    if (!mica__usable1(s, "split", x) || !mica__axis(s, "split", x->spec.ndim, *axis, axis)) return false;
    if (n > 0 && (!sizes || !out)) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "split: %s is NULL", sizes ? "out" : "sizes");
        return false;
    }
    int64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        if (sizes[i] < 0 || !mica__add_i64(total, sizes[i], &total)) {
            mica__scope_fail(s, MICA_ERR_SHAPE, "split: part %zu has size %" PRId64, i, sizes[i]);
            return false;
        }
    }
    if (total != x->spec.shape[*axis]) {
        mica__scope_fail(s, MICA_ERR_SHAPE, "split: the sizes add up to %" PRId64 ", but axis %d has %" PRId64, total,
                         *axis, x->spec.shape[*axis]);
        return false;
    }
    return true;
}

mica_status mica_split(mica_scope *s, mica_array *x, int axis, const int64_t *sizes, size_t n, mica_array **out)
{
    for (size_t i = 0; out && i < n; i++) out[i] = NULL;
    MICA_TRY(mica__scope_check(s, "split"));
    if (!split_arguments(s, x, &axis, sizes, n, out)) return s->error.status;
    int64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        out[i] = mica_slice_axis(s, x, axis, at, at + sizes[i], 1);
        if (!out[i]) return s->error.status;
        at += sizes[i];
    }
    return MICA_OK;
}

/* ------------------------------------------------------------ pad, repeat --- */

mica_array *mica__pad(mica_scope *s, mica_array *x, const int64_t *low, const int64_t *high, mica__number value)
{
    if (!mica__usable1(s, "pad", x)) return NULL;
    mica__attr_pad attr = {.value = value};
    bool any = false;
    for (int d = 0; d < x->spec.ndim; d++) {
        attr.low[d] = low[d];
        attr.high[d] = high[d];
        any |= low[d] != 0 || high[d] != 0;
    }
    return any ? mica__build1(s, MICA__OP_PAD, x, &attr, sizeof attr) : x;
}

mica_array *mica_pad(mica_scope *s, mica_array *x, const int64_t *low, const int64_t *high, double value)
{
    if (!mica__usable1(s, "pad", x)) return NULL;
    if (x->spec.ndim > 0 && (!low || !high))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "pad: %s is NULL", low ? "high" : "low");
    for (int d = 0; d < x->spec.ndim; d++)
        if (low[d] < 0 || high[d] < 0)
            return mica__scope_fail(s, MICA_ERR_ARGUMENT,
                                    "pad: low %" PRId64 " and high %" PRId64 " of axis %d must not be negative", low[d],
                                    high[d], d);
    return mica__pad(s, x, low, high, mica__number_f64((mica_dtype)x->spec.dtype, value));
}

/* Repeats each element (inner) or the whole axis count times. The other axes are joined,
 * so that the additional axis never exceeds MICA_MAX_DIMS. */
static mica_array *repeated(mica_scope *s, const char *op, mica_array *x, int axis, int64_t count, bool inner)
{
    if (!x || count == 1) return x;
    const mica__spec *spec = &x->spec;
    mica__spec result = *spec, checked;
    if (count < 0)
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: count %" PRId64 " of axis %d is negative", op, count, axis);
    const int64_t n = spec->shape[axis];
    if (!mica__mul_i64(n, count, &result.shape[axis])) result.shape[axis] = INT64_MAX;
    if (!mica__make_spec(s, op, (mica_dtype)spec->dtype, spec->ndim, result.shape, &checked)) return NULL;
    int64_t before = 1, after = 1;
    for (int d = 0; d < axis; d++) before *= spec->shape[d];
    for (int d = axis + 1; d < spec->ndim; d++) after *= spec->shape[d];
    const int64_t one[] = {before, inner ? n : 1, inner ? 1 : n, after};
    const int64_t many[] = {before, inner ? n : count, inner ? count : n, after};
    mica_array *y = mica_broadcast_to(s, mica_reshape(s, x, 4, one), 4, many);
    return mica_reshape(s, y, result.ndim, result.shape);
}

mica_array *mica_tile(mica_scope *s, mica_array *x, const int64_t *reps)
{
    if (!mica__usable1(s, "tile", x)) return NULL;
    if (x->spec.ndim > 0 && !reps) return mica__scope_fail(s, MICA_ERR_ARGUMENT, "tile: reps is NULL");
    for (int d = 0; x && d < x->spec.ndim; d++) x = repeated(s, "tile", x, d, reps[d], false);
    return x;
}

mica_array *mica_repeat(mica_scope *s, mica_array *x, int64_t count, int axis)
{
    if (!mica__usable1(s, "repeat", x) || !mica__axis(s, "repeat", x->spec.ndim, axis, &axis)) return NULL;
    return repeated(s, "repeat", x, axis, count, true);
}

mica_array *mica_roll(mica_scope *s, mica_array *x, int64_t shift, int axis)
{
    if (!mica__usable1(s, "roll", x) || !mica__axis(s, "roll", x->spec.ndim, axis, &axis)) return NULL;
    const int64_t n = x->spec.shape[axis];
    if (n == 0 || shift % n == 0) return x;
    const int64_t cut = shift % n > 0 ? n - shift % n : -(shift % n);
    mica_array *const parts[] = {mica_slice_axis(s, x, axis, cut, n, 1), mica_slice_axis(s, x, axis, 0, cut, 1)};
    return mica_concat(s, parts, 2, axis);
}
