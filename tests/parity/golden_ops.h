/* Maps each op name of the golden files to a builder that uses mica.h only. The table, golden_ops,
 * is at the end. A builder gets the inputs in the order of the case and fills out[] with one array
 * for each expected result. */
#ifndef MICA_TESTS_GOLDEN_OPS_H
#define MICA_TESTS_GOLDEN_OPS_H

#include "golden_file.h"

typedef void golden_build_fn(mica_scope *s, const golden_case *c, mica_array *const *in, mica_array **out);

typedef struct golden_op {
    const char *name;            /* in the files                               */
    golden_build_fn *build;
    const char *covers;          /* the calls of mica.h that it covers         */
    int n_cases;                 /* found in the files                         */
} golden_op;

static mica_dtype attr_dtype(const golden_case *c) { return (mica_dtype)golden_int(c, "dtype", -1); }
static int attr_axis(const golden_case *c) { return (int)golden_int(c, "axis", 99); }
static bool attr_keep(const golden_case *c) { return golden_int(c, "keep", 0) != 0; }
static uint64_t attr_seed(const golden_case *c) { return (uint64_t)golden_int(c, "seed", 0); }

/* Axes as int; NULL when the case names none. */
static const int *attr_axes(const golden_case *c, const char *key, int axes[GOLDEN_MAX_VALUES], int *n)
{
    const int64_t *values = golden_ints(c, key, n);
    for (int i = 0; i < *n; i++) axes[i] = (int)values[i];
    return values ? axes : NULL;
}

/* ------------------------------------------------------------- families --- */

/* Lists of names, not code. */
/* clang-format off */
/* The element-wise ops of src/graph/ops.def are added to these from that table. */
#define GOLDEN_UNARY(X) X(flatten) X(transpose) X(contiguous)
#define GOLDEN_BINARY(X) X(gather) X(embedding) X(cross_entropy)
#define GOLDEN_TERNARY(X) X(where) X(clip) X(fma) X(scatter) X(scatter_add)
#define GOLDEN_REDUCE(X) X(sum) X(mean) X(prod) X(max) X(min) X(any) X(all) X(logsumexp)
#define GOLDEN_AXIS(X) X(cumsum) X(cumprod) X(cummax) X(softmax) X(log_softmax) X(expand_dims) X(squeeze) X(flip)
#define GOLDEN_CREATE(X) X(zeros) X(ones)
#define GOLDEN_CONV(X) X(conv1d) X(conv2d) X(conv_transpose1d) X(conv_transpose2d)
#define GOLDEN_POOL(X) X(max_pool1d) X(max_pool2d) X(avg_pool1d) X(avg_pool2d)
/* clang-format on */

#define BUILDER(op) static void build_##op(mica_scope *s, const golden_case *c, mica_array *const *in, mica_array **out)

#define DEFINE_UNARY(op)              \
    BUILDER(op)                       \
    {                                 \
        (void)c;                      \
        out[0] = mica_##op(s, in[0]); \
    }
#define DEFINE_BINARY(op)                    \
    BUILDER(op)                              \
    {                                        \
        (void)c;                             \
        out[0] = mica_##op(s, in[0], in[1]); \
    }
#define DEFINE_TERNARY(op)                          \
    BUILDER(op)                                     \
    {                                               \
        (void)c;                                    \
        out[0] = mica_##op(s, in[0], in[1], in[2]); \
    }
#define DEFINE_REDUCE(op)                                    \
    BUILDER(op)                                              \
    {                                                        \
        int list[GOLDEN_MAX_VALUES], n = 0;                  \
        const int *axes = attr_axes(c, "axes", list, &n);    \
        out[0] = mica_##op(s, in[0], axes, n, attr_keep(c)); \
    }
