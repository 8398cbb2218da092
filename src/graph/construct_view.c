/* Views: other strides over the same memory. A view that changes nothing returns its
 * input. */
#include <inttypes.h>

#include "graph/construct.h"

/* -------------------------------------------------------------- shapes ------ */

/* Fills in the one size that was given as -1. */
static bool complete_shape(mica_scope *s, const mica_array *x, int ndim, const int64_t *shape, int64_t *out)
{
    char from[MICA__SHAPE_TEXT], to[MICA__SHAPE_TEXT];
    int open = -1;
    for (int d = 0; d < ndim; d++) {
        out[d] = shape[d];
        if (shape[d] == -1) {
            if (open >= 0) {
                mica__scope_fail(s, MICA_ERR_SHAPE, "reshape: more than one size is -1 in %s",
                                 mica__shape_text(to, ndim, shape));
                return false;
            }
            open = d;
            out[d] = 1;
        }
    }
    if (open < 0) return true;
    mica__spec spec;
    if (!mica__make_spec(s, "reshape", (mica_dtype)x->spec.dtype, ndim, out, &spec)) return false;
    const int64_t known = mica__spec_size(&spec), count = mica__spec_size(&x->spec);
    if (known == 0 || count % known != 0) {
        mica__scope_fail(s, MICA_ERR_SHAPE, "reshape: shape %s cannot become %s",
                         mica__shape_text(from, x->spec.ndim, x->spec.shape), mica__shape_text(to, ndim, shape));
        return false;
    }
    out[open] = count / known;
    return true;
}

mica_array *mica_reshape(mica_scope *s, mica_array *x, int ndim, const int64_t *shape)
{
    if (!mica__usable1(s, "reshape", x)) return NULL;
    mica__attr_shape attr = {.ndim = ndim};
    mica__spec spec;
    if (ndim > 0 && ndim <= MICA_MAX_DIMS && shape && !complete_shape(s, x, ndim, shape, attr.shape)) return NULL;
    if (!mica__make_spec(s, "reshape", (mica_dtype)x->spec.dtype, ndim, shape ? attr.shape : NULL, &spec)) return NULL;
    if (mica__shape_equal(&x->spec, &spec)) return x;
    return mica__build1(s, MICA__OP_RESHAPE, x, &attr, sizeof attr);
}

mica_array *mica_flatten(mica_scope *s, mica_array *x)
{
    if (!mica__usable1(s, "flatten", x)) return NULL;
    return mica_reshape(s, x, 1, (int64_t[]){mica__spec_size(&x->spec)});
}

mica_array *mica_expand_dims(mica_scope *s, mica_array *x, int axis)
{
    if (!mica__usable1(s, "expand_dims", x)) return NULL;
    const int ndim = x->spec.ndim + 1;
    if (ndim > MICA_MAX_DIMS)
        return mica__scope_fail(s, MICA_ERR_SHAPE, "expand_dims: %d axes is out of range (0 to %d)", ndim,
                                MICA_MAX_DIMS);
    if (!mica__axis(s, "expand_dims", ndim, axis, &axis)) return NULL;
    int64_t shape[MICA_MAX_DIMS];
    for (int d = 0; d < ndim; d++) shape[d] = d == axis ? 1 : x->spec.shape[d < axis ? d : d - 1];
    return mica_reshape(s, x, ndim, shape);
}

mica_array *mica_squeeze(mica_scope *s, mica_array *x, int axis)
{
    if (!mica__usable1(s, "squeeze", x) || !mica__axis(s, "squeeze", x->spec.ndim, axis, &axis)) return NULL;
    if (x->spec.shape[axis] != 1)
        return mica__scope_fail(s, MICA_ERR_SHAPE, "squeeze: axis %d has size %" PRId64 " instead of 1", axis,
                                x->spec.shape[axis]);
    int64_t shape[MICA_MAX_DIMS];
    int ndim = 0;
    for (int d = 0; d < x->spec.ndim; d++)
        if (d != axis) shape[ndim++] = x->spec.shape[d];
    return mica_reshape(s, x, ndim, shape);
}

mica_array *mica_broadcast_to(mica_scope *s, mica_array *x, int ndim, const int64_t *shape)
{
    if (!mica__usable1(s, "broadcast", x)) return NULL;
    mica__attr_shape attr = {.ndim = ndim};
    mica__spec spec;
    if (!mica__make_spec(s, "broadcast", (mica_dtype)x->spec.dtype, ndim, shape, &spec)) return NULL;
    if (mica__shape_equal(&x->spec, &spec)) return x;
    memcpy(attr.shape, spec.shape, sizeof attr.shape);
    return mica__build1(s, MICA__OP_BROADCAST, x, &attr, sizeof attr);
}

/* ---------------------------------------------------------------- axes ------ */

