/* Shape rules of views, and of ops that only move elements. */
#include <inttypes.h>

#include "graph/construct.h"

static mica_status check_target(const mica__op_info *info, const mica__attr_shape *to)
{
    if (to->ndim < 0 || to->ndim > MICA_MAX_DIMS)
        return mica__fail(MICA_ERR_SHAPE, "%s: %" PRId64 " axes is out of range (0 to %d)", info->name, to->ndim,
                          MICA_MAX_DIMS);
    for (int d = 0; d < to->ndim; d++)
        if (to->shape[d] < 0)
            return mica__fail(MICA_ERR_SHAPE, "%s: size %" PRId64 " of axis %d is negative", info->name, to->shape[d],
                              d);
    return MICA_OK;
}

static mica_status fail_shapes(const mica__op_info *info, const mica__spec *x, const mica__spec *out)
{
    char from[MICA__SHAPE_TEXT], to[MICA__SHAPE_TEXT];
    return mica__fail(MICA_ERR_SHAPE, "%s: shape %s cannot become %s", info->name,
                      mica__shape_text(from, x->ndim, x->shape), mica__shape_text(to, out->ndim, out->shape));
}

static mica_status target_shape(const mica__op_info *info, const mica__spec *x, const mica__attr_shape *to,
                                mica__spec *out)
{
    MICA_TRY(check_target(info, to));
    *out = (mica__spec){.dtype = x->dtype, .ndim = (int32_t)to->ndim};
    for (int d = 0; d < to->ndim; d++) out->shape[d] = to->shape[d];
    return MICA_OK;
}

MICA__SHAPE_RULE(reshape)
{
    (void)n_in;
    MICA_TRY(target_shape(info, in[0], attr, out));
    int64_t have, want;
    size_t nbytes;
    if (!mica__spec_count(in[0], &have, &nbytes) || !mica__spec_count(out, &want, &nbytes) || have != want)
        return fail_shapes(info, in[0], out);
    return MICA_OK;
}

MICA__SHAPE_RULE(broadcast)
{
    (void)n_in;
    const mica__spec *x = in[0];
    MICA_TRY(target_shape(info, x, attr, out));
    const int more = out->ndim - x->ndim;
    if (more < 0) return fail_shapes(info, x, out);
    for (int d = 0; d < x->ndim; d++)
        if (x->shape[d] != 1 && x->shape[d] != out->shape[d + more]) return fail_shapes(info, x, out);
    return MICA_OK;
}

MICA__SHAPE_RULE(permute)
{
    (void)n_in;
    const mica__attr_permute *p = attr;
    *out = *in[0];
    int64_t seen = 0;
    for (int d = 0; d < out->ndim; d++) {
        const int64_t axis = p->axes[d];
        if (axis < 0 || axis >= out->ndim || (seen >> axis & 1))
            return mica__fail(MICA_ERR_ARGUMENT, "%s: axis %" PRId64 " is %s (%d axes)", info->name, axis,
                              axis < 0 || axis >= out->ndim ? "out of range" : "repeated", (int)out->ndim);
        seen |= (int64_t)1 << axis;
        out->shape[d] = in[0]->shape[axis];
    }
    return MICA_OK;
}

MICA__SHAPE_RULE(slice)
{
    (void)n_in;
    const mica__attr_slice *a = attr;
    *out = *in[0];
    for (int d = 0; d < out->ndim; d++) {
        const int64_t n = in[0]->shape[d], start = a->start[d], step = a->step[d], size = a->size[d];
        int64_t span = 0, last = 0;
        const bool inside =
            size == 0 || (size > 0 && mica__mul_i64(size - 1, step, &span) && mica__add_i64(start, span, &last) &&
                          start >= 0 && start < n && last >= 0 && last < n);
        if (step == 0 || size < 0 || !inside)
            return mica__fail(MICA_ERR_SHAPE,
                              "%s: %" PRId64 " elements from %" PRId64 " by %" PRId64
                              " do not fit axis %d of size %" PRId64,
                              info->name, size, start, step, d, n);
        out->shape[d] = size;
    }
    return MICA_OK;
}

