/* The reverse pass: which arrays get which gradient, through which ops, and what is refused. The
 * formulas of single ops are tested in test_grad_ops.c.
 *
 * runs: check */
#include "grad/grad_check.h"

static mica_scope *begin(void) { return mica_scope_begin(grad_engine()); }

static mica_array *vector(mica_scope *s, int64_t n, const double *data)
{
    return mica_from_data(s, MICA_F64, 1, &n, data);
}

static void check_vector(mica_array *x, int64_t n, const double *want)
{
    double got[16];
    CHECK(x != NULL);
    CHECK_INT(mica_array_size(x), n);
    CHECK_MSG(mica_copy_out(x, got, (size_t)n * sizeof *got) == MICA_OK, "%s", mica_last_error());
    for (int64_t i = 0; i < n; i++) CHECK_CLOSE(got[i], want[i], 1e-12, 1e-12);
}

#define CHECK_OK(call) CHECK_MSG((call) == MICA_OK, "%s", mica_last_error())
#define CHECK_FAILS(call, status, word)                                              \
    do {                                                                             \
        CHECK_INT(call, status);                                                     \
        CHECK_MSG(strstr(mica_last_error(), word) != NULL, "%s", mica_last_error()); \
        mica_scope_clear_error(s);                                                   \
    } while (0)

/* -------------------------------------------------------------- structure -- */

TEST(shared_subgraphs_are_walked_once)
{
    mica_scope *s = begin();
    mica_array *x = vector(s, 2, (double[]){1, -3}), *y = x, *g;
    for (int i = 0; i < 40; i++) y = mica_add(s, y, y); /* 2^40 paths */
    CHECK_OK(mica_grad(s, grad_total(s, y), &x, 1, &g));
    CHECK_OK(mica_eval(s, &g, 1));
    check_vector(g, 2, (double[]){0x1p40, 0x1p40});
    mica_scope_end(s);
}

TEST(a_chain_of_100000_nodes)
{
    mica_scope *s = begin();
    mica_array *x = vector(s, 2, (double[]){1, 2}), *one = vector(s, 2, (double[]){1, 1}), *y = x, *g[2];
    for (int i = 0; i < 100000; i++) y = i % 2 ? mica_add(s, y, one) : mica_sub(s, y, one);
    CHECK_OK(mica_grad(s, grad_total(s, y), (mica_array *[]){x}, 1, g));
    CHECK_OK(mica_eval(s, g, 1));
    check_vector(g[0], 2, (double[]){1, 1});
    mica_scope_end(s);
}

TEST(gradients_by_interior_arrays_stop_nothing)
{
    mica_scope *s = begin();
    mica_array *x = vector(s, 2, (double[]){0.5, 2});
    mica_array *h = mica_exp(s, x), *loss = grad_total(s, mica_mul(s, mica_square(s, h), x));
    mica_array *g[3];
    CHECK_OK(mica_grad(s, loss, (mica_array *[]){h, x, loss}, 3, g));
    CHECK_OK(mica_eval(s, g, 3));
    check_vector(g[0], 2, (double[]){2 * exp(0.5) * 0.5, 2 * exp(2) * 2});
    check_vector(g[1], 2, (double[]){exp(1) * (1 + 2 * 0.5), exp(4) * (1 + 2 * 2)});
    check_vector(g[2], 1, (double[]){1});
    mica_scope_end(s);
}

TEST(an_array_named_twice_gets_its_gradient_twice)
{
    mica_scope *s = begin();
    mica_array *x = vector(s, 2, (double[]){3, 4}), *g[2];
    CHECK_OK(mica_grad(s, grad_total(s, mica_square(s, x)), (mica_array *[]){x, x}, 2, g));
    CHECK_OK(mica_eval(s, g, 2));
    check_vector(g[0], 2, (double[]){6, 8});
    check_vector(g[1], 2, (double[]){6, 8});
    mica_scope_end(s);
}

