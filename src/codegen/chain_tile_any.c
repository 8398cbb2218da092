/* Ops on tiles that do not depend on a type of their own: any op by its
 * definition, casts, copies, the index check, and folds. */
#include <math.h>
#include <string.h>

#include "codegen/chain_ctx.h"
#include "graph/scalar.h"

/* ----------------------------------------------------- by the definition --- */

static mica__number tile_get(const char *tile, mica_dtype dtype, int64_t i)
{
    mica__number x = {0.0, 0};
    if (dtype == MICA_BOOL) x.i = ((const chain_f32 *)tile)[i] != 0.0f;
    else if (dtype == MICA_F64) x.f = ((const chain_f64 *)tile)[i];
    else if (mica__is_float(dtype)) x.f = (double)((const chain_f32 *)tile)[i];
    else x.i = ((const chain_i64 *)tile)[i];
    return x;
}

static void tile_put(char *tile, mica_dtype dtype, int64_t i, mica__number x)
{
    if (dtype == MICA_BOOL) ((chain_f32 *)tile)[i] = (float)(x.i != 0);
    else if (dtype == MICA_F64) ((chain_f64 *)tile)[i] = x.f;
    else if (mica__is_float(dtype)) ((chain_f32 *)tile)[i] = (float)x.f;
    else ((chain_i64 *)tile)[i] = x.i;
}

void mica__chain_tile_any(const chain_op *ip, chain_ctx *c)
{
    const int n_arg = mica__op_get(ip->op)->n_in;
    const uint16_t cell[3] = {ip->a, ip->b, ip->c};
    const mica_dtype in = (mica_dtype)ip->in, out = (mica_dtype)ip->out;
    for (int64_t k = 0; k < c->n; k++) {
        mica__number arg[3] = {{0.0, 0}};
        for (int i = 0; i < n_arg; i++)
            arg[i] = tile_get(c->ptr[cell[i]], ip->op == MICA__OP_WHERE && i == 0 ? MICA_BOOL : in, k);
        tile_put(c->ptr[ip->dst], out, k, mica__scalar_map((mica__op)ip->op, in, out, arg, ip->attr, NULL));
    }
}

void mica__chain_tile_check_index(const chain_op *ip, chain_ctx *c)
{
    const chain_i64 *pa = (const chain_i64 *)c->ptr[ip->a];
    chain_i64 *pd = (chain_i64 *)c->ptr[ip->dst];
    const int64_t size = ((const mica__attr_index *)ip->attr)->size;
    const bool u = ip->in == MICA_U64;
    for (int64_t k = 0; k < c->n; k++) {
        const int64_t index = pa[k], from_end = index < 0 && !u ? index + size : index;
        const bool inside = (uint64_t)from_end < (uint64_t)size;
        pd[k] = inside ? from_end : 0;
        if (!inside) mica__index_fault_note(c->fault, c->position + k * c->position_step, index, u, size);
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

/* Inside +-2^31 every integer dtype of 64 or 32 bits that has the sign holds
 * the truncated value; the ends and the rest go the slow way. */
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
CHAIN_CAST(cast_int_bool, chain_i64, chain_f32, (float)(a != 0))
CHAIN_CAST(cast_f64_bool, chain_f64, chain_f32, (float)(a != 0.0))
CHAIN_CAST(cast_f64_f32, chain_f64, chain_f32, (float)a)
CHAIN_CAST(cast_f32_f64, chain_f32, chain_f64, (double)a)
CHAIN_CAST(cast_f32_int, chain_f32, chain_i64, float_to_int((mica_dtype)ip->out, (double)a))
CHAIN_CAST(cast_f64_int, chain_f64, chain_i64, float_to_int((mica_dtype)ip->out, a))

/* Between dtypes of different classes; within a class the builder knows better. */
chain_tile_fn *mica__chain_tile_cast(mica_dtype in, mica_dtype out)
{
    const chain_class from = chain_class_of(in), to = chain_class_of(out);
    if (from == CHAIN_FLOAT) return to == CHAIN_DOUBLE ? cast_f32_f64 : cast_f32_int;
    if (from == CHAIN_DOUBLE) {
        if (to == CHAIN_INT) return cast_f64_int;
        return out == MICA_BOOL ? cast_f64_bool : out == MICA_F32 ? cast_f64_f32 : mica__chain_tile_any;
    }
    if (to == CHAIN_DOUBLE) return in == MICA_U64 ? cast_u64_f64 : cast_i64_f64;
    if (out == MICA_BOOL) return cast_int_bool;
    if (out == MICA_F32) return in == MICA_U64 ? cast_u64_f32 : cast_i64_f32;
    return mica__chain_tile_any;
}

/* ---------------------------------------------------------------- folds ---- */

#define CHAIN_FOLD_TILE(name, type, lane, expression)  \
    static void name(const chain_op *ip, chain_ctx *c) \
    {                                                  \
        const type *pa = (const type *)c->ptr[ip->a];  \
        type *ps = (type *)c->fold.lane;               \
        for (int64_t k = 0; k < c->n; k++) {           \
            const type s = ps[k], a = pa[k];           \
            ps[k] = expression;                        \
        }                                              \
    }

CHAIN_FOLD_TILE(fold_sum_int, chain_u64, i, s + a)
CHAIN_FOLD_TILE(fold_prod_int, chain_u64, i, s *a)
CHAIN_FOLD_TILE(fold_max_i64, chain_i64, i, s < a ? a : s)
CHAIN_FOLD_TILE(fold_max_u64, chain_u64, i, s < a ? a : s)
CHAIN_FOLD_TILE(fold_min_i64, chain_i64, i, a < s ? a : s)
CHAIN_FOLD_TILE(fold_min_u64, chain_u64, i, a < s ? a : s)
CHAIN_FOLD_TILE(fold_any_int, chain_i64, i, s != 0 || a != 0)
CHAIN_FOLD_TILE(fold_all_int, chain_i64, i, s != 0 && a != 0)
CHAIN_FOLD_TILE(fold_sum_f64, chain_f64, d, s + a)
CHAIN_FOLD_TILE(fold_prod_f64, chain_f64, d, s *a)
CHAIN_FOLD_TILE(fold_max_f64, chain_f64, d, isnan(s) || s > a ? s : a)
CHAIN_FOLD_TILE(fold_min_f64, chain_f64, d, isnan(s) || s < a ? s : a)
CHAIN_FOLD_TILE(fold_any_f64, chain_f64, d, s != 0.0 || a != 0.0 ? 1.0 : 0.0)
CHAIN_FOLD_TILE(fold_all_f64, chain_f64, d, s != 0.0 && a != 0.0 ? 1.0 : 0.0)

chain_tile_fn *mica__chain_tile_fold(mica__op op, mica_dtype in)
{
    const bool d = in == MICA_F64, u = in == MICA_U64;
    switch ((int)op) {
    case MICA__OP_SUM: return d ? fold_sum_f64 : fold_sum_int;
    case MICA__OP_PROD: return d ? fold_prod_f64 : fold_prod_int;
    case MICA__OP_MAX: return d ? fold_max_f64 : u ? fold_max_u64 : fold_max_i64;
    case MICA__OP_MIN: return d ? fold_min_f64 : u ? fold_min_u64 : fold_min_i64;
    case MICA__OP_ANY: return d ? fold_any_f64 : fold_any_int;
    default: return d ? fold_all_f64 : fold_all_int;
    }
}
