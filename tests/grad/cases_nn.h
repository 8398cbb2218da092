/* Gradient cases of the neural-network families. */
#ifndef MICA_GRAD_CASES_NN_H
#define MICA_GRAD_CASES_NN_H

#include "grad/grad_check.h"

#define GRAD_NN(name, expression) \
    static mica_array *grad_##name(mica_scope *s, mica_array **x) { return expression; }

GRAD_NN(softmax, mica_softmax(s, x[0], -1))
GRAD_NN(softmax_0, mica_softmax(s, x[0], 0))
GRAD_NN(log_softmax, mica_log_softmax(s, x[0], -1))
GRAD_NN(layer_norm, mica_layer_norm(s, x[0], NULL, NULL, 1e-3))
GRAD_NN(layer_norm_full, mica_layer_norm(s, x[0], x[1], x[2], 1e-5))
GRAD_NN(rms_norm, mica_rms_norm(s, x[0], x[1], 1e-3))
GRAD_NN(cross_entropy,
        mica_cross_entropy(s, x[0], mica_from_data(s, MICA_I32, 1, (int64_t[]){3}, (int32_t[]){0, 3, 2})))

GRAD_NN(matmul, mica_matmul(s, x[0], x[1]))
GRAD_NN(matmul_square, mica_square(s, mica_matmul(s, x[0], mica_transpose(s, x[1]))))

/* a matrix in a block format is a constant */
static mica_array *grad_quant(mica_scope *s, mica_array *x)
{
    static const uint8_t codes[] = {0x12, 0x54, 0x81, 0x26, 0x09, 0x68};
    const mica_quant w = {.struct_size = sizeof w,
                          .format = "HF_TERNARY",
                          .rows = 7,
                          .cols = 3,
                          .data = mica_from_data(s, MICA_U8, 2, (int64_t[]){2, 3}, codes),
                          .scales = mica_from_data(s, MICA_F32, 0, NULL, &(float){0.5f})};
    return mica_quant_matmul(s, x, &w, MICA_ACT_NONE);
}
GRAD_NN(quant_matmul, grad_quant(s, x[0]))

/* convolution: strides with a remainder, dilation, padding, groups, transposed */
static mica_array *grad_conv(mica_scope *s, mica_array **x, int spatial, bool transposed, int64_t stride,
                             int64_t padding, int64_t dilation, int64_t groups, int64_t output_padding)
{
    mica_conv_options o;
    mica_conv_options_init(&o);
    o.stride[0] = o.stride[1] = stride;
    o.padding[0] = o.padding[1] = padding;
    o.dilation[0] = o.dilation[1] = dilation;
    o.output_padding[0] = o.output_padding[1] = output_padding;
    o.groups = groups;
    if (spatial == 1) return transposed ? mica_conv_transpose1d(s, x[0], x[1], &o) : mica_conv1d(s, x[0], x[1], &o);
    o.stride[1] = 1; /* axes must not be mixed up */
    o.dilation[1] = 1;
    if (o.output_padding[1] >= o.stride[1]) o.output_padding[1] = 0;
    return transposed ? mica_conv_transpose2d(s, x[0], x[1], &o) : mica_conv2d(s, x[0], x[1], &o);
}
GRAD_NN(conv1d, grad_conv(s, x, 1, false, 1, 0, 1, 1, 0))
GRAD_NN(conv1d_stride, grad_conv(s, x, 1, false, 3, 1, 1, 1, 0))
GRAD_NN(conv1d_dilated, grad_conv(s, x, 1, false, 2, 2, 2, 1, 0))
GRAD_NN(conv1d_groups, grad_conv(s, x, 1, false, 2, 1, 1, 2, 0))
GRAD_NN(conv1d_wide_pad, grad_conv(s, x, 1, false, 1, 4, 1, 1, 0))
GRAD_NN(conv2d, grad_conv(s, x, 2, false, 2, 1, 1, 1, 0))
GRAD_NN(conv2d_groups, grad_conv(s, x, 2, false, 1, 0, 2, 2, 0))
GRAD_NN(conv1d_back, grad_conv(s, x, 1, true, 2, 1, 1, 1, 1))
GRAD_NN(conv1d_back_dilated, grad_conv(s, x, 1, true, 3, 1, 2, 2, 2))
GRAD_NN(conv2d_back, grad_conv(s, x, 2, true, 2, 1, 1, 1, 1))

