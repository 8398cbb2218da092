/* Gradient cases of scans and of the ops that exist for gradients. */
#ifndef MICA_GRAD_CASES_LOOP_H
#define MICA_GRAD_CASES_LOOP_H

#include "grad/grad_check.h"

typedef struct grad_scan {
    mica_scan_options options;
    mica_array *carry[3], *x[3];         /* in  */
    mica_array *carry_out[3], *y[3];     /* out */
} grad_scan;

static bool grad_scan_run(mica_scope *s, grad_scan *g, mica_scan_fn step, void *user, size_t n_carry, size_t n_x,
                          size_t n_y, bool reverse)
{
    mica_scan_options_init(&g->options);
    g->options.n_carry = n_carry;
    g->options.n_x = n_x;
    g->options.n_y = n_y;
    g->options.reverse = reverse;
    if (n_x == 0) g->options.length = 3;
    return mica_scan(s, step, user, &g->options, g->carry, g->x, g->carry_out, g->y) == MICA_OK;
}

/* All results of a scan in one vector, with different weights. */
static mica_array *grad_scan_join(mica_scope *s, const grad_scan *g)
{
    mica_array *sum = mica_scalar(s, 0);
    for (size_t i = 0; i < g->options.n_carry; i++)
        if (mica__is_float(mica_array_dtype(g->carry_out[i])))
            sum = mica_add(s, sum, grad_dot(s, g->carry_out[i], 50 + i));
    for (size_t i = 0; i < g->options.n_y; i++)
        if (mica__is_float(mica_array_dtype(g->y[i]))) sum = mica_add(s, sum, grad_dot(s, g->y[i], 60 + i));
    return sum;
}

/* h = tanh(x + h w): the state is also a y, w is captured */
static mica_status grad_step_rnn(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                                 mica_array **y, void *user)
{
    carry_out[0] = mica_tanh(s, mica_add(s, x[0], mica_matmul(s, carry[0], user)));
    y[0] = carry_out[0];
    return MICA_OK;
}
static mica_array *grad_rnn(mica_scope *s, mica_array **x, bool reverse)
{
    grad_scan g = {.carry = {x[0]}, .x = {x[1]}};
    return grad_scan_run(s, &g, grad_step_rnn, x[2], 1, 1, 1, reverse) ? grad_scan_join(s, &g) : NULL;
}
static mica_array *grad_scan_rnn(mica_scope *s, mica_array **x) { return grad_rnn(s, x, false); }
static mica_array *grad_scan_rnn_reverse(mica_scope *s, mica_array **x) { return grad_rnn(s, x, true); }

/* h = tanh(x + sin(h, 2 h, ...) w): the product is long enough that its result is kept for the
 * gradient; the state is not a y */
static mica_status grad_step_kept(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                                  mica_array **y, void *user)
{
    mica_array *many[8];
    for (int i = 0; i < 8; i++) many[i] = mica_sin(s, mica_mul(s, carry[0], mica_scalar(s, 1 + i)));
    carry_out[0] = mica_tanh(s, mica_add(s, x[0], mica_matmul(s, mica_concat(s, many, 8, 0), user)));
    y[0] = mica_square(s, carry_out[0]);
    return MICA_OK;
}
static mica_array *grad_kept(mica_scope *s, mica_array **x, bool reverse)
{
    mica_array *copies[8];
    for (int i = 0; i < 8; i++) copies[i] = mica_mul(s, x[2], mica_scalar(s, 0.5 / (1 + i)));
    grad_scan g = {.carry = {x[0]}, .x = {x[1]}};
    mica_array *w = mica_concat(s, copies, 8, 0);
    return grad_scan_run(s, &g, grad_step_kept, w, 1, 1, 1, reverse) ? grad_scan_join(s, &g) : NULL;
}
static mica_array *grad_scan_kept(mica_scope *s, mica_array **x) { return grad_kept(s, x, false); }
static mica_array *grad_scan_kept_reverse(mica_scope *s, mica_array **x) { return grad_kept(s, x, true); }

/* two carries, a y that is not a carry, an integer x that selects rows, an integer carry that counts */
static mica_status grad_step_many(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                                  mica_array **y, void *user)
{
    mica_array *const *outer = user;
    mica_array *row = mica_take(s, outer[0], x[1], 0); /* a row of a captured table */
    carry_out[0] = mica_add(s, mica_mul(s, carry[0], mica_sigmoid(s, x[0])), row);
    carry_out[1] = mica_add(s, carry[1], mica_mul(s, carry[0], outer[1]));
    carry_out[2] = mica_add(s, carry[2], mica_scalar(s, 1));
    y[0] = mica_mul(s, mica_sin(s, carry[1]), mica_add(s, mica_cast(s, carry[2], MICA_F64), x[0]));
    y[1] = mica_mul(s, x[1], mica_scalar(s, 2));
    return MICA_OK;
}
static mica_array *grad_many(mica_scope *s, mica_array **x, bool reverse)
{
    mica_array *picks = mica_from_data(s, MICA_I64, 1, (int64_t[]){3}, (int64_t[]){1, 0, 1});
    /* two captured arrays, one of which depends on the other */
    mica_array *outer[2] = {x[2], mica_exp(s, mica_sum(s, x[2], (int[]){0}, 1, false))};
    grad_scan g = {.carry = {x[0], mica_square(s, x[0]), mica_zeros(s, MICA_I32, 0, NULL)}, .x = {x[1], picks}};
    return grad_scan_run(s, &g, grad_step_many, outer, 3, 2, 2, reverse) ? grad_scan_join(s, &g) : NULL;
}
static mica_array *grad_scan_many(mica_scope *s, mica_array **x) { return grad_many(s, x, false); }
static mica_array *grad_scan_many_reverse(mica_scope *s, mica_array **x) { return grad_many(s, x, true); }