#define DEFINE_AXIS(op) \
    BUILDER(op) { out[0] = mica_##op(s, in[0], attr_axis(c)); }
#define DEFINE_CREATE(op)                                   \
    BUILDER(op)                                             \
    {                                                       \
        (void)in;                                           \
        int n = 0;                                          \
        const int64_t *shape = golden_ints(c, "shape", &n); \
        out[0] = mica_##op(s, attr_dtype(c), n, shape);     \
    }

/* By column ctor of ops.def; cases name the value as column attr does. */
#define DEFINE_PLAIN(op, attr) DEFINE_UNARY(op)
#define DEFINE_WHOLE(op, attr) DEFINE_UNARY(op)
#define DEFINE_VALUE(op, attr) \
    BUILDER(op) { out[0] = mica_##op(s, in[0], golden_float(c, #attr, NAN)); }
#define MICA_MAP1(NAME, name, ctor, rule, flops, attr, ...) DEFINE_##ctor(name, attr)
#define MICA_MAP2(NAME, name, ...) DEFINE_BINARY(name)
#include "graph/ops.def"
#define MICA_COMPOSED(name, ...) DEFINE_UNARY(name)
#include "graph/composed.def"
GOLDEN_UNARY(DEFINE_UNARY)
GOLDEN_BINARY(DEFINE_BINARY)
GOLDEN_TERNARY(DEFINE_TERNARY)
GOLDEN_REDUCE(DEFINE_REDUCE)
GOLDEN_AXIS(DEFINE_AXIS)
GOLDEN_CREATE(DEFINE_CREATE)

/* -------------------------------------------------------------- creation -- */

BUILDER(identity)
{
    (void)s, (void)c;
    out[0] = in[0];
}

BUILDER(full)
{
    (void)in;
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_full(s, attr_dtype(c), n, shape, golden_float(c, "value", 0));
}

BUILDER(full_i64)
{
    (void)in;
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_full_i64(s, attr_dtype(c), n, shape, golden_int(c, "value", 0));
}

BUILDER(arange)
{
    (void)in;
    out[0] = mica_arange(s, attr_dtype(c), golden_float(c, "start", 0), golden_float(c, "stop", 0),
                         golden_float(c, "step", 0));
}

BUILDER(linspace)
{
    (void)in;
    out[0] = mica_linspace(s, attr_dtype(c), golden_float(c, "start", 0), golden_float(c, "stop", 0),
                           golden_int(c, "n", -1));
}

BUILDER(eye)
{
    (void)in;
    out[0] = mica_eye(s, attr_dtype(c), golden_int(c, "rows", -1), golden_int(c, "cols", -1), golden_int(c, "k", 0));
}

BUILDER(tri)
{
    (void)in;
    out[0] = mica_tri(s, attr_dtype(c), golden_int(c, "rows", -1), golden_int(c, "cols", -1), golden_int(c, "k", 0));
}

BUILDER(random_bits)
{
    (void)in;
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_random_bits(s, attr_dtype(c), n, shape, attr_seed(c));
}

BUILDER(random_uniform)
{
    (void)in;
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_random_uniform(s, attr_dtype(c), n, shape, golden_float(c, "low", 0), golden_float(c, "high", 0),
                                 attr_seed(c));
}

BUILDER(random_normal)
{
    (void)in;
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_random_normal(s, attr_dtype(c), n, shape, attr_seed(c));
}

BUILDER(random_truncated_normal)
{
    (void)in;
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_random_truncated_normal(s, attr_dtype(c), n, shape, golden_float(c, "low", 0),
                                          golden_float(c, "high", 0), attr_seed(c));
}

BUILDER(random_bernoulli)
{
    (void)in;
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_random_bernoulli(s, n, shape, golden_float(c, "p", NAN), attr_seed(c));
}

BUILDER(random_randint)
{
    (void)in;
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_random_randint(s, attr_dtype(c), n, shape, golden_int(c, "low", 0), golden_int(c, "high", 0),
                                 attr_seed(c));
}

BUILDER(random_categorical) { out[0] = mica_random_categorical(s, in[0], attr_seed(c)); }

BUILDER(random_permutation)
{
    (void)in;
    out[0] = mica_random_permutation(s, golden_int(c, "n", -1), attr_seed(c));
}

BUILDER(seed_split)
{
    (void)in;
    uint64_t seeds[GOLDEN_MAX_VALUES];
    const int64_t n = golden_int(c, "n", 0);
    for (int64_t i = 0; i < n && i < GOLDEN_MAX_VALUES; i++) seeds[i] = mica_seed_split(attr_seed(c), (uint64_t)i);
    out[0] = mica_from_data(s, MICA_U64, 1, &n, seeds);
}

/* ---------------------------------------------------------------- dtypes -- */

BUILDER(cast) { out[0] = mica_cast(s, in[0], attr_dtype(c)); }

BUILDER(promote_table)
{
    (void)c, (void)in;
    enum { N = MICA_F64 + 1 };
    int32_t table[N][N];
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++) table[a][b] = (int32_t)mica_dtype_promote((mica_dtype)a, (mica_dtype)b);
    out[0] = mica_from_data(s, MICA_I32, 2, (int64_t[]){N, N}, table);
}

/* FNV-1a over the little-endian bytes of each value, one hash a block: 65,536
 * values fit into a golden file, and a difference can still be found. */
enum { HALF_BLOCK = 1024, HALF_BLOCKS = 65536 / HALF_BLOCK };

static mica_array *half_hashes(mica_scope *s, const uint32_t *values)
{
    uint64_t hash[HALF_BLOCKS];
    for (size_t b = 0; b < HALF_BLOCKS; b++) {
        hash[b] = UINT64_C(0xcbf29ce484222325);
        for (size_t i = 0; i < HALF_BLOCK; i++)
            for (int shift = 0; shift < 32; shift += 8)
                hash[b] = (hash[b] ^ (values[b * HALF_BLOCK + i] >> shift & 0xff)) * UINT64_C(0x100000001b3);
    }
    return mica_from_data(s, MICA_U64, 1, (int64_t[]){HALF_BLOCKS}, hash);
}

static uint32_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

BUILDER(half_to_f32)
{
    (void)in;
    static uint32_t values[65536];
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t h = (uint16_t)i;
        const float f = attr_dtype(c) == MICA_F16 ? mica_f16_to_f32(h) : mica_bf16_to_f32(h);
        values[i] = isnan(f) ? 0x7fc00000 : float_bits(f);
    }
    out[0] = half_hashes(s, values);
}

