/* Parameter sets, initial values, and layers. BitLinear's forward pass is integer arithmetic; its
 * gradients are those of the straight-through definition.
 *
 * runs: metal, check */
#include <math.h>

#include "api.h"
#include "mica_nn.h"

TEST(parameter_sets)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_params *p;
    CHECK_OK(mica_params_new(&p));
    EXPECT_INT(mica_params_count(p), 0);
    CHECK_OK(mica_params_add(p, "a.weight", count_up(s, 3, 1)));
    CHECK_OK(mica_params_add(p, "b.weight", count_up(s, 4, 1)));
    EXPECT_INT(mica_params_count(p), 2);
    EXPECT_INT(mica_params_elements(p), 7);
    EXPECT_STR(mica_params_name(p, 1), "b.weight");
    EXPECT_INT(mica_params_index(p, "b.weight"), 1);
    EXPECT_INT(mica_params_index(p, "c.weight"), -1);
    EXPECT(!mica_params_name(p, 2) && !mica_params_at(p, 2));
    EXPECT(mica_params_get(s, p, "%c.weight", 'b') == mica_params_at(p, 1));
    EXPECT_FAILS(mica_params_add(p, "a.weight", count_up(s, 3, 1)), MICA_ERR_ARGUMENT, "'a.weight'");
    EXPECT_FAILS(mica_params_add(p, "c", NULL), MICA_ERR_ARGUMENT, "'c'");
    EXPECT_FAILS(mica_params_add(p, "", count_up(s, 3, 1)), MICA_ERR_ARGUMENT, "name");
    EXPECT_FAILS(mica_params_set(p, 0, count_up(s, 4, 1)), MICA_ERR_SHAPE, "'a.weight'");
    EXPECT_FAILS(mica_params_set(p, 0, mica_zeros(s, MICA_F64, SHAPE(3))), MICA_ERR_DTYPE, "f64");
    EXPECT_FAILS(mica_params_set(p, 2, count_up(s, 4, 1)), MICA_ERR_ARGUMENT, "2");
    CHECK_OK(mica_params_set(p, 0, count_up(s, 3, 5)));
    EXPECT_VALUES(mica_params_at(p, 0), 5, 6, 7);
    EXPECT(!mica_params_get(s, p, "no.%d", 7));
    EXPECT_STR(mica_scope_error(s), "params_get: there is no parameter 'no.7'");
    mica_scope_end(s);
    EXPECT_VALUES(mica_params_at(p, 1), 1, 2, 3, 4); /* kept by the set */
    mica_params_free(p);
    mica_params_free(NULL);
    mica_close(e);
}

TEST(many_parameters)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_params *p;
    CHECK_OK(mica_params_new(&p));
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        CHECK_OK(mica_params_add(p, name, count_up(s, 1, (float)i)));
    }
    EXPECT_INT(mica_params_index(p, "p77"), 77);
    EXPECT_VALUES(mica_params_at(p, 77), 77);
    mica_params_free(p);
    mica_scope_end(s);
    mica_close(e);
}

/* Mean and deviation of each scheme against its definition. */
TEST(initial_values)
{
    static const struct {
        mica_init how;
        double scale, deviation;
    } cases[] = {{MICA_INIT_ZEROS, 1, 0},
                 {MICA_INIT_UNIFORM, 0.3, 0.3 / 1.7320508},
                 {MICA_INIT_NORMAL, 0.02, 0.02},
                 {MICA_INIT_XAVIER_UNIFORM, 1, 0.0456435}, /* sqrt(2 / (640 + 320)) */
                 {MICA_INIT_XAVIER_NORMAL, 1, 0.0456435},
                 {MICA_INIT_KAIMING_UNIFORM, 1.4142136, 0.0790569}, /* sqrt(2 / 320) */
                 {MICA_INIT_KAIMING_NORMAL, 1.4142136, 0.0790569}};
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("scheme %d", (int)cases[i].how);
        mica_array *x = mica_init_array(s, cases[i].how, cases[i].scale, MICA_F32, SHAPE(640, 320), 5);
        mica_array *out[] = {mica_mean(s, x, NULL, 0, false), mica_std(s, x, NULL, 0, 0, false)};
        CHECK_OK(mica_eval(s, out, 2));
        EXPECT_CLOSE(item_of(out[0]), 0, 0, cases[i].deviation * 0.01);
        EXPECT_CLOSE(item_of(out[1]), cases[i].deviation, 0.01, 0);
    }
    mica_array *ones = mica_init_array(s, MICA_INIT_ONES, 1, MICA_F32, SHAPE(2), 1);
    CHECK_OK(mica_eval(s, &ones, 1));
    EXPECT_VALUES(ones, 1, 1);
    EXPECT(!mica_init_array(s, (mica_init)99, 1, MICA_F32, SHAPE(2), 1));
    EXPECT(strstr(mica_scope_error(s), "99"));
    mica_scope_end(s);
    mica_close(e);
}