/* no xs, only a number of steps; the captured array is also the first carry */
static mica_status grad_step_newton(mica_scope *s, mica_array *const *carry, mica_array *const *x,
                                    mica_array **carry_out, mica_array **y, void *user)
{
    (void)x, (void)y;
    mica_array *a = user; /* h <- (h + a / h) / 2 */
    carry_out[0] = mica_mul(s, mica_add(s, carry[0], mica_div(s, a, carry[0])), mica_scalar(s, 0.5));
    return MICA_OK;
}
static mica_array *grad_scan_newton(mica_scope *s, mica_array **x)
{
    grad_scan g = {.carry = {x[0]}};
    return grad_scan_run(s, &g, grad_step_newton, x[0], 1, 0, 0, false) ? g.carry_out[0] : NULL;
}

/* a scan in a scan: the inner body uses a carry and a captured array of the outer one */
typedef struct grad_nested {
    mica_array *w, *outer_carry;
} grad_nested;
static mica_status grad_step_inner(mica_scope *s, mica_array *const *carry, mica_array *const *x,
                                   mica_array **carry_out, mica_array **y, void *user)
{
    const grad_nested *n = user;
    carry_out[0] = mica_sin(s, mica_add(s, mica_mul(s, carry[0], n->outer_carry), mica_mul(s, x[0], n->w)));
    y[0] = mica_mul(s, carry_out[0], n->w);
    return MICA_OK;
}
static mica_status grad_step_outer(mica_scope *s, mica_array *const *carry, mica_array *const *x,
                                   mica_array **carry_out, mica_array **y, void *user)
{
    grad_nested n = {user, carry[0]};
    grad_scan g = {.carry = {mica_cast(s, mica_scalar(s, 0.3), mica_array_dtype(user))}, .x = {x[0]}};
    if (!grad_scan_run(s, &g, grad_step_inner, &n, 1, 1, 1, true)) return MICA_ERR_ARGUMENT;
    carry_out[0] = mica_add(s, carry[0], g.carry_out[0]);
    y[0] = grad_total(s, mica_square(s, g.y[0]));
    return MICA_OK;
}
static mica_array *grad_scan_nested(mica_scope *s, mica_array **x)
{
    grad_scan g = {.carry = {x[0]}, .x = {x[1]}};
    return grad_scan_run(s, &g, grad_step_outer, x[2], 1, 1, 1, false) ? grad_scan_join(s, &g) : NULL;
}

/* a gradient taken inside the step: the body has nodes of a reverse pass */
static mica_status grad_step_descent(mica_scope *s, mica_array *const *carry, mica_array *const *x,
                                     mica_array **carry_out, mica_array **y, void *user)
{
    (void)y;
    mica_array *error = mica_sub(s, mica_matmul(s, user, carry[0]), x[0]), *g;
    mica_array *loss = grad_total(s, mica_square(s, mica_tanh(s, error)));
    if (mica_grad(s, loss, carry, 1, &g) != MICA_OK) return mica_scope_status(s);
    carry_out[0] = mica_sub(s, carry[0], mica_mul(s, g, mica_scalar(s, 0.1)));
    return MICA_OK;
}
static mica_array *grad_scan_descent(mica_scope *s, mica_array **x)
{
    grad_scan g = {.carry = {x[0]}, .x = {x[1]}};
    return grad_scan_run(s, &g, grad_step_descent, x[2], 1, 1, 0, false) ? g.carry_out[0] : NULL;
}

/* a checkpoint inside the step, and constants made there */
static mica_status grad_step_checkpoint(mica_scope *s, mica_array *const *carry, mica_array *const *x,
                                        mica_array **carry_out, mica_array **y, void *user)
{
    mica_array *half = mica_cast(s, mica_from_data(s, MICA_F64, 0, NULL, (double[]){0.5}), mica_array_dtype(x[0]));
    mica_array *h = mica_tanh(s, mica_add(s, mica_mul(s, carry[0], user), mica_mul(s, x[0], half)));
    carry_out[0] = mica_checkpoint(s, mica_sin(s, h), (mica_array *[]){carry[0], x[0]}, 2);
    y[0] = mica_cumsum(s, carry_out[0], 0);
    return MICA_OK;
}
static mica_array *grad_scan_checkpoint(mica_scope *s, mica_array **x)
{
    grad_scan g = {.carry = {x[0]}, .x = {x[1]}};
    return grad_scan_run(s, &g, grad_step_checkpoint, x[2], 1, 1, 1, false) ? grad_scan_join(s, &g) : NULL;
}