/* The value of a half pattern by the definition of the format, not by the
 * function under test. */
static double half_value(mica_dtype dtype, uint32_t bits)
{
    const int mantissa_bits = dtype == MICA_F16 ? 10 : 7, bias = dtype == MICA_F16 ? 15 : 127;
    const int exponent = (int)(bits >> mantissa_bits & (dtype == MICA_F16 ? 31 : 255));
    const int mantissa = (int)(bits & ((1U << mantissa_bits) - 1));
    const double sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == 2 * bias + 1) return mantissa ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

/* step -9: each value itself. Otherwise the midpoint to the next pattern, moved by
 * `step` ulp of f32; 0 where there is no midpoint. */
BUILDER(half_from_f32)
{
    (void)in;
    static uint32_t values[65536];
    const mica_dtype dtype = attr_dtype(c);
    const int64_t step = golden_int(c, "step", 0);
    for (uint32_t i = 0; i < 65536; i++) {
        const double low = half_value(dtype, i), high = half_value(dtype, (i + 1) & 0xffff);
        float f = (float)low;
        if (step != -9) {
            const uint32_t bits = (uint32_t)(float_bits((float)(low / 2 + high / 2)) + (uint32_t)step);
            memcpy(&f, &bits, sizeof f);
            if (!isfinite(low) || !isfinite(high)) f = 0;
        }
        const uint16_t h = dtype == MICA_F16 ? mica_f16_from_f32(f) : mica_bf16_from_f32(f);
        const double back = half_value(dtype, h);
        values[i] = isnan(f) && isnan(back) ? (dtype == MICA_F16 ? 0x7e00 : 0x7fc0) : h;
    }
    out[0] = half_hashes(s, values);
}

/* ----------------------------------------------------------------- views -- */

BUILDER(reshape)
{
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_reshape(s, in[0], n, shape);
}

BUILDER(broadcast_to)
{
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_broadcast_to(s, in[0], n, shape);
}

BUILDER(permute)
{
    int axes[GOLDEN_MAX_VALUES], n = 0;
    out[0] = mica_permute(s, in[0], attr_axes(c, "axes", axes, &n));
}

BUILDER(slice)
{
    out[0] =
        mica_slice(s, in[0], golden_ints(c, "start", NULL), golden_ints(c, "stop", NULL), golden_ints(c, "step", NULL));
}

BUILDER(slice_axis)
{
    out[0] = mica_slice_axis(s, in[0], attr_axis(c), golden_int(c, "start", 0), golden_int(c, "stop", 0),
                             golden_int(c, "step", 1));
}

/* ------------------------------------------------------ one more argument - */

