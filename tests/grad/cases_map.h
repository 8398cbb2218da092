/* Gradient cases of element-wise ops: one line each, inputs away from kinks
 * and poles. */
#ifndef MICA_GRAD_CASES_MAP_H
#define MICA_GRAD_CASES_MAP_H

#include "grad/grad_check.h"

/* op, constructor, range of the input */
#define GRAD_UNARY(X)                 \
    X(NEG, neg, -1, 1)                \
    X(ABS, abs, 0.2, 1)               \
    X(SQUARE, square, -1, 1)          \
    X(RELU, relu, -1, 1.1)            \
    X(RELU2, relu2, -1, 1.1)          \
    X(EXP, exp, -2, 2)                \
    X(EXPM1, expm1, -1, 1)            \
    X(LOG, log, 0.3, 3)               \
    X(LOG1P, log1p, -0.5, 2)          \
    X(LOG2, log2, 0.3, 3)             \
    X(SQRT, sqrt, 0.3, 3)             \
    X(RSQRT, rsqrt, 0.3, 3)           \
    X(RECIPROCAL, reciprocal, 0.4, 2) \
    X(SIN, sin, -2, 2)                \
    X(COS, cos, -2, 2)                \
    X(TAN, tan, -1, 1)                \
    X(ASIN, asin, -0.8, 0.8)          \
    X(ACOS, acos, -0.8, 0.8)          \
    X(ATAN, atan, -2, 2)              \
    X(SINH, sinh, -2, 2)              \
    X(COSH, cosh, -2, 2)              \
    X(TANH, tanh, -2, 2)              \
    X(ERF, erf, -2, 2)                \
    X(ERFINV, erfinv, -0.8, 0.8)      \
    X(SIGMOID, sigmoid, -3, 3)        \
    X(GELU, gelu, -3, 3)              \
    X(GELU_TANH, gelu_tanh, -3, 3)    \
    X(SILU, silu, -3, 3)              \
    X(SOFTPLUS, softplus, -3, 3)      \
    X(LECUN_TANH, lecun_tanh, -3, 3)

/* op, constructor, ranges of both inputs */
#define GRAD_BINARY(X)              \
    X(ADD, add, -1, 1, -1, 1)       \
    X(SUB, sub, -1, 1, -1, 1)       \
    X(MUL, mul, -1, 1, -1, 1)       \
    X(DIV, div, -1, 1, 0.5, 2)      \
    X(MOD, mod, 0.1, 0.5, 0.7, 1.1) \
    X(POW, pow, 0.5, 2, -2, 2)      \
    X(ATAN2, atan2, 0.3, 1, -1, 1)  \
    X(HYPOT, hypot, -1, 1, 0.4, 1.4)

#define X(OP, name, low, high) \
    static mica_array *grad_##name(mica_scope *s, mica_array **x) { return mica_##name(s, x[0]); }
GRAD_UNARY(X)
#undef X
#define X(OP, name, la, ha, lb, hb) \
    static mica_array *grad_##name(mica_scope *s, mica_array **x) { return mica_##name(s, x[0], x[1]); }
GRAD_BINARY(X)
#undef X

static mica_array *grad_maximum(mica_scope *s, mica_array **x) { return mica_maximum(s, x[0], mica_square(s, x[1])); }
static mica_array *grad_minimum(mica_scope *s, mica_array **x) { return mica_minimum(s, mica_square(s, x[0]), x[1]); }
static mica_array *grad_clip(mica_scope *s, mica_array **x)
{
    return mica_clip(s, mica_square(s, x[0]), mica_scalar(s, 0.21), mica_scalar(s, 0.77));
}
static mica_array *grad_pow_negative(mica_scope *s, mica_array **x) { return mica_pow(s, x[0], mica_scalar(s, 3)); }
static mica_array *grad_mod_negative(mica_scope *s, mica_array **x) { return mica_mod(s, mica_neg(s, x[0]), x[1]); }
static mica_array *grad_leaky_relu(mica_scope *s, mica_array **x) { return mica_leaky_relu(s, x[0], 0.1); }
static mica_array *grad_elu(mica_scope *s, mica_array **x) { return mica_elu(s, x[0], 1.3); }
static mica_array *grad_fma(mica_scope *s, mica_array **x) { return mica_fma(s, x[0], x[1], x[2]); }
static mica_array *grad_cast(mica_scope *s, mica_array **x)
{
    /* through f32 nothing of a difference would be left; through an integer no gradient is */
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
#define X(OP, name, low, high) {MICA__OP_##OP, #name, grad_##name, 1, {{2, {2, 4}, low, high}}, 0, 0},
    GRAD_UNARY(X)
#undef X
#define X(OP, name, la, ha, lb, hb) {MICA__OP_##OP, #name, grad_##name, 2, {{1, {5}, la, ha}, {1, {5}, lb, hb}}, 0, 0},
        GRAD_BINARY(X)
#undef X
            {MICA__OP_ABS, "abs, negative", grad_abs, 1, {{1, {4}, -2, -0.5}}, 0, 0},
    {MICA__OP_POW, "pow, negative base", grad_pow_negative, 1, {{1, {4}, -2, -0.5}}, 0, 0},
    {MICA__OP_MOD, "mod, floor 1", grad_mod, 2, {{1, {4}, 1.2, 1.3}, {1, {4}, 0.7, 0.9}}, 0, 0},
    {MICA__OP_MOD, "mod, negative", grad_mod_negative, 2, {{1, {4}, 0.1, 0.5}, {1, {4}, 0.7, 1.1}}, 0, 0},
    {MICA__OP_MAXIMUM, "maximum", grad_maximum, 2, {{1, {7}, -1, 1}, {1, {7}, -1, 1}}, 0, 0},
    {MICA__OP_MINIMUM, "minimum", grad_minimum, 2, {{1, {7}, -1, 1}, {1, {7}, -1, 1}}, 0, 0},
    {MICA__OP_MINIMUM, "clip", grad_clip, 1, {{1, {9}, -1, 1}}, 0, 0},
    {MICA__OP_LEAKY_RELU, "leaky_relu", grad_leaky_relu, 1, {{1, {6}, -1, 1.1}}, 0, 0},
    {MICA__OP_ELU, "elu", grad_elu, 1, {{1, {6}, -1, 1.1}}, 0, 0},
    {MICA__OP_FMA, "fma", grad_fma, 3, {{1, {4}, -1, 1}, {1, {4}, -1, 1}, {1, {4}, -1, 1}}, 0, 0},
    {MICA__OP_CAST, "cast", grad_cast, 1, {{1, {4}, 0.5, 2}}, 0.05, 1e-5},
    {MICA__OP_COPY, "contiguous", grad_copy, 1, {{2, {2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_WHERE, "where", grad_where, 2, {{1, {6}, -1, 1}, {1, {6}, -1, 1}}, 0, 0},
    {MICA__OP_MUL, "broadcasts", grad_mix, 2, {{2, {3, 1}, -0.9, 0.9}, {1, {4}, -0.9, 0.9}}, 0, 0},
};

#endif
