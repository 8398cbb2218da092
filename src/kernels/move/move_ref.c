/* Moves, one element at a time. */
#include "kernels/move/move.h"

#include "kernels/walk.h"

void mica__pad_value(const mica__launch *launch, char value[8])
{
    const mica__attr_pad *attr = launch->attr;
    const mica_dtype dtype = mica__dtype_of(launch->out);
    if (mica__is_float(dtype)) mica__set_f64(dtype, value, 0, attr->value.f);
    else mica__set_i64(dtype, value, 0, attr->value.i);
}

mica_status mica__pad_ref(const mica__launch *launch)
{
    const mica__tensor *x = &launch->in[0], *out = launch->out;
    const mica__attr_pad *attr = launch->attr;
    const size_t size = mica_dtype_size(mica__dtype_of(x));
    const int64_t count = mica__spec_size(&out->spec);
    char value[8];
    mica__pad_value(launch, value);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, offset = 0;
        bool inside = true;
        for (int d = out->spec.ndim - 1; d >= 0; d--) {
            const int64_t at = rest % out->spec.shape[d] - attr->low[d], every = attr->interior[d] + 1;
            rest /= out->spec.shape[d];
            inside = inside && at >= 0 && at % every == 0 && at / every < x->spec.shape[d];
            offset += at / every * x->strides[d];
        }
        memcpy(mica__element(out, i), inside ? mica__element(x, offset) : value, size);
    }
    return MICA_OK;
}

mica_status mica__concat_ref(const mica__launch *launch)
{
    const mica__tensor *out = launch->out;
    const int64_t axis = ((const mica__attr_axis *)launch->attr)->axis;
    const size_t size = mica_dtype_size(mica__dtype_of(out));
    int64_t first = 0;
    for (uint32_t i = 0; i < launch->n_in; i++) {
        const mica__tensor *x = &launch->in[i];
        const int64_t count = mica__spec_size(&x->spec);
        for (int64_t e = 0; e < count; e++) {
            const int64_t from = mica__offset_at(x->spec.ndim, x->spec.shape, x->strides, e);
            const int64_t to = mica__offset_at(x->spec.ndim, x->spec.shape, out->strides, e);
            memcpy(mica__element(out, first * out->strides[axis] + to), mica__element(x, from), size);
        }
        first += x->spec.shape[axis];
    }
    return MICA_OK;
}

void mica__unwindow_elements(const void *launch, int64_t begin, int64_t end)
{
    const mica__launch *l = launch;
    const mica__tensor *x = &l->in[0], *out = l->out;
    const mica__attr_window *w = l->attr;
    const mica_dtype dtype = mica__dtype_of(x);
    const int last = x->spec.ndim - 1;
    const int64_t windows = x->spec.shape[w->axis];
    int64_t strides[MICA_MAX_DIMS];
    for (int d = 0; d < last; d++) strides[d] = d == w->axis ? 0 : x->strides[d];
    mica__walk walk;
    mica__walk_begin(&walk, out->spec.ndim, out->spec.shape, strides, begin);
    for (int64_t i = begin; i < end; i++, mica__walk_next(&walk)) {
        double f = 0;
        uint64_t u = 0;
        for (int64_t t = 0; t < w->size; t++) {
            const int64_t at = walk.index[w->axis] - t * w->dilation;
            if (at < 0 || at % w->stride || at / w->stride >= windows) continue;
            const int64_t offset = walk.offset + at / w->stride * x->strides[w->axis] + t * x->strides[last];
            if (mica__is_float(dtype)) f += mica__get_f64(dtype, x->data, offset);
            else u += (uint64_t)mica__get_i64(dtype, x->data, offset);
        }
        if (mica__is_float(dtype)) mica__set_f64(dtype, out->data, i, f);
        else mica__set_i64(dtype, out->data, i, (int64_t)u);
    }
}

mica_status mica__unwindow_ref(const mica__launch *launch)
{
    mica__unwindow_elements(launch, 0, mica__spec_size(&launch->out->spec));
    return MICA_OK;
}
