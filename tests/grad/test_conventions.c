/* Gradients where the derivative does not exist, or where a formula that is correct on paper gives
 * 0 * infinity. */
#include "grad/grad_check.h"

/* Gradients of sum(build(x)) by every input, at given values of n elements. */
static bool gradients(grad_build build, int n_in, int64_t n, const double values[][8], double out[][8], int order)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *x[GRAD_MAX_IN], *g[GRAD_MAX_IN];
    for (int i = 0; i < n_in; i++) x[i] = mica_from_data(s, MICA_F64, 1, &n, values[i]);
    mica_array *loss = grad_total(s, build(s, x));
    bool ok = true;
    for (int k = 0; ok && k < order; k++) {
        ok = mica_grad(s, loss, x, (size_t)n_in, g) == MICA_OK;
        loss = ok ? grad_total(s, g[0]) : NULL;
    }
    ok = ok && mica_eval(s, g, (size_t)n_in) == MICA_OK;
    for (int i = 0; ok && i < n_in; i++) ok = mica_copy_out(g[i], out[i], (size_t)n * sizeof(double)) == MICA_OK;
    mica_scope_end(s);
    return EXPECT_MSG(ok, "%s", mica_last_error());
}

#define POINT(name, expression) \
    static mica_array *point_##name(mica_scope *s, mica_array **x) { return expression; }
POINT(abs, mica_abs(s, x[0]))
POINT(relu, mica_relu(s, x[0]))
POINT(leaky_relu, mica_leaky_relu(s, x[0], 0.25))
POINT(elu, mica_elu(s, x[0], 1))
POINT(sqrt, mica_sqrt(s, x[0]))
POINT(sigmoid, mica_sigmoid(s, x[0]))
POINT(softplus, mica_softplus(s, x[0]))
POINT(gelu, mica_gelu(s, x[0]))
POINT(gelu_tanh, mica_gelu_tanh(s, x[0]))
POINT(silu, mica_silu(s, x[0]))
POINT(tanh, mica_tanh(s, x[0]))
POINT(logsumexp, mica_logsumexp(s, x[0], NULL, 0, false))
POINT(max, mica_max(s, x[0], NULL, 0, false))
POINT(min, mica_min(s, x[0], NULL, 0, true))
POINT(prod, mica_prod(s, x[0], NULL, 0, false))
POINT(cumprod, mica_cumprod(s, x[0], 0))
POINT(maximum, mica_maximum(s, x[0], x[1]))
POINT(minimum, mica_minimum(s, x[0], x[1]))
POINT(hypot, mica_hypot(s, x[0], x[1]))
POINT(atan2, mica_atan2(s, x[0], x[1]))
POINT(pow, mica_pow(s, x[0], x[1]))
POINT(where_log, mica_where(s, mica_greater(s, x[0], mica_scalar(s, 0)), mica_log(s, mica_abs(s, x[0])), x[0]))

POINT(std, mica_std(s, x[0], NULL, 0, 0, false))
POINT(std_sample, mica_std(s, x[0], NULL, 0, 1, true))
POINT(var, mica_var(s, x[0], NULL, 0, 0, false))
POINT(norm_1, mica_norm(s, x[0], 1, NULL, 0, false))
POINT(norm_2, mica_norm(s, x[0], 2, NULL, 0, false))
POINT(norm_3, mica_norm(s, x[0], 3, NULL, 0, false))
POINT(norm_4, mica_norm(s, x[0], 4, NULL, 0, false))
POINT(norm_half, mica_norm(s, x[0], 0.5, NULL, 0, false))
POINT(norm_minus_1, mica_norm(s, x[0], -1, NULL, 0, false))
POINT(norm_inf, mica_norm(s, x[0], (double)INFINITY, NULL, 0, false))
POINT(norm_minus_inf, mica_norm(s, x[0], -(double)INFINITY, NULL, 0, false))
POINT(norm_0, mica_norm(s, x[0], 0, NULL, 0, false))

typedef struct point_case {
    const char *name;
    grad_build build;
    int n_in, n, order;
    double x[2][8], want[2][8];
} point_case;

