/* The op table, from ops.def. */
#include "graph/attrs.h"
#include "graph/op.h"

/* clang-format off */
#define OP_INFO(NAME, op_name, op_kind, n, rule, op_flops, op_cost, attr, op_msl, op_vjp, op_ctor, op_place) \
    [MICA__OP_##NAME] = {                                                                                    \
        .op = MICA__OP_##NAME,                                                                               \
        .name = #op_name,                                                                                    \
        .kind = MICA__##op_kind,                                                                             \
        .n_in = n,                                                                                           \
        .shape = mica__shape_##rule,                                                                         \
        .flops = op_flops,                                                                                   \
        .cost = mica__cost_##op_cost,                                                                        \
        .attr_size = MICA__ATTR_SIZE_##attr,                                                                 \
        .print = mica__print_##attr,                                                                         \
        .msl = op_msl,                                                                                       \
        .vjp = mica__vjp_##op_vjp,                                                                           \
        .ctor = MICA__CTOR_##op_ctor,                                                                        \
        .place = MICA__PLACE_##op_place,                                                                     \
    },
#define MICA_OP(NAME, name, kind, n_in, rule, flops, cost, attr, msl, vjp) \
    OP_INFO(NAME, name, kind, n_in, rule, flops, cost, attr, msl, vjp, OTHER, NONE)
#define MICA_MAP1(NAME, name, ctor, rule, flops, attr, msl, vjp, scalar, integer, place, ...) \
    OP_INFO(NAME, name, MAP, 1, rule, flops, out, attr, msl, vjp, ctor, place)
#define MICA_MAP2(NAME, name, rule, flops, msl, vjp, scalar, integer, place, ...) \
    OP_INFO(NAME, name, MAP, 2, rule, flops, out, none, msl, vjp, PLAIN, place)
/* clang-format on */

const mica__op_info mica__ops[MICA__OP_COUNT] = {
#include "graph/ops.def"
};

static const char *const index_callers[MICA__CALLER_COUNT] = {
    [MICA__CALLER_TAKE] = "take",
    [MICA__CALLER_EMBEDDING] = "embedding",
    [MICA__CALLER_TAKE_ALONG_AXIS] = "take_along_axis",
    [MICA__CALLER_GATHER] = "gather",
    [MICA__CALLER_SCATTER] = "scatter",
    [MICA__CALLER_SCATTER_ADD] = "scatter_add",
    [MICA__CALLER_CROSS_ENTROPY] = "cross_entropy",
    [MICA__CALLER_QUANT_ROWS] = "quant_rows",
    [MICA__CALLER_RANDOM_CATEGORICAL] = "random_categorical",
};

const char *mica__index_caller_name(int64_t caller, const char *self)
{
    return caller > MICA__CALLER_NONE && caller < MICA__CALLER_COUNT ? index_callers[caller] : self;
}