mica_array *mica_permute(mica_scope *s, mica_array *x, const int *axes)
{
    if (!mica__usable1(s, "permute", x)) return NULL;
    const int ndim = x->spec.ndim;
    if (ndim > 0 && !axes) return mica__scope_fail(s, MICA_ERR_ARGUMENT, "permute: axes is NULL");
    mica__attr_permute attr = {0};
    bool moved = false;
    for (int d = 0; d < ndim; d++) {
        int axis;
        if (!mica__axis(s, "permute", ndim, axes[d], &axis)) return NULL;
        attr.axes[d] = axis;
        moved |= axis != d;
    }
    return moved ? mica__build1(s, MICA__OP_PERMUTE, x, &attr, sizeof attr) : x;
}

mica_array *mica_transpose(mica_scope *s, mica_array *x)
{
    if (!mica__usable1(s, "transpose", x)) return NULL;
    const int ndim = x->spec.ndim;
    if (ndim < 2) return mica__scope_fail(s, MICA_ERR_SHAPE, "transpose: x has %d axes instead of 2 or more", ndim);
    int axes[MICA_MAX_DIMS];
    for (int d = 0; d < ndim; d++) axes[d] = d;
    axes[ndim - 2] = ndim - 1;
    axes[ndim - 1] = ndim - 2;
    return mica_permute(s, x, axes);
}

/* -------------------------------------------------------------- slices ------ */

/* A bound by the rule of Python's slice.indices: negative ones count from the end, and
 * the result is limited to the range that step can reach. */
static int64_t slice_bound(int64_t bound, int64_t n, int64_t step)
{
    const int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? n - 1 : n;
    if (bound < 0) bound += n; /* n >= 0: cannot overflow */
    return mica__max_i64(lowest, mica__min_i64(bound, highest));
}

static void slice_indices(int64_t n, int64_t *start, int64_t stop, int64_t step, int64_t *size)
{
    const int64_t first = *start == MICA_AUTO ? (step < 0 ? n - 1 : 0) : slice_bound(*start, n, step);
    const int64_t end = stop == MICA_AUTO ? (step < 0 ? -1 : n) : slice_bound(stop, n, step);
    *start = first;
    *size = 0;
    if (step > 0 && end > first) *size = (end - first - 1) / step + 1;
    if (step < 0 && end < first) *size = (first - end - 1) / -step + 1;
}

mica_array *mica_slice(mica_scope *s, mica_array *x, const int64_t *start, const int64_t *stop, const int64_t *step)
{
    if (!mica__usable1(s, "slice", x)) return NULL;
    const int ndim = x->spec.ndim;
    if (ndim > 0 && (!start || !stop))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "slice: %s is NULL", start ? "stop" : "start");
    mica__attr_slice attr = {0};
    bool cut = false;
    for (int d = 0; d < ndim; d++) {
        const int64_t n = x->spec.shape[d], by = step && step[d] != MICA_AUTO ? step[d] : 1;
        if (by == 0) return mica__scope_fail(s, MICA_ERR_ARGUMENT, "slice: the step of axis %d is 0", d);
        attr.start[d] = start[d];
        slice_indices(n, &attr.start[d], stop[d], by, &attr.size[d]);
        /* A canonical form, so that equal views have equal attributes. */
        attr.step[d] = attr.size[d] > 1 ? by : 1;
        if (attr.size[d] == 0) attr.start[d] = 0;
        cut |= attr.size[d] != n || attr.start[d] != 0 || attr.step[d] != 1;
    }
    return cut ? mica__build1(s, MICA__OP_SLICE, x, &attr, sizeof attr) : x;
}

static mica_array *slice_one(mica_scope *s, const char *op, mica_array *x, int axis, int64_t start, int64_t stop,
                             int64_t step)
{
    if (!mica__usable1(s, op, x) || !mica__axis(s, op, x->spec.ndim, axis, &axis)) return NULL;
    int64_t starts[MICA_MAX_DIMS], stops[MICA_MAX_DIMS], steps[MICA_MAX_DIMS];
    for (int d = 0; d < x->spec.ndim; d++) {
        starts[d] = d == axis ? start : MICA_AUTO;
        stops[d] = d == axis ? stop : MICA_AUTO;
        steps[d] = d == axis ? step : 1;
    }
    return mica_slice(s, x, starts, stops, steps);
}

mica_array *mica_slice_axis(mica_scope *s, mica_array *x, int axis, int64_t start, int64_t stop, int64_t step)
{
    return slice_one(s, "slice", x, axis, start, stop, step);
}

mica_array *mica_flip(mica_scope *s, mica_array *x, int axis)
{
    return slice_one(s, "flip", x, axis, MICA_AUTO, MICA_AUTO, -1);
}

/* -------------------------------------------------------------- layout ------ */

mica_array *mica_contiguous(mica_scope *s, mica_array *x)
{
    if (!mica__usable1(s, "contiguous", x)) return NULL;
    if (mica__array_state(x) == MICA__READY && mica__is_row_major(&x->spec, x->strides)) return x;
    return mica__build1(s, MICA__OP_COPY, x, NULL, 0);
}