#define INF ((double)INFINITY)
static const point_case points[] = {
    {"abs at 0", point_abs, 1, 3, 1, {{-2, 0, 2}}, {{-1, 0, 1}}},
    {"relu at 0", point_relu, 1, 3, 1, {{-2, 0, 2}}, {{0, 0, 1}}},
    {"leaky_relu at 0", point_leaky_relu, 1, 3, 1, {{-2, 0, 2}}, {{0.25, 0.25, 1}}},
    /* as in PyTorch: the subgradient is 0 where the root is 0, and for elements that are 0 */
    {"std of equal numbers", point_std, 1, 3, 1, {{2, 2, 2}}, {{0, 0, 0}}},
    {"std of equal numbers, twice", point_std, 1, 3, 2, {{2, 2, 2}}, {{0, 0, 0}}},
    {"std with ddof of equal numbers", point_std_sample, 1, 3, 1, {{0, 0, 0}}, {{0, 0, 0}}},
    {"std", point_std, 1, 2, 1, {{1, 5}}, {{-0.5, 0.5}}},
    {"var of equal numbers", point_var, 1, 3, 1, {{2, 2, 2}}, {{0, 0, 0}}},
    {"norm 1 at 0", point_norm_1, 1, 3, 1, {{0, 0, 0}}, {{0, 0, 0}}},
    {"norm 2 at 0", point_norm_2, 1, 3, 1, {{0, 0, 0}}, {{0, 0, 0}}},
    {"norm 3 at 0", point_norm_3, 1, 3, 1, {{0, 0, 0}}, {{0, 0, 0}}},
    {"norm 4 at 0", point_norm_4, 1, 3, 1, {{0, 0, 0}}, {{0, 0, 0}}},
    {"norm 0.5 at 0", point_norm_half, 1, 3, 1, {{0, 0, 0}}, {{0, 0, 0}}},
    {"norm -1 at 0", point_norm_minus_1, 1, 3, 1, {{0, 0, 0}}, {{0, 0, 0}}},
    {"norm inf at 0", point_norm_inf, 1, 3, 1, {{0, 0, 0}}, {{0, 0, 0}}},
    {"norm -inf at 0", point_norm_minus_inf, 1, 3, 1, {{0, 0, 0}}, {{0, 0, 0}}},
    {"norm 0", point_norm_0, 1, 3, 1, {{0, 2, 0}}, {{0, 0, 0}}},
    {"norm 1 with a 0", point_norm_1, 1, 3, 1, {{1, 0, -2}}, {{1, 0, -1}}},
    {"norm 3 with a 0", point_norm_3, 1, 3, 1, {{1, 0, -2}}, {{0.23112042478354493, 0, -0.92448169913417972}}},
    {"norm 0.5 with a 0", point_norm_half, 1, 3, 1, {{1, 0, -4}}, {{3, 0, -1.5}}},
    {"norm -1", point_norm_minus_1, 1, 2, 1, {{1, 2}}, {{4.0 / 9, 1.0 / 9}}},
    {"norm -1 with a 0", point_norm_minus_1, 1, 3, 1, {{1, 0, 2}}, {{0, 0, 0}}},
    {"norm 3 at 0, twice", point_norm_3, 1, 3, 2, {{0, 0, 0}}, {{0, 0, 0}}},
    {"sqrt at 0", point_sqrt, 1, 2, 1, {{0, 4}}, {{INF, 0.25}}},
    {"elu far out", point_elu, 1, 2, 1, {{-800, 800}}, {{0, 1}}},
    {"elu far out, second", point_elu, 1, 2, 2, {{-800, 800}}, {{0, 0}}},
    {"sigmoid far out", point_sigmoid, 1, 2, 1, {{-800, 800}}, {{0, 0}}},
    {"softplus far out", point_softplus, 1, 2, 1, {{-800, 800}}, {{0, 1}}},
    {"softplus far out, second", point_softplus, 1, 2, 2, {{-800, 800}}, {{0, 0}}},
    {"gelu far out", point_gelu, 1, 2, 1, {{-800, 800}}, {{0, 1}}},
    {"gelu_tanh far out", point_gelu_tanh, 1, 2, 1, {{-800, 800}}, {{0, 1}}},
    {"silu far out", point_silu, 1, 2, 1, {{-800, 800}}, {{0, 1}}},
    {"tanh far out, second", point_tanh, 1, 2, 2, {{-800, 800}}, {{0, 0}}},
    {"logsumexp far out", point_logsumexp, 1, 3, 1, {{-800, 800, -INF}}, {{0, 1, 0}}},
    {"max of equals", point_max, 1, 4, 1, {{1, 3, 3, 2}}, {{0, 0.5, 0.5, 0}}},
    {"min of equals", point_min, 1, 4, 1, {{1, 1, 1, 1}}, {{0.25, 0.25, 0.25, 0.25}}},
    {"prod with one 0", point_prod, 1, 3, 1, {{2, 0, 5}}, {{0, 10, 0}}},
    {"prod with two 0", point_prod, 1, 3, 1, {{0, 0, 5}}, {{0, 0, 0}}},
    {"cumprod with 0", point_cumprod, 1, 4, 1, {{2, 0, 5, 3}}, {{1, 2 + 10 + 30, 0, 0}}},
    {"maximum of equals", point_maximum, 2, 3, 1, {{1, 2, 3}, {3, 2, 1}}, {{0, 0.5, 1}, {1, 0.5, 0}}},
    {"minimum of equals", point_minimum, 2, 3, 1, {{1, 2, 3}, {3, 2, 1}}, {{1, 0.5, 0}, {0, 0.5, 1}}},
    {"hypot at 0", point_hypot, 2, 2, 1, {{0, 3}, {0, 4}}, {{0, 0.6}, {0, 0.8}}},
    {"atan2 at 0", point_atan2, 2, 2, 1, {{0, 3}, {0, 4}}, {{0, 0.16}, {0, -0.12}}},
    {"atan2 of tiny", point_atan2, 2, 1, 1, {{3e-200}, {4e-200}}, {{0.16e200}, {-0.12e200}}},
    {"pow at 0", point_pow, 2, 4, 1, {{0, 0, 0, 2}, {0, 1, 2, 0}}, {{0, 1, 0, 0}, {0, 0, 0, 0.69314718055994530942}}},
    {"pow of a negative", point_pow, 2, 2, 1, {{-2, -3}, {2, 3}}, {{-4, 27}, {0, 0}}},
    {"pow, second", point_pow, 2, 3, 2, {{0, 0, 3}, {1, 2, 3}}, {{0, 2, 18}, {1, 0, 9 + 27 * 1.0986122886681098}}},
    {"log under where", point_where_log, 1, 2, 1, {{4, -4}}, {{0.25, 1}}},
};

