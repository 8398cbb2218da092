/* Gradients of attention as three dispatches (attention_grad.metal). */
#include "kernels/attention/attention_grad.h"

#include "kernels/attention/attention_gpu.h"

enum { GRAD_MOST = 256 }; /* SIZE there */

static void grad_dispatch(const mica__gpu_launch *l, mica__gpu_list *list, const mica_attention_params *p,
                          const char *kernel, int64_t stats, int64_t out, uint32_t groups, uint32_t simds)
{
    const mica__attr_attention *attr = l->attr;
    const uint32_t mask = attr->has_mask ? 3 : 0, c = l->n_in - 1;
    mica__gpu_dispatch *d = mica__gpu_add(list, "attention_grad", kernel);
    for (uint32_t i = 0; i < 3; i++)
        mica__gpu_constant_uint(d, MICA_ATTENTION_GRAD_Q_TYPE + i, (uint32_t)l->in[i].spec.dtype);
    mica__gpu_constant_uint(d, MICA_ATTENTION_GRAD_OUT_TYPE, (uint32_t)l->out->spec.dtype);
    mica__gpu_constant_uint(d, MICA_ATTENTION_GRAD_MASK_TYPE, (uint32_t)l->in[mask].spec.dtype);
    mica__gpu_constant_bool(d, MICA_ATTENTION_GRAD_HAS_MASK, mask != 0);
    mica__gpu_constant_bool(d, MICA_ATTENTION_GRAD_CAUSAL, attr->causal != 0);
    mica__gpu_constant_uint(d, MICA_ATTENTION_GRAD_C_TYPE, (uint32_t)l->in[c].spec.dtype);
    for (uint32_t i = 0; i < 3; i++) mica__gpu_operand(d, l, i);
    mica__gpu_operand(d, l, mask);
    mica__gpu_operand(d, l, c);
    mica__gpu_bind_workspace(d, stats);
    if (out >= 0) mica__gpu_bind_out(d, mica__gpu_bytes(l->out, out));
    mica__gpu_params(list, d, p, sizeof *p);
    mica__gpu_grid(d, groups, 1, 1, l->gpu->simd_width, simds, 1);
    d->barrier = out >= 0;
}

mica_status mica__attention_grad_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__attr_attention *attr = l->attr;
    if (mica__gpu_has_f64(l)) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    mica_attention_params p = mica__gpu_attention_params(l, attr->has_mask ? 3 : 0);
    p.c = mica__gpu_head_view(&l->in[l->n_in - 1]);
    if (p.size > GRAD_MOST || p.dims > GRAD_MOST) return mica__gpu_refuse(list, "heads of more than 256");
    const mica__gpu_shape *shape = mica__gpu_pick(l->gpu, MICA__KNOB_ATTENTION_GRAD, NULL, NULL);
    if (!shape) return mica__gpu_refuse(list, "threadgroups too small");
    const uint32_t keys = (uint32_t)l->in[1].spec.shape[0] * p.groups * p.keys;
    const int64_t stats = mica__gpu_workspace(list, (size_t)p.rows * 3 * sizeof(float));
    if (p.rows) grad_dispatch(l, list, &p, "grad_stats", stats, -1, p.rows, shape->simds);
    if (p.rows && p.dims) grad_dispatch(l, list, &p, "grad_queries", stats, 0, p.rows, shape->simds);
    if (keys) grad_dispatch(l, list, &p, "grad_keys", stats, (int64_t)p.rows * p.dims, keys, shape->simds);
    return MICA_OK;
}