/* The number of elements that one window spans; false if its parameters are invalid. */
static bool window_span(const mica__attr_window *w, int64_t *span)
{
    return w->size >= 1 && w->stride >= 1 && w->dilation >= 1 && mica__mul_i64(w->size - 1, w->dilation, span) &&
           mica__add_i64(*span, 1, span);
}

MICA__SHAPE_RULE(window)
{
    (void)n_in;
    const mica__attr_window *w = attr;
    *out = *in[0];
    if (w->axis < 0 || w->axis >= out->ndim || out->ndim == MICA_MAX_DIMS)
        return mica__fail(MICA_ERR_SHAPE, "%s: axis %" PRId64 " of %d is invalid", info->name, w->axis, (int)out->ndim);
    int64_t span;
    const int64_t n = out->shape[w->axis];
    if (!window_span(w, &span) || span > n)
        return mica__fail(MICA_ERR_SHAPE,
                          "%s: a window of size %" PRId64 " and dilation %" PRId64
                          " does not fit an axis of size %" PRId64,
                          info->name, w->size, w->dilation, n);
    out->shape[w->axis] = (n - span) / w->stride + 1;
    out->shape[out->ndim++] = w->size;
    return MICA_OK;
}

MICA__SHAPE_RULE(unwindow)
{
    (void)n_in;
    const mica__attr_window *w = attr;
    *out = *in[0];
    const int last = out->ndim - 1;
    int64_t span;
    if (w->axis < 0 || w->axis >= last || out->shape[last] != w->size || !window_span(w, &span) || span > w->full ||
        out->shape[w->axis] != (w->full - span) / w->stride + 1) {
        char text[MICA__SHAPE_TEXT];
        return mica__fail(MICA_ERR_SHAPE, "%s: windows %s do not match axis %" PRId64 " of size %" PRId64, info->name,
                          mica__shape_text(text, out->ndim, out->shape), w->axis, w->full);
    }
    out->shape[w->axis] = w->full;
    out->shape[last] = 0;
    out->ndim--;
    return MICA_OK;
}

MICA__SHAPE_RULE(pad)
{
    (void)n_in;
    const mica__attr_pad *a = attr;
    *out = *in[0];
    for (int d = 0; d < out->ndim; d++) {
        int64_t n = out->shape[d], between = 0;
        const bool fits = a->interior[d] >= 0 && mica__mul_i64(n > 0 ? n - 1 : 0, a->interior[d], &between) &&
                          mica__add_i64(n, between, &n) && mica__add_i64(n, a->low[d], &n) &&
                          mica__add_i64(n, a->high[d], &n);
        if (!fits || n < 0)
            return mica__fail(fits ? MICA_ERR_SHAPE : MICA_ERR_SIZE,
                              "%s: axis %d of size %" PRId64 " with padding %" PRId64 " before, %" PRId64
                              " after, %" PRId64 " between has no valid size",
                              info->name, d, in[0]->shape[d], a->low[d], a->high[d], a->interior[d]);
        out->shape[d] = n;
    }
    return MICA_OK;
}

