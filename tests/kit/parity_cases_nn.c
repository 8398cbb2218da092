/* Parity cases of matmul, convolution, attention and rope. */
#include "parity_cases.h"

#define NUMBERS PARITY_OPERAND(-2, 2, 0, 0, PARITY_PLAIN)
#define NOT_FINITE PARITY_OPERAND(-2, 2, 0, 0, PARITY_NOT_FINITE)

/* --------------------------------------------------------------- matmul --- */

static const parity_shape matmul_shapes[][2] = {
    {{2, {1, 1}}, {2, {1, 1}}},       {{2, {2, 3}}, {2, {3, 5}}},
    {{2, {1, 17}}, {2, {17, 33}}},    {{2, {33, 5}}, {2, {5, 1}}},
    {{2, {17, 65}}, {2, {65, 33}}},   {{2, {65, 130}}, {2, {130, 17}}},
    {{3, {3, 5, 7}}, {3, {3, 7, 9}}}, {{4, {2, 3, 4, 5}}, {4, {2, 3, 5, 17}}},
    {{2, {0, 5}}, {2, {5, 3}}},       {{2, {5, 0}}, {2, {0, 3}}},
    {{2, {5, 3}}, {2, {3, 0}}},       {{3, {0, 2, 3}}, {3, {0, 3, 2}}},
};

/* Larger than a tile of 96 rows, 128 columns and a depth of 256; also narrow matrices. */
static const parity_shape matmul_large[][2] = {
    {{2, {97, 260}}, {2, {260, 130}}},
    {{3, {2, 98, 33}}, {3, {2, 33, 129}}},
    {{2, {2, 300}}, {2, {300, 520}}},
    {{2, {520, 260}}, {2, {260, 3}}},
};

static mica_array *build_matmul(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    (void)call;
    return mica__build2(s, MICA__OP_MATMUL, x[0], x[1], NULL, 0);
}

/* -------------------------------------------------------- block formats --- */

/* x or ids, the codes with four rows per byte, the scale */
static const parity_shape quant_shapes[][3] = {
    {{2, {1, 1}}, {2, {1, 1}}, {1, {1}}},      {{2, {2, 17}}, {2, {3, 17}}, {1, {1}}},
    {{3, {2, 3, 64}}, {2, {5, 64}}, {0, {0}}}, {{2, {7, 300}}, {2, {9, 300}}, {1, {1}}},
    {{2, {0, 5}}, {2, {2, 5}}, {1, {1}}},      {{2, {3, 5}}, {2, {0, 5}}, {1, {1}}},
    {{1, {172}}, {2, {4, 172}}, {1, {1}}},
};
static const parity_shape quant_id_shapes[][3] = {
    {{1, {1}}, {2, {1, 1}}, {1, {1}}},
    {{2, {2, 17}}, {2, {3, 17}}, {1, {1}}},
    {{0, {0}}, {2, {5, 64}}, {0, {0}}},
    {{1, {0}}, {2, {2, 5}}, {1, {1}}},
};

static mica_quant quant_of(mica_array *const *x)
{
    const int64_t *shape = mica_array_shape(x[1]);
    return (mica_quant){.struct_size = sizeof(mica_quant),
                        .format = "HF_TERNARY",
                        .rows = shape[0] * 4,
                        .cols = shape[1],
                        .data = x[1],
                        .scales = x[2]};
}

static mica_array *build_quant_matmul(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    mica_quant w = quant_of(x);
    w.scale_divides = call->variant >= 3;
    return mica_quant_matmul(s, x[0], &w, (mica_act)(call->variant % 3));
}

static mica_array *build_quant_rows(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    (void)call;
    const mica_quant w = quant_of(x);
    return mica_quant_rows(s, &w, x[0]);
}

/* ----------------------------------------------------------------- conv --- */

static const parity_shape conv1_shapes[][2] = {
    {{3, {1, 1, 1}}, {3, {1, 1, 1}}},   {{3, {2, 4, 17}}, {3, {6, 4, 3}}}, {{3, {2, 4, 33}}, {3, {6, 2, 5}}},
    {{3, {1, 6, 9}}, {3, {6, 1, 2}}},   {{3, {0, 4, 9}}, {3, {2, 4, 3}}},  {{3, {1, 3, 130}}, {3, {5, 3, 7}}},
    {{3, {1, 2, 300}}, {3, {3, 2, 5}}},
};
static const parity_shape conv2_shapes[][2] = {
    {{4, {1, 1, 3, 3}}, {4, {1, 1, 2, 2}}},  {{4, {2, 4, 9, 17}}, {4, {6, 4, 3, 3}}},
    {{4, {1, 4, 5, 7}}, {4, {6, 2, 1, 3}}},  {{4, {1, 6, 8, 8}}, {4, {6, 1, 3, 2}}},
    {{4, {2, 3, 17, 5}}, {4, {0, 3, 3, 3}}},
};

