/* Programs around reductions and kernel families: prologues, epilogues, functions that mica.h
 * composes of several ops, gradients, loops. */
#include <math.h>

#include "parity_programs.h"

#define BUILD(name) static mica_array *build_##name(mica_scope *s, mica_array *const *x, const parity_call *call)
#define NUMBER(v) mica_scalar(s, v)

/* ----------------------------------------------------------- reductions --- */

static const int last_axis = -1;

BUILD(sum_exp)
{
    (void)call;
    return mica_sum(s, mica_exp(s, mica_sub(s, x[0], x[1])), &last_axis, 1, false);
}

BUILD(sum_all)
{
    (void)call;
    return mica_sum(s, mica_mul(s, x[0], x[1]), NULL, 0, false);
}

BUILD(root_of_sum)
{
    (void)call;
    return mica_tanh(s, mica_sqrt(s, mica_sum(s, mica_square(s, mica_sub(s, x[0], x[1])), (int[]){0}, 1, true)));
}

/* No reduction: element-wise only. */
BUILD(map_only)
{
    (void)call;
    return mica_add(s, mica_tanh(s, mica_mul(s, x[0], x[1])), mica_cast(s, mica_round(s, x[0]), MICA_I32));
}

/* Variant: which of the functions over axes. */
BUILD(statistics)
{
    mica_array *y = mica_add(s, x[0], x[1]);
    const int axes[] = {0, -1};
    switch (call->variant) {
    case 0: return mica_mean(s, y, axes, 2, true);
    case 1: return mica_var(s, y, &last_axis, 1, 1, false);
    case 2: return mica_std(s, y, axes, 1, 0, true);
    case 3: return mica_norm(s, y, 2, &last_axis, 1, false);
    case 4: return mica_norm(s, y, 3, &last_axis, 1, false);
    case 5: return mica_norm(s, y, INFINITY, NULL, 0, false);
    case 6: return mica_norm(s, y, 0, &last_axis, 1, true);
    case 7: return mica_logsumexp(s, y, &last_axis, 1, true);
    case 8: return mica_max(s, mica_exp(s, y), &last_axis, 1, false);
    case 9: return mica_prod(s, mica_add(s, mica_mul(s, y, NUMBER(0.01)), NUMBER(1)), &last_axis, 1, false);
    case 10: return mica_any(s, mica_greater(s, x[0], NUMBER(1.9)), &last_axis, 1, false);
    case 11: return mica_all(s, mica_less(s, x[0], NUMBER(1.9)), &last_axis, 1, false);
    case 12: return mica_argmax(s, x[0], -1, false);
    case 13: return mica_argmin(s, x[0], 0, true);
    case 14: return mica_cumsum(s, y, 0);
    default: return mica_cummax(s, y, -1);
    }
}

/* A sum that is combined with its own operand. */
BUILD(normalised)
{
    (void)call;
    mica_array *e = mica_exp(s, mica_mul(s, x[0], NUMBER(0.5)));
    mica_array *p = mica_div(s, e, mica_sum(s, e, &last_axis, 1, true));
    return mica_sum(s, mica_mul(s, p, mica_sub(s, x[1], mica_mean(s, x[1], NULL, 0, false))), (int[]){0}, 1, false);
}

/* ------------------------------------------------------------- networks --- */

BUILD(layer)
{
    (void)call;
    return mica_gelu(s, mica_add(s, mica_matmul(s, x[0], x[1]), x[2]));
}

BUILD(layer_transposed)
{
    (void)call;
    mica_array *y = mica_matmul(s, mica_transpose(s, mica_matmul(s, x[0], x[1])), x[0]);
    return mica_mul(s, mica_relu(s, y), NUMBER(0.1));
}

BUILD(norms)
{
    (void)call;
    mica_array *y = mica_layer_norm(s, mica_matmul(s, x[0], x[1]), x[2], x[2], 1e-2);
    return mica_softmax(s, mica_rms_norm(s, y, x[2], 1e-2), -1);
}

BUILD(loss)
{
    (void)call;
    mica_array *logits = mica_add(s, mica_matmul(s, mica_tanh(s, x[0]), x[1]), x[2]);
    mica_array *labels = mica_arange(s, MICA_I64, 0, (double)mica_array_shape(x[0])[0], 1);
    labels = mica_mod(s, labels, NUMBER((double)mica_array_shape(x[1])[1]));
    return mica_mean(s, mica_cross_entropy(s, logits, labels), NULL, 0, false);
}

/* Variant: the gradient with respect to input number variant. */
BUILD(gradient)
{
    mica_array *value = build_loss(s, x, call), *grads[3];
    if (!value || mica_grad(s, value, x, 3, grads) != MICA_OK) return NULL;
    return grads[call->variant];
}

