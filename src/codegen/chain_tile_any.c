/* Ops on tiles that are not specific to one dtype: any op by its
 * definition, casts, copies and the index check. */
#include <math.h>
#include <string.h>

#include "codegen/chain_ctx.h"
#include "graph/scalar.h"

/* ----------------------------------------------------- by the definition --- */

void mica__chain_tile_any(const chain_op *ip, chain_ctx *c)
{
    const int n_arg = mica__op_get(ip->op)->n_in;
    const uint16_t cell[3] = {ip->a, ip->b, ip->c};
    const mica_dtype in = (mica_dtype)ip->in, out = (mica_dtype)ip->out;
    for (int64_t k = 0; k < c->n; k++) {
        mica__number arg[3] = {{0.0, 0}};
        for (int i = 0; i < n_arg; i++)
            arg[i] = mica__chain_get(c->ptr[cell[i]], ip->op == MICA__OP_WHERE && i == 0 ? MICA_BOOL : in, k);
        mica__chain_put(c->ptr[ip->dst], out, k, mica__scalar_map((mica__op)ip->op, in, out, arg, ip->attr, NULL));
    }
}

void mica__chain_tile_check_index(const chain_op *ip, chain_ctx *c)
{
    const char *from = c->ptr[ip->a];
    char *to = c->ptr[ip->dst];
    const mica_dtype in = (mica_dtype)ip->in, out = (mica_dtype)ip->out;
    const mica__attr_index *attr = ip->attr;
    const int64_t size = attr->size;
    const bool u = ip->in == MICA_U64;
    for (int64_t k = 0; k < c->n; k++) {
        const int64_t index = mica__chain_get(from, in, k).i, from_end = index < 0 && !u ? index + size : index;
        const bool inside = (uint64_t)from_end < (uint64_t)size;
        mica__chain_put(to, out, k, (mica__number){0.0, inside ? from_end : 0});
        if (!inside) mica__index_fault_record(c->fault, c->position + k * c->position_step, index, u, attr);
    }
}

/* ------------------------------------------------------ copies and casts --- */

void mica__chain_tile_copy32(const chain_op *ip, chain_ctx *c)
{
    if (c->ptr[ip->dst] != c->ptr[ip->a]) memcpy(c->ptr[ip->dst], c->ptr[ip->a], (size_t)c->n * 4);
}

void mica__chain_tile_copy64(const chain_op *ip, chain_ctx *c)
{
    if (c->ptr[ip->dst] != c->ptr[ip->a]) memcpy(c->ptr[ip->dst], c->ptr[ip->a], (size_t)c->n * 8);
}

#define CHAIN_CAST(name, from, to, expression)         \
    static void name(const chain_op *ip, chain_ctx *c) \
    {                                                  \
        const from *pa = (const from *)c->ptr[ip->a];  \
        to *pd = (to *)c->ptr[ip->dst];                \
        for (int64_t k = 0; k < c->n; k++) {           \
            const from a = pa[k];                      \
            pd[k] = expression;                        \
        }                                              \
    }

/* Between -2^31 and 2^31 every signed integer dtype of 32 or 64 bits holds the
 * truncated value; the limits and other values use the slow path. */
static inline int64_t float_to_int(mica_dtype out, double x)
{
    if (out == MICA_I32 || out == MICA_I64 ? fabs(x) < 0x1p31 : out >= MICA_U32 && x >= 0.0 && x < 0x1p31)
        return (int64_t)x;
    return mica__f64_to_int(out, x);
}

CHAIN_CAST(cast_i64_f32, chain_i64, chain_f32, (float)a)
CHAIN_CAST(cast_u64_f32, chain_u64, chain_f32, (float)a)
CHAIN_CAST(cast_i64_f64, chain_i64, chain_f64, (double)a)
CHAIN_CAST(cast_u64_f64, chain_u64, chain_f64, (double)a)
CHAIN_CAST(cast_f32_i64, chain_f32, chain_i64, float_to_int((mica_dtype)ip->out, (double)a))
CHAIN_CAST(cast_f64_i64, chain_f64, chain_i64, float_to_int((mica_dtype)ip->out, a))
CHAIN_CAST(cast_f64_i32, chain_f64, chain_u32, (uint32_t)float_to_int((mica_dtype)ip->out, a))

static chain_tile_fn *cast_from_double(const chain_wide_table *wide, mica_dtype out)
{
    switch (chain_class_of(out)) {
    case CHAIN_LONG: return cast_f64_i64;
    case CHAIN_INT: return cast_f64_i32;
    default: return out == MICA_BOOL ? wide->f64_bool : out == MICA_F32 ? wide->f64_f32 : wide->f64_odd;
    }
}

static chain_tile_fn *cast_from_long(const chain_wide_table *wide, mica_dtype in, mica_dtype out)
{
    const bool u = in == MICA_U64;
    switch (chain_class_of(out)) {
    case CHAIN_DOUBLE: return u ? cast_u64_f64 : cast_i64_f64;
    case CHAIN_INT: return wide->i64_i32;
    default: break;
    }
    if (out == MICA_BOOL) return wide->i64_bool;
    if (out == MICA_F32) return u ? cast_u64_f32 : cast_i64_f32;
    return mica__chain_tile_any;
}

chain_tile_fn *mica__chain_tile_cast(const chain_wide_table *wide, mica_dtype in, mica_dtype out)
{
    const bool to_double = out == MICA_F64;
    switch (chain_class_of(in)) {
    case CHAIN_DOUBLE: return cast_from_double(wide, out);
    case CHAIN_LONG: return cast_from_long(wide, in, out);
    case CHAIN_INT: return to_double ? wide->i32_f64[in == MICA_U32] : wide->i32_i64[in == MICA_U32];
    default: return to_double ? wide->f32_f64 : in == MICA_BOOL ? wide->bool_i64 : cast_f32_i64;
    }
}
