/* Integer ops on tiles: all integers are 64 bits wide in a tile, computed modulo
 * 2^64 and brought back to the range of their dtype after each op. Ops that are
 * not here go through their definition (chain_tile_any.c). */
#include "codegen/chain_ctx.h"

#define CHAIN_INT1(name, type, expression)             \
    static void name(const chain_op *ip, chain_ctx *c) \
    {                                                  \
        const type *pa = (const type *)c->ptr[ip->a];  \
        type *pd = (type *)c->ptr[ip->dst];            \
        for (int64_t k = 0; k < c->n; k++) {           \
            const type a = pa[k];                      \
            pd[k] = expression;                        \
        }                                              \
    }

#define CHAIN_INT2(name, type, result, expression)     \
    static void name(const chain_op *ip, chain_ctx *c) \
    {                                                  \
        const type *pa = (const type *)c->ptr[ip->a];  \
        const type *pb = (const type *)c->ptr[ip->b];  \
        result *pd = (result *)c->ptr[ip->dst];        \
        for (int64_t k = 0; k < c->n; k++) {           \
            const type a = pa[k], b = pb[k];           \
            pd[k] = expression;                        \
        }                                              \
    }

CHAIN_INT1(int_neg, chain_u64, 0 - a)
CHAIN_INT1(int_square, chain_u64, a *a)
CHAIN_INT1(int_not, chain_u64, ~a)
CHAIN_INT1(int_abs, chain_i64, a < 0 ? (int64_t)(0 - (uint64_t)a) : a)
CHAIN_INT1(int_relu, chain_i64, a < 0 ? 0 : a)

CHAIN_INT2(int_add, chain_u64, chain_u64, a + b)
CHAIN_INT2(int_sub, chain_u64, chain_u64, a - b)
CHAIN_INT2(int_mul, chain_u64, chain_u64, a *b)
CHAIN_INT2(int_and, chain_u64, chain_u64, a &b)
CHAIN_INT2(int_or, chain_u64, chain_u64, a | b)
CHAIN_INT2(int_xor, chain_u64, chain_u64, a ^ b)
CHAIN_INT2(int_min_i, chain_i64, chain_i64, b < a ? b : a)
CHAIN_INT2(int_min_u, chain_u64, chain_u64, b < a ? b : a)
CHAIN_INT2(int_max_i, chain_i64, chain_i64, a < b ? b : a)
CHAIN_INT2(int_max_u, chain_u64, chain_u64, a < b ? b : a)
CHAIN_INT2(int_equal, chain_u64, chain_f32, (float)(a == b))
CHAIN_INT2(int_not_equal, chain_u64, chain_f32, (float)(a != b))
CHAIN_INT2(int_less_i, chain_i64, chain_f32, (float)(a < b))
CHAIN_INT2(int_less_u, chain_u64, chain_f32, (float)(a < b))
CHAIN_INT2(int_less_equal_i, chain_i64, chain_f32, (float)(a <= b))
CHAIN_INT2(int_less_equal_u, chain_u64, chain_f32, (float)(a <= b))
CHAIN_INT2(int_greater_i, chain_i64, chain_f32, (float)(a > b))
CHAIN_INT2(int_greater_u, chain_u64, chain_f32, (float)(a > b))
CHAIN_INT2(int_greater_equal_i, chain_i64, chain_f32, (float)(a >= b))
CHAIN_INT2(int_greater_equal_u, chain_u64, chain_f32, (float)(a >= b))

/* a: the condition, a bool. */
static void int_where(const chain_op *ip, chain_ctx *c)
{
    const chain_f32 *condition = (const chain_f32 *)c->ptr[ip->a];
    const chain_i64 *pb = (const chain_i64 *)c->ptr[ip->b], *pc = (const chain_i64 *)c->ptr[ip->c];
    chain_i64 *pd = (chain_i64 *)c->ptr[ip->dst];
    for (int64_t k = 0; k < c->n; k++) pd[k] = condition[k] != 0.0f ? pb[k] : pc[k];
}

chain_tile_fn *mica__chain_tile_int(mica__op op, mica_dtype in)
{
    const bool u = in == MICA_U64;
    switch ((int)op) {
    case MICA__OP_NEG: return int_neg;
    case MICA__OP_SQUARE: return int_square;
    case MICA__OP_BITWISE_NOT: return int_not;
    case MICA__OP_ABS: return u ? NULL : int_abs;
    case MICA__OP_RELU: return u ? NULL : int_relu;
    case MICA__OP_ADD: return int_add;
    case MICA__OP_SUB: return int_sub;
    case MICA__OP_MUL: return int_mul;
    case MICA__OP_BITWISE_AND: return int_and;
    case MICA__OP_BITWISE_OR: return int_or;
    case MICA__OP_BITWISE_XOR: return int_xor;
    case MICA__OP_MINIMUM: return u ? int_min_u : int_min_i;
    case MICA__OP_MAXIMUM: return u ? int_max_u : int_max_i;
    case MICA__OP_EQUAL: return int_equal;
    case MICA__OP_NOT_EQUAL: return int_not_equal;
    case MICA__OP_LESS: return u ? int_less_u : int_less_i;
    case MICA__OP_LESS_EQUAL: return u ? int_less_equal_u : int_less_equal_i;
    case MICA__OP_GREATER: return u ? int_greater_u : int_greater_i;
    case MICA__OP_GREATER_EQUAL: return u ? int_greater_equal_u : int_greater_equal_i;
    case MICA__OP_WHERE: return int_where;
    default: return NULL;
    }
}

/* ----------------------------------------------------------------- wrap ---- */

CHAIN_INT1(wrap_u8, chain_i64, (uint8_t)a)
CHAIN_INT1(wrap_i8, chain_i64, (int8_t)a)
CHAIN_INT1(wrap_u16, chain_i64, (uint16_t)a)
CHAIN_INT1(wrap_i16, chain_i64, (int16_t)a)
CHAIN_INT1(wrap_u32, chain_i64, (uint32_t)a)
CHAIN_INT1(wrap_i32, chain_i64, (int32_t)a)

chain_tile_fn *mica__chain_tile_wrap(mica_dtype dtype)
{
    switch (dtype) {
    case MICA_U8: return wrap_u8;
    case MICA_I8: return wrap_i8;
    case MICA_U16: return wrap_u16;
    case MICA_I16: return wrap_i16;
    case MICA_U32: return wrap_u32;
    case MICA_I32: return wrap_i32;
    default: return NULL;
    }
}