MICA__SHAPE_RULE(concat)
{
    const int64_t axis = ((const mica__attr_axis *)attr)->axis;
    if (n_in == 0) return mica__fail(MICA_ERR_ARGUMENT, "%s: at least 1 array is needed", info->name);
    *out = *in[0];
    if (axis < 0 || axis >= out->ndim)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: axis %" PRId64 " is out of range for an array with %d axes",
                          info->name, axis, (int)out->ndim);
    for (size_t i = 1; i < n_in; i++) {
        mica__spec other = *in[i];
        if (other.ndim > axis) other.shape[axis] = in[0]->shape[axis];
        if (!mica__spec_equal(&other, in[0])) {
            char a[MICA__SPEC_TEXT], b[MICA__SPEC_TEXT];
            return mica__fail(MICA_ERR_SHAPE, "%s: %s and %s cannot be joined along axis %" PRId64, info->name,
                              mica__spec_text(a, in[0]), mica__spec_text(b, in[i]), axis);
        }
        if (!mica__add_i64(out->shape[axis], in[i]->shape[axis], &out->shape[axis]))
            return mica__fail(MICA_ERR_SIZE, "%s: too many elements along axis %" PRId64, info->name, axis);
    }
    return MICA_OK;
}

/* The shape of x with axis replaced by the shape of the indices. */
static mica_status taken_shape(const mica__op_info *info, const mica__spec *x, const mica__spec *index, int64_t axis,
                               mica__spec *out)
{
    if (axis < 0 || axis >= x->ndim)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: axis %" PRId64 " is out of range for an array with %d axes",
                          info->name, axis, (int)x->ndim);
    if (index->dtype != MICA_I64)
        return mica__fail(MICA_ERR_DTYPE, "%s: indices are %s instead of i64", info->name,
                          mica_dtype_name((mica_dtype)index->dtype));
    if (x->ndim - 1 + index->ndim > MICA_MAX_DIMS)
        return mica__fail(MICA_ERR_SHAPE, "%s: the result would have %d axes, at most %d are allowed", info->name,
                          (int)(x->ndim - 1 + index->ndim), MICA_MAX_DIMS);
    *out = (mica__spec){.dtype = x->dtype};
    for (int d = 0; d < axis; d++) out->shape[out->ndim++] = x->shape[d];
    for (int d = 0; d < index->ndim; d++) out->shape[out->ndim++] = index->shape[d];
    for (int64_t d = axis + 1; d < x->ndim; d++) out->shape[out->ndim++] = x->shape[d];
    return MICA_OK;
}

MICA__SHAPE_RULE(take)
{
    (void)n_in;
    return taken_shape(info, in[0], in[1], ((const mica__attr_take *)attr)->axis, out);
}

MICA__SHAPE_RULE(scatter)
{
    (void)n_in;
    mica__spec updates;
    MICA_TRY(taken_shape(info, in[0], in[1], ((const mica__attr_scatter *)attr)->axis, &updates));
    if (!mica__spec_equal(&updates, in[2])) {
        char got[MICA__SPEC_TEXT], want[MICA__SPEC_TEXT];
        return mica__fail(MICA_ERR_SHAPE, "%s: updates are %s instead of %s", info->name, mica__spec_text(got, in[2]),
                          mica__spec_text(want, &updates));
    }
    *out = *in[0];
    return MICA_OK;
}

MICA__SHAPE_RULE(update)
{
    (void)n_in;
    const int64_t axis = ((const mica__attr_axis *)attr)->axis;
    const mica__spec *state = in[0], *values = in[1];
    if (axis < 0 || axis >= state->ndim)
        return mica__fail(MICA_ERR_INTERNAL, "%s: axis %" PRId64 " is out of range for %d axes", info->name, axis,
                          (int)state->ndim);
    bool fits = values->ndim == state->ndim;
    for (int d = 0; d < state->ndim && fits; d++)
        fits = d == axis ? values->shape[d] <= state->shape[d] : values->shape[d] == state->shape[d];
    if (!fits) {
        char a[MICA__SHAPE_TEXT], b[MICA__SHAPE_TEXT];
        return mica__fail(MICA_ERR_SHAPE, "%s: values of shape %s do not fit a state of shape %s along axis %" PRId64,
                          info->name, mica__shape_text(a, values->ndim, values->shape),
                          mica__shape_text(b, state->ndim, state->shape), axis);
    }
    MICA_TRY(mica__one_integer(info, "start", in[2]));
    *out = *state;
    return MICA_OK;
}
