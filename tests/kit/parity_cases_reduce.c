/* Parity cases of reductions and of the ops that work on rows. */
#include "parity_cases.h"

static const parity_shape reduce_shapes[] = {
    {0, {0}},        {1, {1}},    {1, {2}},    {1, {17}}, {1, {130}},     {2, {1, 1}}, {2, {5, 33}},   {2, {65, 3}},
    {3, {3, 5, 17}}, {2, {0, 5}}, {2, {5, 0}}, {1, {0}},  {3, {2, 0, 3}}, {1, {2500}}, {2, {2, 1300}}, {2, {1300, 2}},
};

/* Variant: bit 0 keeps the axes, the other bits select them. */
static mica_array *build_reduce(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const mica__attr_reduce attr = {.axes = call->variant >> 1, .keep = call->variant & 1};
    if (attr.axes >> mica_array_ndim(x[0])) return NULL;
    return mica__build1(s, call->c->op, x[0], &attr, sizeof attr);
}

static mica_array *build_rows(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    if (mica_array_ndim(x[0]) == 0) return NULL;
    return mica__build1(s, call->c->op, x[0], NULL, 0);
}

static mica_array *build_cumulative(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    if (mica_array_ndim(x[0]) == 0) return NULL;
    return mica__cumulative(s, call->c->op, x[0], call->variant & 1, call->variant >> 1);
}

/* Variant 1: relative to the first element of each row. */
static mica_array *build_logsumexp(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    if (mica_array_ndim(x[0]) == 0) return NULL;
    if (call->variant == 0) return mica__build1(s, MICA__OP_LOGSUMEXP, x[0], NULL, 0);
    mica_array *first = mica_squeeze(s, mica_slice_axis(s, x[0], -1, 0, 1, 1), -1);
    return mica__build2(s, MICA__OP_LOGSUMEXP, x[0], first, NULL, 0);
}

/* Variants from 2 on: f32 results of f16 and bf16 inputs. */
static mica_array *build_norm(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    static const double eps[] = {1e-2, 1e-5};
    const mica__attr_norm attr = {.eps = eps[call->variant % 2], .wide = call->variant / 2};
    if (mica_array_ndim(x[0]) == 0) return NULL;
    return mica__build1(s, call->c->op, x[0], &attr, sizeof attr);
}

/* Sums are also tested with NaN and infinities, but not near the largest number: an f32
 * accumulator may overflow where a double does not. */
static const parity_shape special_shapes[] = {{1, {3}}, {1, {33}}, {2, {17, 3}}, {2, {33, 5}}, {3, {3, 5, 17}}};

#define NUMBERS PARITY_OPERAND(-4, 4, 0, 0, PARITY_PLAIN)
#define FACTORS PARITY_OPERAND(0.6, 1.6, 0, 0, PARITY_PLAIN)
#define NOT_FINITE PARITY_OPERAND(-4, 4, 0, 0, PARITY_NOT_FINITE)
#define SPECIAL PARITY_OPERAND(-4, 4, 0, 0, PARITY_SPECIAL)
#define MINUS_INF PARITY_OPERAND(-4, 4, 0, 0, PARITY_MINUS_INF)
#define TIES PARITY_OPERAND(-4, 4, -2, 2, PARITY_SPECIAL)
#define REDUCE(OP, name, rows, in) PARITY_CASE(OP, name, build_reduce, 16, 1, rows, 0, 0, in)
#define ROWS(OP, name, rows, in) PARITY_CASE(OP, name, build_rows, 1, 1, rows, 1, 0, in)
#define LOGSUMEXP(name, variants, rows, in) PARITY_CASE(LOGSUMEXP, name, build_logsumexp, variants, 1, rows, 1, 0, in)
#define NORM(OP, name, variants, rows, in) PARITY_CASE(OP, name, build_norm, variants, 1, rows, 1, 0, in)
#define CUMULATIVE(OP, name, rows, terms, in) PARITY_CASE(OP, name, build_cumulative, 4, 1, rows, terms, 0, in)

const parity_case parity_cases_reduce[] = {
    REDUCE(SUM, "sum", reduce_shapes, NUMBERS),
    REDUCE(SUM, "sum, not finite", special_shapes, NOT_FINITE),
    REDUCE(PROD, "prod", reduce_shapes, FACTORS),
    REDUCE(PROD, "prod, not finite", special_shapes, NOT_FINITE),
    REDUCE(MAX, "max", reduce_shapes, SPECIAL),
    REDUCE(MIN, "min", reduce_shapes, SPECIAL),
    REDUCE(ANY, "any", reduce_shapes, NUMBERS),
    REDUCE(ALL, "all", reduce_shapes, NUMBERS),
    ROWS(ARGMAX, "argmax", reduce_shapes, TIES),
    ROWS(ARGMIN, "argmin", reduce_shapes, TIES),
    CUMULATIVE(CUMSUM, "cumsum", reduce_shapes, 2500, NUMBERS),
    CUMULATIVE(CUMSUM, "cumsum, not finite", special_shapes, 130, NOT_FINITE),
    CUMULATIVE(CUMPROD, "cumprod", special_shapes, 130, FACTORS),
    CUMULATIVE(CUMMAX, "cummax", reduce_shapes, 1, SPECIAL),
    ROWS(SOFTMAX, "softmax", reduce_shapes, NUMBERS),
    ROWS(SOFTMAX, "softmax, -inf", special_shapes, MINUS_INF),
    ROWS(SOFTMAX, "softmax, not finite", special_shapes, NOT_FINITE),
    ROWS(LOG_SOFTMAX, "log_softmax", reduce_shapes, NUMBERS),
    ROWS(LOG_SOFTMAX, "log_softmax, -inf", special_shapes, MINUS_INF),
    ROWS(LOG_SOFTMAX, "log_softmax, not finite", special_shapes, NOT_FINITE),
    LOGSUMEXP("logsumexp", 2, reduce_shapes, NUMBERS),
    LOGSUMEXP("logsumexp, -inf", 1, special_shapes, MINUS_INF),
    LOGSUMEXP("logsumexp, not finite", 2, special_shapes, NOT_FINITE),
    NORM(LAYER_NORM, "layer_norm", 1, reduce_shapes, NUMBERS),
    NORM(LAYER_NORM, "layer_norm, not finite", 1, special_shapes, NOT_FINITE),
    NORM(RMS_NORM, "rms_norm", 4, reduce_shapes, NUMBERS),
    NORM(RMS_NORM, "rms_norm, not finite", 1, special_shapes, NOT_FINITE),
    {0},
};