/* aliases */
static mica_array *grad_after(mica_scope *s, mica_array **x)
{
    return mica_mul(s, mica__after(s, mica_exp(s, x[0]), mica_sin(s, x[0])), x[0]);
}
/* the true gradient, written by hand */
static mica_status grad_of_cube(mica_scope *s, mica_array *ct, mica_array *const *in, size_t n, mica_array **grads,
                                void *user)
{
    (void)n, (void)user;
    grads[0] = mica_mul(s, ct, mica_mul(s, mica_square(s, in[0]), mica_mul(s, in[1], mica_scalar(s, 3))));
    grads[1] = mica_mul(s, ct, mica_mul(s, mica_square(s, in[0]), in[0]));
    return MICA_OK;
}
static mica_array *grad_custom_grad(mica_scope *s, mica_array **x)
{
    mica_array *y = mica_mul(s, mica_mul(s, mica_square(s, x[0]), x[0]), x[1]);
    return mica_custom_grad(s, y, x, 2, grad_of_cube, NULL, NULL);
}
/* uses an array that is not one of its inputs, and an array that depends on it */
static mica_array *grad_checkpoint(mica_scope *s, mica_array **x)
{
    mica_array *a = mica_exp(s, x[0]), *w = mica_sin(s, x[1]);
    mica_array *y = mica_tanh(s, mica_mul(s, mica_mul(s, a, w), mica_add(s, a, x[1])));
    return mica_mul(s, mica_checkpoint(s, mica_square(s, y), &a, 1), a);
}
static mica_array *grad_checkpoint_nested(mica_scope *s, mica_array **x)
{
    mica_array *y = mica_tanh(s, mica_mul(s, x[0], x[1]));
    y = mica_checkpoint(s, mica_sin(s, y), x, 2);
    y = mica_checkpoint(s, mica_exp(s, mica_mul(s, y, x[1])), x, 2);
    return mica_checkpoint(s, mica_mul(s, y, mica_add(s, y, x[0])), x, 2);
}

#define GRAD_VECTORS {1, {2}, -1, 1}, {2, {3, 2}, -1, 1}, {2, {2, 2}, -1, 1}
static const grad_case grad_cases_loop[] = {
    /* clang-format off */
    {MICA__OP_SCAN, "scan, rnn", grad_scan_rnn, 3, {GRAD_VECTORS}, 0, 0},
    {MICA__OP_PART, "scan, rnn, reverse", grad_scan_rnn_reverse, 3, {GRAD_VECTORS}, 0, 0},
    {MICA__OP_SCAN, "scan, kept", grad_scan_kept, 3, {GRAD_VECTORS}, 0, 0},
    {MICA__OP_SCAN, "scan, kept, reverse", grad_scan_kept_reverse, 3, {GRAD_VECTORS}, 0, 0},
    {MICA__OP_SCAN, "scan, many", grad_scan_many, 3, {GRAD_VECTORS}, 0, 0},
    {MICA__OP_SCAN, "scan, many, reverse", grad_scan_many_reverse, 3, {GRAD_VECTORS}, 0, 0},
    {MICA__OP_SCAN, "scan, newton", grad_scan_newton, 1, {{1, {2}, 1, 3}}, 0, 0},
    {MICA__OP_SCAN, "scan, nested", grad_scan_nested, 3,
     {{0, {0}, 0.2, 0.9}, {2, {2, 3}, -1, 1}, {0, {0}, 0.3, 0.9}}, 0, 0},
    {MICA__OP_SCAN, "scan, gradient inside", grad_scan_descent, 3, {GRAD_VECTORS}, 0, 0},
    {MICA__OP_SCAN, "scan, checkpoint inside", grad_scan_checkpoint, 3,
     {{1, {2}, -1, 1}, {2, {3, 2}, -1, 1}, {1, {2}, -1, 1}}, 0, 0},
    {MICA__OP_AFTER, "after", grad_after, 1, {{1, {3}, -1, 1}}, 0, 0},
    {MICA__OP_CUSTOM_GRAD, "custom_grad", grad_custom_grad, 2, {{1, {3}, -1, 1}, {1, {3}, -1, 1}}, 0, 0},
    {MICA__OP_CHECKPOINT, "checkpoint", grad_checkpoint, 2, {{1, {3}, -1, 1}, {1, {3}, -1, 1}}, 0, 0},
    {MICA__OP_CHECKPOINT, "checkpoint, nested", grad_checkpoint_nested, 2, {{1, {3}, -1, 1}, {1, {3}, -1, 1}}, 0, 0},
    /* clang-format on */
};
#undef GRAD_VECTORS

#endif
