/* Argmax and argmin as one dispatch (argreduce.metal). */
#include "kernels/argreduce/argreduce.h"

#include "kernels/common/gpu_view.h"

#include "kernels/argreduce/argreduce_params.h"

static mica_status argreduce_lower(const mica__gpu_launch *l, mica__gpu_list *list, bool largest)
{
    const mica__tensor *x = &l->in[0];
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    const mica_argreduce_params p = {.x = mica__gpu_rows(x),
                                     .step = mica__row_stride(x),
                                     .rows = (uint32_t)mica__row_count(&x->spec),
                                     .n = (uint32_t)mica__row_size(&x->spec)};
    mica__gpu_dispatch *d = mica__gpu_add(list, "argreduce", "argreduce_rows");
    mica__gpu_constant_uint(d, MICA_ARGREDUCE_DTYPE, (uint32_t)x->spec.dtype);
    mica__gpu_constant_uint(d, MICA_ARGREDUCE_RESULT, (uint32_t)l->out->spec.dtype);
    mica__gpu_constant_bool(d, MICA_ARGREDUCE_LARGEST, largest);
    mica__gpu_operand(d, l, 0);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    return mica__gpu_grid_rows(list, d, l->gpu, MICA__KNOB_ARGREDUCE, p.rows, p.n);
}

mica_status mica__argmax_gpu(const mica__gpu_launch *l, mica__gpu_list *list) { return argreduce_lower(l, list, true); }
mica_status mica__argmin_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    return argreduce_lower(l, list, false);
}
