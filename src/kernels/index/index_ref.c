/* Take and scatter, one element at a time. */
#include "kernels/index/index.h"
#include "kernels/walk.h"

mica_status mica__take_ref(const mica__launch *launch)
{
    const mica__tensor *x = &launch->in[0], *indices = &launch->in[1], *out = launch->out;
    const mica__index_sizes s = mica__index_sizes_of(x, indices, ((const mica__attr_take *)launch->attr)->axis);
    const int64_t count = mica__spec_size(&out->spec);
    MICA_TRY(mica__check_indices(NULL, mica__index_caller_name(((const mica__attr_take *)launch->attr)->caller, "take"),
                                 indices, s.n));
    for (int64_t i = 0; i < count; i++) {
        const int64_t outer = i / s.inner / s.count, inner = i % s.inner;
        const int64_t at = mica__index_at(indices, i / s.inner % s.count, s.n);
        const int64_t from =
            mica__offset_at(x->spec.ndim, x->spec.shape, x->strides, (outer * s.n + at) * s.inner + inner);
        memcpy(mica__element(out, i), mica__element(x, from), mica_dtype_size(mica__dtype_of(x)));
    }
    return MICA_OK;
}

mica_status mica__scatter_ref(const mica__launch *launch)
{
    const mica__tensor *x = &launch->in[0], *indices = &launch->in[1], *updates = &launch->in[2], *out = launch->out;
    const mica__attr_scatter *attr = launch->attr;
    const mica__index_sizes s = mica__index_sizes_of(x, indices, attr->axis);
    const mica_dtype dtype = mica__dtype_of(x);
    const int64_t count = mica__spec_size(&updates->spec);
    MICA_TRY(mica__check_indices(
        NULL, mica__index_caller_name(((const mica__attr_scatter *)launch->attr)->caller, "scatter"), indices, s.n));
    if (out->data != x->data)
        mica__copy_block(mica_dtype_size(dtype), x->spec.ndim, x->spec.shape, out->data, out->strides, x->data,
                         x->strides);
    for (int64_t i = 0; i < count; i++) {
        const int64_t outer = i / s.inner / s.count, inner = i % s.inner;
        const int64_t to = (outer * s.n + mica__index_at(indices, i / s.inner % s.count, s.n)) * s.inner + inner;
        const int64_t from = mica__offset_at(updates->spec.ndim, updates->spec.shape, updates->strides, i);
        if (!attr->add) memcpy(mica__element(out, to), mica__element(updates, from), mica_dtype_size(dtype));
        else if (mica__is_float(dtype))
            mica__set_f64(dtype, out->data, to,
                          mica__get_f64(dtype, out->data, to) + mica__get_f64(dtype, updates->data, from));
        else
            mica__set_i64(dtype, out->data, to,
                          (int64_t)((uint64_t)mica__get_i64(dtype, out->data, to) +
                                    (uint64_t)mica__get_i64(dtype, updates->data, from)));
    }
    return MICA_OK;
}
