/* Gradients of the outside arrays that the step of a scan uses (graph/scan_terms.h). For each form
 * of such a sum, the values are compared with those of the unrolled steps. The test also checks
 * whether the sum is a carry of the scan or is computed after it. */
#include "grad/cases_loop.h"

enum { STEPS = 4, ROWS = 3, WIDTH = 6, MANY = 100 };

typedef mica_array *(*terms_step)(mica_scope *s, mica_array *h, mica_array *x, mica_array **w);

static mica_array *rows(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    return mica_add(s, x, mica_add(s, mica_matmul(s, h, w[0]), w[1]));
}
static mica_array *transposed_weights(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    return mica_add(s, x, mica_matmul(s, h, mica_transpose(s, w[0])));
}
static mica_array *columns(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    return mica_add(s, x, mica_transpose(s, mica_matmul(s, w[0], mica_transpose(s, h))));
}
static mica_array *columns_of_a_sum(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    mica_array *column = mica_mul(s, mica_transpose(s, h), mica_sum(s, h, NULL, 0, false));
    return mica_add(s, x, mica_transpose(s, mica_matmul(s, w[0], column)));
}
static mica_array *both_columns(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    mica_array *narrow = mica_slice_axis(s, w[0], 0, 0, ROWS, 1);
    return mica_matmul(s, mica_matmul(s, x, mica_transpose(s, x)), mica_sub(s, narrow, h));
}
static mica_array *halves(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    mica_array *left = mica_slice_axis(s, w[0], 1, 0, WIDTH / 2, 1),
               *right = mica_slice_axis(s, w[0], 1, WIDTH / 2, WIDTH, 1);
    mica_array *both[2] = {mica_matmul(s, h, right), mica_tanh(s, mica_matmul(s, h, left))};
    return mica_add(s, x, mica_concat(s, both, 2, 1));
}
static mica_array *one_half(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    mica_array *part = mica_slice_axis(s, w[0], 0, 1, WIDTH, 2), *some = mica_slice_axis(s, h, 1, 0, WIDTH, 2);
    return mica_add(s, x, mica_matmul(s, some, part));
}
static mica_array *twice(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    return mica_add(s, mica_matmul(s, x, w[0]), mica_matmul(s, mica_sin(s, h), w[0]));
}
static mica_array *bias_alone(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    return mica_add(s, x, mica_mul(s, mica_add(s, h, w[1]), mica_scalar(s, 0.5)));
}
static mica_array *scaled(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    return mica_add(s, x, mica_matmul(s, h, mica_mul(s, w[0], mica_scalar(s, 0.5))));
}
static mica_array *nothing_of_the_step(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    mica_array *outside = mica_slice_axis(s, mica_matmul(s, w[0], w[0]), 0, 0, ROWS, 1);
    return mica_add(s, mica_mul(s, h, mica_scalar(s, 0.5)), mica_add(s, x, outside));
}
static mica_array *batches(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    mica_array *two[2] = {h, x}, *y = mica_matmul(s, mica_stack(s, two, 2, 0), w[0]);
    return mica_sum(s, y, (const int[]){0}, 1, false);
}
static mica_array *many_times(mica_scope *s, mica_array *h, mica_array *x, mica_array **w)
{
    for (int i = 0; i < MANY; i++)
        x = mica_add(s, x, mica_matmul(s, mica_mul(s, h, mica_scalar(s, 0.01 + i * 1e-4)), w[0]));
    return x;
}

typedef struct terms_data {
    terms_step step;
    mica_array **w;
} terms_data;

static mica_array *terms_next(mica_scope *s, const terms_data *d, mica_array *h, mica_array *x)
{
    return mica_tanh(s, d->step(s, h, x, d->w));
}

static mica_status terms_scan_step(mica_scope *s, mica_array *const *carry, mica_array *const *x,
                                   mica_array **carry_out, mica_array **y, void *user)
{
    carry_out[0] = terms_next(s, user, carry[0], x[0]);
    y[0] = carry_out[0];
    return MICA_OK;
}

/* h, x, w, bias: in[]. */
static mica_array *by_scan(mica_scope *s, terms_step step, mica_array **in, bool reverse)
{
    terms_data d = {step, in + 2};
    grad_scan g = {.carry = {in[0]}, .x = {in[1]}};
    return grad_scan_run(s, &g, terms_scan_step, &d, 1, 1, 1, reverse) ? grad_dot(s, g.y[0], 7) : NULL;
}
static mica_array *one_after_the_other(mica_scope *s, terms_step step, mica_array **in, bool reverse)
{
    const terms_data d = {step, in + 2};
    mica_array *h = in[0], *ys[STEPS];
    for (int t = 0; t < STEPS; t++) {
        const int at = reverse ? STEPS - 1 - t : t;
        mica_array *x = mica_slice_axis(s, in[1], 0, at, at + 1, 1);
        ys[at] = h = terms_next(s, &d, h, mica_squeeze(s, x, 0));
    }
    return grad_dot(s, mica_stack(s, ys, STEPS, 0), 7);
}

