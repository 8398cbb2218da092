/* Layers as data: the parameters of each kind, sequences of layers, and that each kind computes the
 * same as the array function with these parameters.
 *
 * runs: metal-unsanitized, check */
#include <math.h>

#include "api.h"
#include "mica_nn.h"

typedef struct bench_top {
    mica_engine *engine;
    mica_scope *s;
    mica_params *p;
    mica_forward f;
} bench_top;

static bench_top top_begin(void)
{
    bench_top t = {.engine = open_engine("cpu")};
    t.s = mica_scope_begin(t.engine);
    EXPECT_OK(mica_params_new(&t.p));
    mica_forward_init(&t.f, t.s, t.p);
    return t;
}

static void top_end(bench_top *t)
{
    mica_params_free(t->p);
    mica_scope_end(t->s);
    mica_close(t->engine);
}

static mica_array *normal_of(bench_top *t, int ndim, const int64_t *shape)
{
    return mica_random_normal(t->s, MICA_F32, ndim, shape, 5);
}

/* ------------------------------------------------------------ parameters ---- */

static mica_layer with(mica_layer l, int64_t layers, bool both_ways, bool no_bias)
{
    l.layers = layers, l.bidirectional = both_ways, l.no_bias = no_bias;
    return l;
}

static mica_layer shared_heads(void)
{
    mica_layer l = mica_attention_layer(8, 4, true);
    l.heads.kv_heads = 2;
    return l;
}

static mica_layer grouped(void)
{
    mica_layer l = mica_conv1d_layer(4, 6, 3);
    l.conv.groups = 2;
    return l;
}

TEST(parameters_of_each_kind)
{
    const struct {
        const char *what;
        mica_layer layer;
        int64_t elements;
        const char *names[10]; /* in this order; "!" before a buffer */
    } cases[] = {
        /* clang-format off */
        {"linear", mica_linear_layer(3, 5), 20, {"l.weight", "l.bias"}},
        {"linear without bias", with(mica_linear_layer(3, 5), 1, false, true), 15, {"l.weight"}},
        {"bit_linear", mica_bit_linear_layer(3, 5), 15, {"l.weight"}},
        {"embedding", mica_embedding_layer(7, 2), 14, {"l.weight"}},
        {"conv1d", grouped(), 42, {"l.weight", "l.bias"}},
        {"conv2d", mica_conv2d_layer(2, 3, 3), 57, {"l.weight", "l.bias"}},
        {"layer_norm", mica_norm_layer(MICA_LAYER_LAYER_NORM, 4), 8, {"l.weight", "l.bias"}},
        {"rms_norm", mica_norm_layer(MICA_LAYER_RMS_NORM, 4), 4, {"l.weight"}},
        {"batch_norm", mica_norm_layer(MICA_LAYER_BATCH_NORM, 4), 16,
         {"l.weight", "l.bias", "!l.running_mean", "!l.running_var"}},
        {"dropout", mica_dropout_layer(0.5), 0, {NULL}},
        {"attention", shared_heads(), 2 * (8 * 8 + 8) + 2 * (4 * 8 + 4),
         {"l.q_proj.weight", "l.q_proj.bias", "l.k_proj.weight", "l.k_proj.bias", "l.v_proj.weight", "l.v_proj.bias",
          "l.out_proj.weight", "l.out_proj.bias"}},
        {"lstm", mica_recurrent_layer(MICA_LAYER_LSTM, 3, 2), 8 * (3 + 2 + 2),
         {"l.weight_ih_l0", "l.weight_hh_l0", "l.bias_ih_l0", "l.bias_hh_l0"}},
        {"gru, two both ways", with(mica_recurrent_layer(MICA_LAYER_GRU, 3, 2), 2, true, true),
         2 * 6 * (3 + 2) + 2 * 6 * (4 + 2),
         {"l.weight_ih_l0", "l.weight_hh_l0", "l.weight_ih_l0_reverse", "l.weight_hh_l0_reverse", "l.weight_ih_l1",
          "l.weight_hh_l1", "l.weight_ih_l1_reverse", "l.weight_hh_l1_reverse"}},
        {"activation", mica_activation_layer(MICA_ACTIVATION_RELU), 0, {NULL}},
        {"flatten", mica_flatten_layer(), 0, {NULL}},
        {"max_pool1d", mica_pool_layer(MICA_LAYER_MAX_POOL1D, 2), 0, {NULL}},
        /* clang-format on */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("%s", cases[i].what);
        bench_top t = top_begin();
        CHECK_OK(mica_layer_params(t.s, t.p, &cases[i].layer, 3, "%c", 'l'));
        EXPECT_INT(mica_params_elements(t.p), cases[i].elements);
        size_t n = 0;
        for (; n < 10 && cases[i].names[n]; n++) {
            const bool buffer = cases[i].names[n][0] == '!';
            EXPECT_STR(mica_params_name(t.p, n), cases[i].names[n] + buffer);
            EXPECT_INT(mica_params_is_trained(t.p, n), !buffer);
        }
        EXPECT_INT(mica_params_count(t.p), n);
        top_end(&t);
    }
}