static const mica__attr_conv conv_rows[] = {
    {0, 0, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}},  {0, 0, {1, 1}, {1, 2}, {1, 2}, {1, 1}, {1, 1}},
    {0, 0, {2, 3}, {2, 1}, {2, 1}, {1, 1}, {1, 1}},  {0, 0, {1, 1}, {3, 3}, {3, 3}, {2, 3}, {1, 1}},
    {0, 0, {1, 2}, {2, 2}, {3, 1}, {1, 1}, {2, 3}},  {0, 0, {1, 1}, {-1, 0}, {0, -1}, {1, 1}, {1, 1}},
    {0, 0, {2, 1}, {4, 0}, {-2, 5}, {2, 2}, {3, 1}},
};

static mica_array *build_conv(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    mica__attr_conv attr = conv_rows[call->variant];
    const int64_t per_group = mica_array_shape(x[1])[1];
    attr.spatial = mica_array_ndim(x[0]) - 2;
    attr.groups = mica_array_shape(x[0])[1] / per_group;
    return mica__build2(s, MICA__OP_CONV, x[0], x[1], &attr, sizeof attr);
}

/* ------------------------------------------------------ attention, rope --- */

/* q, k, v, mask */
static const parity_shape attention_shapes[][4] = {
    {{4, {1, 1, 1, 1}}, {4, {1, 1, 1, 1}}, {4, {1, 1, 1, 1}}, {4, {1, 1, 1, 1}}},
    {{4, {2, 4, 5, 8}}, {4, {2, 2, 7, 8}}, {4, {2, 2, 7, 3}}, {4, {2, 4, 5, 7}}},
    {{4, {1, 3, 17, 16}}, {4, {1, 3, 17, 16}}, {4, {1, 3, 17, 16}}, {4, {1, 3, 17, 17}}},
    {{4, {1, 2, 9, 5}}, {4, {1, 1, 3, 5}}, {4, {1, 1, 3, 65}}, {4, {1, 2, 9, 3}}},
    {{4, {1, 2, 3, 5}}, {4, {1, 1, 0, 5}}, {4, {1, 1, 0, 5}}, {4, {1, 2, 3, 0}}},
    {{4, {1, 2, 0, 5}}, {4, {1, 2, 4, 5}}, {4, {1, 2, 4, 5}}, {4, {1, 2, 0, 4}}},
    {{4, {1, 2, 50, 9}}, {4, {1, 1, 70, 9}}, {4, {1, 1, 70, 130}}, {4, {1, 2, 50, 70}}},
    {{4, {1, 1, 3, 4}}, {4, {1, 1, 130, 4}}, {4, {1, 1, 130, 4}}, {4, {1, 1, 3, 130}}},
};

static mica_array *build_attention(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const bool has_mask = call->variant & 2;
    const mica__attr_attention attr = {.scale = 0.4, .causal = call->variant & 1, .has_mask = has_mask};
    return mica__build(s, MICA__OP_ATTENTION, x, has_mask ? 4 : 3, &attr, sizeof attr);
}

/* q, k, v, length */
static const parity_shape cached_shapes[][4] = {
    {{4, {1, 1, 1, 1}}, {4, {1, 1, 9, 1}}, {4, {1, 1, 9, 1}}, {0, {0}}},
    {{4, {2, 4, 1, 16}}, {4, {2, 2, 17, 16}}, {4, {2, 2, 17, 32}}, {0, {0}}},
    {{4, {1, 5, 1, 48}}, {4, {1, 1, 33, 48}}, {4, {1, 1, 33, 16}}, {1, {1}}},
    {{4, {1, 3, 2, 16}}, {4, {1, 3, 12, 16}}, {4, {1, 3, 12, 16}}, {0, {0}}},
    {{4, {1, 4, 5, 8}}, {4, {1, 2, 70, 8}}, {4, {1, 2, 70, 3}}, {0, {0}}},
    {{4, {1, 2, 50, 9}}, {4, {1, 1, 70, 9}}, {4, {1, 1, 70, 130}}, {0, {0}}},
    {{4, {1, 2, 0, 5}}, {4, {1, 2, 9, 5}}, {4, {1, 2, 9, 5}}, {0, {0}}},
};