static void check_step(const char *name, terms_step step, int64_t carried, bool reverse)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *in[4] = {mica_random_normal(s, MICA_F64, 2, (int64_t[]){ROWS, WIDTH}, 1),
                         mica_random_normal(s, MICA_F64, 3, (int64_t[]){STEPS, ROWS, WIDTH}, 2),
                         mica_random_normal(s, MICA_F64, 2, (int64_t[]){WIDTH, WIDTH}, 3),
                         mica_random_normal(s, MICA_F64, 1, (int64_t[]){WIDTH}, 4)};
    mica_array *out[10];
    double got[STEPS * ROWS * WIDTH], want[STEPS * ROWS * WIDTH];
    EXPECT_MSG(mica_eval(s, in, 4) == MICA_OK, "%s", mica_last_error());
    out[0] = by_scan(s, step, in, reverse);
    out[5] = one_after_the_other(s, step, in, reverse);
    EXPECT_MSG(mica_grad(s, out[0], in, 4, out + 1) == MICA_OK && mica_grad(s, out[5], in, 4, out + 6) == MICA_OK,
               "%s: %s", name, mica_last_error());
    EXPECT_INT(out[1]->op, MICA__OP_PART);
    EXPECT_MSG(((const mica__attr_scan *)out[1]->in[0]->attr)->n_carry == 1 + carried, "%s: %lld carries", name,
               (long long)((const mica__attr_scan *)out[1]->in[0]->attr)->n_carry);
    EXPECT_MSG(mica_eval(s, out, 10) == MICA_OK, "%s: %s", name, mica_last_error());
    for (int i = 0; i < 5; i++) {
        const size_t nbytes = mica_array_nbytes(out[i]);
        EXPECT(nbytes == mica_array_nbytes(out[i + 5]) && nbytes <= sizeof got);
        EXPECT(mica_copy_out(out[i], got, nbytes) == MICA_OK && mica_copy_out(out[i + 5], want, nbytes) == MICA_OK);
        EXPECT_MSG(test_arrays_close_f64(got, want, nbytes / sizeof *got, 1e-13, 1e-11, NULL), "%s: result %d", name,
                   i);
    }
    mica_scope_end(s);
}

#define STEP(name, carried) {#name, name, carried}
TEST(sums_of_every_form)
{
    static const struct {
        const char *name;
        terms_step step;
        int64_t carried; /* sums that are carries of the scan */
    } steps[] = {STEP(rows, 0),
                 STEP(transposed_weights, 0),
                 STEP(columns, 0),
                 STEP(columns_of_a_sum, 0),
                 STEP(both_columns, 0),
                 STEP(halves, 0),
                 STEP(one_half, 0),
                 STEP(twice, 0),
                 STEP(bias_alone, 1),
                 STEP(scaled, 1),
                 STEP(nothing_of_the_step, 1),
                 STEP(batches, 0),
                 STEP(many_times, 1)};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (int reverse = 0; reverse < 2; reverse++)
            check_step(steps[i].name, steps[i].step, steps[i].carried, reverse);
}

/* The op of the outside array of a scan whose steps multiply with a transposed matrix: the transposed view, or the
 * matrix itself. */
static uint16_t used_from_outside(int64_t rows_of_h)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *w = mica_ones(s, MICA_F64, 2, (int64_t[]){WIDTH, WIDTH});
    terms_data d = {transposed_weights, &w};
    grad_scan g = {.carry = {mica_ones(s, MICA_F64, 2, (int64_t[]){rows_of_h, WIDTH})},
                   .x = {mica_ones(s, MICA_F64, 3, (int64_t[]){STEPS, rows_of_h, WIDTH})}};
    EXPECT(grad_scan_run(s, &g, terms_scan_step, &d, 1, 1, 1, false));
    const mica_array *scan = g.y[0]->in[0];
    EXPECT_INT(scan->n_in, 3);
    const uint16_t op = scan->in[2]->op;
    mica_scope_end(s);
    return op;
}

TEST(a_matrix_of_all_steps_is_turned_once)
{
    EXPECT_INT(used_from_outside(16), MICA__OP_PERMUTE);
    EXPECT_INT(used_from_outside(2), MICA__OP_FULL);
}