/* PyTorch's first values: up to 1 / sqrt(in). */
TEST(first_values_have_their_bounds)
{
    bench_top t = top_begin();
    const mica_layer layers[] = {mica_linear_layer(100, 400), mica_conv2d_layer(4, 90, 5),
                                 mica_recurrent_layer(MICA_LAYER_GRU, 7, 100)};
    CHECK_OK(mica_sequential_params(t.s, t.p, layers, 3, 9, NULL));
    for (size_t i = 0; i < mica_params_count(t.p); i++) {
        test_case("%s", mica_params_name(t.p, i));
        mica_array *x = mica_abs(t.s, mica_params_at(t.p, i)), *most = mica_max(t.s, x, NULL, 0, false);
        CHECK_OK(mica_eval(t.s, &most, 1));
        EXPECT(item_of(most) <= 0.1 && item_of(most) > 0.095); /* 1 / sqrt(100), each of them */
    }
    top_end(&t);
}

TEST(values_follow_seed_and_place_only)
{
    bench_top a = top_begin(), b = top_begin();
    const mica_layer layers[] = {mica_linear_layer(3, 5), mica_linear_layer(5, 2)};
    CHECK_OK(mica_sequential_params(a.s, a.p, layers, 2, 9, "net"));
    CHECK_OK(mica_sequential_params(b.s, b.p, layers, 1, 9, "net"));
    CHECK_OK(mica_layer_params(b.s, b.p, &layers[1], 9, "net.1"));
    for (size_t i = 0; i < 4; i++) {
        EXPECT_STR(mica_params_name(a.p, i), mica_params_name(b.p, i));
        EXPECT(close_arrays(mica_params_at(a.p, i), mica_params_at(b.p, i)));
    }
    EXPECT(mica_data_f32(mica_params_at(a.p, 0))[0] != mica_data_f32(mica_params_at(a.p, 2))[0]);
    top_end(&a);
    top_end(&b);
}

/* --------------------------------------------------------------- results ---- */

/* Applies the layer "l" to x and compares the result with want. */
static void expect_same(bench_top *t, const mica_layer *layer, mica_array *x, mica_array *want)
{
    mica_array *pair[] = {mica_layer_apply(&t->f, layer, x, "l"), want};
    CHECK_OK(mica_eval(t->s, pair, 2));
    EXPECT(close_arrays(pair[0], pair[1]));
}

static mica_array *part(bench_top *t, const char *name) { return mica_param(&t->f, "l.%s", name); }