/* negative padding and input dilation: no constructor makes them, but second-order gradients do */
static mica_array *grad_conv_raw(mica_scope *s, mica_array **x)
{
    const mica__attr_conv attr = {.spatial = 1,
                                  .groups = 1,
                                  .stride = {2, 1},
                                  .pad_low = {-1},
                                  .pad_high = {2},
                                  .dilation = {2, 1},
                                  .input_dilation = {3, 1}};
    return mica__build2(s, MICA__OP_CONV, x[0], x[1], &attr, sizeof attr);
}

static mica_array *grad_pool(mica_scope *s, mica_array *x, bool max, bool exclude)
{
    mica_pool_options o;
    mica_pool_options_init(&o);
    o.kernel[0] = o.kernel[1] = 3;
    o.stride[0] = o.stride[1] = 2;
    o.padding[0] = o.padding[1] = 1;
    o.exclude_padding = exclude;
    return mica_square(s, max ? mica_max_pool2d(s, x, &o) : mica_avg_pool2d(s, x, &o));
}
GRAD_NN(max_pool, grad_pool(s, x[0], true, false))
GRAD_NN(avg_pool, grad_pool(s, x[0], false, false))
GRAD_NN(avg_pool_inside, grad_pool(s, x[0], false, true))

static mica_array *grad_attend(mica_scope *s, mica_array **x, mica_array *mask, bool causal)
{
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = causal;
    return mica_attention(s, x[0], x[1], x[2], mask, &o);
}
GRAD_NN(attention, grad_attend(s, x, NULL, false))
GRAD_NN(attention_causal, grad_attend(s, x, NULL, true))
GRAD_NN(attention_float_mask, grad_attend(s, x, x[3], false))
/* query 1 has no keys: its row is 0 and has no gradient */
GRAD_NN(attention_bool_mask,
        grad_attend(s, x,
                    mica_from_data(s, MICA_BOOL, 2, (int64_t[]){3, 3},
                                   (bool[]){true, false, true, false, false, false, true, true, true}),
                    true))

/* the op of attention's gradient; its gradient is the second-order gradient */
static mica_array *grad_attend_back(mica_scope *s, mica_array **x, bool causal, bool mask)
{
    const mica__attr_attention attr = {.scale = 0.7, .causal = causal, .has_mask = mask};
    return mica__build(s, MICA__OP_ATTENTION_GRAD, x, mask ? 5 : 4, &attr, sizeof attr);
}
GRAD_NN(attention_back, grad_attend_back(s, x, false, false))
GRAD_NN(attention_back_causal, grad_attend_back(s, x, true, false))
GRAD_NN(attention_back_mask, grad_attend_back(s, x, false, true))

/* six synapses, in lists of two, none, three and one */
static mica_array *grad_sources(mica_scope *s)
{
    return mica_from_data(s, MICA_I32, 1, (int64_t[]){6}, (int32_t[]){1, 3, 0, 3, 1, 0});
}
static mica_array *grad_firsts(mica_scope *s)
{
    return mica_from_data(s, MICA_I32, 1, (int64_t[]){5}, (int32_t[]){0, 2, 2, 5, 6});
}
GRAD_NN(synapses, mica_synapses(s, x[0], NULL, NULL, x[1], x[2], x[3], x[4]))
GRAD_NN(synapses_listed, mica_synapses(s, x[0], grad_sources(s), grad_firsts(s), x[1], x[2], x[3], x[4]))