BUILDER(layer_norm) { out[0] = mica_layer_norm(s, in[0], in[1], in[2], golden_float(c, "eps", NAN)); }
BUILDER(rms_norm) { out[0] = mica_rms_norm(s, in[0], in[1], golden_float(c, "eps", NAN)); }
BUILDER(argmax) { out[0] = mica_argmax(s, in[0], attr_axis(c), attr_keep(c)); }
BUILDER(argmin) { out[0] = mica_argmin(s, in[0], attr_axis(c), attr_keep(c)); }
BUILDER(repeat) { out[0] = mica_repeat(s, in[0], golden_int(c, "count", -1), attr_axis(c)); }
BUILDER(roll) { out[0] = mica_roll(s, in[0], golden_int(c, "shift", 0), attr_axis(c)); }
BUILDER(tile) { out[0] = mica_tile(s, in[0], golden_ints(c, "reps", NULL)); }
BUILDER(take) { out[0] = mica_take(s, in[0], in[1], attr_axis(c)); }
BUILDER(take_along_axis) { out[0] = mica_take_along_axis(s, in[0], in[1], attr_axis(c)); }
BUILDER(one_hot) { out[0] = mica_one_hot(s, in[0], golden_int(c, "depth", -1), attr_dtype(c)); }
BUILDER(sort) { out[0] = mica_sort(s, in[0], attr_axis(c), golden_int(c, "descending", 0) != 0); }
BUILDER(argsort) { out[0] = mica_argsort(s, in[0], attr_axis(c), golden_int(c, "descending", 0) != 0); }
BUILDER(concat) { out[0] = mica_concat(s, in, c->in.n, attr_axis(c)); }
BUILDER(stack) { out[0] = mica_stack(s, in, c->in.n, attr_axis(c)); }

BUILDER(pad)
{
    out[0] = mica_pad(s, in[0], golden_ints(c, "low", NULL), golden_ints(c, "high", NULL), golden_float(c, "value", 0));
}

#define DEFINE_SPREAD(op)                                                                   \
    BUILDER(op)                                                                             \
    {                                                                                       \
        int list[GOLDEN_MAX_VALUES], n = 0;                                                 \
        const int *axes = attr_axes(c, "axes", list, &n);                                   \
        out[0] = mica_##op(s, in[0], axes, n, (int)golden_int(c, "ddof", 0), attr_keep(c)); \
    }
DEFINE_SPREAD(var)
DEFINE_SPREAD(std)

BUILDER(norm)
{
    int list[GOLDEN_MAX_VALUES], n = 0;
    const int *axes = attr_axes(c, "axes", list, &n);
    out[0] = mica_norm(s, in[0], golden_float(c, "order", NAN), axes, n, attr_keep(c));
}

/* After a failure out[] is NULL and the scope keeps the error: no check here. */
BUILDER(split)
{
    int n = 0;
    const int64_t *sizes = golden_ints(c, "sizes", &n);
    (void)mica_split(s, in[0], attr_axis(c), sizes, (size_t)n, out);
}

BUILDER(topk) { (void)mica_topk(s, in[0], golden_int(c, "k", -1), attr_axis(c), &out[0], &out[1]); }
BUILDER(topk_values) { (void)mica_topk(s, in[0], golden_int(c, "k", -1), attr_axis(c), &out[0], NULL); }

/* -------------------------------------------------------- neural networks - */

BUILDER(matmul)
{
    mica_array *a = golden_int(c, "ta", 0) ? mica_transpose(s, in[0]) : in[0];
    mica_array *b = golden_int(c, "tb", 0) ? mica_transpose(s, in[1]) : in[1];
    out[0] = mica_matmul(s, a, b);
}

static void attr_pair(const golden_case *c, const char *key, int64_t pair[2])
{
    int n = 0;
    const int64_t *values = golden_ints(c, key, &n);
    for (int i = 0; i < n && i < 2; i++) pair[i] = values[i];
}

/* NULL, as a caller may give, when the case has no options. */
static const mica_conv_options *conv_options(const golden_case *c, mica_conv_options *o)
{
    mica_conv_options_init(o);
    attr_pair(c, "stride", o->stride);
    attr_pair(c, "padding", o->padding);
    attr_pair(c, "dilation", o->dilation);
    attr_pair(c, "output_padding", o->output_padding);
    o->groups = golden_int(c, "groups", o->groups);
    return c->n_attrs ? o : NULL;
}

