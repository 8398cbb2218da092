/* Rotations (rope.metal) and their table (rope_table.metal) as dispatches with a thread for each pair. */
#include "kernels/rope/rope.h"

#include <math.h>
#include <string.h>

#include "kernels/common/gpu_view.h"

#include "kernels/rope/rope_params.h"
#include "kernels/rope/rope_table_params.h"

static uint64_t rope_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

mica_status mica__rope_table_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__tensor *positions = &l->in[0], *factors = l->n_in > 1 ? &l->in[1] : NULL;
    const mica__attr_rope_table *attr = l->attr;
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    mica_rope_table_params p = {.positions = mica__gpu_view(positions),
                                .scale = rope_bits(attr->scale),
                                .magnitude = rope_bits(attr->magnitude),
                                .count = (uint32_t)mica__spec_size(&positions->spec),
                                .pairs = (uint32_t)(attr->dims / 2)};
    if (attr->dims / 2 > (int64_t)(sizeof p.power / sizeof *p.power))
        return mica__gpu_refuse(list, "more than 512 dims");
    for (uint32_t i = 0; i < p.pairs; i++)
        p.power[i] = rope_bits(pow(attr->base, -2.0 * (double)i / (double)attr->dims));
    if (factors) {
        p.factor_start = -mica__gpu_low(factors);
        p.factor_step = factors->strides[0];
    }
    mica__gpu_dispatch *d = mica__gpu_add(list, "rope_table", "rope_table");
    mica__gpu_constant_uint(d, MICA_ROPE_TABLE_POSITION_TYPE, (uint32_t)positions->spec.dtype);
    mica__gpu_constant_uint(d, MICA_ROPE_TABLE_FACTOR_TYPE, factors ? (uint32_t)factors->spec.dtype : 0);
    mica__gpu_constant_bool(d, MICA_ROPE_TABLE_HAS_FACTORS, factors != NULL);
    mica__gpu_operand(d, l, 0);
    mica__gpu_operand(d, l, factors ? 1 : 0);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid(d, mica__gpu_parts(p.pairs, l->gpu->simd_width), p.count, 1, l->gpu->simd_width, 1, 1);
    return MICA_OK;
}

mica_status mica__rope_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__tensor *x = &l->in[0], *table = &l->in[1];
    const mica__attr_rope *attr = l->attr;
    const int outer = x->spec.ndim - 1;
    if (x->spec.dtype == MICA_F64) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    int64_t strides[MICA_MAX_DIMS];
    for (int d = 0; d < outer; d++) strides[d] = mica__rope_stride(table, d);
    const int64_t n = mica__row_size(&x->spec), rest = n - attr->dims;
    const mica_rope_params p = {.x = mica__gpu_rows(x),
                                .table = mica__gpu_axes(table, outer, x->spec.shape, strides),
                                .step = mica__row_stride(x),
                                .table_step = table->strides[outer],
                                .rows = (uint32_t)mica__row_count(&x->spec),
                                .n = (uint32_t)n,
                                .dims = (uint32_t)attr->dims,
                                .work = (uint32_t)(attr->dims / 2 + (rest + 1) / 2)};
    mica__gpu_dispatch *d = mica__gpu_add(list, "rope", "rope_pairs");
    mica__gpu_constant_uint(d, MICA_ROPE_DTYPE, (uint32_t)x->spec.dtype);
    mica__gpu_constant_bool(d, MICA_ROPE_INTERLEAVED, attr->interleaved != 0);
    mica__gpu_constant_bool(d, MICA_ROPE_INVERSE, attr->inverse != 0);
    mica__gpu_operand(d, l, 0);
    mica__gpu_operand(d, l, 1);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    const mica__gpu_shape *shape = mica__gpu_pick(l->gpu, MICA__KNOB_ELEMENTS, NULL, NULL);
    const uint32_t wide = l->gpu->simd_width, high = shape ? shape->simds : 1;
    mica__gpu_grid(d, mica__gpu_parts(p.work, wide), mica__gpu_parts(p.rows, high), 1, wide, high, 1);
    return MICA_OK;
}