TEST(an_array_without_influence_gets_zeros)
{
    mica_scope *s = begin();
    mica_array *x = vector(s, 2, (double[]){3, 4}), *g[3];
    mica_array *other = mica_ones(s, MICA_F32, 2, (int64_t[]){2, 3});
    mica_array *cut = mica_floor(s, x); /* a derivative of 0 everywhere */
    mica_array *loss = grad_total(s, mica_add(s, mica_mul(s, x, x), cut));
    CHECK_OK(mica_grad(s, loss, (mica_array *[]){other, x, mica_exp(s, x)}, 3, g));
    CHECK_INT(mica_array_dtype(g[0]), MICA_F32);
    CHECK_INT(mica_array_ndim(g[0]), 2);
    CHECK_OK(mica_eval(s, g, 3));
    CHECK(mica_data_f32(g[0])[5] == 0);
    check_vector(g[1], 2, (double[]){6, 8});
    check_vector(g[2], 2, (double[]){0, 0});
    mica_scope_end(s);
}

TEST(stop_gradient_stops)
{
    mica_scope *s = begin();
    mica_array *x = vector(s, 2, (double[]){3, 4}), *g;
    mica_array *y = mica_mul(s, x, mica_stop_gradient(s, mica_square(s, x)));
    CHECK_OK(mica_grad(s, grad_total(s, y), &x, 1, &g));
    CHECK_OK(mica_eval(s, &g, 1));
    check_vector(g, 2, (double[]){9, 16});
    mica_scope_end(s);
}

TEST(vjp_of_several_outputs)
{
    mica_scope *s = begin();
    mica_array *x = vector(s, 2, (double[]){2, 3}), *w = vector(s, 2, (double[]){5, 7});
    mica_array *outs[3] = {mica_mul(s, x, w), mica_sum(s, x, NULL, 0, false), x};
    mica_array *cts[3] = {vector(s, 2, (double[]){10, 100}), mica_scalar(s, 1000), vector(s, 2, (double[]){0.5, 0.25})};
    mica_array *g[2];
    CHECK_OK(mica_vjp(s, outs, cts, 3, (mica_array *[]){x, w}, 2, g));
    CHECK_OK(mica_eval(s, g, 2));
    check_vector(g[0], 2, (double[]){50 + 1000 + 0.5, 700 + 1000 + 0.25});
    check_vector(g[1], 2, (double[]){20, 300});
    mica_scope_end(s);
}

static mica_array *ridge(mica_scope *s, mica_array *const *p, size_t n, void *user)
{
    mica_array *loss = grad_total(s, mica_square(s, mica_sub(s, p[0], user)));
    return n > 1 ? mica_add(s, loss, grad_total(s, mica_square(s, p[1]))) : loss;
}

static mica_array *no_loss(mica_scope *s, mica_array *const *p, size_t n, void *user)
{
    (void)s, (void)p, (void)n, (void)user;
    return NULL;
}

TEST(value_and_grad_gives_both)
{
    mica_scope *s = begin();
    mica_array *p[2] = {vector(s, 2, (double[]){1, 2}), vector(s, 1, (double[]){3})},
               *target = vector(s, 2, (double[]){0, 1});
    mica_array *out[3];
    CHECK_OK(mica_value_and_grad(s, ridge, target, p, 2, &out[0], &out[1]));
    CHECK_OK(mica_eval(s, out, 3));
    check_vector(out[0], 1, (double[]){1 + 1 + 9});
    check_vector(out[1], 2, (double[]){2, 2});
    check_vector(out[2], 1, (double[]){6});
    CHECK_FAILS(mica_value_and_grad(s, no_loss, NULL, p, 2, &out[0], &out[1]), MICA_ERR_ARGUMENT, "returned NULL");
    CHECK(out[0] == NULL && out[1] == NULL && out[2] == NULL);
    CHECK_FAILS(mica_value_and_grad(s, NULL, NULL, p, 2, &out[0], &out[1]), MICA_ERR_ARGUMENT, "NULL");
    mica_scope_end(s);
}

/* ------------------------------------------------------ evaluated and kept -- */