TEST(values_at_kinks_and_ends)
{
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        const point_case *p = &points[i];
        test_case("%s", p->name);
        double got[2][8];
        if (!gradients(p->build, p->n_in, p->n, p->x, got, p->order)) continue;
        for (int k = 0; k < p->n_in; k++)
            for (int e = 0; e < p->n; e++)
                if (!EXPECT_MSG(test_close(got[k][e], p->want[k][e], 1e-12, 1e-12),
                                "input %d, element %d: %g instead of %g", k, e, got[k][e], p->want[k][e]))
                    break;
    }
}

/* Arrays without elements have gradients of their shape; ops must accept
 * sizes of 0. */
typedef struct empty_case {
    const char *name;
    grad_build build;
    int n_in;
    grad_input in[3];
} empty_case;

POINT(empty_conv, mica_conv1d(s, x[0], x[1], NULL))
POINT(empty_attention, mica_attention(s, x[0], x[1], x[2], NULL, NULL))
POINT(empty_matmul, mica_matmul(s, x[0], x[1]))
POINT(empty_sort, mica_sort(s, x[0], 0, false))
POINT(empty_cumsum, mica_cumsum(s, x[0], 0))
POINT(empty_cummax, mica_cummax(s, x[0], 0))
POINT(empty_softmax, mica_softmax(s, x[0], 0))
POINT(empty_concat, mica_concat(s, x, 2, 0))
POINT(empty_pad, mica_pad(s, x[0], (int64_t[]){1, 0}, (int64_t[]){2, 0}, 0))
POINT(empty_take, mica_take(s, x[0], mica_zeros(s, MICA_I64, 1, (int64_t[]){0}), 0))