TEST(linear_and_embedding)
{
    bench_top t = top_begin();
    const mica_layer l = mica_linear_layer(3, 5), e = mica_embedding_layer(7, 2);
    CHECK_OK(mica_layer_params(t.s, t.p, &l, 1, "l"));
    mica_array *x = normal_of(&t, SHAPE(4, 3));
    expect_same(&t, &l, x, mica_linear(t.s, x, part(&t, "weight"), part(&t, "bias")));
    CHECK_OK(mica_layer_params(t.s, t.p, &e, 1, "e"));
    mica_array *ids = mica_from_data(t.s, MICA_I32, SHAPE(2, 2), (int32_t[]){0, 6, 3, 3});
    mica_array *pair[] = {mica_layer_apply(&t.f, &e, ids, "e"), mica_embedding(t.s, mica_param(&t.f, "e.weight"), ids)};
    CHECK_OK(mica_eval(t.s, pair, 2));
    EXPECT(close_arrays(pair[0], pair[1]));
    EXPECT_INT(mica_array_size(pair[0]), 8);
    top_end(&t);
}

TEST(bit_linear_and_norms)
{
    const mica_layer layers[] = {mica_bit_linear_layer(6, 5), mica_norm_layer(MICA_LAYER_LAYER_NORM, 6),
                                 mica_norm_layer(MICA_LAYER_RMS_NORM, 6)};
    for (int i = 0; i < 3; i++) {
        test_case("kind %d", (int)layers[i].kind);
        bench_top t = top_begin();
        CHECK_OK(mica_layer_params(t.s, t.p, &layers[i], 1, "l"));
        mica_array *x = normal_of(&t, SHAPE(4, 6)), *w = part(&t, "weight");
        expect_same(&t, &layers[i], x,
                    i == 0   ? mica_bit_linear(t.s, x, w)
                    : i == 1 ? mica_layer_norm(t.s, x, w, part(&t, "bias"), 1e-5)
                             : mica_rms_norm(t.s, x, w, 1e-5));
        top_end(&t);
    }
}

TEST(convolutions)
{
    bench_top t = top_begin();
    mica_layer l = mica_conv2d_layer(2, 3, 3);
    l.conv.padding[0] = l.conv.padding[1] = 1;
    l.conv.stride[0] = 2;
    CHECK_OK(mica_layer_params(t.s, t.p, &l, 1, "l"));
    mica_array *x = normal_of(&t, SHAPE(2, 2, 5, 4)), *bias = mica_reshape(t.s, part(&t, "bias"), SHAPE(3, 1, 1));
    expect_same(&t, &l, x, mica_add(t.s, mica_conv2d(t.s, x, part(&t, "weight"), &l.conv), bias));
    mica_layer line = mica_conv1d_layer(2, 3, 4);
    CHECK_OK(mica_layer_params(t.s, t.p, &line, 1, "line"));
    mica_array *y = mica_layer_apply(&t.f, &line, normal_of(&t, SHAPE(2, 2, 9)), "line");
    CHECK_OK(mica_eval(t.s, &y, 1));
    EXPECT_INT(mica_array_shape(y)[2], 6);
    top_end(&t);
}

TEST(pools_and_flatten)
{
    bench_top t = top_begin();
    mica_array *x = normal_of(&t, SHAPE(2, 3, 4, 6));
    const mica_layer layers[] = {mica_pool_layer(MICA_LAYER_MAX_POOL2D, 2), mica_pool_layer(MICA_LAYER_AVG_POOL2D, 2),
                                 mica_flatten_layer()};
    mica_pool_options o;
    mica_pool_options_init(&o);
    o.kernel[0] = o.kernel[1] = 2;
    expect_same(&t, &layers[0], x, mica_max_pool2d(t.s, x, &o));
    expect_same(&t, &layers[1], x, mica_avg_pool2d(t.s, x, &o));
    expect_same(&t, &layers[2], x, mica_reshape(t.s, x, SHAPE(2, 72)));
    mica_array *line = mica_reshape(t.s, x, SHAPE(2, 3, 24));
    const mica_layer lines[] = {mica_pool_layer(MICA_LAYER_MAX_POOL1D, 2), mica_pool_layer(MICA_LAYER_AVG_POOL1D, 2)};
    expect_same(&t, &lines[0], line, mica_max_pool1d(t.s, line, &o));
    expect_same(&t, &lines[1], line, mica_avg_pool1d(t.s, line, &o));
    top_end(&t);
}