TEST(an_evaluated_loss_of_this_scope_has_gradients)
{
    mica_scope *s = begin();
    mica_array *x = vector(s, 2, (double[]){3, 4});
    mica_array *h = mica_square(s, x), *loss = grad_total(s, mica_mul(s, h, x)), *g[2];
    CHECK_OK(mica_eval(s, (mica_array *[]){loss, h}, 2));
    CHECK_OK(mica_grad(s, loss, (mica_array *[]){x, h}, 2, g));
    CHECK_OK(mica_eval(s, g, 2));
    check_vector(g[0], 2, (double[]){27, 48});
    check_vector(g[1], 2, (double[]){3, 4});
    mica_scope_end(s);
}

TEST(parameters_may_come_from_another_scope)
{
    mica_scope *outer = begin();
    mica_array *w = mica_keep(vector(outer, 2, (double[]){3, 4}));
    mica_scope_end(outer);
    for (int i = 0; i < 3; i++) {
        mica_scope *s = begin();
        mica_array *g, *next = NULL;
        CHECK_OK(mica_grad(s, grad_total(s, mica_square(s, w)), &w, 1, &g));
        next = mica_sub(s, w, mica_mul(s, g, mica_scalar(s, 0.25)));
        CHECK_OK(mica_eval(s, &next, 1));
        mica_keep(next);
        mica_drop(w);
        w = next;
        mica_scope_end(s);
    }
    check_vector(w, 2, (double[]){3.0 / 8, 4.0 / 8});
    mica_drop(w);
}

TEST(a_lazy_array_of_another_scope_is_gone_through)
{
    mica_scope *outer = begin();
    mica_array *x = mica_keep(vector(outer, 2, (double[]){3, 4})), *h = mica_keep(mica_square(outer, x)), *g;
    mica_scope_end(outer);
    mica_scope *s = begin();
    CHECK_OK(mica_grad(s, grad_total(s, h), &x, 1, &g));
    CHECK_OK(mica_eval(s, &g, 1));
    check_vector(g, 2, (double[]){6, 8});
    mica_scope_end(s);
    mica_drop(x);
    mica_drop(h);
}

/* ----------------------------------------------------------------- errors -- */

