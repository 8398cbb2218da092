/* Functions of floats on tiles: those of chain_math.inc, and the C library's, a
 * lane at a time, for those that have no vector form yet. An op with neither goes
 * through its definition in double (chain_tile_any.c). The caller rounds f16 and
 * bf16 afterwards. */
#include <math.h>

#include "codegen/chain_ctx.h"

#define CHAIN_LANES_1(name, expression)                         \
    static void name(const chain_op *ip, chain_ctx *c)          \
    {                                                           \
        const chain_f32 *pa = (const chain_f32 *)c->ptr[ip->a]; \
        chain_f32 *pd = (chain_f32 *)c->ptr[ip->dst];           \
        for (int64_t k = 0; k < c->n; k++) {                    \
            const float a = pa[k];                              \
            pd[k] = expression;                                 \
        }                                                       \
    }

#define CHAIN_LANES_2(name, expression)                         \
    static void name(const chain_op *ip, chain_ctx *c)          \
    {                                                           \
        const chain_f32 *pa = (const chain_f32 *)c->ptr[ip->a]; \
        const chain_f32 *pb = (const chain_f32 *)c->ptr[ip->b]; \
        chain_f32 *pd = (chain_f32 *)c->ptr[ip->dst];           \
        for (int64_t k = 0; k < c->n; k++) {                    \
            const float a = pa[k], b = pb[k];                   \
            pd[k] = expression;                                 \
        }                                                       \
    }

CHAIN_LANES_1(f32_tan, tanf(a))
CHAIN_LANES_1(f32_asin, asinf(a))
CHAIN_LANES_1(f32_acos, acosf(a))
CHAIN_LANES_1(f32_atan, atanf(a))
CHAIN_LANES_1(f32_leaky_relu, a >= 0.0f ? a : (float)((double)a * ((const mica__attr_value *)ip->attr)->value))

CHAIN_LANES_2(f32_atan2, atan2f(a, b))
CHAIN_LANES_2(f32_hypot, hypotf(a, b))

static void f32_fma(const chain_op *ip, chain_ctx *c)
{
    const chain_f32 *pa = (const chain_f32 *)c->ptr[ip->a], *pb = (const chain_f32 *)c->ptr[ip->b];
    const chain_f32 *pc = (const chain_f32 *)c->ptr[ip->c];
    chain_f32 *pd = (chain_f32 *)c->ptr[ip->dst];
    for (int64_t k = 0; k < c->n; k++) pd[k] = fmaf(pa[k], pb[k], pc[k]);
}

chain_tile_fn *mica__chain_tile_f32(mica__op op, mica_dtype in)
{
    switch ((int)op) {
    case MICA__OP_TAN: return f32_tan;
    case MICA__OP_ASIN: return f32_asin;
    case MICA__OP_ACOS: return f32_acos;
    case MICA__OP_ATAN: return f32_atan;
    case MICA__OP_LEAKY_RELU: return f32_leaky_relu;
    case MICA__OP_ATAN2: return f32_atan2;
    case MICA__OP_HYPOT: return f32_hypot;
    /* f16 and bf16 would be rounded twice: first to float */
    case MICA__OP_FMA: return in == MICA_F32 ? f32_fma : NULL;
    default: return mica__chain_tile_math(op);
    }
}
