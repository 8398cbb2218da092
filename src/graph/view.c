/* Views as strides: computes the strides and the offset of a view from those of
 * its input. */
#include <string.h>

#include "graph/graph.h"

/* Joins axes of the input into runs that one stride can walk. The axes of the
 * result, last to first, must then split these runs without a remainder. */
static bool view_reshape(const mica__spec *in, const int64_t *in_strides, const mica__spec *out, int64_t *strides)
{
    int64_t size[MICA_MAX_DIMS + 1] = {1}, stride[MICA_MAX_DIMS + 1] = {1};
    int n = 0;
    if (mica__spec_size(in) == 0) {
        mica__row_major(out, strides);
        return true;
    }
    for (int d = 0; d < in->ndim; d++) {
        if (in->shape[d] == 1) continue;
        if (n > 0 && stride[n - 1] == in_strides[d] * in->shape[d]) {
            size[n - 1] *= in->shape[d];
            stride[n - 1] = in_strides[d];
        } else {
            size[n] = in->shape[d];
            stride[n++] = in_strides[d];
        }
    }
    int run = n > 0 ? n - 1 : 0;
    int64_t left = size[run], step = stride[run];
    for (int d = out->ndim - 1; d >= 0; d--) {
        if (left == 1 && run > 0 && out->shape[d] != 1) {
            run--;
            left = size[run];
            step = stride[run];
        }
        if (left % out->shape[d] != 0) return false;
        strides[d] = step;
        left /= out->shape[d];
        if (left > 1) step *= out->shape[d]; /* a step past the end of the run could overflow */
    }
    return true;
}

/* The stride of an axis with one element is never used. It is left unchanged,
 * because the product could overflow. */
static int64_t view_step(int64_t stride, int64_t step, int64_t size) { return size > 1 ? stride * step : stride; }

static void view_slice(const mica__attr_slice *a, const mica__spec *out, const int64_t *in_strides, int64_t *strides,
                       int64_t *offset)
{
    const bool empty = mica__spec_size(out) == 0;
    for (int d = 0; d < out->ndim; d++) {
        strides[d] = view_step(in_strides[d], a->step[d], out->shape[d]);
        if (!empty) *offset += a->start[d] * in_strides[d];
    }
}

static void view_broadcast(const mica__spec *in, const int64_t *in_strides, const mica__spec *out, int64_t *strides)
{
    const int more = out->ndim - in->ndim;
    for (int d = 0; d < out->ndim; d++) {
        const bool stretched = d < more || (in->shape[d - more] == 1 && out->shape[d] != 1);
        strides[d] = stretched ? 0 : in_strides[d - more];
    }
}

bool mica__view_apply(const mica__gnode *view, const mica__spec *in, const int64_t *in_strides, int64_t in_offset,
                      int64_t *strides, int64_t *offset)
{
    const mica__spec *out = &view->spec;
    int64_t result[MICA_MAX_DIMS] = {0}; /* strides may be in_strides */
    *offset = in_offset;
    switch ((int)view->op) {
    case MICA__OP_RESHAPE:
        if (!view_reshape(in, in_strides, out, result)) return false;
        break;
    case MICA__OP_PERMUTE:
        for (int d = 0; d < out->ndim; d++) result[d] = in_strides[((const mica__attr_permute *)view->attr)->axes[d]];
        break;
    case MICA__OP_BROADCAST: view_broadcast(in, in_strides, out, result); break;
    case MICA__OP_SLICE: view_slice(view->attr, out, in_strides, result, offset); break;
    case MICA__OP_WINDOW: {
        const mica__attr_window *w = view->attr;
        memcpy(result, in_strides, (size_t)in->ndim * sizeof *result);
        result[w->axis] = view_step(in_strides[w->axis], w->stride, out->shape[w->axis]);
        result[in->ndim] = view_step(in_strides[w->axis], w->dilation, w->size);
        break;
    }
    default: return false; /* not a view */
    }
    memcpy(strides, result, sizeof result);
    return true;
}