TEST(what_has_no_gradient_is_refused)
{
    mica_scope *s = begin();
    mica_array *x = vector(s, 2, (double[]){3, 4}), *loss = grad_total(s, x), *g[2] = {x, x};
    mica_array *i = mica_zeros(s, MICA_I32, 1, (int64_t[]){2});
    CHECK_FAILS(mica_grad(s, x, &x, 1, g), MICA_ERR_SHAPE, "(2)");
    CHECK(g[0] == NULL);
    CHECK_FAILS(mica_grad(s, loss, (mica_array *[]){x, i}, 2, g), MICA_ERR_DTYPE, "i32");
    CHECK_FAILS(mica_grad(s, grad_total(s, i), &x, 1, g), MICA_ERR_DTYPE, "i64");
    CHECK_FAILS(mica_grad(s, loss, NULL, 1, g), MICA_ERR_ARGUMENT, "wrt");
    CHECK_FAILS(mica_grad(s, loss, &x, 1, NULL), MICA_ERR_ARGUMENT, "grads");
    CHECK_FAILS(mica_grad(s, NULL, &x, 1, g), MICA_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(mica_grad(s, loss, (mica_array *[]){NULL}, 1, g), MICA_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(mica_vjp(s, &x, &loss, 1, &x, 1, g), MICA_ERR_SHAPE, "cotangent");
    CHECK_FAILS(mica_vjp(s, &i, &i, 1, &x, 1, g), MICA_ERR_DTYPE, "output 0");
    mica_array *single = mica_cast(s, x, MICA_F32);
    CHECK_FAILS(mica_vjp(s, &x, &single, 1, &x, 1, g), MICA_ERR_DTYPE, "f32");
    CHECK_FAILS(mica_vjp(s, NULL, &x, 1, &x, 1, g), MICA_ERR_ARGUMENT, "outputs");
    CHECK_FAILS(mica_vjp(s, (mica_array *[]){NULL}, &x, 1, &x, 1, g), MICA_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(mica_vjp(s, &x, (mica_array *[]){NULL}, 1, &x, 1, g), MICA_ERR_ARGUMENT, "NULL");
    CHECK_OK(mica_grad(s, loss, NULL, 0, NULL));
    mica_scope_end(s);
    CHECK_INT(mica_grad(NULL, loss, NULL, 0, NULL), MICA_ERR_ARGUMENT);
}

TEST(a_failure_before_is_the_failure_reported)
{
    mica_scope *s = begin();
    mica_array *x = vector(s, 2, (double[]){3, 4}), *y = vector(s, 3, (double[]){3, 4, 5}), *g;
    mica_array *loss = grad_total(s, mica_add(s, x, y));
    CHECK(loss == NULL);
    CHECK_INT(mica_grad(s, loss, &x, 1, &g), MICA_ERR_SHAPE);
    CHECK_MSG(strstr(mica_last_error(), "add") != NULL, "%s", mica_last_error());
    mica_scope_end(s);
}

TEST(an_array_evaluated_elsewhere_does_not_know_its_past)
{
    mica_scope *outer = begin();
    mica_array *x = mica_keep(vector(outer, 2, (double[]){3, 4})), *loss = mica_keep(grad_total(outer, x)), *g;
    CHECK_OK(mica_eval(outer, &loss, 1));
    mica_scope *s = begin();
    CHECK_FAILS(mica_grad(s, loss, &x, 1, &g), MICA_ERR_STATE, "scope");
    mica_scope_end(outer);
    CHECK_FAILS(mica_grad(s, loss, &x, 1, &g), MICA_ERR_STATE, "scope");
    mica_scope_end(s);
    mica_drop(x);
    mica_drop(loss);
}

/* h = x^2, evaluated in a scope of its own, which ends; *x and *h are kept. */
static void evaluated_in_an_ended_scope(mica_array **x, mica_array **h)
{
    mica_scope *s = begin();
    *x = mica_keep(vector(s, 2, (double[]){1, -3}));
    *h = mica_keep(mica_square(s, *x));
    CHECK_OK(mica_eval(s, h, 1));
    mica_scope_end(s);
}

TEST(a_gradient_through_an_array_of_an_ended_scope_is_an_error)
{
    mica_array *x, *h, *g[2];
    evaluated_in_an_ended_scope(&x, &h);
    mica_scope *s = begin();
    mica_array *loss = grad_total(s, mica_exp(s, h));
    CHECK_FAILS(mica_grad(s, loss, &x, 1, g), MICA_ERR_STATE, "array 0 is unknown");
    CHECK(g[0] == NULL);
    /* Also if another array has a gradient, and through an array that was evaluated again later. */
    mica_array *w = vector(s, 2, (double[]){2, 2});
    loss = grad_total(s, mica_mul(s, w, h));
    CHECK_FAILS(mica_grad(s, loss, (mica_array *[]){w, x}, 2, g), MICA_ERR_STATE, "array 1 is unknown");
    mica_scope *second = begin();
    mica_array *twice = mica_keep(mica_add(second, h, h));
    CHECK_OK(mica_eval(second, &twice, 1));
    mica_scope_end(second);
    CHECK_FAILS(mica_grad(s, grad_total(s, twice), &x, 1, g), MICA_ERR_STATE, "of op add");
    mica_drop(twice);
    mica_drop(h);
    mica_drop(x);
    mica_scope_end(s);
}

TEST(what_an_array_of_an_ended_scope_cannot_depend_on_gets_zeros)
{
    mica_array *x, *h, *g[2];
    evaluated_in_an_ended_scope(&x, &h);
    mica_scope *s = begin();
    /* w is newer than h. With mica_stop_gradient, or as a separate array, h is a constant. */
    mica_array *w = vector(s, 2, (double[]){2, 2});
    mica_array *constant = mica_stop_gradient(s, h);
    CHECK_OK(mica_grad(s, grad_total(s, mica_exp(s, constant)), (mica_array *[]){x, w}, 2, g));
    CHECK_OK(mica_eval(s, g, 2));
    check_vector(g[0], 2, (double[]){0, 0});
    check_vector(g[1], 2, (double[]){0, 0});
    mica_scope_end(s);

    mica_array *before, *data;
    s = begin();
    before = mica_keep(vector(s, 2, (double[]){5, 5})); /* older than all arrays that data was computed from */
    mica_scope_end(s);
    evaluated_in_an_ended_scope(&w, &data);
    s = begin();
    CHECK_OK(mica_grad(s, grad_total(s, data), (mica_array *[]){before, data}, 2, g));
    CHECK_OK(mica_eval(s, g, 2));
    check_vector(g[0], 2, (double[]){0, 0});
    check_vector(g[1], 2, (double[]){1, 1});
    mica_scope_end(s);
    mica_drop(before), mica_drop(data), mica_drop(w), mica_drop(x), mica_drop(h);
}

/* ------------------------------------------------------------ custom_grad -- */

typedef struct custom_log {
    int calls, released;
    size_t n;
    mica_status status;
    bool wrong_shape;
} custom_log;

static mica_status custom_vjp(mica_scope *s, mica_array *ct, mica_array *const *in, size_t n, mica_array **grads,
                              void *user)
{
    custom_log *log = user;
    log->calls++;
    log->n = n;
    if (n > 1) grads[1] = log->wrong_shape ? mica_scalar(s, 1) : NULL;
    grads[0] = mica_mul(s, ct, mica_add(s, in[0], mica_scalar(s, 100)));
    return log->status;
}

static void custom_release(void *data, void *user)
{
    (void)data;
    ((custom_log *)user)->released++;
}

TEST(custom_grad_says_what_the_gradient_is)
{
    custom_log log = {0};
    mica_scope *s = begin();
    mica_array *x[2] = {vector(s, 2, (double[]){3, 4}), vector(s, 2, (double[]){1, 1})}, *g[2];
    mica_array *y = mica_custom_grad(s, mica_mul(s, x[0], x[1]), x, 2, custom_vjp, &log, custom_release);
    CHECK_OK(mica_grad(s, grad_total(s, y), x, 2, g));
    CHECK_OK(mica_eval(s, (mica_array *[]){y, g[0], g[1]}, 3));
    check_vector(y, 2, (double[]){3, 4});
    check_vector(g[0], 2, (double[]){103, 104});
    check_vector(g[1], 2, (double[]){0, 0});
    CHECK_INT(log.calls, 1);
    CHECK_INT(log.n, 2);
    mica_scope_end(s);
    CHECK_INT(log.released, 1);
}

TEST(custom_grad_that_fails)
{
    custom_log log = {.status = MICA_ERR_UNSUPPORTED};
    mica_scope *s = begin();
    mica_array *x[2] = {vector(s, 2, (double[]){3, 4}), vector(s, 2, (double[]){1, 1})}, *g[2];
    mica_array *loss = grad_total(s, mica_custom_grad(s, mica_exp(s, x[0]), x, 2, custom_vjp, &log, NULL));
    CHECK_FAILS(mica_grad(s, loss, x, 2, g), MICA_ERR_UNSUPPORTED, "custom_grad");
    CHECK(g[0] == NULL && g[1] == NULL);
    log = (custom_log){.wrong_shape = true};
    CHECK_FAILS(mica_grad(s, loss, x, 2, g), MICA_ERR_SHAPE, "gradient 1");
    mica_scope_end(s);
}

static mica_status custom_step(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                               mica_array **y, void *user)
{
    (void)x, (void)y;
    carry_out[0] = mica_custom_grad(s, mica_sin(s, carry[0]), carry, 1, custom_vjp, user, custom_release);
    return MICA_OK;
}

/* Copies of the body use the original's callback and release nothing themselves. */
TEST(custom_grad_in_a_scan_is_released_once)
{
    custom_log log = {0};
    mica_scope *s = begin();
    mica_array *x = vector(s, 1, (double[]){0}), *last, *g;
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = 1;
    o.length = 3;
    CHECK_OK(mica_scan(s, custom_step, &log, &o, &x, NULL, &last, NULL));
    CHECK_OK(mica_grad(s, grad_total(s, last), &x, 1, &g));
    CHECK_OK(mica_eval(s, &g, 1));
    check_vector(g, 1, (double[]){100 * 100 * 100});
    mica_scope_end(s);
    CHECK(log.calls > 0);
    CHECK_INT(log.released, 1);
}