/* Variant: causal or not, and four dtypes of the cache. */
static mica_array *build_cached(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F16, MICA_BF16};
    const mica_dtype dtype = dtypes[call->variant / 2 % 3];
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.scale = 0.4;
    o.causal = call->variant & 1;
    if (call->variant >= 6) {
        mica_array *k = NULL, *v = NULL;
        if (mica_rows_to_i8(s, x[1], &k, &o.k_scale) != MICA_OK || mica_rows_to_i8(s, x[2], &v, &o.v_scale) != MICA_OK)
            return NULL;
        return mica_attention_cached(s, x[0], k, v, x[3], &o);
    }
    return mica_attention_cached(s, x[0], mica_cast(s, x[1], dtype), mica_cast(s, x[2], dtype), x[3], &o);
}

/* q, k, v, mask, the gradient of the result */
static const parity_shape attention_grad_shapes[][5] = {
    {{4, {1, 1, 1, 1}}, {4, {1, 1, 1, 1}}, {4, {1, 1, 1, 1}}, {4, {1, 1, 1, 1}}, {4, {1, 1, 1, 1}}},
    {{4, {2, 4, 5, 8}}, {4, {2, 2, 7, 8}}, {4, {2, 2, 7, 3}}, {4, {2, 4, 5, 7}}, {4, {2, 4, 5, 3}}},
    {{4, {1, 3, 17, 16}}, {4, {1, 3, 17, 16}}, {4, {1, 3, 17, 16}}, {4, {1, 3, 17, 17}}, {4, {1, 3, 17, 16}}},
    {{4, {1, 2, 9, 5}}, {4, {1, 1, 3, 5}}, {4, {1, 1, 3, 65}}, {4, {1, 2, 9, 3}}, {4, {1, 2, 9, 65}}},
    {{4, {1, 2, 3, 5}}, {4, {1, 1, 0, 5}}, {4, {1, 1, 0, 5}}, {4, {1, 2, 3, 0}}, {4, {1, 2, 3, 5}}},
    {{4, {1, 2, 0, 5}}, {4, {1, 2, 4, 5}}, {4, {1, 2, 4, 5}}, {4, {1, 2, 0, 4}}, {4, {1, 2, 0, 5}}},
    {{4, {1, 1, 130, 4}}, {4, {1, 1, 3, 4}}, {4, {1, 1, 3, 4}}, {4, {1, 1, 130, 3}}, {4, {1, 1, 130, 4}}},
};

static mica_array *build_attention_grad(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const bool has_mask = call->variant & 2;
    const mica__attr_attention attr = {.scale = 0.4, .causal = call->variant & 1, .has_mask = has_mask};
    mica_array *in[5] = {x[0], x[1], x[2], has_mask ? x[3] : x[4], x[4]};
    return mica__build(s, MICA__OP_ATTENTION_GRAD, in, has_mask ? 5 : 4, &attr, sizeof attr);
}

static const parity_shape rope_shapes[][2] = {
    {{1, {2}}, {0, {0}}},
    {{2, {5, 8}}, {1, {5}}},
    {{3, {2, 17, 6}}, {2, {2, 17}}},
    {{4, {1, 3, 9, 34}}, {3, {1, 3, 9}}},
    {{2, {0, 4}}, {1, {0}}},
};

static mica_array *build_rope(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const int v = call->variant, last = mica_array_ndim(x[0]) - 1;
    const int64_t n = mica_array_shape(x[0])[last];
    const int64_t dims = v & 4 ? n / 4 * 2 : n;
    const mica__attr_rope_table turns = {dims, 10000, v & 4 ? 0.25 : 1, v & 2 ? 1.5 : 1};
    const mica__attr_rope attr = {.dims = dims, .interleaved = v & 1, .inverse = v >> 1 & 1};
    mica_array *table = mica__build1(s, MICA__OP_ROPE_TABLE, x[1], &turns, sizeof turns);
    return mica__build2(s, MICA__OP_ROPE, x[0], table, &attr, sizeof attr);
}

/* positions, factors */
static const parity_shape table_shapes[][2] = {
    {{0, {0}}, {1, {4}}},    {{1, {5}}, {1, {33}}}, {{3, {2, 1, 17}}, {1, {3}}},
    {{2, {0, 4}}, {1, {2}}}, {{1, {3}}, {1, {0}}},
};

/* Variant 1: with factors. */
static mica_array *build_rope_table(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const mica__attr_rope_table turns = {2 * mica_array_shape(x[1])[0], 10000, 0.5, 1.25};
    return mica__build(s, MICA__OP_ROPE_TABLE, x, call->variant ? 2 : 1, &turns, sizeof turns);
}

