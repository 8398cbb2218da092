/* Gradients of the layers and losses of mica_nn.h against finite differences, in double on the
 * reference backend, first and second order. */
#include "grad/grad_check.h"
#include "mica_nn.h"

/* ------------------------------------------------------------- functions ---- */

static mica_array *both(mica_scope *s, mica_array *a, mica_array *b)
{
    return mica_concat(s, (mica_array *[]){mica_flatten(s, a), mica_flatten(s, b)}, 2, 0);
}

static mica_array *build_lstm(mica_scope *s, mica_array **x)
{
    const mica_recurrent_weights w = {sizeof w, x[1], x[2], x[3], x[3]};
    mica_array *h = x[4], *c = mica_sin(s, x[4]), *y;
    return mica_lstm(s, x[0], &w, false, &h, &c, &y) == MICA_OK ? both(s, y, c) : NULL;
}

static mica_array *build_gru(mica_scope *s, mica_array **x)
{
    const mica_recurrent_weights w = {sizeof w, x[1], x[2], x[3], x[3]};
    mica_array *h = x[4], *y;
    return mica_gru(s, x[0], &w, true, &h, &y) == MICA_OK ? both(s, y, h) : NULL;
}

static mica_array *build_batch_norm(mica_scope *s, mica_array **x)
{
    mica_batch_norm_options o;
    mica_batch_norm_options_init(&o);
    o.training = true;
    mica_array *mean = mica_zeros(s, MICA_F64, 1, (int64_t[]){3}), *var = mica_ones(s, MICA_F64, 1, (int64_t[]){3});
    return mica_batch_norm(s, x[0], x[1], x[2], &mean, &var, &o);
}

static mica_array *build_multi_head(mica_scope *s, mica_array **x)
{
    mica_heads_options o;
    mica_heads_options_init(&o);
    o.heads = 2, o.kv_heads = 1, o.causal = true, o.rope_base = 100;
    return mica_multi_head(s, x[0], x[1], x[2], NULL, &o);
}

static mica_array *build_linear(mica_scope *s, mica_array **x) { return mica_linear(s, x[0], x[1], x[2]); }

static mica_array *build_dropout(mica_scope *s, mica_array **x)
{
    const int32_t seed = 3;
    return mica_dropout(s, mica_square(s, x[0]), 0.4, mica_from_data(s, MICA_I32, 0, NULL, &seed), 1);
}

static mica_array *build_mse(mica_scope *s, mica_array **x) { return mica_mse_loss(s, x[0], x[1]); }
static mica_array *build_mae(mica_scope *s, mica_array **x) { return mica_mae_loss(s, x[0], x[1]); }
static mica_array *build_huber(mica_scope *s, mica_array **x) { return mica_huber_loss(s, x[0], x[1], 0.75); }
static mica_array *build_bce(mica_scope *s, mica_array **x) { return mica_bce_loss(s, x[0], x[1]); }

static mica_array *build_cross_entropy(mica_scope *s, mica_array **x)
{
    mica_array *labels = mica_from_data(s, MICA_I32, 1, (int64_t[]){3}, (int32_t[]){0, 3, 2});
    return mica_cross_entropy_loss(s, x[0], labels, 0.1);
}

/* A layer of the table, with the weight and bias that are differentiated. */
static mica_array *layer_with(mica_scope *s, const mica_layer *layer, mica_array **x)
{
    mica_params *p;
    mica_array *y = NULL;
    if (mica_params_new(&p) != MICA_OK) return NULL;
    if (mica_params_add(p, "l.weight", x[1]) == MICA_OK && mica_params_add(p, "l.bias", x[2]) == MICA_OK) {
        mica_forward f;
        mica_forward_init(&f, s, p);
        y = mica_layer_apply(&f, layer, x[0], "l");
    }
    mica_params_free(p);
    return y;
}

static mica_array *build_conv1d(mica_scope *s, mica_array **x)
{
    mica_layer l = mica_conv1d_layer(2, 3, 3);
    l.conv.stride[0] = 2, l.conv.padding[0] = 1;
    return layer_with(s, &l, x);
}

static mica_array *build_conv2d(mica_scope *s, mica_array **x)
{
    const mica_layer l = mica_conv2d_layer(2, 3, 2);
    return layer_with(s, &l, x);
}

static mica_array *build_layer_norm(mica_scope *s, mica_array **x)
{
    mica_layer l = mica_norm_layer(MICA_LAYER_LAYER_NORM, 5);
    l.eps = 1e-2;
    return layer_with(s, &l, x);
}

static const grad_case cases[] = {
    /* clang-format off */
    {0, "lstm", build_lstm, 5,
     {{3, {3, 2, 3}, -1, 1}, {2, {8, 3}, -1, 1}, {2, {8, 2}, -1, 1}, {1, {8}, -1, 1}, {2, {2, 2}, -1, 1}}, 1e-3, 0},
    {0, "gru", build_gru, 5,
     {{3, {3, 2, 3}, -1, 1}, {2, {6, 3}, -1, 1}, {2, {6, 2}, -1, 1}, {1, {6}, -1, 1}, {2, {2, 2}, -1, 1}}, 1e-3, 0},
    {0, "batch_norm", build_batch_norm, 3, {{3, {2, 3, 3}, -1, 1}, {1, {3}, 0.5, 2}, {1, {3}, -1, 1}}, 1e-3, 0},
    {0, "multi_head", build_multi_head, 3,
     {{3, {1, 3, 4}, -1, 1}, {3, {1, 3, 2}, -1, 1}, {3, {1, 3, 2}, -1, 1}}, 1e-3, 0},
    {0, "linear", build_linear, 3, {{2, {3, 4}, -1, 1}, {2, {2, 4}, -1, 1}, {1, {2}, -1, 1}}, 0, 0},
    {0, "dropout", build_dropout, 1, {{2, {3, 4}, -1, 1}}, 0, 0},
    {0, "mse", build_mse, 2, {{2, {3, 4}, -1, 1}, {2, {3, 4}, -1, 1}}, 0, 0},
    {0, "mae", build_mae, 2, {{2, {3, 4}, -1, -0.2}, {2, {3, 4}, 0.2, 1}}, 0, 0},
    {0, "huber", build_huber, 2, {{2, {3, 4}, -1, 0}, {2, {3, 4}, 0.1, 0.2}}, 0, 0},
    {0, "bce", build_bce, 2, {{2, {3, 4}, -3, 3}, {2, {3, 4}, 0, 1}}, 0, 0},
    {0, "cross_entropy", build_cross_entropy, 1, {{2, {3, 4}, -2, 2}}, 1e-3, 0},
    {0, "conv1d", build_conv1d, 3, {{3, {1, 2, 5}, -1, 1}, {3, {3, 2, 3}, -1, 1}, {1, {3}, -1, 1}}, 0, 0},
    {0, "conv2d", build_conv2d, 3, {{4, {1, 2, 3, 3}, -1, 1}, {4, {3, 2, 2, 2}, -1, 1}, {1, {3}, -1, 1}}, 0, 0},
    {0, "layer_norm", build_layer_norm, 3, {{2, {3, 5}, -1, 1}, {1, {5}, 0.5, 2}, {1, {5}, -1, 1}}, 1e-3, 0},
    /* clang-format on */
};

TEST(gradients_of_layers_against_differences)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int order = 1; order <= 2; order++) {
            test_case("%s, order %d", cases[i].name, order);
            (void)grad_check(&cases[i], order);
        }
}