/* the op of the gradient of synapses; mu is used as the weight too */
static mica_array *grad_synapses_raw(mica_scope *s, mica_array **x, bool listed)
{
    mica_array *in[8] = {x[0], x[1], x[2], x[3], x[2], listed ? grad_sources(s) : x[4], grad_firsts(s), x[4]};
    return mica__build(s, MICA__OP_SYNAPSES_GRAD, in, listed ? 8 : 6, NULL, 0);
}
GRAD_NN(synapses_back, grad_synapses_raw(s, x, false))
GRAD_NN(synapses_back_listed, grad_synapses_raw(s, x, true))

static mica_array *grad_rope_of(mica_scope *s, mica_array *x, mica_array *positions, int64_t dims, bool interleaved)
{
    mica_rope_options o;
    mica_rope_options_init(&o);
    o.dims = dims;
    o.interleaved = interleaved;
    o.base = 100;
    o.scale = 0.5;
    return mica_square(s, mica_rope(s, x, positions, &o));
}
static mica_array *grad_rope_factors_of(mica_scope *s, mica_array *x, mica_array *positions, mica_array *factors)
{
    mica_rope_options o;
    mica_rope_options_init(&o);
    o.base = 100;
    o.scale = 0.5;
    o.magnitude = 1.25;
    o.factors = factors;
    return mica_square(s, mica_rope(s, x, positions, &o));
}
GRAD_NN(rope_factors, grad_rope_factors_of(s, x[0], x[1], x[2]))
GRAD_NN(rope, grad_rope_of(s, x[0], NULL, 0, false))
GRAD_NN(rope_interleaved, grad_rope_of(s, x[0], NULL, 4, true))
GRAD_NN(rope_positions, grad_rope_of(s, x[0], x[1], 4, false))
GRAD_NN(rope_positions_interleaved, grad_rope_of(s, x[0], x[1], 0, true))

/* two layers and a loss */
static mica_array *grad_mlp(mica_scope *s, mica_array **x)
{
    mica_array *h = mica_gelu(s, mica_add(s, mica_matmul(s, x[0], x[1]), x[3]));
    mica_array *logits = mica_matmul(s, mica_rms_norm(s, h, NULL, 1e-5), x[2]);
    mica_array *labels = mica_from_data(s, MICA_I64, 1, (int64_t[]){2}, (int64_t[]){1, 0});
    return mica_mean(s, mica_cross_entropy(s, logits, labels), NULL, 0, false);
}

