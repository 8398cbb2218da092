/* Softmax, log-softmax and log-sum-exp as one dispatch (softmax.metal). */
#include "kernels/softmax/softmax.h"

#include "kernels/common/gpu_view.h"
#include "kernels/softmax/softmax_params.h"

static mica_status softmax_lower(const mica__gpu_launch *l, mica__gpu_list *list, uint32_t kind)
{
    const mica__tensor *x = &l->in[0];
    if (mica__gpu_has_f64(l)) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    mica_softmax_params p = {.x = mica__gpu_rows(x),
                             .step = mica__row_stride(x),
                             .rows = (uint32_t)mica__row_count(&x->spec),
                             .n = (uint32_t)mica__row_size(&x->spec)};
    if (l->n_in > 1) p.origin = mica__gpu_axes(&l->in[1], mica__outer_dims(&x->spec), x->spec.shape, l->in[1].strides);
    mica__gpu_dispatch *d = mica__gpu_add(list, "softmax", "softmax_rows");
    mica__gpu_constant_uint(d, MICA_SOFTMAX_DTYPE, (uint32_t)x->spec.dtype);
    mica__gpu_constant_uint(d, MICA_SOFTMAX_KIND, kind);
    mica__gpu_constant_bool(d, MICA_SOFTMAX_HAS_ORIGIN, l->n_in > 1);
    mica__gpu_operand(d, l, 0);
    mica__gpu_operand(d, l, l->n_in > 1);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    d->finishes = true;
    return mica__gpu_grid_rows(list, d, l->gpu, MICA__KNOB_SOFTMAX, p.rows, p.n);
}

mica_status mica__softmax_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    return softmax_lower(l, list, MICA_SOFTMAX_PLAIN);
}
mica_status mica__log_softmax_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    return softmax_lower(l, list, MICA_SOFTMAX_LOG);
}
mica_status mica__logsumexp_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    return softmax_lower(l, list, MICA_SOFTMAX_LOGSUMEXP);
}
