/* Functions of doubles on tiles, by the C library, one lane at a time. Ops with a
 * vector form are in chain_wide.inc; ops with neither run their scalar definition,
 * which computes in double as well. */
#include <math.h>

#include "codegen/chain_ctx.h"

#define CHAIN_F64_1(name, result, expression)                   \
    static void name(const chain_op *ip, chain_ctx *c)          \
    {                                                           \
        const chain_f64 *pa = (const chain_f64 *)c->ptr[ip->a]; \
        result *pd = (result *)c->ptr[ip->dst];                 \
        for (int64_t k = 0; k < c->n; k++) {                    \
            const double a = pa[k];                             \
            pd[k] = expression;                                 \
        }                                                       \
    }

CHAIN_F64_1(f64_exp, chain_f64, exp(a))
CHAIN_F64_1(f64_log, chain_f64, log(a))
CHAIN_F64_1(f64_tanh, chain_f64, tanh(a))
CHAIN_F64_1(f64_isnan, chain_f32, (float)(a != a))

static void f64_fma(const chain_op *ip, chain_ctx *c)
{
    const chain_f64 *pa = (const chain_f64 *)c->ptr[ip->a], *pb = (const chain_f64 *)c->ptr[ip->b];
    const chain_f64 *pc = (const chain_f64 *)c->ptr[ip->c];
    chain_f64 *pd = (chain_f64 *)c->ptr[ip->dst];
    for (int64_t k = 0; k < c->n; k++) pd[k] = fma(pa[k], pb[k], pc[k]);
}

chain_tile_fn *mica__chain_tile_f64(const chain_wide_table *wide, mica__op op)
{
    switch ((int)op) {
    case MICA__OP_EXP: return f64_exp;
    case MICA__OP_LOG: return f64_log;
    case MICA__OP_TANH: return f64_tanh;
    case MICA__OP_ISNAN: return f64_isnan;
    case MICA__OP_FMA: return f64_fma;
    case MICA__OP_WHERE: return wide->where;
    default: return wide->f64[op];
    }
}