#define DEFINE_CONV(op)                                           \
    BUILDER(op)                                                   \
    {                                                             \
        mica_conv_options o;                                      \
        out[0] = mica_##op(s, in[0], in[1], conv_options(c, &o)); \
    }
GOLDEN_CONV(DEFINE_CONV)

static const mica_pool_options *pool_options(const golden_case *c, mica_pool_options *o)
{
    mica_pool_options_init(o);
    attr_pair(c, "kernel", o->kernel);
    attr_pair(c, "stride", o->stride);
    attr_pair(c, "padding", o->padding);
    o->exclude_padding = golden_int(c, "exclude", 0) != 0;
    return o;
}

#define DEFINE_POOL(op)                                    \
    BUILDER(op)                                            \
    {                                                      \
        mica_pool_options o;                               \
        out[0] = mica_##op(s, in[0], pool_options(c, &o)); \
    }
GOLDEN_POOL(DEFINE_POOL)

BUILDER(rope)
{
    mica_rope_options o;
    mica_rope_options_init(&o);
    o.dims = golden_int(c, "dims", o.dims);
    o.base = golden_float(c, "base", o.base);
    o.scale = golden_float(c, "scale", o.scale);
    o.interleaved = golden_int(c, "interleaved", 0) != 0;
    out[0] = mica_rope(s, in[0], in[1], c->n_attrs ? &o : NULL);
}

BUILDER(synapses)
{
    (void)c;
    out[0] = mica_synapses(s, in[0], in[1], in[2], in[3], in[4], in[5], in[6]);
}

BUILDER(attention)
{
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.scale = golden_float(c, "scale", o.scale);
    o.causal = golden_int(c, "causal", 0) != 0;
    out[0] = mica_attention(s, in[0], in[1], in[2], in[3], c->n_attrs ? &o : NULL);
}

BUILDER(update)
{
    int n = 0;
    const int64_t *shape = golden_ints(c, "shape", &n);
    out[0] = mica_update(s, mica_state(s, attr_dtype(c), n, shape), in[0], in[1], attr_axis(c));
}

BUILDER(attention_cached)
{
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = golden_int(c, "causal", 0) != 0;
    out[0] = mica_attention_cached(s, in[0], in[1], in[2], in[3], &o);
}

BUILDER(rows_to_i8)
{
    (void)c;
    (void)mica_rows_to_i8(s, in[0], &out[0], &out[1]); /* the scope keeps the error */
}

static mica_quant attr_quant(const golden_case *c, mica_array *const *in)
{
    static const char *const formats[] = {"HF_TERNARY", "TQ2_0", "Q8_0", "AFFINE"};
    return (mica_quant){.struct_size = sizeof(mica_quant),
                        .format = formats[golden_int(c, "format", 0)],
                        .rows = golden_int(c, "rows", 0),
                        .cols = golden_int(c, "cols", 0),
                        .data = in[0],
                        .scales = in[1],
                        .biases = in[2],
                        .scale_divides = golden_int(c, "divides", 0) != 0,
                        .bits = (int)golden_int(c, "bits", 0),
                        .group = (int)golden_int(c, "group", 0)};
}

BUILDER(quant_matmul)
{
    const mica_quant w = attr_quant(c, in + 1);
    out[0] = mica_quant_matmul(s, in[0], &w, (mica_act)golden_int(c, "act", 0));
}

BUILDER(quant_rows)
{
    const mica_quant w = attr_quant(c, in + 1);
    out[0] = mica_quant_rows(s, &w, in[0]);
}

/* -------------------------------------------------------- small programs -- */

BUILDER(mul_self)
{
    (void)c;
    out[0] = mica_mul(s, in[0], in[0]);
}

BUILDER(stop_gradient)
{
    (void)c;
    out[0] = mica_mul(s, in[0], mica_stop_gradient(s, in[0]));
}

BUILDER(checkpoint)
{
    (void)c;
    out[0] = mica_checkpoint(s, mica_gelu(s, mica_mul(s, in[0], in[1])), in, 2);
}

