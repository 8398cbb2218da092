/* Gradients of scans, except their values (see test_grad_ops.c): what is recomputed and what is
 * not, scans without steps, the rule of the table. */
#include "grad/cases_loop.h"

/* Nodes of op that some arrays depend on. */
static int count_op(mica_array *const *from, int n_from, uint16_t op)
{
    enum { ROOM = 4096 };
    static const mica_array *list[ROOM];
    int n = 0, count = 0;
    for (int i = 0; i < n_from; i++) list[n++] = from[i];
    for (int i = 0; i < n; i++) {
        count += list[i]->op == op;
        for (uint32_t k = 0; k < list[i]->n_in; k++) {
            int j = 0;
            while (j < n && list[j] != list[i]->in[k]) j++;
            if (j == n && n < ROOM) list[n++] = list[i]->in[k];
        }
    }
    return count;
}

static void inputs(mica_scope *s, mica_array **x)
{
    x[0] = mica_from_data(s, MICA_F64, 1, (int64_t[]){2}, (double[]){0.1, -0.2});
    x[1] = mica_from_data(s, MICA_F64, 2, (int64_t[]){3, 2}, (double[]){0.3, -0.4, 0.5, 0.6, -0.7, 0.8});
    x[2] = mica_from_data(s, MICA_F64, 2, (int64_t[]){2, 2}, (double[]){0.9, -0.8, 0.7, 0.6});
}

TEST(states_that_are_results_are_not_computed_again)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *x[3], *out[4];
    inputs(s, x);
    out[0] = grad_scan_rnn(s, x);
    CHECK_MSG(mica_grad(s, out[0], x, 3, out + 1) == MICA_OK, "%s", mica_last_error());
    CHECK_INT(count_op(out, 4, MICA__OP_SCAN), 2); /* forward and backward */
    mica_scope_end(s);
}

TEST(only_what_is_asked_for_is_accumulated)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *x[3], *g;
    inputs(s, x);
    CHECK_MSG(mica_grad(s, grad_scan_rnn(s, x), &x[0], 1, &g) == MICA_OK, "%s", mica_last_error());
    CHECK_INT(g->op, MICA__OP_PART);
    const mica__attr_scan *back = g->in[0]->attr;
    CHECK_INT(back->n_carry, 1); /* no sum for the weights */
    CHECK_INT(back->n_y, 0);     /* no gradients of the inputs */
    mica_scope_end(s);
}

/* An exponential moving average: the gradient of a linear step needs no carry. */
static mica_status step_mean(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                             mica_array **y, void *user)
{
    (void)user;
    carry_out[0] = mica_add(s, mica_mul(s, carry[0], mica_scalar(s, 0.75)), mica_mul(s, x[0], mica_scalar(s, 0.25)));
    y[0] = mica_neg(s, carry[0]);
    return MICA_OK;
}

TEST(a_linear_step_is_not_computed_again)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *x[3], *out[3];
    double got[6];
    inputs(s, x);
    grad_scan g = {.carry = {x[0]}, .x = {x[1]}};
    CHECK(grad_scan_run(s, &g, step_mean, NULL, 1, 1, 1, false));
    out[0] = grad_total(s, g.carry_out[0]);
    CHECK_MSG(mica_grad(s, out[0], x, 2, out + 1) == MICA_OK, "%s", mica_last_error());
    CHECK_INT(count_op(out, 3, MICA__OP_SCAN), 2);
    CHECK_INT(((const mica__attr_scan *)out[1]->in[0]->attr)->n_x, 0);
    CHECK_MSG(mica_eval(s, out, 3) == MICA_OK, "%s", mica_last_error());
    CHECK(mica_copy_out(out[2], got, sizeof got) == MICA_OK);
    CHECK_CLOSE(got[0], 0.25 * 0.75 * 0.75, 1e-14, 0);
    CHECK_CLOSE(got[5], 0.25, 1e-14, 0);
    mica_scope_end(s);
}

/* ------------------------------------------------------- kept values ------- */

/* tanh(h A) B + x; user: A (width, wide) and B (wide, width). */
static mica_status step_wide(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                             mica_array **y, void *user)
{
    mica_array *const *w = user;
    mica_array *wide = mica_tanh(s, mica_matmul(s, carry[0], w[0]));
    carry_out[0] = mica_add(s, mica_matmul(s, wide, w[1]), x[0]);
    y[0] = mica_neg(s, carry_out[0]); /* the carry itself is not a y */
    return MICA_OK;
}

enum { KEPT_BATCH = 3, KEPT_WIDTH = 24, KEPT_STEPS = 4 };

/* Loss and gradients for h, x and both matrices. */
static void wide_scan(mica_scope *s, int64_t wide, mica_array **out)
{
    mica_array *in[4] = {mica_random_normal(s, MICA_F64, 2, (int64_t[]){KEPT_BATCH, KEPT_WIDTH}, 1),
                         mica_random_normal(s, MICA_F64, 3, (int64_t[]){KEPT_STEPS, KEPT_BATCH, KEPT_WIDTH}, 2),
                         mica_random_normal(s, MICA_F64, 2, (int64_t[]){KEPT_WIDTH, wide}, 3),
                         mica_random_normal(s, MICA_F64, 2, (int64_t[]){wide, KEPT_WIDTH}, 4)};
    CHECK_MSG(mica_eval(s, in, 4) == MICA_OK, "%s", mica_last_error());
    grad_scan g = {.carry = {in[0]}, .x = {in[1]}};
    CHECK(grad_scan_run(s, &g, step_wide, in + 2, 1, 1, 1, false));
    out[0] = mica_sum(s, mica_square(s, g.y[0]), NULL, 0, false);
    CHECK_MSG(mica_grad(s, out[0], in, 4, out + 1) == MICA_OK, "%s", mica_last_error());
}