static const grad_case grad_cases_nn[] = {
    /* clang-format off */
    {MICA__OP_SOFTMAX, "softmax", grad_softmax, 1, {{2, {2, 4}, -2, 2}}, 0, 0},
    {MICA__OP_SOFTMAX, "softmax, axis 0", grad_softmax_0, 1, {{2, {3, 2}, -2, 2}}, 0, 0},
    {MICA__OP_LOG_SOFTMAX, "log_softmax", grad_log_softmax, 1, {{2, {2, 4}, -2, 2}}, 0, 0},
    {MICA__OP_LAYER_NORM, "layer_norm", grad_layer_norm, 1, {{2, {2, 4}, -1, 1}}, 0, 0},
    {MICA__OP_LAYER_NORM, "layer_norm, weight and bias", grad_layer_norm_full, 3,
     {{2, {2, 4}, -1, 1}, {1, {4}, -1, 1}, {1, {4}, -1, 1}}, 0, 0},
    {MICA__OP_RMS_NORM, "rms_norm", grad_rms_norm, 2, {{2, {2, 4}, -1, 1}, {1, {4}, -1, 1}}, 0, 0},
    {MICA__OP_TAKE, "cross_entropy", grad_cross_entropy, 1, {{2, {3, 4}, -2, 2}}, 0, 0},
    {MICA__OP_MATMUL, "matmul", grad_matmul, 2, {{2, {2, 3}, -1, 1}, {2, {3, 4}, -1, 1}}, 0, 0},
    {MICA__OP_MATMUL, "matmul, batches", grad_matmul_square, 2, {{3, {2, 2, 3}, -1, 1}, {2, {2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_MATMUL, "matmul, vectors", grad_matmul, 2, {{1, {3}, -1, 1}, {1, {3}, -1, 1}}, 0, 0},
    {MICA__OP_MATMUL, "matmul, vector", grad_matmul, 2, {{2, {2, 3}, -1, 1}, {1, {3}, -1, 1}}, 0, 0},
    {MICA__OP_QMATMUL, "quant_matmul", grad_quant_matmul, 1, {{2, {2, 3}, -1, 1}}, 0.5, 1e-5},
    {MICA__OP_CONV, "conv1d", grad_conv1d, 2, {{3, {2, 2, 5}, -1, 1}, {3, {3, 2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_CONV, "conv1d, stride", grad_conv1d_stride, 2, {{3, {2, 1, 6}, -1, 1}, {3, {2, 1, 3}, -1, 1}}, 0, 0},
    {MICA__OP_CONV, "conv1d, dilation", grad_conv1d_dilated, 2, {{3, {1, 2, 6}, -1, 1}, {3, {2, 2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_CONV, "conv1d, groups", grad_conv1d_groups, 2, {{3, {2, 4, 5}, -1, 1}, {3, {6, 2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_CONV, "conv1d, wide padding", grad_conv1d_wide_pad, 2,
     {{3, {1, 1, 3}, -1, 1}, {3, {1, 1, 2}, -1, 1}}, 0, 0},
    {MICA__OP_CONV, "conv1d, all attributes", grad_conv_raw, 2, {{3, {2, 1, 4}, -1, 1}, {3, {2, 1, 3}, -1, 1}}, 0, 0},
    {MICA__OP_CONV, "conv2d", grad_conv2d, 2, {{4, {1, 2, 4, 3}, -1, 1}, {4, {2, 2, 2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_CONV, "conv2d, groups", grad_conv2d_groups, 2,
     {{4, {2, 2, 4, 3}, -1, 1}, {4, {4, 1, 2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_CONV, "conv_transpose1d", grad_conv1d_back, 2, {{3, {2, 2, 3}, -1, 1}, {3, {2, 3, 3}, -1, 1}}, 0, 0},
    {MICA__OP_CONV, "conv_transpose1d, dilation, groups", grad_conv1d_back_dilated, 2,
     {{3, {1, 4, 3}, -1, 1}, {3, {4, 1, 2}, -1, 1}}, 0, 0},
    {MICA__OP_CONV, "conv_transpose2d", grad_conv2d_back, 2,
     {{4, {1, 2, 2, 3}, -1, 1}, {4, {2, 2, 2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_MAX, "max_pool2d", grad_max_pool, 1, {{4, {1, 2, 5, 4}, -1, 1}}, 0, 0},
    {MICA__OP_WINDOW, "avg_pool2d", grad_avg_pool, 1, {{4, {1, 1, 5, 4}, -1, 1}}, 0, 0},
    {MICA__OP_WINDOW, "avg_pool2d, inside", grad_avg_pool_inside, 1, {{4, {1, 1, 5, 4}, -1, 1}}, 0, 0},
    {MICA__OP_ATTENTION, "attention", grad_attention, 3,
     {{4, {1, 2, 2, 3}, -1, 1}, {4, {1, 2, 3, 3}, -1, 1}, {4, {1, 2, 3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_ATTENTION, "attention, shared keys", grad_attention, 3,
     {{4, {2, 4, 2, 2}, -1, 1}, {4, {2, 2, 2, 2}, -1, 1}, {4, {2, 2, 2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_ATTENTION, "attention, causal", grad_attention_causal, 3,
     {{4, {1, 2, 2, 2}, -1, 1}, {4, {1, 1, 4, 2}, -1, 1}, {4, {1, 1, 4, 2}, -1, 1}}, 0, 0},
    {MICA__OP_ATTENTION, "attention, causal, more queries than keys", grad_attention_causal, 3,
     {{4, {1, 1, 4, 2}, -1, 1}, {4, {1, 1, 2, 2}, -1, 1}, {4, {1, 1, 2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_ATTENTION, "attention, bool mask", grad_attention_bool_mask, 3,
     {{4, {1, 2, 3, 2}, -1, 1}, {4, {1, 1, 3, 2}, -1, 1}, {4, {1, 1, 3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_ATTENTION, "attention, float mask", grad_attention_float_mask, 4,
     {{4, {1, 2, 2, 2}, -1, 1}, {4, {1, 1, 3, 2}, -1, 1}, {4, {1, 1, 3, 2}, -1, 1}, {3, {2, 2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_SYNAPSES, "synapses", grad_synapses, 5,
     {{2, {2, 3}, -1, 1}, {2, {3, 2}, 1, 3}, {2, {3, 2}, -1, 1}, {2, {3, 2}, -1, 1}, {2, {3, 2}, 0.1, 1}}, 0, 0},
    {MICA__OP_SYNAPSES, "synapses, listed", grad_synapses_listed, 5,
     {{2, {2, 4}, -1, 1}, {1, {6}, 1, 3}, {1, {6}, -1, 1}, {1, {6}, -1, 1}, {1, {6}, 0.1, 1}}, 0, 0},
    {MICA__OP_SYNAPSES_GRAD, "synapses_grad", grad_synapses_back, 5,
     {{2, {2, 3}, -1, 1}, {2, {3, 2}, 1, 3}, {2, {3, 2}, -1, 1}, {2, {3, 2}, -1, 1}, {3, {2, 2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_SYNAPSES_GRAD, "synapses_grad, listed", grad_synapses_back_listed, 5,
     {{2, {2, 4}, -1, 1}, {1, {6}, 1, 3}, {1, {6}, -1, 1}, {1, {6}, -1, 1}, {3, {2, 2, 4}, -1, 1}}, 0, 0},
    {MICA__OP_ATTENTION_GRAD, "attention_grad", grad_attention_back, 4,
     {{4, {1, 2, 2, 3}, -1, 1}, {4, {1, 2, 3, 3}, -1, 1}, {4, {1, 2, 3, 2}, -1, 1}, {4, {1, 2, 2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_ATTENTION_GRAD, "attention_grad, causal, shared keys", grad_attention_back_causal, 4,
     {{4, {1, 2, 2, 2}, -1, 1}, {4, {1, 1, 3, 2}, -1, 1}, {4, {1, 1, 3, 2}, -1, 1}, {4, {1, 2, 2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_ATTENTION_GRAD, "attention_grad, float mask", grad_attention_back_mask, 5,
     {{4, {1, 1, 2, 2}, -1, 1}, {4, {1, 1, 3, 2}, -1, 1}, {4, {1, 1, 3, 2}, -1, 1}, {4, {1, 1, 2, 3}, -1, 1},
      {4, {1, 1, 2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_ROPE_TABLE, "rope, factors", grad_rope_factors, 3,
     {{3, {2, 2, 4}, -1, 1}, {1, {2}, 0, 4}, {1, {2}, 0.5, 2}}, 0.02, 3e-5},
    {MICA__OP_ROPE, "rope", grad_rope, 1, {{3, {2, 2, 4}, -1, 1}}, 0, 0},
    {MICA__OP_ROPE, "rope, interleaved, partly", grad_rope_interleaved, 1, {{2, {2, 6}, -1, 1}}, 0, 0},
    /* positions are f32: larger differences, larger tolerance */
    {MICA__OP_ROPE, "rope, positions", grad_rope_positions, 2, {{3, {2, 2, 6}, -1, 1}, {1, {2}, 0, 4}}, 0.02, 3e-5},
    {MICA__OP_ROPE, "rope, positions, interleaved", grad_rope_positions_interleaved, 2,
     {{2, {2, 4}, -1, 1}, {1, {2}, 0, 4}}, 0.02, 3e-5},
    {MICA__OP_MATMUL, "mlp", grad_mlp, 4,
     {{2, {2, 3}, -1, 1}, {2, {3, 4}, -1, 1}, {2, {4, 3}, -1, 1}, {1, {4}, -1, 1}}, 0, 0},
    /* clang-format on */
};

#endif