TEST(attention_projects_attends_projects)
{
    bench_top t = top_begin();
    const mica_layer l = shared_heads();
    CHECK_OK(mica_layer_params(t.s, t.p, &l, 1, "l"));
    mica_array *x = normal_of(&t, SHAPE(2, 5, 8)), *rows[4];
    static const char *const names[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    for (int i = 0; i < 4; i++) {
        if (i == 3) x = mica_multi_head(t.s, rows[0], rows[1], rows[2], NULL, &l.heads);
        rows[i] =
            mica_linear(t.s, x, mica_param(&t.f, "l.%s.weight", names[i]), mica_param(&t.f, "l.%s.bias", names[i]));
    }
    expect_same(&t, &l, normal_of(&t, SHAPE(2, 5, 8)), rows[3]);
    top_end(&t);
}

/* Two bidirectional layers equal four single ones. */
TEST(recurrent_layers)
{
    for (int lstm = 0; lstm < 2; lstm++) {
        test_case("%s", lstm ? "lstm" : "gru");
        bench_top t = top_begin();
        mica_layer l = with(mica_recurrent_layer(lstm ? MICA_LAYER_LSTM : MICA_LAYER_GRU, 3, 4), 2, true, false);
        CHECK_OK(mica_layer_params(t.s, t.p, &l, 1, "l"));
        mica_array *x = normal_of(&t, SHAPE(2, 5, 3)), *first = x, *last[2];
        x = mica_permute(t.s, x, (int[]){1, 0, 2});
        for (int i = 0; i < 2; i++) {
            mica_array *y[2];
            for (int way = 0; way < 2; way++) {
                const char *end = way ? "_reverse" : "";
                const mica_recurrent_weights w = {sizeof w, mica_param(&t.f, "l.weight_ih_l%d%s", i, end),
                                                  mica_param(&t.f, "l.weight_hh_l%d%s", i, end),
                                                  mica_param(&t.f, "l.bias_ih_l%d%s", i, end),
                                                  mica_param(&t.f, "l.bias_hh_l%d%s", i, end)};
                mica_array *c = NULL;
                last[way] = NULL;
                CHECK_OK(lstm ? mica_lstm(t.s, x, &w, way, &last[way], &c, &y[way])
                              : mica_gru(t.s, x, &w, way, &last[way], &y[way]));
            }
            x = mica_concat(t.s, y, 2, -1);
        }
        expect_same(&t, &l, first, mica_permute(t.s, x, (int[]){1, 0, 2}));
        l.last_step = true;
        expect_same(&t, &l, first, mica_concat(t.s, last, 2, -1));
        EXPECT(!mica_layer_apply(&t.f, &l, normal_of(&t, SHAPE(5, 3)), "l"));
        EXPECT(strstr(mica_scope_error(t.s), "(batch, time, in)"));
        top_end(&t);
    }
}

/* Without a state, zeros; with the last state, the sequence continues. */
TEST(a_sequence_in_two_parts)
{
    bench_top t = top_begin();
    mica_array *x = normal_of(&t, SHAPE(6, 2, 3)), *h = NULL, *c = NULL, *y, *part_y[2];
    const mica_recurrent_weights w = {sizeof w, normal_of(&t, SHAPE(16, 3)), normal_of(&t, SHAPE(16, 4)),
                                      normal_of(&t, SHAPE(16)), NULL};
    CHECK_OK(mica_lstm(t.s, x, &w, false, &h, &c, &y));
    h = c = NULL;
    for (int64_t i = 0; i < 2; i++)
        CHECK_OK(mica_lstm(t.s, mica_slice_axis(t.s, x, 0, 3 * i, 3 * i + 3, 1), &w, false, &h, &c, &part_y[i]));
    mica_array *pair[] = {y, mica_concat(t.s, part_y, 2, 0)};
    CHECK_OK(mica_eval(t.s, pair, 2));
    EXPECT(close_arrays(pair[0], pair[1]));
    top_end(&t);
}

/* The input products of all steps are one matmul; each step is one product and one chain. */
TEST(a_sequence_is_one_plan)
{
    uint64_t kernels[2];
    for (int i = 0; i < 2; i++) {
        bench_top t = top_begin();
        const mica_layer l = mica_recurrent_layer(MICA_LAYER_GRU, 8, 8);
        CHECK_OK(mica_layer_params(t.s, t.p, &l, 1, "l"));
        mica_array *y = mica_layer_apply(&t.f, &l, normal_of(&t, SHAPE(2, i ? 64 : 4, 8)), "l");
        mica_plan_info info = {.struct_size = sizeof info};
        CHECK_OK(mica_plan_query(t.s, &y, 1, &info));
        kernels[i] = info.kernels;
        top_end(&t);
    }
    EXPECT_INT(kernels[1] - kernels[0], 2 * (64 - 4));
    EXPECT_MSG(kernels[0] <= 12, "%d kernels", (int)kernels[0]);
}

/* ------------------------------------------------------------- sequences ---- */

TEST(names_in_a_sequence)
{
    bench_top t = top_begin();
    mica_layer layers[] = {mica_linear_layer(3, 4), mica_activation_layer(MICA_ACTIVATION_TANH),
                           mica_linear_layer(4, 2)};
    layers[2].name = "head";
    CHECK_OK(mica_sequential_params(t.s, t.p, layers, 3, 1, "net"));
    EXPECT_STR(mica_params_name(t.p, 0), "net.0.weight");
    EXPECT_STR(mica_params_name(t.p, 3), "net.head.bias");
    mica_array *x = normal_of(&t, SHAPE(5, 3));
    mica_array *h =
        mica_tanh(t.s, mica_linear(t.s, x, mica_param(&t.f, "net.0.weight"), mica_param(&t.f, "net.0.bias")));
    mica_array *pair[] = {mica_sequential(&t.f, layers, 3, x, "net"),
                          mica_linear(t.s, h, mica_param(&t.f, "net.head.weight"), mica_param(&t.f, "net.head.bias"))};
    CHECK_OK(mica_eval(t.s, pair, 2));
    EXPECT(close_arrays(pair[0], pair[1]));
    EXPECT_FAILS(mica_sequential_params(t.s, t.p, layers, 3, 1, "net"), MICA_ERR_ARGUMENT, "'net.0.weight'");
    EXPECT(!mica_sequential(&t.f, layers, 3, x, "other"));
    EXPECT_STR(mica_scope_error(t.s), "params_get: there is no parameter 'other.0.weight'");
    top_end(&t);
}

TEST(perceptrons)
{
    const int64_t sizes[] = {4, 16, 8, 3};
    mica_layer l[8];
    EXPECT_INT(mica_mlp(sizes, 4, MICA_ACTIVATION_GELU, 0, l, 8), 5);
    EXPECT(l[0].kind == MICA_LAYER_LINEAR && l[1].kind == MICA_LAYER_ACTIVATION && l[4].kind == MICA_LAYER_LINEAR);
    EXPECT(l[1].activation == MICA_ACTIVATION_GELU && l[2].in == 16 && l[2].out == 8 && l[4].out == 3);
    EXPECT_INT(mica_mlp(sizes, 4, MICA_ACTIVATION_RELU, 0.1, l, 8), 7);
    EXPECT(l[2].kind == MICA_LAYER_DROPOUT && l[2].p == 0.1 && l[6].kind == MICA_LAYER_LINEAR);
    l[1].kind = MICA_LAYER_GRU;
    EXPECT_INT(mica_mlp(sizes, 4, MICA_ACTIVATION_RELU, 0, l, 1), 5); /* only the first is written */
    EXPECT(l[1].kind == MICA_LAYER_GRU);
    EXPECT_INT(mica_mlp(sizes, 1, MICA_ACTIVATION_RELU, 0, l, 1), 0);
    EXPECT_INT(mica_mlp(NULL, 4, MICA_ACTIVATION_RELU, 0, NULL, 0), 0);
}

TEST(dropout_only_when_training)
{
    bench_top t = top_begin();
    const mica_layer layers[] = {mica_dropout_layer(0.5), mica_dropout_layer(0.5)};
    const int32_t seed = 7;
    mica_array *x = mica_ones(t.s, MICA_F32, SHAPE(1000)), *out[3];
    t.f.seed = mica_from_data(t.s, MICA_I32, 0, NULL, &seed);
    out[0] = mica_sequential(&t.f, layers, 2, x, NULL);
    t.f.training = true;
    out[1] = mica_sequential(&t.f, layers, 2, x, NULL);
    EXPECT_INT(t.f.streams, 2);
    t.f.seed = NULL;
    out[2] = mica_sequential(&t.f, layers, 2, x, NULL);
    CHECK_OK(mica_eval(t.s, out, 3));
    int kept[3] = {0};
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < 1000; k++) kept[i] += element(out[i], k) != 0;
    EXPECT_INT(kept[0], 1000);
    EXPECT_INT(kept[2], 1000);
    EXPECT_MSG(kept[1] > 200 && kept[1] < 300, "%d of 1000 are left, expected a quarter", kept[1]); /* two streams */
    top_end(&t);
}