/* x, sigma, mu, drive, and weight or the gradient of the result */
static const parity_shape synapse_shapes[][5] = {
    {{2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}},
    {{2, {5, 3}}, {2, {3, 17}}, {2, {3, 17}}, {2, {3, 17}}, {2, {3, 17}}},
    {{2, {9, 33}}, {2, {33, 32}}, {2, {33, 32}}, {2, {33, 32}}, {2, {33, 32}}},
    {{2, {0, 3}}, {2, {3, 4}}, {2, {3, 4}}, {2, {3, 4}}, {2, {3, 4}}},
    {{2, {4, 0}}, {2, {0, 4}}, {2, {0, 4}}, {2, {0, 4}}, {2, {0, 4}}},
    {{2, {4, 3}}, {2, {3, 0}}, {2, {3, 0}}, {2, {3, 0}}, {2, {3, 0}}},
};
static const parity_shape synapse_grad_shapes[][5] = {
    {{2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}, {3, {1, 2, 1}}},
    {{2, {5, 3}}, {2, {3, 17}}, {2, {3, 17}}, {2, {3, 17}}, {3, {5, 2, 17}}},
    {{2, {65, 33}}, {2, {33, 32}}, {2, {33, 32}}, {2, {33, 32}}, {3, {65, 2, 32}}},
    {{2, {0, 3}}, {2, {3, 4}}, {2, {3, 4}}, {2, {3, 4}}, {3, {0, 2, 4}}},
    {{2, {4, 0}}, {2, {0, 4}}, {2, {0, 4}}, {2, {0, 4}}, {3, {4, 2, 4}}},
    {{2, {4, 3}}, {2, {3, 0}}, {2, {3, 0}}, {2, {3, 0}}, {3, {4, 2, 0}}},
};

/* More sources than the list kernels transpose. */
static const parity_shape synapse_wide[][5] = {
    {{2, {6, 300}}, {2, {300, 1}}, {2, {300, 1}}, {2, {300, 1}}, {2, {300, 1}}},
};
static const parity_shape synapse_grad_wide[][5] = {
    {{2, {6, 300}}, {2, {300, 1}}, {2, {300, 1}}, {2, {300, 1}}, {3, {6, 2, 1}}},
};

/* A parameter of a block, flattened for lists. */
static mica_array *in_a_row(mica_scope *s, mica_array *x)
{
    return mica_reshape(s, x, 1, (int64_t[]){mica_array_size(x)});
}

/* For a block of (rows, columns): the same number of synapses with flattened parameters and
 * some source for each. Lists have different lengths; every third is empty. Not all synapses are used. */
static void synapse_lists(mica_scope *s, mica_array *const *x, mica_array **in)
{
    const int64_t cols = mica_array_shape(x[1])[1], n = mica_array_size(x[1]), sources = mica_array_shape(x[0])[1];
    int32_t first[64] = {0};
    for (int64_t c = 0; c < cols; c++)
        first[c + 1] = (int32_t)(c % 3 == 1 ? first[c] : n * (c + 1) * (c + 1) / (cols * cols));
    if (cols > 0) first[cols] = (int32_t)n;
    in[5] = mica_mod(s, mica_mul(s, mica_arange(s, MICA_I32, 0, (double)n, 1), mica_scalar(s, 7)),
                     mica_scalar(s, (double)(sources > 1 ? sources - 1 : 1)));
    in[6] = mica_from_data(s, MICA_I32, 1, (int64_t[]){cols + 1}, first);
}

/* Variant 1: lists. */
static mica_array *build_synapses(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    mica_array *in[7] = {x[0], x[1], x[2], x[3], x[4]};
    if (call->variant) synapse_lists(s, x, in);
    for (int i = 1; call->variant && i < 5; i++) in[i] = in_a_row(s, in[i]);
    return mica__build(s, MICA__OP_SYNAPSES, in, call->variant ? 7 : 5, NULL, 0);
}

static mica_array *build_synapses_grad(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    mica_array *in[8] = {x[0], x[1], x[2], x[3], x[2], x[4], NULL, x[4]};
    if (call->variant) synapse_lists(s, x, in);
    for (int i = 1; call->variant && i < 5; i++) in[i] = in_a_row(s, in[i]);
    return mica__build(s, MICA__OP_SYNAPSES_GRAD, in, call->variant ? 8 : 6, NULL, 0);
}

