/* The op table, from ops.def. */
#include "graph/op.h"

#include "graph/attrs.h"

const mica__op_info mica__ops[MICA__OP_COUNT] = {
#define MICA_OP(NAME, name, kind, n_in, rule, flops, cost, msl, vjp)                                \
    [MICA__OP_##NAME] = {MICA__OP_##NAME,   #name, MICA__##kind,   n_in, mica__shape_##rule, flops, \
                         mica__cost_##cost, msl,   mica__vjp_##vjp},
#include "graph/ops.def"
#undef MICA_OP
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