/* ---------------------------------------------------------------- values ---- */

TEST(orthogonal_values)
{
    static const int64_t shapes[][4] = {{5, 5}, {3, 8}, {8, 3}, {4, 2, 3}, {1, 1}};
    static const int axes[] = {2, 2, 2, 3, 2};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        test_case("shape %d", (int)i);
        bench_top t = top_begin();
        mica_array *x = mica_init_array(t.s, MICA_INIT_ORTHOGONAL, 2, MICA_F32, axes[i], shapes[i], 3);
        x = mica_reshape(t.s, x, SHAPE(shapes[i][0], -1));
        const int64_t rows = mica_array_shape(x)[0], cols = mica_array_shape(x)[1], n = rows < cols ? rows : cols;
        mica_array *y = mica_transpose(t.s, x);
        y = rows < cols ? mica_matmul(t.s, x, y) : mica_matmul(t.s, y, x);
        mica_array *far = mica_sub(t.s, y, mica_mul(t.s, mica_eye(t.s, MICA_F32, n, n, 0), mica_scalar(t.s, 4)));
        far = mica_max(t.s, mica_abs(t.s, far), NULL, 0, false);
        CHECK_OK(mica_eval(t.s, &far, 1));
        EXPECT_CLOSE(item_of(far), 0, 0, 2e-6);
        top_end(&t);
    }
    bench_top t = top_begin();
    EXPECT(!mica_init_array(t.s, MICA_INIT_ORTHOGONAL, 1, MICA_F32, SHAPE(3), 3));
    EXPECT(strstr(mica_scope_error(t.s), "orthogonal"));
    top_end(&t);
}

/* Fan-in and fan-out of a convolution include the size of its kernel. */
TEST(fans_of_kernels)
{
    bench_top t = top_begin();
    mica_array *x = mica_init_array(t.s, MICA_INIT_XAVIER_NORMAL, 1, MICA_F32, SHAPE(64, 32, 5, 5), 3);
    mica_array *deviation = mica_std(t.s, x, NULL, 0, 0, false);
    CHECK_OK(mica_eval(t.s, &deviation, 1));
    EXPECT_CLOSE(item_of(deviation), sqrt(2.0 / (96 * 25)), 0.02, 0);
    top_end(&t);
}

TEST(names_of_activations)
{
    mica_activation a;
    for (int i = 0; i <= MICA_ACTIVATION_SOFTPLUS; i++)
        EXPECT(mica_activation_named(mica_activation_name((mica_activation)i), &a) && (int)a == i);
    EXPECT(!mica_activation_name((mica_activation)99) && !mica_activation_named("no", &a));
    EXPECT(!mica_activation_named(NULL, &a) && !mica_activation_named("relu", NULL));
}
