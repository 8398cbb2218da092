/* Running sums as a dispatch with a threadgroup for each row (cumulative.metal). */
#include "kernels/cumulative/cumulative.h"

#include "kernels/common/gpu_view.h"

#include "kernels/cumulative/cumulative_params.h"

static mica_status cumulative_lower(const mica__gpu_launch *l, mica__gpu_list *list, uint32_t kind)
{
    const mica__tensor *x = &l->in[0];
    const mica__attr_cumulative *attr = l->attr;
    if (mica__gpu_has_f64(l)) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    const mica__gpu_shape *shape = mica__gpu_pick(l->gpu, MICA__KNOB_CUMULATIVE, NULL, NULL);
    if (!shape) return mica__gpu_refuse(list, "threadgroups too small");
    const mica_cumulative_params p = {.x = mica__gpu_rows(x),
                                      .step = mica__row_stride(x),
                                      .rows = (uint32_t)mica__row_count(&x->spec),
                                      .n = (uint32_t)mica__row_size(&x->spec)};
    mica__gpu_dispatch *d = mica__gpu_add(
        list, "cumulative", mica__is_float(mica__dtype_of(x)) ? "cumulative_floats" : "cumulative_integers");
    mica__gpu_constant_uint(d, MICA_CUMULATIVE_DTYPE, (uint32_t)x->spec.dtype);
    mica__gpu_constant_uint(d, MICA_CUMULATIVE_RESULT, (uint32_t)l->out->spec.dtype);
    mica__gpu_constant_uint(d, MICA_CUMULATIVE_KIND, kind);
    mica__gpu_constant_bool(d, MICA_CUMULATIVE_REVERSE, attr->reverse != 0);
    mica__gpu_constant_bool(d, MICA_CUMULATIVE_EXCLUSIVE, attr->exclusive != 0);
    mica__gpu_operand(d, l, 0);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid(d, p.rows, 1, 1, mica__gpu_shape_threads(l->gpu, shape, p.n), 1, 1);
    return MICA_OK;
}

mica_status mica__cumsum_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    return cumulative_lower(l, list, MICA_CUMULATIVE_SUM);
}
mica_status mica__cumprod_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    return cumulative_lower(l, list, MICA_CUMULATIVE_PRODUCT);
}
mica_status mica__cummax_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    return cumulative_lower(l, list, MICA_CUMULATIVE_MAXIMUM);
}