static mica_status step_tanh(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                             mica_array **y_out, void *user)
{
    mica_array *const *in = user;
    mica_array *mixed = mica_matmul(s, x[0], in[1]);
    carry_out[0] = mica_tanh(s, mica_add(s, mica_add(s, mixed, in[2]), mica_mul(s, carry[0], mica_scalar(s, 0.5))));
    y_out[0] = mica_square(s, carry_out[0]);
    return mica_scope_status(s);
}

/* Variant 1: its gradient. */
BUILD(recurrence)
{
    mica_scan_options options;
    mica_scan_options_init(&options);
    options.n_carry = options.n_x = options.n_y = 1;
    mica_array *start = mica_zeros(s, call->dtype, 1, &mica_array_shape(x[1])[1]), *carry, *ys, *grad;
    mica_array *user[3] = {x[0], x[1], x[2]};
    if (mica_scan(s, step_tanh, user, &options, &start, x, &carry, &ys) != MICA_OK) return NULL;
    mica_array *y = mica_add(s, mica_sum(s, ys, (int[]){0}, 1, false), carry);
    if (call->variant == 0) return y;
    return mica_grad(s, mica_sum(s, y, NULL, 0, false), &x[1], 1, &grad) == MICA_OK ? grad : NULL;
}

BUILD(convolutions)
{
    mica_conv_options o;
    mica_pool_options p;
    mica_conv_options_init(&o);
    mica_pool_options_init(&p);
    o.padding[0] = o.padding[1] = 1;
    p.kernel[0] = p.kernel[1] = 2;
    mica_array *y = mica_relu(s, mica_add(s, mica_conv2d(s, x[0], x[1], &o), x[2]));
    o.stride[0] = o.stride[1] = 2;
    switch (call->variant) {
    case 0: return mica_max_pool2d(s, y, &p);
    case 1: return mica_avg_pool2d(s, y, &p);
    default: return mica_tanh(s, mica_conv_transpose2d(s, y, x[1], &o));
    }
}

BUILD(heads)
{
    mica_attention_options a;
    mica_rope_options r;
    mica_attention_options_init(&a);
    mica_rope_options_init(&r);
    a.causal = call->variant;
    mica_array *q = mica_rope(s, x[0], NULL, &r), *k = mica_rope(s, x[1], NULL, &r);
    return mica_mul(s, mica_attention(s, q, k, x[2], NULL, &a), NUMBER(2));
}

/* -------------------------------------------------------------- indices --- */

/* Exact inputs determine the selection; arithmetic comes after it. */
BUILD(indexing)
{
    mica_array *y = mica_sub(s, x[0], x[1]);
    mica_array *order = mica_argsort(s, x[0], -1, true), *values, *places;
    mica_array *rows = mica_mod(s, mica_arange(s, MICA_I64, 0, 9, 1), NUMBER((double)mica_array_shape(x[0])[0]));
    switch (call->variant) {
    case 0: return mica_take_along_axis(s, mica_exp(s, y), order, -1);
    case 1: return mica_mul(s, mica_take(s, mica_exp(s, y), rows, 0), NUMBER(2));
    case 2: return mica_topk(s, x[0], 3, -1, &values, &places) == MICA_OK ? mica_add(s, values, NUMBER(1)) : NULL;
    case 3: return mica_topk(s, x[0], 2, 0, &values, &places) == MICA_OK ? places : NULL;
    case 4: return mica_gather(s, mica_sin(s, x[0]), mica_expand_dims(s, rows, 1));
    case 5: return mica_scatter_add(s, x[0], mica_expand_dims(s, rows, 1), mica_exp(s, mica_take(s, y, rows, 0)));
    case 6: return mica_sort(s, mica_neg(s, x[0]), 0, false);
    case 7: return mica_mul(s, mica_one_hot(s, rows, 5, call->dtype), NUMBER(3));
    default: return mica_embedding(s, y, mica_reshape(s, rows, 2, (int64_t[]){3, 3}));
    }
}

