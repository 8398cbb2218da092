/* Parity cases of reductions and of the ops that work on rows. */
#include "parity_cases.h"

#define SHAPES(rows) rows, PARITY_COUNT(rows)

static const parity_shape reduce_shapes[] = {
    {0, {0}},    {1, {1}},     {1, {2}},       {1, {17}},         {1, {130}},    {2, {1, 1}}, {2, {5, 33}},
    {2, {65, 3}}, {3, {3, 5, 17}}, {2, {0, 5}}, {2, {5, 0}}, {1, {0}}, {3, {2, 0, 3}}, {1, {2500}}, {2, {2, 1300}}, {2, {1300, 2}},
};

/* Variant: bit 0 keeps the axes, the others name them. */
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

static mica_array *build_norm(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    static const double eps[] = {1e-2, 1e-5};
    const mica__attr_norm attr = {.eps = eps[call->variant]};
    if (mica_array_ndim(x[0]) == 0) return NULL;
    return mica__build1(s, call->c->op, x[0], &attr, sizeof attr);
}

/* Sums see NaN and infinities, too, but nothing near the largest number: a sum
 * in f32 may overflow on the way where one in double does not. */
static const parity_shape special_shapes[] = {{1, {3}}, {1, {33}}, {2, {17, 3}}, {2, {33, 5}}, {3, {3, 5, 17}}};

#define NUMBERS {.domain = {-4, 4, 0, 0, PARITY_PLAIN}}
#define FACTORS {.domain = {0.6, 1.6, 0, 0, PARITY_PLAIN}}
#define NOT_FINITE {.domain = {-4, 4, 0, 0, PARITY_NOT_FINITE}}
#define SPECIAL {.domain = {-4, 4, 0, 0, PARITY_SPECIAL}}
#define MINUS_INF {.domain = {-4, 4, 0, 0, PARITY_MINUS_INF}}
#define TIES {.domain = {-4, 4, -2, 2, PARITY_SPECIAL}}
#define REDUCE(OP, name, in) {MICA__OP_##OP, name, build_reduce, 16, 1, {in}, SHAPES(reduce_shapes), 0, 0}
#define REDUCE_SPECIAL(OP, name, in) {MICA__OP_##OP, name, build_reduce, 16, 1, {in}, SHAPES(special_shapes), 0, 0}
#define ROWS(OP, name, in) {MICA__OP_##OP, name, build_rows, 1, 1, {in}, SHAPES(reduce_shapes), 0, 0}
#define ROWS_SPECIAL(OP, name, in) {MICA__OP_##OP, name, build_rows, 1, 1, {in}, SHAPES(special_shapes), 0, 0}
#define CUMULATIVE(OP, name, in) {MICA__OP_##OP, name, build_cumulative, 4, 1, {in}, SHAPES(special_shapes), 130, 0}

const parity_case parity_cases_reduce[] = {
    REDUCE(SUM, "sum", NUMBERS),
    REDUCE(PROD, "prod", FACTORS),
    REDUCE(MAX, "max", SPECIAL),
    REDUCE(MIN, "min", SPECIAL),
    REDUCE(ANY, "any", NUMBERS),
    REDUCE(ALL, "all", NUMBERS),
    ROWS(ARGMAX, "argmax", TIES),
    ROWS(ARGMIN, "argmin", TIES),
    CUMULATIVE(CUMSUM, "cumsum", NUMBERS),
    CUMULATIVE(CUMPROD, "cumprod", FACTORS),
    CUMULATIVE(CUMMAX, "cummax", SPECIAL),
    {MICA__OP_CUMSUM, "cumsum, long", build_cumulative, 4, 1, {NUMBERS}, SHAPES(reduce_shapes), 2500, 0},
    REDUCE_SPECIAL(SUM, "sum, not finite", NOT_FINITE),
    REDUCE_SPECIAL(PROD, "prod, not finite", NOT_FINITE),
    CUMULATIVE(CUMSUM, "cumsum, not finite", NOT_FINITE),
    ROWS(SOFTMAX, "softmax", NUMBERS),
    ROWS(LOG_SOFTMAX, "log_softmax", NUMBERS),
    {MICA__OP_LAYER_NORM, "layer_norm", build_norm, 1, 1, {NUMBERS}, SHAPES(reduce_shapes), 0, 0},
    {MICA__OP_RMS_NORM, "rms_norm", build_norm, 2, 1, {NUMBERS}, SHAPES(reduce_shapes), 0, 0},
    ROWS_SPECIAL(SOFTMAX, "softmax, not finite", NOT_FINITE),
    ROWS_SPECIAL(SOFTMAX, "softmax, -inf", MINUS_INF),
    ROWS_SPECIAL(LOG_SOFTMAX, "log_softmax, not finite", NOT_FINITE),
    ROWS_SPECIAL(LOG_SOFTMAX, "log_softmax, -inf", MINUS_INF),
    {MICA__OP_LAYER_NORM, "layer_norm, not finite", build_norm, 1, 1, {NOT_FINITE}, SHAPES(special_shapes), 0, 0},
    {MICA__OP_RMS_NORM, "rms_norm, not finite", build_norm, 1, 1, {NOT_FINITE}, SHAPES(special_shapes), 0, 0},
    {0},
};
