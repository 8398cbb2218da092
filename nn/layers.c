/* Initial values and the layers that are not BitLinear: linear, dropout, and the
 * attention between projections. */
#include <math.h>

#include "mica_nn.h"

/* ---------------------------------------------------------------- values --- */

/* Deviation or half width that gives the scheme's variance. */
static double init_spread(mica_init how, double scale, int ndim, const int64_t *shape)
{
    double in = 1, out = ndim > 0 ? (double)shape[0] : 1;
    for (int d = 1; d < ndim; d++) in *= (double)shape[d];
    const double width = sqrt(3.0); /* of a uniform value with deviation 1 */
    switch (how) {
    case MICA_INIT_XAVIER_UNIFORM: return width * scale * sqrt(2 / (in + out));
    case MICA_INIT_XAVIER_NORMAL: return scale * sqrt(2 / (in + out));
    case MICA_INIT_KAIMING_UNIFORM: return width * scale / sqrt(in);
    case MICA_INIT_KAIMING_NORMAL: return scale / sqrt(in);
    default: return scale;
    }
}

mica_array *mica_init_array(mica_scope *s, mica_init how, double scale, mica_dtype dtype, int ndim,
                            const int64_t *shape, uint64_t seed)
{
    if (ndim < 0 || (ndim > 0 && !shape)) return mica_scope_fail(s, MICA_ERR_ARGUMENT, "init: %d axes", ndim);
    const double spread = init_spread(how, scale, ndim, shape);
    if (!isfinite(spread)) return mica_scope_fail(s, MICA_ERR_ARGUMENT, "init: scale %g", scale);
    switch (how) {
    case MICA_INIT_ZEROS: return mica_zeros(s, dtype, ndim, shape);
    case MICA_INIT_ONES: return mica_ones(s, dtype, ndim, shape);
    case MICA_INIT_UNIFORM:
    case MICA_INIT_XAVIER_UNIFORM:
    case MICA_INIT_KAIMING_UNIFORM: return mica_random_uniform(s, dtype, ndim, shape, -spread, spread, seed);
    case MICA_INIT_NORMAL:
    case MICA_INIT_XAVIER_NORMAL:
    case MICA_INIT_KAIMING_NORMAL:
        return mica_mul(s, mica_random_normal(s, dtype, ndim, shape, seed), mica_scalar(s, spread));
    }
    return mica_scope_fail(s, MICA_ERR_ARGUMENT, "init: there is no scheme %d", (int)how);
}

/* ---------------------------------------------------------------- layers --- */

mica_array *mica_linear(mica_scope *s, mica_array *x, mica_array *w, mica_array *bias)
{
    mica_array *y = mica_matmul(s, x, mica_transpose(s, w));
    return bias ? mica_add(s, y, bias) : y;
}

static mica_array *u32_constant(mica_scope *s, uint32_t value)
{
    return mica_full_i64(s, MICA_U32, 0, NULL, (int64_t)value);
}

/* h ^= h >> shift; h *= factor */
static mica_array *hash_round(mica_scope *s, mica_array *h, uint32_t shift, uint32_t factor)
{
    h = mica_bitwise_xor(s, h, mica_shift_right(s, h, u32_constant(s, shift)));
    return mica_mul(s, h, u32_constant(s, factor));
}

/* A hash of the element's index rather than the generator of mica.h, whose seed is
 * no data inside a trace; the rounds are the finaliser of MurmurHash3. */
mica_array *mica_dropout(mica_scope *s, mica_array *x, double p, mica_array *seed, uint32_t stream)
{
    if (!(p >= 0 && p < 1)) return mica_scope_fail(s, MICA_ERR_ARGUMENT, "dropout: probability %g", p);
    if (p == 0 || !x) return x;
    const int64_t n = mica_array_size(x);
    mica_array *h = mica_arange(s, MICA_U32, 0, (double)n, 1);
    h = mica_add(s, mica_mul(s, h, u32_constant(s, 0x9e3779b9u)), u32_constant(s, 0x85157af5u * (stream + 1)));
    h = mica_bitwise_xor(s, h, mica_reshape(s, mica_cast(s, seed, MICA_U32), 0, NULL));
    h = hash_round(s, hash_round(s, h, 16, 0x85ebca6bu), 13, 0xc2b2ae35u);
    h = mica_bitwise_xor(s, h, mica_shift_right(s, h, u32_constant(s, 16)));
    mica_array *kept = mica_greater_equal(s, h, u32_constant(s, (uint32_t)(p * 4294967296.0)));
    kept = mica_reshape(s, kept, mica_array_ndim(x), mica_array_shape(x));
    mica_array *scaled = mica_mul(s, x, mica_scalar(s, 1 / (1 - p)));
    return mica_where(s, kept, scaled, mica_scalar(s, 0));
}

/* (batch time, heads dim) as (batch, heads, time, dim). */
static mica_array *split_heads(mica_scope *s, mica_array *x, const mica_attention_block *b, int64_t heads)
{
    x = mica_reshape(s, x, 4, (const int64_t[]){b->batch, b->time, heads, b->head_dim});
    return mica_permute(s, x, (const int[]){0, 2, 1, 3});
}

mica_array *mica_self_attention(mica_scope *s, mica_array *q, mica_array *k, mica_array *v,
                                const mica_attention_block *block)
{
    if (!block) return mica_scope_fail(s, MICA_ERR_ARGUMENT, "self_attention: no description of the block");
    mica_rope_options rope;
    mica_rope_options_init(&rope);
    rope.base = block->rope_base;
    mica_attention_options options;
    mica_attention_options_init(&options);
    options.causal = true;
    q = mica_rope(s, split_heads(s, q, block, block->heads), NULL, &rope);
    k = mica_rope(s, split_heads(s, k, block, block->kv_heads), NULL, &rope);
    v = split_heads(s, v, block, block->kv_heads);
    mica_array *a = mica_permute(s, mica_attention(s, q, k, v, NULL, &options), (const int[]){0, 2, 1, 3});
    return mica_reshape(s, a, 2, (const int64_t[]){block->batch * block->time, block->heads * block->head_dim});
}