static mica_status three_times(mica_scope *s, mica_array *cotangent, mica_array *const *inputs, size_t n,
                               mica_array **grads, void *user)
{
    (void)inputs, (void)n, (void)user;
    grads[0] = mica_mul(s, cotangent, mica_scalar(s, 3.0));
    return grads[0] ? MICA_OK : MICA_ERR_INTERNAL;
}

BUILDER(custom_grad)
{
    (void)c;
    out[0] = mica_custom_grad(s, mica_floor(s, in[0]), in, 1, three_times, NULL, NULL);
}

/* h = tanh(h w + x), y = h x; w comes from outside the step. */
static mica_status recurrence(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                              mica_array **y_out, void *user)
{
    carry_out[0] = mica_tanh(s, mica_add(s, mica_mul(s, carry[0], user), x[0]));
    y_out[0] = mica_mul(s, carry_out[0], x[0]);
    return y_out[0] ? MICA_OK : MICA_ERR_INTERNAL;
}

BUILDER(scan)
{
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = o.n_y = 1;
    o.reverse = golden_int(c, "reverse", 0) != 0;
    (void)mica_scan(s, recurrence, in[1], &o, &in[0], &in[2], &out[0], &out[1]);
}

/* Longer programs, for what happens between ops: the same as in golden_grad.py. */

BUILDER(program_mlp)
{
    (void)c;
    mica_array *h = mica_gelu(s, mica_add(s, mica_matmul(s, in[0], in[1]), in[2]));
    mica_array *logits = mica_add(s, mica_matmul(s, h, in[3]), in[4]);
    out[0] = mica_mean(s, mica_cross_entropy(s, logits, in[5]), NULL, 0, false);
}

/* (time, heads * 2) to (1, heads, time, 2). */
static mica_array *split_heads(mica_scope *s, mica_array *x, int64_t heads)
{
    return mica_permute(s, mica_reshape(s, x, 4, (int64_t[]){1, -1, heads, 2}), (int[]){0, 2, 1, 3});
}

BUILDER(program_block)
{
    (void)c;
    mica_array *x = in[0], *h = mica_rms_norm(s, x, in[5], 1e-6);
    mica_array *q = mica_rope(s, split_heads(s, mica_matmul(s, h, in[1]), 4), NULL, NULL);
    mica_array *k = mica_rope(s, split_heads(s, mica_matmul(s, h, in[2]), 2), NULL, NULL);
    mica_array *v = split_heads(s, mica_matmul(s, h, in[3]), 2);
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = true;
    mica_array *a = mica_permute(s, mica_attention(s, q, k, v, NULL, &o), (int[]){0, 2, 1, 3});
    x = mica_add(s, x, mica_matmul(s, mica_reshape(s, a, 2, (int64_t[]){-1, 8}), in[4]));
    mica_array *u = mica_matmul(s, mica_layer_norm(s, x, NULL, NULL, 1e-5), in[6]), *part[2] = {NULL, NULL};
    (void)mica_split(s, u, 1, (int64_t[]){5, 5}, 2, part);
    out[0] = mica_add(s, x, mica_matmul(s, mica_mul(s, mica_silu(s, part[0]), part[1]), in[7]));
}

BUILDER(program_chain)
{
    (void)c;
    mica_array *x = in[0], *y = in[1];
    mica_array *z = mica_add(s, mica_mul(s, x, y), mica_sin(s, x));
    mica_array *top = mica_stop_gradient(s, mica_max(s, z, (int[]){1}, 1, true));
    mica_array *e = mica_exp(s, mica_sub(s, z, top));
    mica_array *p = mica_div(s, e, mica_sum(s, e, (int[]){1}, 1, true));
    mica_array *d = mica_sub(s, p, mica_mean(s, p, (int[]){0}, 1, true));
    mica_array *spread = mica_add(s, mica_mean(s, mica_mul(s, d, d), (int[]){0}, 1, true), mica_scalar(s, 0.25));
    mica_array *t = mica_tanh(s, mica_mul(s, d, mica_rsqrt(s, spread)));
    out[0] = mica_mul(s, t, mica_where(s, mica_greater(s, x, y), x, mica_neg(s, y)));
}

