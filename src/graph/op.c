/* The op table, from ops.def. */
#include "graph/op.h"

const mica__op_info mica__ops[MICA__OP_COUNT] = {
#define MICA_OP(NAME, name, kind, n_in, rule, flops, cost, msl, vjp)                                \
    [MICA__OP_##NAME] = {MICA__OP_##NAME,   #name, MICA__##kind,   n_in, mica__shape_##rule, flops, \
                         mica__cost_##cost, msl,   mica__vjp_##vjp},
#include "graph/ops.def"
#undef MICA_OP
};