static int count_text(const char *text, const char *word)
{
    int n = 0;
    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word)) n++;
    return n;
}

static mica_engine *cpu_engine(uint32_t passes)
{
    mica_engine_options options;
    mica_engine *e = NULL;
    mica_engine_options_init(&options);
    options.backend = "cpu";
    options.threads = 1;
    options.passes = passes;
    EXPECT_MSG(mica_open(&options, &e) == MICA_OK, "%s", mica_last_error());
    return e;
}

/* Two products forward, two for each backward: there is one forward scan, which also returns
 * what the backward scan needs. If the products of a step are much wider than all other
 * values, nothing is kept, and the backward scan computes the first product again. */
TEST(products_of_a_step_are_kept)
{
    static char text[1 << 16];
    static const struct {
        int64_t wide;
        int products;
    } rows[] = {{KEPT_WIDTH, 6}, {64 * KEPT_WIDTH, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mica_engine *e = cpu_engine(MICA_PASS_ALL);
        mica_scope *s = mica_scope_begin(e);
        mica_array *out[5];
        wide_scan(s, rows[i].wide, out);
        CHECK_MSG(mica_plan_text(s, out, 5, MICA_DUMP_PLAN, text, sizeof text, NULL) == MICA_OK, "%s",
                  mica_last_error());
        CHECK_INT(count_text(text, " scan   scan "), 2);
        CHECK_INT(count_text(text, "family matmul"), rows[i].products);
        mica_scope_end(s);
        mica_close(e);
    }
}

/* The passes merge two scans into one; without the passes the results are the same. */
TEST(kept_or_not_is_the_same)
{
    static const int64_t wides[] = {KEPT_WIDTH, 64 * KEPT_WIDTH};
    mica_engine *all = cpu_engine(MICA_PASS_ALL), *none = cpu_engine(0);
    for (int w = 0; w < 2; w++) {
        mica_scope *s = mica_scope_begin(all), *t = mica_scope_begin(none);
        mica_array *a[5], *b[5];
        wide_scan(s, wides[w], a);
        wide_scan(t, wides[w], b);
        CHECK_MSG(mica_eval(s, a, 5) == MICA_OK && mica_eval(t, b, 5) == MICA_OK, "%s", mica_last_error());
        for (int i = 0; i < 5; i++) {
            static double got[64 * KEPT_WIDTH * KEPT_WIDTH], want[64 * KEPT_WIDTH * KEPT_WIDTH];
            const size_t nbytes = mica_array_nbytes(a[i]);
            CHECK(nbytes <= sizeof got && mica_copy_out(a[i], got, nbytes) == MICA_OK);
            CHECK(mica_copy_out(b[i], want, nbytes) == MICA_OK);
            CHECK(test_arrays_close_f64(got, want, nbytes / sizeof *got, 1e-11, 1e-9, NULL));
        }
        mica_scope_end(s);
        mica_scope_end(t);
    }
    mica_close(all);
    mica_close(none);
}

TEST(a_scan_without_steps_is_the_identity)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *x[3], *g[3];
    double got[2];
    inputs(s, x);
    x[1] = mica_zeros(s, MICA_F64, 2, (int64_t[]){0, 2});
    CHECK_MSG(mica_grad(s, grad_scan_rnn(s, x), x, 3, g) == MICA_OK, "%s", mica_last_error());
    CHECK_MSG(mica_eval(s, g, 3) == MICA_OK, "%s", mica_last_error());
    CHECK(mica_copy_out(g[0], got, sizeof got) == MICA_OK);
    CHECK(got[0] > 0.5 && got[1] > 0.5); /* the weights of the sum */
    CHECK_INT(mica_array_size(g[1]), 0);
    mica_scope_end(s);
}

/* The convention of the op table: cotangents of the parts in, cotangents of the inputs out. */
TEST(the_rule_of_the_table)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *x[3], *want[3], *grads[3] = {NULL};
    inputs(s, x);
    grad_scan g = {.carry = {x[0]}, .x = {x[1]}};
    CHECK(grad_scan_run(s, &g, grad_step_rnn, x[2], 1, 1, 1, false));
    mica_array *outs[2] = {g.carry_out[0], g.y[0]};
    mica_array *cts[2] = {grad_weights(s, outs[0], 1), grad_weights(s, outs[1], 2)};
    CHECK_MSG(mica_vjp(s, outs, cts, 2, x, 3, want) == MICA_OK, "%s", mica_last_error());
    grads[0] = cts[0];
    grads[1] = cts[1];
    mica_array *scan = outs[0]->in[0];
    CHECK_INT(scan->n_in, 3);
    CHECK(mica__op_get(MICA__OP_SCAN)->vjp(s, scan, NULL, grads) == MICA_OK);
    for (int i = 0; i < 3; i++) {
        double a[6], b[6];
        CHECK_MSG(mica_eval(s, (mica_array *[]){grads[i], want[i]}, 2) == MICA_OK, "%s", mica_last_error());
        const size_t nbytes = mica_array_nbytes(want[i]);
        CHECK(mica_copy_out(grads[i], a, nbytes) == MICA_OK && mica_copy_out(want[i], b, nbytes) == MICA_OK);
        CHECK(test_arrays_close_f64(a, b, nbytes / sizeof *a, 1e-14, 0, NULL));
    }
    mica_array *one = NULL;
    CHECK(mica__op_get(MICA__OP_PART)->vjp(s, outs[0], cts[0], &one) == MICA_OK && one == cts[0]);
    mica_scope_end(s);
}