#define PLAIN PARITY_OPERAND(-2, 2, 0, 0, PARITY_PLAIN)
#define PROGRAM(NAME, text, variants, n_in, rows, tolerance, kernels)                                          \
    {PARITY_CASE(ADD, text, build_##NAME, variants, n_in, rows, 1, PARITY_FLOATS, PLAIN, PLAIN, PLAIN), false, \
     tolerance, kernels}

static const parity_shape pair_rows[][2] = {
    {{2, {5, 33}}, {2, {5, 33}}}, {{2, {33, 17}}, {1, {17}}}, {{3, {4, 3, 65}}, {3, {4, 1, 65}}}};
static const parity_shape layer_rows[][3] = {{{2, {9, 17}}, {2, {17, 5}}, {1, {5}}},
                                             {{2, {65, 33}}, {2, {33, 17}}, {1, {17}}}};
static const parity_shape conv_rows[][3] = {{{4, {2, 3, 9, 7}}, {4, {3, 3, 3, 3}}, {3, {3, 1, 1}}}};
static const parity_shape head_rows[][3] = {{{4, {2, 4, 9, 8}}, {4, {2, 2, 9, 8}}, {4, {2, 2, 9, 8}}}};

const parity_program parity_programs_nn[] = {
    PROGRAM(sum_exp, "sum(exp(x-y))", 1, 2, pair_rows, 2e-5, 1),
    PROGRAM(sum_all, "sum of all", 1, 2, pair_rows, 1e-4, 1),
    PROGRAM(root_of_sum, "tanh(sqrt(sum(square)))", 1, 2, pair_rows, 2e-5, 1),
    PROGRAM(statistics, "statistics", 16, 2, pair_rows, 2e-5, 0),
    PROGRAM(normalised, "normalised", 1, 2, pair_rows, 5e-5, 0),
    PROGRAM(layer, "gelu(matmul(x,w)+b)", 1, 3, layer_rows, 2e-5, 1),
    PROGRAM(layer_transposed, "matmul of a transposed matmul", 1, 3, layer_rows, 2e-5, 2),
    PROGRAM(norms, "norms", 1, 3, layer_rows, 2e-4, 0),
    PROGRAM(loss, "cross entropy", 1, 3, layer_rows, 2e-5, 0),
    PROGRAM(gradient, "gradient", 3, 3, layer_rows, 5e-5, 0),
    PROGRAM(recurrence, "recurrence", 2, 3, layer_rows, 1e-4, 0),
    PROGRAM(convolutions, "convolutions", 3, 3, conv_rows, 2e-5, 0),
    PROGRAM(heads, "attention heads", 2, 3, head_rows, 2e-5, 0),
    PROGRAM(indexing, "indexing", 9, 2, pair_rows, 2e-5, 0),
    {{0}, 0, 0, 0},
};

double parity_program_tolerance(const parity_program *p, mica_dtype dtype)
{
    switch ((int)dtype) {
    case MICA_F64: return p->tolerance * 0x1p-29;
    case MICA_F16: return p->tolerance * 0x1p9;
    case MICA_BF16: return p->tolerance * 0x1p12;
    default: return p->tolerance;
    }
}

/* ------------------------------------------------------- large arrays ----- */

static const parity_shape large_pairs[][2] = {
    {{1, {70001}}, {1, {70001}}}, {{2, {300, 257}}, {2, {300, 257}}}, {{2, {17, 9001}}, {2, {17, 1}}}};
static const parity_shape large_layers[][3] = {{{2, {130, 270}}, {2, {270, 150}}, {1, {150}}}};
static const parity_shape large_convs[][3] = {{{4, {3, 5, 33, 31}}, {4, {5, 5, 3, 3}}, {3, {5, 1, 1}}}};
static const parity_shape large_heads[][3] = {{{4, {2, 4, 65, 32}}, {4, {2, 2, 65, 32}}, {4, {2, 2, 65, 32}}}};
static const parity_shape large_matrices[][2] = {{{2, {300, 257}}, {2, {300, 257}}},
                                                 {{2, {40, 3001}}, {2, {40, 3001}}}};

const parity_program parity_programs_large[] = {
    PROGRAM(map_only, "tanh(x*y)+round(x)", 1, 2, large_pairs, 2e-6, 0),
    PROGRAM(sum_exp, "sum(exp(x-y))", 1, 2, large_pairs, 2e-5, 0),
    PROGRAM(sum_all, "sum of all", 1, 2, large_pairs, 1e-4, 0),
    PROGRAM(root_of_sum, "tanh(sqrt(sum(square)))", 1, 2, large_pairs, 2e-5, 0),
    PROGRAM(statistics, "statistics", 16, 2, large_matrices, 2e-5, 0),
    PROGRAM(normalised, "normalised", 1, 2, large_matrices, 1e-4, 0),
    PROGRAM(layer, "gelu(matmul(x,w)+b)", 1, 3, large_layers, 2e-5, 0),
    PROGRAM(norms, "norms", 1, 3, large_layers, 2e-4, 0),
    PROGRAM(gradient, "gradient", 3, 3, large_layers, 5e-5, 0),
    PROGRAM(recurrence, "recurrence", 2, 3, large_layers, 1e-4, 0),
    PROGRAM(convolutions, "convolutions", 3, 3, large_convs, 2e-5, 0),
    PROGRAM(heads, "attention heads", 2, 3, large_heads, 2e-5, 0),
    PROGRAM(indexing, "indexing", 9, 2, large_matrices, 2e-5, 0),
    {{0}, 0, 0, 0},
};