#define HIDDEN PARITY_OPERAND(-2, 2, 0, 0, PARITY_MINUS_INF)
#define MASK PARITY_OPERAND_OF(MICA_BOOL, 0, 0, 0, 0)
#define POSITIONS PARITY_OPERAND_OF(MICA_F32, 0, 100, 0, 0)
#define MATMUL(name, dtypes, in) PARITY_CASE(MATMUL, name, build_matmul, 1, 2, matmul_shapes, 130, dtypes, in, in)
#define CODES PARITY_OPERAND_OF(MICA_U8, 0, 0, 0, 255)
#define SCALE PARITY_OPERAND_OF(MICA_F32, 0.5, 1.5, 0, 0)
#define QUANT(name, x) PARITY_CASE(QMATMUL, name, build_quant_matmul, 6, 3, quant_shapes, 1, 0, x, CODES, SCALE)
#define CONV(name, rows, dtypes, x) \
    PARITY_CASE(CONV, name, build_conv, PARITY_COUNT(conv_rows), 2, rows, 36, dtypes, x, NUMBERS)
#define ATTENTION(name, in, mask) \
    PARITY_CASE(ATTENTION, name, build_attention, 4, 4, attention_shapes, 1, 0, in, in, in, mask)
#define CACHED(name, in)                                                                     \
    PARITY_CASE(ATTENTION_CACHED, name, build_cached, 8, 4, cached_shapes, 1, 0, in, in, in, \
                PARITY_OPERAND_OF(MICA_I64, 0, 0, 0, 9))
#define ATTENTION_GRAD(name, mask)                                                                               \
    PARITY_CASE(ATTENTION_GRAD, name, build_attention_grad, 4, 5, attention_grad_shapes, 1, 0, NUMBERS, NUMBERS, \
                NUMBERS, mask, NUMBERS)

const parity_case parity_cases_nn[] = {
    MATMUL("matmul", 0, NUMBERS),
    MATMUL("matmul, not finite", PARITY_FLOATS, NOT_FINITE),
    PARITY_CASE(MATMUL, "matmul, large", build_matmul, 1, 2, matmul_large, 300, PARITY_FLOATS, NUMBERS, NUMBERS),
    QUANT("quant_matmul", NUMBERS),
    QUANT("quant_matmul, not finite", NOT_FINITE),
    PARITY_CASE(QROWS, "quant_rows", build_quant_rows, 1, 3, quant_id_shapes, 1, 0,
                PARITY_OPERAND_OF(MICA_I64, 0, 0, -3, 3), CODES, SCALE),
    CONV("conv1d", conv1_shapes, 0, NUMBERS),
    CONV("conv2d", conv2_shapes, 0, NUMBERS),
    /* finite weights: whether padding times infinity is NaN is not defined */
    CONV("conv2d, not finite", conv2_shapes, PARITY_FLOATS, NOT_FINITE),
    ATTENTION("attention", NUMBERS, NUMBERS),
    ATTENTION("attention, bool mask", NUMBERS, MASK),
    ATTENTION("attention, hidden keys", NUMBERS, HIDDEN),
    ATTENTION("attention, not finite", NOT_FINITE, NOT_FINITE),
    CACHED("attention_cached", NUMBERS),
    CACHED("attention_cached, not finite", NOT_FINITE),
    ATTENTION_GRAD("attention_grad", NUMBERS),
    ATTENTION_GRAD("attention_grad, bool mask", MASK),
    ATTENTION_GRAD("attention_grad, hidden keys", HIDDEN),
    PARITY_CASE(SYNAPSES, "synapses", build_synapses, 2, 5, synapse_shapes, 33, 0, NUMBERS, NUMBERS, NUMBERS, NUMBERS,
                NUMBERS),
    PARITY_CASE(SYNAPSES, "synapses, not finite", build_synapses, 2, 5, synapse_shapes, 33, 0, NOT_FINITE, NUMBERS,
                NUMBERS, NUMBERS, NUMBERS),
    PARITY_CASE(SYNAPSES_GRAD, "synapses_grad", build_synapses_grad, 2, 5, synapse_grad_shapes, 65, 0, NUMBERS, NUMBERS,
                NUMBERS, NUMBERS, NUMBERS),
    PARITY_CASE(SYNAPSES, "synapses, many sources", build_synapses, 2, 5, synapse_wide, 300, 0, NUMBERS, NUMBERS,
                NUMBERS, NUMBERS, NUMBERS),
    PARITY_CASE(SYNAPSES_GRAD, "synapses_grad, many sources", build_synapses_grad, 2, 5, synapse_grad_wide, 300, 0,
                NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    PARITY_CASE(ROPE_TABLE, "rope_table", build_rope_table, 2, 2, table_shapes, 1, 0, NUMBERS,
                PARITY_OPERAND_OF(MICA_F32, 0.5, 4, 0, 0)),
    PARITY_CASE(ROPE, "rope", build_rope, 8, 2, rope_shapes, 1, 0, NUMBERS, POSITIONS),
    {0},
};
