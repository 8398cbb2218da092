/* Invalid arguments to layers, joining, indexing and sorting.
 *
 * runs: check */
#include "errors.h"

/* -------------------------------------------------------- neural networks --- */

BAD_INPUT(nn)
{
    mica_array *three = count_up(g.s, 3, 1);
    BAD(mica_layer_norm(g.s, NULL, NULL, NULL, 1e-5), ARGUMENT, "layer_norm");
    BAD(mica_layer_norm(g.s, g.zero, NULL, NULL, 1e-5), MICA_ERR_SHAPE, "layer_norm");
    BAD(mica_layer_norm(g.s, g.m, g.x, NULL, 1e-5), MICA_ERR_SHAPE, "layer_norm");
    BAD(mica_layer_norm(g.s, g.m, NULL, g.x, 1e-5), MICA_ERR_SHAPE, "layer_norm");
    BAD(mica_layer_norm(g.s, g.foreign, NULL, NULL, 1e-5), ARGUMENT, "layer_norm");
    BAD_SCOPE(mica_layer_norm(NULL, g.m, NULL, NULL, 1e-5), "layer_norm");
    BAD(mica_rms_norm(g.s, NULL, NULL, 1e-5), ARGUMENT, "rms_norm");
    BAD(mica_rms_norm(g.s, g.m, g.x, 1e-5), MICA_ERR_SHAPE, "rms_norm");
    BAD_SCOPE(mica_rms_norm(NULL, g.m, NULL, 1e-5), "rms_norm");
    BAD(mica_matmul(g.s, NULL, g.m), ARGUMENT, "matmul");
    BAD(mica_matmul(g.s, g.m, NULL), ARGUMENT, "matmul");
    BAD(mica_matmul(g.s, g.m, g.m), MICA_ERR_SHAPE, "matmul");
    BAD(mica_matmul(g.s, g.zero, g.m), MICA_ERR_SHAPE, "matmul");
    BAD(mica_matmul(g.s, g.x, g.foreign), ARGUMENT, "matmul");
    BAD(mica_matmul(g.s, mica_zeros(g.s, MICA_F32, SHAPE(2, 4, 3)), mica_zeros(g.s, MICA_F32, SHAPE(3, 3, 4))),
        MICA_ERR_SHAPE, "matmul");
    const int64_t tall = (int64_t)1 << 40;
    BAD(mica_matmul(g.s, mica_broadcast_to(g.s, g.zero, SHAPE(tall, 1)),
                    mica_broadcast_to(g.s, g.zero, SHAPE(1, tall))),
        MICA_ERR_SIZE, "matmul");
    BAD_SCOPE(mica_matmul(NULL, g.x, g.x), "matmul");

    mica_conv_options o;
    mica_conv_options_init(NULL);
    mica_array *w = mica_ones(g.s, MICA_F32, SHAPE(4, 2, 3, 3)), *line = mica_ones(g.s, MICA_F32, SHAPE(1, 2, 9));
    mica_array *w1 = mica_ones(g.s, MICA_F32, SHAPE(4, 2, 3));
#define ONE(name, input, weight, wrong)                               \
    mica_conv_options_init(&o);                                       \
    BAD(mica_##name(g.s, NULL, weight, &o), ARGUMENT, #name);         \
    BAD(mica_##name(g.s, input, NULL, NULL), ARGUMENT, #name);        \
    BAD(mica_##name(g.s, input, wrong, NULL), MICA_ERR_SHAPE, #name); \
    BAD(mica_##name(g.s, g.x, weight, NULL), MICA_ERR_SHAPE, #name);  \
    o.struct_size = 0;                                                \
    BAD(mica_##name(g.s, input, weight, &o), ARGUMENT, #name);        \
    mica_conv_options_init(&o);                                       \
    o.stride[0] = 0;                                                  \
    BAD(mica_##name(g.s, input, weight, &o), ARGUMENT, #name);        \
    mica_conv_options_init(&o);                                       \
    o.groups = 0;                                                     \
    BAD(mica_##name(g.s, input, weight, &o), ARGUMENT, #name);        \
    o.groups = -7;                                                    \
    BAD(mica_##name(g.s, input, weight, &o), ARGUMENT, #name);        \
    mica_conv_options_init(&o);                                       \
    o.padding[0] = -1;                                                \
    BAD(mica_##name(g.s, input, weight, &o), ARGUMENT, #name);        \
    mica_conv_options_init(&o);                                       \
    o.dilation[0] = 0;                                                \
    BAD(mica_##name(g.s, input, weight, &o), ARGUMENT, #name);        \
    mica_conv_options_init(&o);                                       \
    o.padding[0] = INT64_MAX;                                         \
    EXPECT(!mica_##name(g.s, input, weight, &o));                     \
    mica_scope_clear_error(g.s);                                      \
    mica_conv_options_init(&o);                                       \
    o.dilation[0] = INT64_MAX;                                        \
    EXPECT(!mica_##name(g.s, input, weight, &o));                     \
    mica_scope_clear_error(g.s);                                      \
    BAD_SCOPE(mica_##name(NULL, input, weight, NULL), #name);
    ONE(conv2d, g.image, w, w1)
    ONE(conv1d, line, w1, w)
#undef ONE
    mica_array *t2 = mica_ones(g.s, MICA_F32, SHAPE(2, 4, 3, 3)), *t1 = mica_ones(g.s, MICA_F32, SHAPE(2, 4, 3));
    BAD(mica_conv_transpose1d(g.s, NULL, t1, NULL), ARGUMENT, "conv_transpose1d");
    BAD(mica_conv_transpose1d(g.s, line, NULL, NULL), ARGUMENT, "conv_transpose1d");
    BAD(mica_conv_transpose1d(g.s, line, w1, NULL), MICA_ERR_SHAPE, "conv_transpose1d");
    mica_conv_options_init(&o);
    o.output_padding[0] = -1;
    BAD(mica_conv_transpose1d(g.s, line, t1, &o), ARGUMENT, "conv_transpose1d");
    BAD_SCOPE(mica_conv_transpose1d(NULL, line, t1, NULL), "conv_transpose1d");
    BAD(mica_conv_transpose2d(g.s, NULL, t2, NULL), ARGUMENT, "conv_transpose2d");
    BAD(mica_conv_transpose2d(g.s, g.image, w, NULL), MICA_ERR_SHAPE, "conv_transpose2d");
    mica_conv_options_init(&o);
    o.stride[1] = INT64_MAX;
    EXPECT(!mica_conv_transpose2d(g.s, g.image, t2, &o));
    mica_scope_clear_error(g.s);
    BAD_SCOPE(mica_conv_transpose2d(NULL, g.image, t2, NULL), "conv_transpose2d");

    mica_pool_options p;
    mica_pool_options_init(NULL);
#define ONE(name, input)                                     \
    mica_pool_options_init(&p);                              \
    p.kernel[0] = p.kernel[1] = 2;                           \
    BAD(mica_##name(g.s, NULL, &p), ARGUMENT, #name);        \
    BAD(mica_##name(g.s, g.x, &p), MICA_ERR_SHAPE, #name);   \
    BAD_SCOPE(mica_##name(NULL, input, &p), #name);          \
    p.kernel[0] = 0;                                         \
    BAD(mica_##name(g.s, input, &p), ARGUMENT, #name);       \
    p.kernel[0] = 100;                                       \
    BAD(mica_##name(g.s, input, &p), MICA_ERR_SHAPE, #name); \
    p.kernel[0] = INT64_MAX;                                 \
    EXPECT(!mica_##name(g.s, input, &p));                    \
    mica_scope_clear_error(g.s);                             \
    p.kernel[0] = 2, p.stride[0] = -1;                       \
    BAD(mica_##name(g.s, input, &p), ARGUMENT, #name);       \
    p.stride[0] = 0, p.padding[0] = -1;                      \
    BAD(mica_##name(g.s, input, &p), ARGUMENT, #name);       \
    p.padding[0] = INT64_MAX;                                \
    EXPECT(!mica_##name(g.s, input, &p));                    \
    mica_scope_clear_error(g.s);                             \
    p.padding[0] = 0, p.struct_size = 3;                     \
    BAD(mica_##name(g.s, input, &p), ARGUMENT, #name);
    ONE(max_pool1d, line)
    ONE(max_pool2d, g.image)
    ONE(avg_pool1d, line)
    ONE(avg_pool2d, g.image)
#undef ONE

    mica_rope_options r;
    mica_rope_options_init(NULL);
    mica_rope_options_init(&r);
    mica_array *even = mica_ones(g.s, MICA_F32, SHAPE(5, 4));
    BAD(mica_rope(g.s, NULL, NULL, NULL), ARGUMENT, "rope");
    BAD(mica_rope(g.s, g.m, NULL, NULL), MICA_ERR_SHAPE, "rope");
    BAD(mica_rope(g.s, even, three, NULL), MICA_ERR_SHAPE, "rope");
    BAD(mica_rope(g.s, g.x, NULL, NULL), MICA_ERR_SHAPE, "rope");
    r.dims = 6;
    BAD(mica_rope(g.s, even, NULL, &r), MICA_ERR_SHAPE, "rope");
    r.dims = -2;
    BAD(mica_rope(g.s, even, NULL, &r), MICA_ERR_SHAPE, "rope");
    r.struct_size = 1;
    BAD(mica_rope(g.s, even, NULL, &r), ARGUMENT, "rope");
    BAD_SCOPE(mica_rope(NULL, even, NULL, NULL), "rope");

    mica_attention_options a;
    mica_attention_options_init(NULL);
    mica_attention_options_init(&a);
    mica_array *q = mica_ones(g.s, MICA_F32, SHAPE(1, 4, 3, 8)), *k = mica_ones(g.s, MICA_F32, SHAPE(1, 3, 5, 8));
    BAD(mica_attention(g.s, NULL, q, q, NULL, NULL), ARGUMENT, "attention");
    BAD(mica_attention(g.s, q, NULL, q, NULL, NULL), ARGUMENT, "attention");
    BAD(mica_attention(g.s, q, q, NULL, NULL, NULL), ARGUMENT, "attention");
    BAD(mica_attention(g.s, q, k, k, NULL, NULL), MICA_ERR_SHAPE, "attention");
    BAD(mica_attention(g.s, g.m, g.m, g.m, NULL, NULL), MICA_ERR_SHAPE, "attention");
    BAD(mica_attention(g.s, q, q, q, g.x, NULL), MICA_ERR_SHAPE, "attention");
    a.struct_size = 0;
    BAD(mica_attention(g.s, q, q, q, NULL, &a), ARGUMENT, "attention");
    BAD_SCOPE(mica_attention(NULL, q, q, q, NULL, NULL), "attention");
    BAD(mica_cross_entropy(g.s, NULL, g.i), ARGUMENT, "cross_entropy");
    BAD(mica_cross_entropy(g.s, g.m, NULL), ARGUMENT, "cross_entropy");
    BAD(mica_cross_entropy(g.s, g.m, g.i), MICA_ERR_SHAPE, "cross_entropy");
    BAD(mica_cross_entropy(g.s, g.m, mica_ones(g.s, MICA_F32, SHAPE(2))), MICA_ERR_DTYPE, "cross_entropy");
    BAD_SCOPE(mica_cross_entropy(NULL, g.m, g.i), "cross_entropy");
}

/* ---------------------------------------------------------------- state ----- */

/* Invalid lists are reported by the evaluation. */
static void bad_lists(const int32_t *source, const int32_t *first, const char *text)
{
    for (size_t b = 0; b < COUNT(backends); b++)
        for (int n = 1; n < 9; n += 7) { /* small and large batches use different kernels */
            mica_engine *e = open_engine(backends[b]);
            mica_scope *s = mica_scope_begin(e);
            mica_array *w = mica_ones(s, MICA_F32, SHAPE(3)), *v = count_up_2d(s, n, 2);
            mica_array *y = mica_synapses(s, v, mica_from_data(s, MICA_I32, SHAPE(3), source),
                                          mica_from_data(s, MICA_I32, SHAPE(3), first), w, w, w, w);
            BAD_STATUS(mica_eval(s, &y, 1), MICA_ERR_INDEX, text);
            mica_scope_end(s);
            mica_close(e);
        }
}

BAD_INPUT(synapses)
{
    mica_array *m = g.m, *x = mica_reshape(g.s, mica_slice_axis(g.s, g.x, 0, 0, 2, 1), SHAPE(1, 2));
    mica_array *p = g.x, *i = mica_full(g.s, MICA_I32, SHAPE(4), 0); /* four synapses, three columns */
    BAD_SCOPE(mica_synapses(NULL, x, NULL, NULL, m, m, m, m), "synapses");
    BAD(mica_synapses(g.s, NULL, NULL, NULL, m, m, m, m), ARGUMENT, "synapses");
    BAD(mica_synapses(g.s, x, NULL, NULL, NULL, m, m, m), ARGUMENT, "synapses");
    BAD(mica_synapses(g.s, x, NULL, NULL, m, m, m, NULL), ARGUMENT, "synapses");
    BAD(mica_synapses(g.s, x, i, NULL, p, p, p, p), ARGUMENT, "synapses");
    BAD(mica_synapses(g.s, x, NULL, i, p, p, p, p), ARGUMENT, "synapses");
    BAD(mica_synapses(g.s, x, NULL, NULL, m, x, m, m), MICA_ERR_SHAPE, "synapses");
    BAD(mica_synapses(g.s, x, NULL, NULL, g.x, g.x, g.x, g.x), MICA_ERR_SHAPE, "synapses");
    BAD(mica_synapses(g.s, g.zero, NULL, NULL, m, m, m, m), MICA_ERR_SHAPE, "synapses");
    BAD(mica_synapses(g.s, g.x, NULL, NULL, m, m, m, m), MICA_ERR_SHAPE, "synapses"); /* four sources, two rows */
    BAD(mica_synapses(g.s, x, p, i, p, p, p, p), MICA_ERR_DTYPE, "synapses: source is f32");
    BAD(mica_synapses(g.s, x, i, p, p, p, p, p), MICA_ERR_DTYPE, "synapses: first is f32");
    BAD(mica_synapses(g.s, x, i, i, m, m, m, m), MICA_ERR_SHAPE, "synapses: sigma has shape");
    BAD(mica_synapses(g.s, x, mica_full(g.s, MICA_I32, SHAPE(5), 0), i, p, p, p, p), MICA_ERR_SHAPE,
        "synapses: source has shape");
    BAD(mica_synapses(g.s, x, i, mica_full(g.s, MICA_I32, SHAPE(2, 2), 0), p, p, p, p), MICA_ERR_SHAPE,
        "synapses: first has");
    BAD(mica_synapses(g.s, x, i, mica_full(g.s, MICA_I32, SHAPE(0), 0), p, p, p, p), MICA_ERR_SHAPE,
        "synapses: first has");
    bad_lists((int32_t[]){0, 2, 0}, (int32_t[]){0, 1, 3}, "synapses: source 2 of 2");
    bad_lists((int32_t[]){0, -1, 0}, (int32_t[]){0, 1, 3}, "synapses: source -1 of 2");
    bad_lists((int32_t[]){0, 1, 0}, (int32_t[]){1, 1, 3}, "synapses: first[0] is 1");
    bad_lists((int32_t[]){0, 1, 0}, (int32_t[]){0, 4, 3}, "synapses: first[2] is 3");
    bad_lists((int32_t[]){0, 1, 0}, (int32_t[]){0, -1, 3}, "synapses: first[1] is -1");
    bad_lists((int32_t[]){0, 1, 0}, (int32_t[]){0, 1, 2}, "synapses: first[2] is 2; they ascend from 0 to 3");
}

BAD_INPUT(state)
{
    mica_array *state = mica_state(g.s, MICA_F32, SHAPE(2, 4)), *row = mica_ones(g.s, MICA_F32, SHAPE(2, 1));
    mica_array *at = mica_from_data(g.s, MICA_I64, 0, NULL, &(int64_t){0});
    BAD(mica_state(g.s, (mica_dtype)99, SHAPE(2)), MICA_ERR_DTYPE, "state");
    BAD(mica_state(g.s, MICA_F32, SHAPE(-1)), MICA_ERR_SHAPE, "state");
    BAD(mica_state(g.s, MICA_F32, 9, nine), MICA_ERR_SHAPE, "state");
    BAD(mica_state(g.s, MICA_F32, 1, NULL), ARGUMENT, "state");
    BAD(mica_state(g.s, MICA_F32, 2, huge), MICA_ERR_SIZE, "state");
    BAD_SCOPE(mica_state(NULL, MICA_F32, SHAPE(2)), "state");
    BAD(mica_update(g.s, NULL, row, at, 1), ARGUMENT, "update");
    BAD(mica_update(g.s, state, NULL, at, 1), ARGUMENT, "update");
    BAD(mica_update(g.s, state, row, NULL, 1), ARGUMENT, "update");
    BAD(mica_update(g.s, state, row, at, 2), ARGUMENT, "update");
    BAD(mica_update(g.s, state, row, at, 0), MICA_ERR_SHAPE, "update");
    BAD(mica_update(g.s, state, g.x, at, 0), MICA_ERR_SHAPE, "update");
    BAD(mica_update(g.s, state, mica_ones(g.s, MICA_F32, SHAPE(2, 5)), at, 1), MICA_ERR_SHAPE, "update");
    BAD(mica_update(g.s, state, row, g.zero, 1), MICA_ERR_DTYPE, "update");
    BAD(mica_update(g.s, state, row, g.i, 1), MICA_ERR_SHAPE, "update");
    BAD(mica_update(g.s, g.foreign, g.foreign, at, 0), ARGUMENT, "update");
    BAD(mica_update(g.s, g.x, g.x, at, 0), MICA_ERR_STATE, "update");
    BAD(mica_update(g.s, row, row, at, 0), MICA_ERR_STATE, "update");
    BAD(mica_update(g.s, mica_transpose(g.s, state), mica_transpose(g.s, row), at, 0), MICA_ERR_STATE, "update");
    BAD_SCOPE(mica_update(NULL, state, row, at, 1), "update");

    mica_array *q = mica_ones(g.s, MICA_F32, SHAPE(1, 2, 1, 16)), *k = mica_state(g.s, MICA_F16, SHAPE(1, 1, 8, 16));
    mica_array *wide = mica_ones(g.s, MICA_F64, SHAPE(1, 1, 8, 16));
    const char *op = "attention_cached";
    BAD(mica_attention_cached(g.s, NULL, k, k, at, NULL), ARGUMENT, op);
    BAD(mica_attention_cached(g.s, q, NULL, k, at, NULL), ARGUMENT, op);
    BAD(mica_attention_cached(g.s, q, k, NULL, at, NULL), ARGUMENT, op);
    BAD(mica_attention_cached(g.s, q, k, k, NULL, NULL), ARGUMENT, op);
    BAD(mica_attention_cached(g.s, q, wide, k, at, NULL), MICA_ERR_DTYPE, op);
    BAD(mica_attention_cached(g.s, q, k, wide, at, NULL), MICA_ERR_DTYPE, op);
    BAD(mica_attention_cached(g.s, q, k, k, g.zero, NULL), MICA_ERR_DTYPE, op);
    BAD(mica_attention_cached(g.s, q, k, k, g.i, NULL), MICA_ERR_SHAPE, op);
    BAD(mica_attention_cached(g.s, g.m, k, k, at, NULL), MICA_ERR_SHAPE, op);
    BAD(mica_attention_cached(g.s, mica_ones(g.s, MICA_F32, SHAPE(1, 2, 1, 8)), k, k, at, NULL), MICA_ERR_SHAPE, op);
    mica_attention_options a;
    mica_attention_options_init(&a);
    a.scale = (double)NAN;
    BAD(mica_attention_cached(g.s, q, k, k, at, &a), ARGUMENT, op);
    a.scale = 0, a.k_scale = mica_ones(g.s, MICA_F32, SHAPE(1, 1, 8));
    BAD(mica_attention_cached(g.s, q, k, k, at, &a), ARGUMENT, op);
    a.v_scale = a.k_scale;
    BAD(mica_attention_cached(g.s, q, k, k, at, &a), MICA_ERR_DTYPE, op);
    mica_array *bytes = mica_state(g.s, MICA_I8, SHAPE(1, 1, 8, 16));
    EXPECT(mica_attention_cached(g.s, q, bytes, bytes, at, &a));
    BAD(mica_attention_cached(g.s, q, bytes, bytes, at, NULL), MICA_ERR_DTYPE, op);
    a.v_scale = mica_ones(g.s, MICA_F32, SHAPE(1, 1, 7));
    BAD(mica_attention_cached(g.s, q, bytes, bytes, at, &a), MICA_ERR_SHAPE, op);
    a.v_scale = mica_ones(g.s, MICA_F64, SHAPE(1, 1, 8));
    BAD(mica_attention_cached(g.s, q, bytes, bytes, at, &a), MICA_ERR_DTYPE, op);
    a.v_scale = g.foreign;
    BAD(mica_attention_cached(g.s, q, bytes, bytes, at, &a), ARGUMENT, op);
    mica_array *codes, *scales;
    BAD_STATUS(mica_rows_to_i8(g.s, NULL, &codes, &scales), ARGUMENT, "rows_to_i8");
    BAD_STATUS(mica_rows_to_i8(g.s, g.m, NULL, &scales), ARGUMENT, "rows_to_i8");
    BAD_STATUS(mica_rows_to_i8(g.s, g.m, &codes, NULL), ARGUMENT, "rows_to_i8");
    BAD_STATUS(mica_rows_to_i8(g.s, g.zero, &codes, &scales), MICA_ERR_SHAPE, "rows_to_i8");
    BAD_STATUS(mica_rows_to_i8(NULL, g.m, &codes, &scales), ARGUMENT, "rows_to_i8");
    EXPECT(!codes && !scales);
    a.struct_size = 0;
    BAD(mica_attention_cached(g.s, q, k, k, at, &a), ARGUMENT, op);
    BAD_SCOPE(mica_attention_cached(NULL, q, k, k, at, NULL), op);
}

/* -------------------------------------------------------- block formats ----- */

BAD_INPUT(quant)
{
    static const uint8_t bytes[66] = {0};
    mica_array *x = mica_ones(g.s, MICA_F32, SHAPE(2, 256)), *id = mica_ones(g.s, MICA_I32, SHAPE(1));
    const mica_quant good = {.struct_size = sizeof good,
                             .format = "TQ2_0",
                             .rows = 1,
                             .cols = 256,
                             .data = mica_from_data(g.s, MICA_U8, SHAPE(66), bytes)};
    mica_quant w = good;
    BAD(mica_quant_matmul(g.s, NULL, &w, MICA_ACT_TOKEN), ARGUMENT, "quant_matmul");
    BAD(mica_quant_matmul(g.s, x, NULL, MICA_ACT_TOKEN), ARGUMENT, "quant_matmul");
    BAD(mica_quant_matmul(g.s, x, &w, (mica_act)9), ARGUMENT, "quant_matmul");
    BAD(mica_quant_matmul(g.s, mica_ones(g.s, MICA_F32, SHAPE(300)), &w, MICA_ACT_NONE), MICA_ERR_SHAPE,
        "quant_matmul");
    BAD_SCOPE(mica_quant_matmul(NULL, x, &w, MICA_ACT_NONE), "quant_matmul");
    BAD(mica_quant_rows(g.s, &w, NULL), ARGUMENT, "quant_rows");
    BAD(mica_quant_rows(g.s, NULL, id), ARGUMENT, "quant_rows");
    BAD(mica_quant_rows(g.s, &w, x), MICA_ERR_DTYPE, "quant_rows");
    BAD_SCOPE(mica_quant_rows(NULL, &w, id), "quant_rows");
    w.struct_size = 0;
    BAD(mica_quant_matmul(g.s, x, &w, MICA_ACT_NONE), ARGUMENT, "quant_matmul");
    w = good, w.format = NULL;
    BAD(mica_quant_matmul(g.s, x, &w, MICA_ACT_NONE), ARGUMENT, "quant_matmul");
    w.format = "Q9_9";
    BAD(mica_quant_matmul(g.s, x, &w, MICA_ACT_NONE), ARGUMENT, "quant_matmul");
    w = good, w.data = NULL;
    BAD(mica_quant_matmul(g.s, x, &w, MICA_ACT_NONE), ARGUMENT, "quant_matmul");
    w.data = mica_ones(g.s, MICA_F32, SHAPE(66));
    BAD(mica_quant_matmul(g.s, x, &w, MICA_ACT_NONE), MICA_ERR_DTYPE, "quant_matmul");
    w = good, w.rows = 2;
    BAD(mica_quant_rows(g.s, &w, id), MICA_ERR_SHAPE, "quant_rows");
    w = good, w.rows = -1;
    BAD(mica_quant_rows(g.s, &w, id), ARGUMENT, "quant_rows");
    w = good, w.format = "HF_TERNARY";
    BAD(mica_quant_matmul(g.s, x, &w, MICA_ACT_NONE), ARGUMENT, "quant_matmul");

    float values[256] = {0};
    uint8_t packed[66];
    EXPECT(mica_quant_nbytes(NULL, 1, 256) == 0 && mica_quant_nbytes("Q9_9", 1, 256) == 0);
    EXPECT(mica_quant_nbytes("TQ2_0", 1, 100) == 0 && strstr(mica_last_error(), "100"));
    EXPECT(mica_quant_nbytes("TQ2_0", -1, 256) == 0 && mica_quant_nbytes("TQ2_0", 1, 256) == 66);
    BAD_STATUS(mica_quant_pack("Q9_9", 1, 256, values, packed, 66), ARGUMENT, "quant_pack");
    BAD_STATUS(mica_quant_pack("TQ2_0", 1, 256, values, packed, 65), ARGUMENT, "quant_pack");
    BAD_STATUS(mica_quant_pack("TQ2_0", 1, 256, NULL, packed, 66), ARGUMENT, "quant_pack");
    BAD_STATUS(mica_quant_pack("TQ2_0", 1, 256, values, NULL, 66), ARGUMENT, "quant_pack");
    BAD_STATUS(mica_quant_unpack("Q9_9", 1, 256, packed, 66, values), ARGUMENT, "quant_unpack");
    BAD_STATUS(mica_quant_unpack("TQ2_0", 1, 256, packed, 65, values), ARGUMENT, "quant_unpack");
    BAD_STATUS(mica_quant_unpack("TQ2_0", 1, 256, NULL, 66, values), ARGUMENT, "quant_unpack");
    BAD_STATUS(mica_quant_unpack("TQ2_0", 1, 256, packed, 66, NULL), ARGUMENT, "quant_unpack");
    values[7] = NAN;
    BAD_STATUS(mica_quant_pack("TQ2_0", 1, 256, values, packed, 66), ARGUMENT, "quantize");
}

/* ---------------------------------------------------- joining, indexing ----- */

BAD_INPUT(index)
{
    mica_array *list[] = {g.x, NULL}, *mixed[] = {g.x, g.m}, *same[] = {g.x, g.x}, *out[2] = {g.x, g.x};
#define ONE(name)                                              \
    BAD(mica_##name(g.s, NULL, 2, 0), ARGUMENT, #name);        \
    BAD(mica_##name(g.s, same, 0, 0), ARGUMENT, #name);        \
    BAD(mica_##name(g.s, list, 2, 0), ARGUMENT, #name);        \
    BAD(mica_##name(g.s, mixed, 2, 0), MICA_ERR_SHAPE, #name); \
    BAD(mica_##name(g.s, same, 2, 5), ARGUMENT, #name);        \
    BAD_SCOPE(mica_##name(NULL, same, 2, 0), #name);
    ONE(concat)
    ONE(stack)
#undef ONE
    const int64_t wide = INT64_MAX / 4;
    mica_array *wides[] = {mica_broadcast_to(g.s, g.zero, SHAPE(wide / 2)),
                           mica_broadcast_to(g.s, g.zero, SHAPE(wide / 2)),
                           mica_broadcast_to(g.s, g.zero, SHAPE(wide / 2))};
    BAD(mica_concat(g.s, wides, 3, 0), MICA_ERR_SIZE, "concat");
    BAD_STATUS(mica_split(g.s, NULL, 0, (int64_t[]){2, 2}, 2, out), ARGUMENT, "split");
    EXPECT(!out[0] && !out[1]);
    BAD_STATUS(mica_split(g.s, g.x, 0, NULL, 2, out), ARGUMENT, "split");
    BAD_STATUS(mica_split(g.s, g.x, 0, (int64_t[]){2, 2}, 2, NULL), ARGUMENT, "split");
    BAD_STATUS(mica_split(g.s, g.x, 0, (int64_t[]){2, 3}, 2, out), MICA_ERR_SHAPE, "split");
    BAD_STATUS(mica_split(g.s, g.x, 0, (int64_t[]){5, -1}, 2, out), MICA_ERR_SHAPE, "split");
    BAD_STATUS(mica_split(g.s, g.x, 0, (int64_t[]){INT64_MAX, INT64_MAX}, 2, out), MICA_ERR_SHAPE, "split");
    BAD_STATUS(mica_split(g.s, g.x, 3, (int64_t[]){2, 2}, 2, out), ARGUMENT, "split");
    BAD_STATUS(mica_split(NULL, g.x, 0, (int64_t[]){2, 2}, 2, out), ARGUMENT, "split");
    BAD(mica_pad(g.s, NULL, (int64_t[]){1}, (int64_t[]){1}, 0), ARGUMENT, "pad");
    BAD(mica_pad(g.s, g.x, NULL, (int64_t[]){1}, 0), ARGUMENT, "pad");
    BAD(mica_pad(g.s, g.x, (int64_t[]){1}, NULL, 0), ARGUMENT, "pad");
    BAD(mica_pad(g.s, g.x, (int64_t[]){-9}, (int64_t[]){1}, 0), ARGUMENT, "pad");
    EXPECT(!mica_pad(g.s, g.x, (int64_t[]){INT64_MAX}, (int64_t[]){INT64_MAX}, 0));
    mica_scope_clear_error(g.s);
    BAD_SCOPE(mica_pad(NULL, g.x, (int64_t[]){1}, (int64_t[]){1}, 0), "pad");
    BAD(mica_tile(g.s, NULL, (int64_t[]){2}), ARGUMENT, "tile");
    BAD(mica_tile(g.s, g.x, NULL), ARGUMENT, "tile");
    BAD(mica_tile(g.s, g.x, (int64_t[]){-2}), ARGUMENT, "tile");
    BAD(mica_tile(g.s, g.x, (int64_t[]){INT64_MAX}), MICA_ERR_SIZE, "tile");
    BAD_SCOPE(mica_tile(NULL, g.x, (int64_t[]){2}), "tile");
    BAD(mica_repeat(g.s, NULL, 2, 0), ARGUMENT, "repeat");
    BAD(mica_repeat(g.s, g.x, -2, 0), ARGUMENT, "repeat");
    BAD(mica_repeat(g.s, g.x, INT64_MAX, 0), MICA_ERR_SIZE, "repeat");
    BAD(mica_repeat(g.s, g.x, 2, 1), ARGUMENT, "repeat");
    BAD_SCOPE(mica_repeat(NULL, g.x, 2, 0), "repeat");
    BAD(mica_roll(g.s, NULL, 1, 0), ARGUMENT, "roll");
    BAD(mica_roll(g.s, g.x, 1, 1), ARGUMENT, "roll");
    BAD_SCOPE(mica_roll(NULL, g.x, 1, 0), "roll");
    EXPECT(mica_roll(g.s, g.x, INT64_MIN, 0) && mica_roll(g.s, g.x, INT64_MAX, 0));

    BAD(mica_take(g.s, NULL, g.i, 0), ARGUMENT, "take");
    BAD(mica_take(g.s, g.x, NULL, 0), ARGUMENT, "take");
    BAD(mica_take(g.s, g.x, g.x, 0), MICA_ERR_DTYPE, "take");
    BAD(mica_take(g.s, g.x, g.i, 1), ARGUMENT, "take");
    BAD_SCOPE(mica_take(NULL, g.x, g.i, 0), "take");
    BAD(mica_take_along_axis(g.s, NULL, g.i, 0), ARGUMENT, "take_along_axis");
    BAD(mica_take_along_axis(g.s, g.x, NULL, 0), ARGUMENT, "take_along_axis");
    BAD(mica_take_along_axis(g.s, g.m, g.i, 0), MICA_ERR_SHAPE, "take_along_axis");
    BAD(mica_take_along_axis(g.s, g.x, g.x, 0), MICA_ERR_DTYPE, "take_along_axis");
    BAD_SCOPE(mica_take_along_axis(NULL, g.x, g.i, 0), "take_along_axis");
    BAD(mica_gather(g.s, NULL, g.i), ARGUMENT, "gather");
    BAD(mica_gather(g.s, g.m, NULL), ARGUMENT, "gather");
    BAD(mica_gather(g.s, g.m, g.i), MICA_ERR_SHAPE, "gather");
    BAD(mica_gather(g.s, g.m, mica_reshape(g.s, g.x, SHAPE(4, 1))), MICA_ERR_DTYPE, "gather");
    BAD_SCOPE(mica_gather(NULL, g.m, g.i), "gather");
    mica_array *at = mica_reshape(g.s, g.i, SHAPE(3, 1)), *upd = count_up(g.s, 3, 0);
#define ONE(name)                                                                                \
    BAD(mica_##name(g.s, NULL, at, upd), ARGUMENT, #name);                                       \
    BAD(mica_##name(g.s, g.x, NULL, upd), ARGUMENT, #name);                                      \
    BAD(mica_##name(g.s, g.x, at, NULL), ARGUMENT, #name);                                       \
    BAD(mica_##name(g.s, g.x, at, g.x), MICA_ERR_SHAPE, #name);                                  \
    BAD(mica_##name(g.s, g.x, mica_reshape(g.s, upd, SHAPE(3, 1)), upd), MICA_ERR_DTYPE, #name); \
    BAD_SCOPE(mica_##name(NULL, g.x, at, upd), #name);
    ONE(scatter)
    ONE(scatter_add)
#undef ONE
    BAD(mica_embedding(g.s, NULL, g.i), ARGUMENT, "embedding");
    BAD(mica_embedding(g.s, g.m, NULL), ARGUMENT, "embedding");
    BAD(mica_embedding(g.s, g.m, g.x), MICA_ERR_DTYPE, "embedding");
    BAD(mica_embedding(g.s, g.zero, g.i), MICA_ERR_SHAPE, "embedding");
    BAD_SCOPE(mica_embedding(NULL, g.m, g.i), "embedding");
    BAD(mica_one_hot(g.s, NULL, 3, MICA_F32), ARGUMENT, "one_hot");
    BAD(mica_one_hot(g.s, g.i, -3, MICA_F32), MICA_ERR_SHAPE, "one_hot");
    BAD(mica_one_hot(g.s, g.x, 3, MICA_F32), MICA_ERR_DTYPE, "one_hot");
    BAD(mica_one_hot(g.s, g.i, 3, (mica_dtype)99), MICA_ERR_DTYPE, "one_hot");
    BAD(mica_one_hot(g.s, g.i, INT64_MAX, MICA_F32), MICA_ERR_SIZE, "one_hot");
    BAD_SCOPE(mica_one_hot(NULL, g.i, 3, MICA_F32), "one_hot");
    BAD_STATUS(mica_topk(g.s, NULL, 1, 0, &out[0], &out[1]), ARGUMENT, "topk");
    BAD_STATUS(mica_topk(g.s, g.x, 5, 0, &out[0], &out[1]), ARGUMENT, "topk");
    BAD_STATUS(mica_topk(g.s, g.x, -1, 0, &out[0], &out[1]), ARGUMENT, "topk");
    BAD_STATUS(mica_topk(g.s, g.x, 1, 2, &out[0], &out[1]), ARGUMENT, "topk");
    BAD_STATUS(mica_topk(NULL, g.x, 1, 0, &out[0], &out[1]), ARGUMENT, "topk");
    EXPECT(!out[0] && !out[1]);
    EXPECT_OK(mica_topk(g.s, g.x, 1, 0, NULL, NULL));
}
