/* Attention as dispatches (attention.metal). Up to ROWS_MOST queries of a head are computed one by
 * one, with many keys split into parts. More queries are computed in tiles; the tiles that are not
 * finite are computed again one query at a time. */
#include "kernels/attention/attention_gpu.h"

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_cached.h"

enum {
    ROWS_MOST = 8,              /* queries of a head that are computed one by one        */
    ROW_MOST_SIZE = 256         /* ROW_SIZE in attention.metal: of q's and v's rows      */
};

mica_head_view mica__gpu_head_view(const mica__tensor *t)
{
    mica_head_view v = {.start = -mica__gpu_low(t)};
    for (int d = 0; d < t->spec.ndim && d < 4; d++) v.stride[d] = t->strides[d];
    return v;
}

mica_attention_params mica__gpu_attention_params(const mica__gpu_launch *l, uint32_t mask)
{
    const mica__spec *q = &l->in[0].spec, *k = &l->in[1].spec, *v = &l->in[2].spec;
    mica_attention_params p = {.q = mica__gpu_head_view(&l->in[0]),
                               .k = mica__gpu_head_view(&l->in[1]),
                               .v = mica__gpu_head_view(&l->in[2]),
                               .scale = (float)((const mica__attr_attention *)l->attr)->scale,
                               .heads = (uint32_t)q->shape[1],
                               .groups = (uint32_t)k->shape[1],
                               .times = (uint32_t)q->shape[2],
                               .keys = (uint32_t)k->shape[2],
                               .dims = (uint32_t)q->shape[3],
                               .size = (uint32_t)v->shape[3],
                               .parts = 1,
                               .each = (uint32_t)k->shape[2],
                               .rows = (uint32_t)(q->shape[0] * q->shape[1] * q->shape[2])};
    if (mask) p.mask = mica__gpu_head_view(&l->in[mask]);
    return p;
}

/* Indices of the optional operands; 0: absent. */
typedef struct attention_operands {
    uint32_t mask, length, k_scale, v_scale;
} attention_operands;

static void attention_bind(mica__gpu_dispatch *d, const mica__gpu_launch *l, attention_operands o)
{
    mica__gpu_constant_uint(d, MICA_ATTENTION_Q_TYPE, (uint32_t)l->in[0].spec.dtype);
    mica__gpu_constant_uint(d, MICA_ATTENTION_K_TYPE, (uint32_t)l->in[1].spec.dtype);
    mica__gpu_constant_uint(d, MICA_ATTENTION_V_TYPE, (uint32_t)l->in[2].spec.dtype);
    mica__gpu_constant_uint(d, MICA_ATTENTION_OUT_TYPE, (uint32_t)l->out->spec.dtype);
    mica__gpu_constant_uint(d, MICA_ATTENTION_MASK_TYPE, (uint32_t)l->in[o.mask].spec.dtype);
    mica__gpu_constant_bool(d, MICA_ATTENTION_HAS_MASK, o.mask != 0);
    mica__gpu_constant_bool(d, MICA_ATTENTION_CAUSAL, ((const mica__attr_attention *)l->attr)->causal != 0);
    mica__gpu_constant_bool(d, MICA_ATTENTION_HAS_SCALES, o.k_scale != 0);
    mica__gpu_constant_uint(d, MICA_ATTENTION_SCALE_TYPE, (uint32_t)l->in[o.k_scale].spec.dtype);
    mica__gpu_constant_bool(d, MICA_ATTENTION_CACHED, o.length != 0);
    mica__gpu_constant_uint(d, MICA_ATTENTION_LENGTH_TYPE, (uint32_t)l->in[o.length].spec.dtype);
    for (uint32_t i = 0; i < 3; i++) mica__gpu_operand(d, l, i);
    mica__gpu_operand(d, l, o.mask);
    mica__gpu_operand(d, l, o.k_scale);
    mica__gpu_operand(d, l, o.v_scale);
    mica__gpu_operand(d, l, o.length);
}

