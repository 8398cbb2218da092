/* Norms as one dispatch (norm.metal). */
#include "kernels/norm/norm.h"

#include "kernels/common/gpu_view.h"
#include "kernels/norm/norm_params.h"
#include "kernels/qmatmul/qmatmul_gpu.h"

static mica_status norm_lower(const mica__gpu_launch *l, mica__gpu_list *list, bool centred)
{
    const mica__tensor *x = &l->in[0];
    if (mica__gpu_has_f64(l)) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    mica_norm_params p = {.x = mica__gpu_rows(x),
                          .step = mica__row_stride(x),
                          .rows = (uint32_t)mica__row_count(&x->spec),
                          .n = (uint32_t)mica__row_size(&x->spec),
                          .eps = (float)((const mica__attr_norm *)l->attr)->eps};
    mica__gpu_rounded rounded = {0};
    if (l->rounds) rounded = mica__gpu_round_place(list, p.rows, p.n, MICA_ACT_TOKEN);
    p.pitch = rounded.pitch;
    mica__gpu_dispatch *d = mica__gpu_add(list, "norm", "norm_rows");
    mica__gpu_constant_uint(d, MICA_NORM_DTYPE, (uint32_t)x->spec.dtype);
    mica__gpu_constant_uint(d, MICA_NORM_RESULT, (uint32_t)l->out->spec.dtype);
    mica__gpu_constant_bool(d, MICA_NORM_CENTRED, centred);
    mica__gpu_constant_bool(d, MICA_NORM_ROUNDS, l->rounds);
    mica__gpu_operand(d, l, 0);
    mica__gpu_bind_out(d, 0);
    for (int i = 0; i < 2; i++) {
        if (l->rounds) mica__gpu_bind_workspace(d, i ? rounded.scales : rounded.codes);
        else mica__gpu_bind_out(d, 0);
    }
    mica__gpu_params(list, d, &p, sizeof p);
    d->finishes = true;
    return mica__gpu_grid_rows(list, d, l->gpu, MICA__KNOB_NORM, p.rows, p.n);
}

mica_status mica__layer_norm_gpu(const mica__gpu_launch *l, mica__gpu_list *list) { return norm_lower(l, list, true); }
mica_status mica__rms_norm_gpu(const mica__gpu_launch *l, mica__gpu_list *list) { return norm_lower(l, list, false); }