/* ------------------------------------------------------------- BitLinear ---- */

enum { ROWS = 5, IN = 37, OUT = 9 };

/* What the packed model computes: codes as integers, integer sums, scales. */
static void packed_model(const float *x, const float *w, float *y, int8_t *x_code, float *x_scale, int8_t *w_code,
                         float *w_scale)
{
    double sum = 0;
    for (int i = 0; i < OUT * IN; i++) sum += fabs((double)w[i]);
    *w_scale = (float)(sum / (OUT * IN));
    if (*w_scale < 1e-5f) *w_scale = 1e-5f;
    for (int i = 0; i < OUT * IN; i++) {
        const float r = rintf(w[i] * (1 / *w_scale));
        w_code[i] = (int8_t)(r < -1 ? -1 : r > 1 ? 1 : r);
    }
    for (int r = 0; r < ROWS; r++) {
        float largest = 1e-5f;
        for (int i = 0; i < IN; i++) largest = fmaxf(largest, fabsf(x[r * IN + i]));
        for (int i = 0; i < IN; i++) x_code[r * IN + i] = (int8_t)rintf(x[r * IN + i] * (127 / largest));
        x_scale[r] = largest * (float)(1.0 / 127);
        for (int o = 0; o < OUT; o++) {
            int32_t dot = 0;
            for (int i = 0; i < IN; i++) dot += x_code[r * IN + i] * w_code[o * IN + i];
            y[r * OUT + o] = (float)dot * (x_scale[r] * *w_scale);
        }
    }
}

TEST(bit_linear_is_integer_arithmetic)
{
    for (size_t b = 0; b < COUNT(backends); b++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            test_case("%s, seed %d", backends[b], (int)seed);
            mica_engine *e = open_engine(backends[b]);
            mica_scope *s = mica_scope_begin(e);
            mica_array *x = mica_random_normal(s, MICA_F32, SHAPE(ROWS, IN), 10 + seed);
            /* seed 3: values so small that the scales are clamped */
            mica_array *w =
                mica_init_array(s, MICA_INIT_NORMAL, seed == 3 ? 1e-9 : 0.05, MICA_F32, SHAPE(OUT, IN), 20 + seed);
            if (seed == 3) x = mica_mul(s, x, mica_scalar(s, 1e-9));
            mica_array *y = mica_bit_linear(s, x, w), *out[] = {x, w, y};
            CHECK_OK(mica_eval(s, out, 3));
            float want[ROWS * OUT], x_scale[ROWS], w_scale;
            int8_t x_code[ROWS * IN], w_code[OUT * IN];
            packed_model(mica_data_f32(x), mica_data_f32(w), want, x_code, x_scale, w_code, &w_scale);
            for (int i = 0; i < ROWS * OUT; i++) EXPECT_CLOSE(mica_data_f32(y)[i], want[i], 2e-7, 0);
            mica_scope_end(s);
            mica_close(e);
        }
}

TEST(codes_are_rounded_to_even_and_clamped)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    const float x[] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -127, 0}, w[] = {4, -4, 1, -1, 3, -3, 0, 0};
    mica_array *x_scale, *w_scale;
    mica_array *out[] = {mica_int8_codes(s, mica_from_data(s, MICA_F32, SHAPE(1, 8), x), &x_scale),
                         mica_ternary_codes(s, mica_from_data(s, MICA_F32, SHAPE(2, 4), w), &w_scale), NULL, NULL};
    out[2] = x_scale, out[3] = w_scale;
    CHECK_OK(mica_eval(s, out, 4));
    EXPECT_VALUES(out[0], 127, 0, 2, 2, 0, -2, -127, 0);
    EXPECT_VALUES(out[1], 1, -1, 0, 0, 1, -1, 0, 0); /* 0.5 to 0, 1.5 and 2 to 2 and clamped */
    EXPECT_VALUES(out[2], 1);
    EXPECT_VALUES(out[3], 2);
    mica_scope_end(s);
    mica_close(e);
}

TEST(bit_linear_keeps_nan)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    const float x[] = {1, NAN, 2, 3, 1, 2};
    mica_array *y =
        mica_bit_linear(s, mica_from_data(s, MICA_F32, SHAPE(2, 3), x), mica_ones(s, MICA_F32, SHAPE(2, 3)));
    CHECK_OK(mica_eval(s, &y, 1));
    EXPECT(isnan(mica_data_f32(y)[0]) && isnan(mica_data_f32(y)[1]));
    EXPECT_CLOSE(mica_data_f32(y)[2], 6, 0.02, 0); /* the other row is not affected */
    mica_scope_end(s);
    mica_close(e);
}

/* x + stop(round(x) - x), literally. */
static mica_array *as_defined(mica_scope *s, mica_array *x, mica_array *codes, mica_array *scale)
{
    return mica_add(s, x, mica_stop_gradient(s, mica_sub(s, mica_mul(s, codes, scale), x)));
}

