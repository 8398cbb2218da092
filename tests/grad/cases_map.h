/* Gradient cases of element-wise ops. */
#ifndef MICA_GRAD_CASES_MAP_H
#define MICA_GRAD_CASES_MAP_H

#include "grad/grad_check.h"

/* Ops of op_facts.h with a range for gradients are tested from that table. These are the
 * other ops, and further ranges. */

static mica_array *grad_abs(mica_scope *s, mica_array **x) { return mica_abs(s, x[0]); }
static mica_array *grad_mod(mica_scope *s, mica_array **x) { return mica_mod(s, x[0], x[1]); }
static mica_array *grad_maximum(mica_scope *s, mica_array **x) { return mica_maximum(s, x[0], mica_square(s, x[1])); }
static mica_array *grad_minimum(mica_scope *s, mica_array **x) { return mica_minimum(s, mica_square(s, x[0]), x[1]); }
static mica_array *grad_clip(mica_scope *s, mica_array **x)
{
    return mica_clip(s, mica_square(s, x[0]), mica_scalar(s, 0.21), mica_scalar(s, 0.77));
}
static mica_array *grad_pow_negative(mica_scope *s, mica_array **x) { return mica_pow(s, x[0], mica_scalar(s, 3)); }
static mica_array *grad_mod_negative(mica_scope *s, mica_array **x) { return mica_mod(s, mica_neg(s, x[0]), x[1]); }
static mica_array *grad_fma(mica_scope *s, mica_array **x) { return mica_fma(s, x[0], x[1], x[2]); }
static mica_array *grad_cast(mica_scope *s, mica_array **x)
{
    /* a cast to f32 would round small differences away; a cast to an integer has no gradient */
    mica_array *gone = mica_cast(s, mica_cast(s, mica_mul(s, x[0], mica_scalar(s, 0.001)), MICA_I32), MICA_F64);
    mica_array *wide = mica_cast(s, mica_cast(s, x[0], MICA_F32), MICA_F64);
    return mica_add(s, mica_add(s, gone, mica_square(s, wide)), mica_mul(s, x[0], wide));
}
static mica_array *grad_copy(mica_scope *s, mica_array **x)
{
    return mica_square(s, mica_contiguous(s, mica_transpose(s, x[0])));
}
static mica_array *grad_where(mica_scope *s, mica_array **x)
{
    mica_array *c = mica_greater(s, x[0], mica_scalar(s, 0.03));
    return mica_where(s, c, mica_mul(s, x[0], x[1]), mica_exp(s, x[1]));
}
/* A graph of many small steps, with broadcasts in both directions. */
static mica_array *grad_mix(mica_scope *s, mica_array **x)
{
    mica_array *a = mica_add(s, mica_mul(s, x[0], x[1]), mica_scalar(s, 2));
    mica_array *b = mica_div(s, mica_tanh(s, a), mica_sub(s, x[1], mica_scalar(s, 3)));
    return mica_mul(s, mica_sqrt(s, mica_square(s, a)), b);
}

static const grad_case grad_cases_map[] = {
    {MICA__OP_ABS, "abs, negative", grad_abs, 1, {{1, {4}, -2, -0.5}}, 0, 0},
    {MICA__OP_POW, "pow, negative base", grad_pow_negative, 1, {{1, {4}, -2, -0.5}}, 0, 0},
    {MICA__OP_MOD, "mod, floor 1", grad_mod, 2, {{1, {4}, 1.2, 1.3}, {1, {4}, 0.7, 0.9}}, 0, 0},
    {MICA__OP_MOD, "mod, negative", grad_mod_negative, 2, {{1, {4}, 0.1, 0.5}, {1, {4}, 0.7, 1.1}}, 0, 0},
    {MICA__OP_MAXIMUM, "maximum", grad_maximum, 2, {{1, {7}, -1, 1}, {1, {7}, -1, 1}}, 0, 0},
    {MICA__OP_MINIMUM, "minimum", grad_minimum, 2, {{1, {7}, -1, 1}, {1, {7}, -1, 1}}, 0, 0},
    {MICA__OP_MINIMUM, "clip", grad_clip, 1, {{1, {9}, -1, 1}}, 0, 0},
    {MICA__OP_FMA, "fma", grad_fma, 3, {{1, {4}, -1, 1}, {1, {4}, -1, 1}, {1, {4}, -1, 1}}, 0, 0},
    {MICA__OP_CAST, "cast", grad_cast, 1, {{1, {4}, 0.5, 2}}, 0.05, 1e-5},
    {MICA__OP_COPY, "contiguous", grad_copy, 1, {{2, {2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_WHERE, "where", grad_where, 2, {{1, {6}, -1, 1}, {1, {6}, -1, 1}}, 0, 0},
    {MICA__OP_MUL, "broadcasts", grad_mix, 2, {{2, {3, 1}, -0.9, 0.9}, {1, {4}, -0.9, 0.9}}, 0, 0},
};

/* ------------------------------------------------ from the table of ops --- */

/* The cases of op_facts.h: inputs (2, 4) of ops of one input, (5) of ops of two. */
__attribute__((unused)) static const grad_case *grad_cases_table(size_t *n)
{
    static grad_case cases[OP_FACTS_MAX];
    size_t n_facts;
    const op_facts *f = op_facts_all(&n_facts);
    *n = 0;
    for (size_t i = 0; i < n_facts; i++) {
        if (!op_has_grad(&f[i])) continue;
        grad_case *c = &cases[(*n)++];
        *c = (grad_case){.op = f[i].op, .name = f[i].name, .n = f[i].n_in};
        for (int k = 0; k < c->n; k++) {
            const op_range r = f[i].test.grad[k];
            c->in[k] = c->n == 1 ? (grad_input){2, {2, 4}, r.low, r.high} : (grad_input){1, {5}, r.low, r.high};
        }
    }
    return cases;
}

#endif
