/* Element-wise programs: chains with broadcasts and casts, views between ops, constants, common
 * subexpressions. No pass may change a bit of their results. */
#include <math.h>

#include "parity_programs.h"

#define BUILD(name) static mica_array *build_##name(mica_scope *s, mica_array *const *x, const parity_call *call)
#define NUMBER(v) mica_scalar(s, v)

BUILD(bias_gelu)
{
    (void)call;
    return mica_gelu(s, mica_add(s, mica_mul(s, x[0], x[1]), x[2]));
}

BUILD(cast_chain)
{
    (void)call;
    mica_array *half = mica_add(s, mica_cast(s, x[0], MICA_F16), mica_cast(s, x[1], MICA_F16));
    mica_array *brain = mica_mul(s, mica_cast(s, half, MICA_BF16), mica_cast(s, x[2], MICA_BF16));
    mica_array *wide = mica_add(s, mica_cast(s, brain, MICA_F64), mica_cast(s, half, MICA_F64));
    return mica_cast(s, mica_tanh(s, wide), MICA_F32);
}

/* Casts of floats to wide and narrow integers, which wrap or saturate. */
BUILD(int_casts)
{
    (void)call;
    mica_array *small = mica_cast(s, mica_mul(s, x[0], NUMBER(40)), MICA_I8);
    mica_array *bytes = mica_cast(s, mica_cast(s, mica_mul(s, x[1], NUMBER(40)), MICA_I32), MICA_U8);
    mica_array *sum = mica_add(s, small, bytes);
    return mica_add(s, mica_cast(s, mica_mul(s, sum, sum), MICA_U16), mica_cast(s, x[2], MICA_I32));
}

/* A contraction, so that an error of an ulp does not grow. */
static mica_array *chain_of(mica_scope *s, mica_array *const *x, int n)
{
    mica_array *y = x[0];
    for (int i = 0; i < n; i++) {
        y = mica_add(s, mica_mul(s, mica_sin(s, y), NUMBER(0.4)), x[2]);
        y = mica_sub(s, mica_maximum(s, y, mica_neg(s, x[1])), NUMBER(0.25));
    }
    return y;
}

BUILD(chain)
{
    (void)call;
    return chain_of(s, x, 2);
}

/* More ops than one kernel holds. */
BUILD(deep)
{
    (void)call;
    return chain_of(s, x, 25);
}

BUILD(choice)
{
    (void)call;
    mica_array *low = mica_log(s, mica_add(s, mica_abs(s, mica_sub(s, x[1], x[0])), NUMBER(1)));
    return mica_where(s, mica_less(s, x[0], x[1]), mica_exp(s, mica_add(s, x[2], x[0])), mica_add(s, low, x[0]));
}

/* All identities of the algebra pass, on numbers that distinguish -0 from 0. */
BUILD(identities)
{
    (void)call;
    mica_array *a = mica_sub(s, mica_add(s, mica_mul(s, x[0], NUMBER(1)), NUMBER(0)), NUMBER(0));
    mica_array *b = mica_neg(s, mica_neg(s, mica_abs(s, mica_abs(s, mica_div(s, x[1], NUMBER(4))))));
    mica_array *c = mica_pow(s, mica_add(s, x[2], mica_neg(s, x[0])), NUMBER(2));
    mica_array *d = mica_maximum(s, mica_minimum(s, c, c), NUMBER(-INFINITY));
    return mica_sub(s, mica_add(s, mica_mul(s, a, NUMBER(-1)), b), mica_div(s, d, NUMBER(1)));
}