static const empty_case empties[] = {
    {"conv, no batch", point_empty_conv, 2, {{.ndim = 3, .shape = {0, 2, 4}}, {.ndim = 3, .shape = {3, 2, 2}}}},
    {"conv, no channels", point_empty_conv, 2, {{.ndim = 3, .shape = {1, 0, 4}}, {.ndim = 3, .shape = {3, 0, 2}}}},
    {"conv, no results", point_empty_conv, 2, {{.ndim = 3, .shape = {1, 2, 4}}, {.ndim = 3, .shape = {0, 2, 2}}}},
    {"attention, no queries",
     point_empty_attention,
     3,
     {{.ndim = 4, .shape = {1, 1, 0, 2}}, {.ndim = 4, .shape = {1, 1, 3, 2}}, {.ndim = 4, .shape = {1, 1, 3, 2}}}},
    {"attention, no keys",
     point_empty_attention,
     3,
     {{.ndim = 4, .shape = {1, 1, 2, 2}}, {.ndim = 4, .shape = {1, 1, 0, 2}}, {.ndim = 4, .shape = {1, 1, 0, 2}}}},
    {"attention, no batch",
     point_empty_attention,
     3,
     {{.ndim = 4, .shape = {0, 2, 2, 2}}, {.ndim = 4, .shape = {0, 1, 3, 2}}, {.ndim = 4, .shape = {0, 1, 3, 2}}}},
    {"matmul, no inner", point_empty_matmul, 2, {{.ndim = 2, .shape = {2, 0}}, {.ndim = 2, .shape = {0, 3}}}},
    {"matmul, no rows", point_empty_matmul, 2, {{.ndim = 2, .shape = {0, 2}}, {.ndim = 2, .shape = {2, 3}}}},
    {"sort", point_empty_sort, 1, {{.ndim = 2, .shape = {0, 2}}}},
    {"cumsum", point_empty_cumsum, 1, {{.ndim = 2, .shape = {0, 2}}}},
    {"cumprod", point_cumprod, 1, {{.ndim = 2, .shape = {0, 2}}}},
    {"cumprod, no rows", point_cumprod, 1, {{.ndim = 2, .shape = {2, 0}}}},
    {"cummax", point_empty_cummax, 1, {{.ndim = 2, .shape = {0, 2}}}},
    {"prod", point_prod, 1, {{.ndim = 2, .shape = {0, 2}}}},
    {"softmax", point_empty_softmax, 1, {{.ndim = 2, .shape = {0, 2}}}},
    {"concat", point_empty_concat, 2, {{.ndim = 2, .shape = {0, 2}}, {.ndim = 2, .shape = {3, 2}}}},
    {"pad", point_empty_pad, 1, {{.ndim = 2, .shape = {0, 2}}}},
    {"take", point_empty_take, 1, {{.ndim = 2, .shape = {3, 2}}}},
};

TEST(arrays_without_elements)
{
    for (size_t k = 0; k < sizeof empties / sizeof *empties; k++) {
        const empty_case *c = &empties[k];
        test_case("%s", c->name);
        mica_scope *s = mica_scope_begin(grad_engine());
        mica_array *x[3], *g[3];
        for (int i = 0; i < c->n_in; i++) x[i] = mica_ones(s, MICA_F64, c->in[i].ndim, c->in[i].shape);
        const bool ok = mica_grad(s, grad_total(s, c->build(s, x)), x, (size_t)c->n_in, g) == MICA_OK &&
                        mica_eval(s, g, (size_t)c->n_in) == MICA_OK;
        (void)EXPECT_MSG(ok, "%s", mica_last_error());
        for (int i = 0; ok && i < c->n_in; i++) (void)EXPECT(mica__shape_equal(&g[i]->spec, &x[i]->spec));
        mica_scope_end(s);
    }
}

