/* Layers as functions of arrays: linear, dropout, activations, batch norm, attention
 * between projections. */
#include <math.h>
#include <string.h>

#include "forward.h"

/* Mixed precision: products are computed in the dtype of the weights if that is narrow. */
mica_array *mica__as_weight(mica_scope *s, mica_array *x, const mica_array *w)
{
    const bool narrow = w && (mica_array_dtype(w) == MICA_F16 || mica_array_dtype(w) == MICA_BF16);
    return x && narrow && mica_array_dtype(x) == MICA_F32 ? mica_cast(s, x, mica_array_dtype(w)) : x;
}

mica_array *mica_linear(mica_scope *s, mica_array *x, mica_array *w, mica_array *bias)
{
    mica_array *y = mica_matmul(s, mica__as_weight(s, x, w), mica_transpose(s, w));
    return bias ? mica_add(s, y, mica__as_weight(s, bias, w)) : y;
}

/* --------------------------------------------------------------- dropout --- */

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

/* Uses a hash of the element's index instead of the generator of mica.h, whose seed cannot be data in a trace. The
 * rounds are the finaliser of MurmurHash3. */
mica_array *mica_dropout(mica_scope *s, mica_array *x, double p, mica_array *seed, uint32_t stream)
{
    if (!(p >= 0 && p <= 1))
        return mica_scope_fail(s, MICA_ERR_ARGUMENT, "dropout: probability %g is out of range (0 to 1)", p);
    if (p == 0 || !x) return x;
    if (p == 1) return mica_mul(s, x, mica_scalar(s, 0)); /* nothing is left to scale */
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

/* ------------------------------------------------------------ activations -- */

static mica_array *leave(mica_scope *s, mica_array *x)
{
    (void)s;
    return x;
}
static mica_array *elu_1(mica_scope *s, mica_array *x) { return mica_elu(s, x, 1); }
static mica_array *leaky_1_percent(mica_scope *s, mica_array *x) { return mica_leaky_relu(s, x, 0.01); }

static const struct {
    const char *name;
    mica_array *(*apply)(mica_scope *s, mica_array *x);
} activations[] = {
    [MICA_ACTIVATION_NONE] = {"none", leave},
    [MICA_ACTIVATION_RELU] = {"relu", mica_relu},
    [MICA_ACTIVATION_RELU2] = {"relu2", mica_relu2},
    [MICA_ACTIVATION_LEAKY_RELU] = {"leaky_relu", leaky_1_percent},
    [MICA_ACTIVATION_ELU] = {"elu", elu_1},
    [MICA_ACTIVATION_GELU] = {"gelu", mica_gelu},
    [MICA_ACTIVATION_GELU_TANH] = {"gelu_tanh", mica_gelu_tanh},
    [MICA_ACTIVATION_SILU] = {"silu", mica_silu},
    [MICA_ACTIVATION_TANH] = {"tanh", mica_tanh},
    [MICA_ACTIVATION_LECUN_TANH] = {"lecun_tanh", mica_lecun_tanh},
    [MICA_ACTIVATION_SIGMOID] = {"sigmoid", mica_sigmoid},
    [MICA_ACTIVATION_SOFTPLUS] = {"softplus", mica_softplus},
};
enum { N_ACTIVATIONS = sizeof activations / sizeof activations[0] };

mica_array *mica_activate(mica_scope *s, mica_activation activation, mica_array *x)
{
    if ((unsigned)activation >= N_ACTIVATIONS)
        return mica_scope_fail(s, MICA_ERR_ARGUMENT, "activate: there is no activation %d", (int)activation);
    return activations[activation].apply(s, x);
}

const char *mica_activation_name(mica_activation activation)
{
    return (unsigned)activation < N_ACTIVATIONS ? activations[activation].name : NULL;
}

bool mica_activation_named(const char *name, mica_activation *activation)
{
    for (int i = 0; name && activation && i < N_ACTIVATIONS; i++)
        if (strcmp(name, activations[i].name) == 0) {
            *activation = (mica_activation)i;
            return true;
        }
    return false;
}

/* ------------------------------------------------------------- batch norm -- */

void mica_batch_norm_options_init(mica_batch_norm_options *options)
{
    if (options) *options = (mica_batch_norm_options){.struct_size = sizeof *options, .eps = 1e-5, .momentum = 0.1};
}

/* Reshapes (channels) to (1, channels, 1, ...). */
static mica_array *along_channels(mica_scope *s, mica_array *v, int ndim)
{
    int64_t shape[MICA_MAX_DIMS] = {1, -1, 1, 1, 1, 1, 1, 1};
    return mica_reshape(s, v, ndim, shape);
}

/* Returns (1 - momentum) old + momentum now, outside of the gradient. */
static mica_array *running_value(mica_scope *s, mica_array *old, mica_array *now, double momentum, double factor)
{
    now = mica_reshape(s, mica_stop_gradient(s, now), 1, (const int64_t[]){-1});
    return mica_add(s, mica_mul(s, old, mica_scalar(s, 1 - momentum)),
                    mica_mul(s, now, mica_scalar(s, momentum * factor)));
}

mica_array *mica_batch_norm(mica_scope *s, mica_array *x, mica_array *weight, mica_array *bias, mica_array **mean,
                            mica_array **var, const mica_batch_norm_options *options)
{
    mica_batch_norm_options o;
    mica_batch_norm_options_init(&o);
    if (mica_struct_read("batch_norm: mica_batch_norm_options", &o, sizeof o, options) != MICA_OK)
        return mica_scope_fail(s, MICA_ERR_ARGUMENT, "%s", mica_last_error());
    if (!x || !mean || !var || !*mean || !*var)
        return mica_scope_fail(s, MICA_ERR_ARGUMENT, "batch_norm: no x, or no running mean and variance");
    const int ndim = mica_array_ndim(x);
    if (ndim < 2)
        return mica_scope_fail(s, MICA_ERR_SHAPE, "batch_norm: x has %d axes, not (batch, channels, ...)", ndim);
    const int64_t channels = mica_array_shape(x)[1], count = channels ? mica_array_size(x) / channels : 0;
    if (mica_array_size(*mean) != channels || mica_array_size(*var) != channels)
        return mica_scope_fail(s, MICA_ERR_SHAPE, "batch_norm: %lld channels, but statistics of %lld and %lld",
                               (long long)channels, (long long)mica_array_size(*mean),
                               (long long)mica_array_size(*var));
    const mica_dtype dtype = mica_array_dtype(x);
    if (dtype == MICA_F16 || dtype == MICA_BF16) x = mica_cast(s, x, MICA_F32);
    mica_array *m = along_channels(s, *mean, ndim), *v = along_channels(s, *var, ndim);
    if (o.training) {
        if (count < 2) return mica_scope_fail(s, MICA_ERR_SHAPE, "batch_norm: training with one value a channel");
        int axes[MICA_MAX_DIMS] = {0};
        for (int d = 2; d < ndim; d++) axes[d - 1] = d;
        m = mica_mean(s, x, axes, ndim - 1, true);
        v = mica_var(s, x, axes, ndim - 1, 0, true);
        *mean = running_value(s, *mean, m, o.momentum, 1);
        *var = running_value(s, *var, v, o.momentum, (double)count / (double)(count - 1));
    }
    mica_array *y = mica_mul(s, mica_sub(s, x, m), mica_rsqrt(s, mica_add(s, v, mica_scalar(s, o.eps))));
    if (weight) y = mica_mul(s, y, along_channels(s, weight, ndim));
    if (bias) y = mica_add(s, y, along_channels(s, bias, ndim));
    return mica_cast(s, y, dtype);
}

/* -------------------------------------------------------------- attention -- */

void mica_heads_options_init(mica_heads_options *options)
{
    if (options) *options = (mica_heads_options){.struct_size = sizeof *options, .heads = 1};
}

/* Reshapes (batch, time, heads dim) to (batch, heads, time, dim). */
static mica_array *split_heads(mica_scope *s, mica_array *x, int64_t heads)
{
    if (!x) return NULL;
    const int64_t *shape = mica_array_shape(x);
    if (mica_array_ndim(x) != 3 || heads < 1 || shape[2] % heads != 0)
        return mica_scope_fail(s, MICA_ERR_SHAPE, "multi_head: %d axes, the last of %lld, into %lld heads",
                               mica_array_ndim(x), (long long)(mica_array_ndim(x) == 3 ? shape[2] : 0),
                               (long long)heads);
    x = mica_reshape(s, x, 4, (const int64_t[]){shape[0], shape[1], heads, shape[2] / heads});
    return mica_permute(s, x, (const int[]){0, 2, 1, 3});
}

mica_array *mica_multi_head(mica_scope *s, mica_array *q, mica_array *k, mica_array *v, mica_array *mask,
                            const mica_heads_options *options)
{
    mica_heads_options o;
    mica_heads_options_init(&o);
    if (mica_struct_read("multi_head: mica_heads_options", &o, sizeof o, options) != MICA_OK)
        return mica_scope_fail(s, MICA_ERR_ARGUMENT, "%s", mica_last_error());
    if (!options || o.heads < 1) return mica_scope_fail(s, MICA_ERR_ARGUMENT, "multi_head: no options, or no heads");
    if (!q) return NULL;
    const int64_t kv_heads = o.kv_heads ? o.kv_heads : o.heads;
    mica_attention_options attention;
    mica_attention_options_init(&attention);
    attention.causal = o.causal;
    q = split_heads(s, q, o.heads);
    k = split_heads(s, k, kv_heads);
    v = split_heads(s, v, kv_heads);
    if (o.rope_base > 0) {
        mica_rope_options rope;
        mica_rope_options_init(&rope);
        rope.base = o.rope_base;
        q = mica_rope(s, q, NULL, &rope);
        k = mica_rope(s, k, NULL, &rope);
    }
    mica_array *y = mica_permute(s, mica_attention(s, q, k, v, mask, &attention), (const int[]){0, 2, 1, 3});
    if (!y) return NULL;
    const int64_t *shape = mica_array_shape(y);
    return mica_reshape(s, y, 3, (const int64_t[]){shape[0], shape[1], shape[2] * shape[3]});
}
