/* UPDATE as a dispatch with a thread for each value (update.metal). */
#include "kernels/state/update.h"

#include "kernels/common/gpu_view.h"

#include "kernels/state/update_params.h"

mica_status mica__update_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const int64_t axis = ((const mica__attr_axis *)l->attr)->axis;
    const mica__tensor *values = &l->in[1], *out = l->out;
    const bool same = values->spec.dtype == out->spec.dtype;
    if (!same && (values->spec.dtype == MICA_F64 || out->spec.dtype == MICA_F64))
        return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    const mica_update_params p = {.values = mica__gpu_view(values),
                                  .state = mica__gpu_axes(out, values->spec.ndim, values->spec.shape, out->strides),
                                  .step = out->strides[axis],
                                  .n = (uint32_t)values->spec.shape[axis],
                                  .size = (uint32_t)out->spec.shape[axis],
                                  .count = (uint32_t)mica__spec_size(&values->spec)};
    mica__gpu_dispatch *d = mica__gpu_add(list, "update", "update_values");
    mica__gpu_constant_uint(d, MICA_UPDATE_FROM_TYPE, (uint32_t)values->spec.dtype);
    mica__gpu_constant_uint(d, MICA_UPDATE_TO_TYPE, (uint32_t)out->spec.dtype);
    mica__gpu_constant_uint(d, MICA_UPDATE_START_TYPE, (uint32_t)l->in[2].spec.dtype);
    mica__gpu_constant_uint(d, MICA_UPDATE_ELEMENT_BYTES, same ? (uint32_t)mica_dtype_size(mica__dtype_of(out)) : 0);
    mica__gpu_operand(d, l, 1);
    mica__gpu_operand(d, l, 2);
    mica__gpu_bind_out(d, 0);
    mica__gpu_bind_fault(d);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid_flat(d, l->gpu, mica__max_i64(1, p.count));
    return MICA_OK;
}