/* Computes queries one by one. odd: workspace offset of the flags that mark odd tiles; -1: computes all queries. */
static mica_status lower_rows(const mica__gpu_launch *l, mica__gpu_list *list, attention_operands o,
                              mica_attention_params p, int64_t odd)
{
    const uint32_t wide = l->gpu->simd_width;
    const mica__gpu_shape *shape = mica__gpu_pick(l->gpu, MICA__KNOB_ATTENTION_ROWS, NULL, NULL);
    if (!shape) return mica__gpu_refuse(list, "threadgroups too small");
    if (odd < 0 && p.keys > 2 * shape->k) {
        p.parts = mica__gpu_parts(p.keys, shape->k);
        p.each = shape->k;
    }
    const bool parts = p.parts > 1;
    const int64_t partial =
        parts ? mica__gpu_workspace(list, (size_t)p.rows * p.parts * (p.size + 2) * sizeof(float)) : 0;
    mica__gpu_dispatch *d = mica__gpu_add(list, "attention", "attention_rows");
    attention_bind(d, l, o);
    mica__gpu_constant_bool(d, MICA_ATTENTION_IN_PARTS, parts);
    mica__gpu_constant_bool(d, MICA_ATTENTION_ONLY_ODD, odd >= 0);
    mica__gpu_constant_bool(d, MICA_ATTENTION_RUNS,
                            p.k.stride[3] == 1 && p.v.stride[3] == 1 && p.dims % 128 == 0 && p.size % 128 == 0);
    if (odd >= 0) mica__gpu_bind_workspace(d, odd);
    else mica__gpu_operand(d, l, 0);
    if (parts) mica__gpu_bind_workspace(d, partial);
    else mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid(d, p.rows, p.parts, 1, wide, shape->simds, 1);
    d->barrier = odd >= 0;
    if (!parts) return MICA_OK;
    d = mica__gpu_add(list, "attention", "attention_join");
    mica__gpu_constant_uint(d, MICA_ATTENTION_OUT_TYPE, (uint32_t)l->out->spec.dtype);
    mica__gpu_bind_workspace(d, partial);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid(d, p.rows, 1, 1, mica__gpu_row_threads(l->gpu, p.size), 1, 1);
    d->barrier = true;
    return MICA_OK;
}

/* NULL: queries are computed one by one. */
static const mica__gpu_shape *tile_shape(const mica__gpu_limits *gpu, const mica_attention_params *p)
{
    if (p->times <= ROWS_MOST || !gpu->simdgroup_matrix) return NULL;
    const mica__gpu_tile_work work = {p->times, p->size, p->rows / p->times, mica__gpu_cores(gpu)};
    return mica__gpu_pick(gpu,
                          p->size <= 64    ? MICA__KNOB_ATTENTION_TILE_64
                          : p->size <= 128 ? MICA__KNOB_ATTENTION_TILE_128
                                           : MICA__KNOB_ATTENTION_TILE_256,
                          mica__gpu_tiles_half_full, &work);
}

static mica_status lower_tile(const mica__gpu_launch *l, mica__gpu_list *list, attention_operands o,
                              mica_attention_params p, const mica__gpu_shape *shape)
{
    const uint32_t tiles = mica__gpu_parts(p.times, shape->m), batch = p.rows / p.times / p.heads;
    p.tile = shape->m;
    const int64_t odd = mica__gpu_workspace(list, (size_t)tiles * p.heads * batch * sizeof(uint32_t));
    mica__gpu_dispatch *d = mica__gpu_add(list, "attention", shape->name);
    attention_bind(d, l, o);
    mica__gpu_bind_workspace(d, odd);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid(d, tiles, p.heads, batch, 32 * shape->simds, 1, 1);
    return lower_rows(l, list, o, p, odd);
}

static mica_status attention_lower(const mica__gpu_launch *l, mica__gpu_list *list, attention_operands o)
{
    if (mica__gpu_has_f64(l)) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    mica_attention_params p = mica__gpu_attention_params(l, o.mask);
    if (p.size > ROW_MOST_SIZE || p.dims > ROW_MOST_SIZE) return mica__gpu_refuse(list, "heads of more than 256");
    if (o.k_scale) {
        p.k_scale = mica__gpu_head_view(&l->in[o.k_scale]);
        p.v_scale = mica__gpu_head_view(&l->in[o.v_scale]);
    }
    const mica__gpu_shape *tile = tile_shape(l->gpu, &p);
    return tile ? lower_tile(l, list, o, p, tile) : lower_rows(l, list, o, p, -1);
}

mica_status mica__attention_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__attr_attention *attr = l->attr;
    attention_operands o = {.mask = attr->has_mask ? 3 : 0};
    if (l->in[1].spec.dtype == MICA_I8) o.k_scale = 3, o.v_scale = 4;
    return attention_lower(l, list, o);
}

mica_status mica__attention_cached_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    attention_operands o = {.length = 3};
    if (l->n_in > 4) o.k_scale = 4, o.v_scale = 5;
    MICA_TRY(attention_lower(l, list, o));
    if (list->refused) return MICA_OK;
    const mica_attention_params p = mica__gpu_attention_params(l, 0);
    mica__gpu_dispatch *d = mica__gpu_add(list, "attention", "attention_check");
    mica__gpu_constant_uint(d, MICA_ATTENTION_LENGTH_TYPE, (uint32_t)l->in[3].spec.dtype);
    mica__gpu_operand(d, l, 3);
    mica__gpu_bind_fault(d);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid(d, 1, 1, 1, 1, 1, 1);
    return MICA_OK;
}