BUILDER(program_maze)
{
    (void)c;
    mica_array *a = mica_flip(s, mica_permute(s, in[0], (int[]){2, 0, 1}), 1);
    a = mica_slice(s, a, (int64_t[]){1, MICA_AUTO, MICA_AUTO}, (int64_t[]){MICA_AUTO, MICA_AUTO, MICA_AUTO},
                   (int64_t[]){1, 1, 2});
    mica_array *b = mica_transpose(s, mica_concat(s, (mica_array *[]){a, mica_flip(s, a, 2)}, 2, 1));
    mica_array *d = mica_pad(s, mica_reshape(s, b, 2, (int64_t[]){-1, 4}), (int64_t[]){0, 1}, (int64_t[]){2, 0}, 0.0);
    d = mica_broadcast_to(s, d, 3, (int64_t[]){2, 8, 5});
    d = mica_slice_axis(s, mica_roll(s, d, 1, 2), 1, MICA_AUTO, MICA_AUTO, 3);
    out[0] = mica_mul(s, d, mica_sum(s, in[0], NULL, 0, false));
}

#include "golden_layers.h" /* the same for mica_nn.h */

/* ----------------------------------------------------------------- table -- */

#define ENTRY(op) {#op, build_##op, #op, 0},

/* clang-format off */
static golden_op golden_ops[] = {
#define MICA_MAP1(NAME, name, ...) ENTRY(name)
#define MICA_MAP2(NAME, name, ...) ENTRY(name)
#include "graph/ops.def"
#define MICA_COMPOSED(name, ...) ENTRY(name)
#include "graph/composed.def"
    GOLDEN_UNARY(ENTRY) GOLDEN_BINARY(ENTRY) GOLDEN_TERNARY(ENTRY) GOLDEN_REDUCE(ENTRY) GOLDEN_AXIS(ENTRY)
    GOLDEN_CREATE(ENTRY) GOLDEN_CONV(ENTRY) GOLDEN_POOL(ENTRY)
    ENTRY(full) ENTRY(full_i64) ENTRY(arange) ENTRY(linspace) ENTRY(eye) ENTRY(tri) ENTRY(random_bits)
    ENTRY(random_uniform) ENTRY(random_normal) ENTRY(random_truncated_normal) ENTRY(random_bernoulli)
    ENTRY(random_randint) ENTRY(random_categorical) ENTRY(random_permutation) ENTRY(seed_split) ENTRY(cast)
    ENTRY(reshape) ENTRY(broadcast_to) ENTRY(permute) ENTRY(slice) ENTRY(slice_axis)
    ENTRY(layer_norm) ENTRY(rms_norm) ENTRY(argmax) ENTRY(argmin) ENTRY(repeat)
    ENTRY(roll) ENTRY(tile) ENTRY(take) ENTRY(take_along_axis) ENTRY(one_hot) ENTRY(sort) ENTRY(argsort)
    ENTRY(concat) ENTRY(stack) ENTRY(pad) ENTRY(var) ENTRY(std) ENTRY(norm) ENTRY(split) ENTRY(topk) ENTRY(matmul)
    ENTRY(rope) ENTRY(synapses) ENTRY(attention) ENTRY(attention_cached) ENTRY(rows_to_i8)
    ENTRY(quant_matmul) ENTRY(quant_rows)
    {"update", build_update, "state update", 0},
    GOLDEN_LAYERS(ENTRY)
    ENTRY(stop_gradient) ENTRY(checkpoint) ENTRY(custom_grad) ENTRY(scan)
    {"identity", build_identity, "from_data wrap", 0},
    {"promote_table", build_promote_table, "dtype_promote", 0},
    {"half_to_f32", build_half_to_f32, "f16_to_f32 bf16_to_f32", 0},
    {"half_from_f32", build_half_from_f32, "f16_from_f32 bf16_from_f32", 0},
    {"topk_values", build_topk_values, "topk", 0},
    {"mul_self", build_mul_self, "mul", 0},
    {"program_mlp", build_program_mlp, "", 0},
    {"program_block", build_program_block, "", 0},
    {"program_chain", build_program_chain, "", 0},
    {"program_maze", build_program_maze, "", 0},
};
/* clang-format on */

enum { GOLDEN_N_OPS = sizeof golden_ops / sizeof golden_ops[0] };

static golden_op *golden_op_named(const char *name)
{
    for (size_t i = 0; i < GOLDEN_N_OPS; i++)
        if (strcmp(golden_ops[i].name, name) == 0) return &golden_ops[i];
    return NULL;
}

#endif