TEST(gradients_pass_straight_through)
{
    for (int axes = 2; axes <= 3; axes++) {
        test_case("x with %d axes", axes);
        mica_engine *e = open_engine("ref");
        mica_scope *s = mica_scope_begin(e);
        const int64_t shape[] = {3, 4, IN};
        mica_array *x = mica_random_normal(s, MICA_F64, axes, shape + 3 - axes, 1);
        mica_array *w = mica_init_array(s, MICA_INIT_NORMAL, 0.1, MICA_F64, SHAPE(OUT, IN), 2);
        mica_array *wrt[] = {x, w}, *got[2], *want[2], *x_scale, *w_scale;
        CHECK_OK(mica_eval(s, wrt, 2));
        mica_array *loss = mica_sum(s, mica_sin(s, mica_bit_linear(s, x, w)), NULL, 0, false);
        CHECK_OK(mica_grad(s, loss, wrt, 2, got));
        mica_array *x_codes = mica_int8_codes(s, x, &x_scale), *w_codes = mica_ternary_codes(s, w, &w_scale);
        mica_array *y = mica_linear(s, as_defined(s, x, x_codes, x_scale), as_defined(s, w, w_codes, w_scale), NULL);
        CHECK_OK(mica_grad(s, mica_sum(s, mica_sin(s, y), NULL, 0, false), wrt, 2, want));
        for (int i = 0; i < 2; i++) {
            mica_array *pair[] = {got[i] = mica_contiguous(s, got[i]), want[i] = mica_contiguous(s, want[i])};
            CHECK_OK(mica_eval(s, pair, 2));
            const int64_t n = mica_array_size(got[i]);
            CHECK_INT(n, mica_array_size(wrt[i]));
            for (int64_t k = 0; k < n; k++)
                EXPECT_CLOSE(mica_data_f64(got[i])[k], mica_data_f64(want[i])[k], 1e-12, 1e-12);
        }
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(bad_layers)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up_2d(s, 3, 4);
    EXPECT(!mica_bit_linear(s, x, count_up(s, 4, 1)));
    EXPECT(strstr(mica_scope_error(s), "bit_linear"));
    mica_scope_clear_error(s);
    EXPECT(!mica_bit_linear(s, x, count_up_2d(s, 2, 5)));
    EXPECT_INT(mica_scope_status(s), MICA_ERR_SHAPE);
    mica_scope_clear_error(s);
    EXPECT(!mica_bit_linear(s, NULL, x) && !mica_linear(s, NULL, x, NULL));
    mica_scope_clear_error(s);
    EXPECT(!mica_dropout(s, x, 1.5, count_up(s, 1, 1), 0));
    EXPECT(strstr(mica_scope_error(s), "dropout: probability 1.5 is out of range"));
    EXPECT(!mica_multi_head(s, x, x, x, NULL, NULL));
    mica_scope_end(s);
    mica_close(e);
}

/* --------------------------------------------------------------- dropout ---- */

TEST(dropout_follows_its_seed)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    const int64_t n = 100000;
    mica_array *x = mica_ones(s, MICA_F32, 1, &n), *out[4];
    for (int i = 0; i < 4; i++) {
        const int32_t seed = i == 2 ? 8 : 7;
        out[i] = mica_dropout(s, x, 0.3, mica_from_data(s, MICA_I32, 0, NULL, &seed), i == 3);
    }
    CHECK_OK(mica_eval(s, out, 4));
    int kept = 0, differs[4] = {0}, neighbours = 0;
    for (int64_t k = 0; k < n; k++) {
        const float first = mica_data_f32(out[0])[k];
        EXPECT(first == 0 || fabsf(first - 1 / 0.7f) < 1e-6f);
        kept += first != 0;
        neighbours += k > 0 && (first != 0) == (mica_data_f32(out[0])[k - 1] != 0);
        for (int i = 1; i < 4; i++) differs[i] += mica_data_f32(out[i])[k] != first;
    }
    EXPECT_CLOSE(kept, 0.7 * (double)n, 0.01, 0);
    EXPECT_CLOSE(neighbours, 0.58 * (double)n, 0.02, 0); /* 0.7^2 + 0.3^2: independent */
    EXPECT_INT(differs[1], 0);
    EXPECT_CLOSE(differs[2], 0.42 * (double)n, 0.03, 0); /* another seed */
    EXPECT_CLOSE(differs[3], 0.42 * (double)n, 0.03, 0); /* another stream */
    mica_array *none = mica_sum(s, mica_dropout(s, x, 1, mica_scalar(s, 7), 0), NULL, 0, false);
    CHECK_OK(mica_eval(s, &none, 1));
    EXPECT(item_of(none) == 0 && mica_dropout(s, x, 0, mica_scalar(s, 7), 0) == x);
    mica_scope_end(s);
    mica_close(e);
}