/* The same identities one by one, so that the sign of a zero is not lost in a sum. */
BUILD(identity)
{
    mica_array *a = x[0], *b = mica_add(s, x[1], x[2]);
    switch (call->variant) {
    case 0: return mica_mul(s, a, NUMBER(1));
    case 1: return mica_add(s, a, NUMBER(0));
    case 2: return mica_sub(s, a, NUMBER(0));
    case 3: return mica_sub(s, NUMBER(0), a);
    case 4: return mica_add(s, NUMBER(-0.0), a);
    case 5: return mica_mul(s, a, NUMBER(-1));
    case 6: return mica_neg(s, mica_neg(s, a));
    case 7: return mica_abs(s, mica_abs(s, mica_neg(s, a)));
    case 8: return mica_div(s, a, NUMBER(4));
    case 9: return mica_div(s, a, NUMBER(-1));
    case 10: return mica_pow(s, a, NUMBER(2));
    case 11: return mica_pow(s, a, NUMBER(0));
    case 12: return mica_maximum(s, a, a);
    case 13: return mica_minimum(s, NUMBER(INFINITY), a);
    case 14: return mica_mul(s, a, NUMBER(0));
    case 15: return mica_sub(s, b, b);
    case 16: return mica_add(s, a, mica_neg(s, b));
    case 17: return mica_sub(s, a, mica_neg(s, b));
    case 18: return mica_cast(s, mica_cast(s, a, MICA_F64), call->dtype);
    case 19: return mica_cast(s, mica_cast(s, a, MICA_F16), MICA_F32);
    case 20: return mica_reciprocal(s, mica_reciprocal(s, a));
    case 21: return mica_square(s, mica_sqrt(s, mica_abs(s, a)));
    case 22: return mica_equal(s, a, a);
    case 23: return mica_logical_not(s, mica_logical_not(s, a));
    case 24: return mica_relu(s, mica_relu(s, a));
    case 25: return mica_where(s, mica_isnan(s, a), b, b);
    default: return mica_clip(s, mica_floor(s, mica_floor(s, a)), NUMBER(-1), NUMBER(1));
    }
}

BUILD(twice)
{
    (void)call;
    mica_array *a = mica_exp(s, mica_mul(s, x[0], x[1])), *b = mica_exp(s, mica_mul(s, x[0], x[1]));
    return mica_add(s, mica_mul(s, a, mica_tanh(s, b)), mica_add(s, mica_exp(s, mica_mul(s, x[0], x[1])), x[2]));
}

BUILD(constants)
{
    const mica_dtype d = call->dtype;
    const int n = mica_array_ndim(x[0]);
    mica_array *k =
        mica_mul(s, mica_full(s, d, n, mica_array_shape(x[0]), 3), mica_sqrt(s, mica_full(s, d, 0, NULL, 2)));
    mica_array *i = mica_cast(s, mica_arange(s, MICA_I64, 0, (double)mica_array_shape(x[0])[n - 1], 1), d);
    return mica_add(s, mica_mul(s, x[0], k), mica_add(s, mica_mul(s, i, NUMBER(0.5)), x[1]));
}

BUILD(views)
{
    (void)call;
    mica_array *a = mica_flip(s, mica_exp(s, x[0]), -1);
    mica_array *b = mica_transpose(s, mica_transpose(s, mica_tanh(s, mica_add(s, x[0], x[1]))));
    mica_array *c = mica_slice_axis(s, mica_add(s, b, a), -1, MICA_AUTO, MICA_AUTO, -2);
    return mica_mul(s, mica_reshape(s, c, 1, (int64_t[]){-1}), NUMBER(1.5));
}

/* A value and views of it in one expression. */
BUILD(crossing)
{
    (void)call;
    const int n = mica_array_ndim(x[0]);
    mica_array *y = mica_sin(s, mica_add(s, x[0], x[1]));
    mica_array *left = mica_slice_axis(s, y, n - 1, 0, -1, 1), *right = mica_slice_axis(s, y, n - 1, 1, MICA_AUTO, 1);
    return mica_sub(s, mica_mul(s, right, right), mica_exp(s, left));
}

BUILD(transposed_sum)
{
    (void)call;
    mica_array *y = mica_sin(s, mica_add(s, x[0], x[1]));
    return mica_mul(s, mica_transpose(s, y), mica_transpose(s, mica_flip(s, mica_square(s, y), 0)));
}

