/* Ops on doubles in tiles. What is not here (transcendentals above all) goes
 * through the definition, which computes in double as well. */
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

#define CHAIN_F64_2(name, result, expression)                   \
    static void name(const chain_op *ip, chain_ctx *c)          \
    {                                                           \
        const chain_f64 *pa = (const chain_f64 *)c->ptr[ip->a]; \
        const chain_f64 *pb = (const chain_f64 *)c->ptr[ip->b]; \
        result *pd = (result *)c->ptr[ip->dst];                 \
        for (int64_t k = 0; k < c->n; k++) {                    \
            const double a = pa[k], b = pb[k];                  \
            pd[k] = expression;                                 \
        }                                                       \
    }

CHAIN_F64_1(f64_neg, chain_f64, -a)
CHAIN_F64_1(f64_abs, chain_f64, fabs(a))
CHAIN_F64_1(f64_square, chain_f64, a *a)
CHAIN_F64_1(f64_sqrt, chain_f64, sqrt(a))
CHAIN_F64_1(f64_rsqrt, chain_f64, 1.0 / sqrt(a))
CHAIN_F64_1(f64_reciprocal, chain_f64, 1.0 / a)
CHAIN_F64_1(f64_relu, chain_f64, isnan(a) || a > 0.0 ? a : 0.0)
CHAIN_F64_1(f64_exp, chain_f64, exp(a))
CHAIN_F64_1(f64_log, chain_f64, log(a))
CHAIN_F64_1(f64_tanh, chain_f64, tanh(a))
CHAIN_F64_1(f64_isnan, chain_f32, (float)(a != a))

CHAIN_F64_2(f64_add, chain_f64, a + b)
CHAIN_F64_2(f64_sub, chain_f64, a - b)
CHAIN_F64_2(f64_mul, chain_f64, a *b)
CHAIN_F64_2(f64_div, chain_f64, a / b)
CHAIN_F64_2(f64_min, chain_f64, isnan(a) || a < b ? a : b)
CHAIN_F64_2(f64_max, chain_f64, isnan(a) || a > b ? a : b)
CHAIN_F64_2(f64_equal, chain_f32, (float)(a == b))
CHAIN_F64_2(f64_not_equal, chain_f32, (float)(a != b))
CHAIN_F64_2(f64_less, chain_f32, (float)(a < b))
CHAIN_F64_2(f64_less_equal, chain_f32, (float)(a <= b))
CHAIN_F64_2(f64_greater, chain_f32, (float)(a > b))
CHAIN_F64_2(f64_greater_equal, chain_f32, (float)(a >= b))

static void f64_fma(const chain_op *ip, chain_ctx *c)
{
    const chain_f64 *pa = (const chain_f64 *)c->ptr[ip->a], *pb = (const chain_f64 *)c->ptr[ip->b];
    const chain_f64 *pc = (const chain_f64 *)c->ptr[ip->c];
    chain_f64 *pd = (chain_f64 *)c->ptr[ip->dst];
    for (int64_t k = 0; k < c->n; k++) pd[k] = fma(pa[k], pb[k], pc[k]);
}

static void f64_where(const chain_op *ip, chain_ctx *c)
{
    const chain_f32 *condition = (const chain_f32 *)c->ptr[ip->a];
    const chain_f64 *pb = (const chain_f64 *)c->ptr[ip->b], *pc = (const chain_f64 *)c->ptr[ip->c];
    chain_f64 *pd = (chain_f64 *)c->ptr[ip->dst];
    for (int64_t k = 0; k < c->n; k++) pd[k] = condition[k] != 0.0f ? pb[k] : pc[k];
}

chain_tile_fn *mica__chain_tile_f64(mica__op op)
{
    switch ((int)op) {
    case MICA__OP_NEG: return f64_neg;
    case MICA__OP_ABS: return f64_abs;
    case MICA__OP_SQUARE: return f64_square;
    case MICA__OP_SQRT: return f64_sqrt;
    case MICA__OP_RSQRT: return f64_rsqrt;
    case MICA__OP_RECIPROCAL: return f64_reciprocal;
    case MICA__OP_RELU: return f64_relu;
    case MICA__OP_EXP: return f64_exp;
    case MICA__OP_LOG: return f64_log;
    case MICA__OP_TANH: return f64_tanh;
    case MICA__OP_ISNAN: return f64_isnan;
    case MICA__OP_ADD: return f64_add;
    case MICA__OP_SUB: return f64_sub;
    case MICA__OP_MUL: return f64_mul;
    case MICA__OP_DIV: return f64_div;
    case MICA__OP_MINIMUM: return f64_min;
    case MICA__OP_MAXIMUM: return f64_max;
    case MICA__OP_EQUAL: return f64_equal;
    case MICA__OP_NOT_EQUAL: return f64_not_equal;
    case MICA__OP_LESS: return f64_less;
    case MICA__OP_LESS_EQUAL: return f64_less_equal;
    case MICA__OP_GREATER: return f64_greater;
    case MICA__OP_GREATER_EQUAL: return f64_greater_equal;
    case MICA__OP_FMA: return f64_fma;
    case MICA__OP_WHERE: return f64_where;
    default: return NULL;
    }
}