/* Scores of 1000: exp overflows unless the largest score is subtracted. */
TEST(attention_with_large_scores)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    const int64_t shape[] = {1, 1, 2, 1};
    mica_array *x[3] = {mica_from_data(s, MICA_F64, 4, shape, (double[]){1000, -1000}),
                        mica_from_data(s, MICA_F64, 4, shape, (double[]){1, 1.0005}),
                        mica_from_data(s, MICA_F64, 4, shape, (double[]){2, 3})};
    mica_array *g[3];
    CHECK_MSG(mica_grad(s, grad_total(s, mica_attention(s, x[0], x[1], x[2], NULL, NULL)), x, 3, g) == MICA_OK, "%s",
              mica_last_error());
    CHECK_MSG(mica_eval(s, g, 3) == MICA_OK, "%s", mica_last_error());
    const double p = 1 / (1 + exp(-0.5)); /* weight of the larger score; scores differ by 0.5, in opposite order */
    CHECK_CLOSE(mica_data_f64(g[2])[0], 1, 1e-9, 0);
    CHECK_CLOSE(mica_data_f64(g[2])[1], 1, 1e-9, 0);
    CHECK_CLOSE(mica_data_f64(g[0])[0], p * (1 - p) * 0.0005, 1e-9, 0);
    mica_scope_end(s);
}

/* A query without keys: result and gradients are 0, also of second order, with a bool
 * mask and with a float mask of -infinity. */
TEST(attention_rows_that_see_nothing)
{
    const int64_t q_shape[] = {1, 1, 2, 2}, k_shape[] = {1, 1, 3, 2}, mask_shape[] = {2, 3};
    const double numbers[] = {0.1, 0.2, -0.3, 0.4, 0.5, -0.6};
    for (int kind = 0; kind < 2; kind++) {
        test_case("%s mask", kind ? "float" : "bool");
        mica_scope *s = mica_scope_begin(grad_engine());
        mica_array *x[3] = {mica_from_data(s, MICA_F64, 4, q_shape, numbers),
                            mica_from_data(s, MICA_F64, 4, k_shape, numbers),
                            mica_from_data(s, MICA_F64, 4, k_shape, numbers)};
        mica_array *mask =
            mica_from_data(s, MICA_BOOL, 2, mask_shape, (bool[]){true, false, true, false, false, false});
        if (kind) mask = mica_where(s, mask, mica_zeros(s, MICA_F64, 2, mask_shape), mica_scalar(s, -INF));
        mica_array *g[3], *h[3], *y = mica_attention(s, x[0], x[1], x[2], mask, NULL);
        CHECK_MSG(mica_grad(s, grad_dot(s, y, 3), x, 3, g) == MICA_OK, "%s", mica_last_error());
        mica_array *again = mica_add(s, grad_dot(s, g[0], 4), mica_add(s, grad_dot(s, g[1], 5), grad_dot(s, g[2], 6)));
        CHECK_MSG(mica_grad(s, again, x, 3, h) == MICA_OK, "%s", mica_last_error());
        mica_array *all[7] = {y, g[0], g[1], g[2], h[0], h[1], h[2]};
        CHECK_MSG(mica_eval(s, all, 7) == MICA_OK, "%s", mica_last_error());
        for (int i = 0; i < 7; i++) {
            double got[6];
            CHECK_MSG(mica_copy_out(all[i], got, mica_array_nbytes(all[i])) == MICA_OK, "%s", mica_last_error());
            for (int e = 0; e < mica_array_size(all[i]); e++)
                CHECK_MSG(isfinite(got[e]), "array %d, element %d: %g", i, e, got[e]);
            if (mica_array_size(all[i]) == 4)
                CHECK_MSG(got[2] == 0 && got[3] == 0, "array %d: %g, %g", i, got[2], got[3]);
        }
        mica_scope_end(s);
    }
}