/* Integers only: exact, also when they wrap. */
BUILD(bits)
{
    (void)call;
    mica_array *y = mica_mul(s, mica_add(s, x[0], x[1]), x[2]);
    y = mica_bitwise_xor(s, mica_shift_right(s, y, NUMBER(3)), mica_bitwise_not(s, x[1]));
    y = mica_floor_div(s, y, mica_bitwise_or(s, x[2], NUMBER(1)));
    return mica_where(s, mica_greater(s, y, x[0]), mica_mod(s, y, NUMBER(7)), mica_maximum(s, y, x[2]));
}

BUILD(moved)
{
    (void)call;
    mica_array *sum = mica_add(s, x[0], x[1]), *both[2] = {mica_exp(s, sum), sum};
    mica_array *joined = mica_concat(s, both, 2, 0), *rolled = mica_roll(s, joined, 3, -1);
    return mica_add(s, mica_tile(s, rolled, (int64_t[]){2, 1, 1, 1}), NUMBER(1));
}

BUILD(padded)
{
    (void)call;
    const int64_t low[4] = {1, 0, 2, 1}, high[4] = {0, 2, 1, 1};
    mica_array *y = mica_pad(s, mica_mul(s, x[0], x[1]), low, high, 0.5);
    return mica_repeat(s, mica_sigmoid(s, y), 2, -1);
}

static const parity_shape same_rows[][3] = {
    {{2, {5, 33}}, {2, {5, 33}}, {2, {5, 33}}},
    {{2, {17, 65}}, {1, {65}}, {2, {17, 1}}},
    {{3, {3, 1, 5}}, {2, {4, 5}}, {0, {0}}},
    {{3, {2, 3, 130}}, {3, {2, 1, 130}}, {1, {1}}},
};

#define SPECIAL PARITY_OPERAND(-3, 3, 0, 0, PARITY_SPECIAL)
#define PLAIN PARITY_OPERAND(-3, 3, 0, 0, PARITY_PLAIN)
#define PROGRAM(NAME, text, in, kernels, types) \
    {PARITY_CASE(ADD, text, build_##NAME, 1, 3, same_rows, 1, types, in, in, in), true, 2e-5, kernels}

const parity_program parity_programs_map[] = {
    PROGRAM(bias_gelu, "gelu(a*b+c)", SPECIAL, 1, PARITY_FLOATS),
    PROGRAM(cast_chain, "casts of floats", PLAIN, 1, PARITY_FLOATS),
    PROGRAM(int_casts, "casts of integers", SPECIAL, 1, PARITY_FLOATS),
    PROGRAM(chain, "a chain", PLAIN, 1, PARITY_FLOATS),
    PROGRAM(deep, "a deep chain", PLAIN, 0, PARITY_FLOATS),
    PROGRAM(choice, "where", SPECIAL, 1, PARITY_FLOATS),
    PROGRAM(identities, "identities", SPECIAL, 1, PARITY_FLOATS),
    {PARITY_CASE(ADD, "one identity", build_identity, 27, 3, same_rows, 1, PARITY_FLOATS, SPECIAL, SPECIAL, SPECIAL),
     true, 2e-5, 0},
    PROGRAM(twice, "equal expressions", PLAIN, 1, PARITY_FLOATS),
    PROGRAM(constants, "constants", SPECIAL, 1, PARITY_FLOATS),
    PROGRAM(views, "views between", PLAIN, 0, PARITY_FLOATS),
    PROGRAM(crossing, "views of one value", PLAIN, 0, PARITY_FLOATS),
    PROGRAM(transposed_sum, "transposed", PLAIN, 0, PARITY_FLOATS),
    PROGRAM(bits, "integers", SPECIAL, 1, PARITY_INTS),
    PROGRAM(moved, "concat, roll, tile", PLAIN, 0, PARITY_FLOATS),
    PROGRAM(padded, "pad, repeat", PLAIN, 0, PARITY_FLOATS),
    {{0}, 0, 0, 0},
};
