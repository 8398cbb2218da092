/* Element-wise constructors. They cast the operands to the dtype that the shape rule of
 * the op requires, and broadcast them to one shape. */
#include "graph/construct.h"

static bool is_weak(const mica_array *x) { return x->weak && x->op == MICA__OP_FULL; }

static double weak_value(const mica_array *x) { return ((const mica__attr_weak *)x->attr)->exact; }

mica_dtype mica__promote_all(mica_array *const *in, size_t n_in)
{
    bool any = false;
    mica_dtype dtype = MICA_F32;
    for (size_t i = 0; i < n_in; i++) {
        if (is_weak(in[i])) continue;
        dtype = any ? mica_dtype_promote(dtype, (mica_dtype)in[i]->spec.dtype) : (mica_dtype)in[i]->spec.dtype;
        any = true;
    }
    for (size_t i = 0; i < n_in; i++)
        if (is_weak(in[i]) && !mica__is_float(dtype) && !mica__fits_f64(dtype, weak_value(in[i]))) dtype = MICA_F32;
    return dtype;
}

mica_dtype mica__float_dtype(mica_dtype dtype) { return mica__is_float(dtype) ? dtype : MICA_F32; }

mica_array *mica__to_float(mica_scope *s, mica_array *x)
{
    return x ? mica_cast(s, x, mica__float_dtype((mica_dtype)x->spec.dtype)) : NULL;
}

mica_array *mica__widen(mica_scope *s, mica_array *x)
{
    return x ? mica_cast(s, x, x->spec.dtype == MICA_F64 ? MICA_F64 : MICA_F32) : NULL;
}

mica_array *mica__indices(mica_scope *s, const char *op, mica_array *x)
{
    if (!x) return NULL;
    if (!mica__is_int((mica_dtype)x->spec.dtype))
        return mica__scope_fail(s, MICA_ERR_DTYPE, "%s: indices are %s instead of integers", op,
                                mica_dtype_name((mica_dtype)x->spec.dtype));
    if (x->spec.dtype == MICA_U64) x = mica_minimum(s, x, mica_full_i64(s, MICA_U64, 0, NULL, INT64_MAX));
    return mica_cast(s, x, MICA_I64);
}

mica_array *mica_cast(mica_scope *s, mica_array *x, mica_dtype dtype)
{
    if (!mica__usable1(s, "cast", x)) return NULL;
    if (!mica__dtype_valid(dtype)) return mica__scope_fail(s, MICA_ERR_DTYPE, "cast: %d is not a dtype", (int)dtype);
    if (is_weak(x)) return mica__constant(s, dtype, weak_value(x));
    if (x->spec.dtype == (int32_t)dtype) return x;
    return mica__build1(s, MICA__OP_CAST, x, &(mica__attr_cast){(int64_t)dtype}, sizeof(mica__attr_cast));
}

/* The dtype that the rule of the op requires for operands whose common dtype is `dtype`. */
static mica_dtype operand_dtype(const mica__op_info *info, mica_dtype dtype)
{
    if (info->shape == mica__shape_floating || info->shape == mica__shape_predicate) return mica__float_dtype(dtype);
    if (info->shape == mica__shape_logical) return MICA_BOOL;
    return dtype;
}

/* A weak constant in the required dtype and shape, as one node. */
static mica_array *full_of_weak(mica_scope *s, const mica_array *x, mica_dtype dtype, mica__spec spec)
{
    spec.dtype = (int32_t)dtype;
    return mica__full(s, &spec, mica__number_f64(dtype, weak_value(x)));
}

enum { ELEMENTWISE_MAX = 3 };

/* Is there nothing to cast and nothing to broadcast? The common case. */
static bool operands_agree(const mica__op_info *info, mica_array *const *in, size_t n_in, size_t first)
{
    if (first != 0 || is_weak(in[0])) return false;
    const mica_dtype dtype = (mica_dtype)in[0]->spec.dtype;
    for (size_t i = 1; i < n_in; i++)
        if (is_weak(in[i]) || !mica__spec_equal(&in[0]->spec, &in[i]->spec)) return false;
    return operand_dtype(info, dtype) == dtype;
}

/* Casts the operands from `first` on to one dtype, broadcasts all of them, and builds the node. */
static mica_array *elementwise_from(mica_scope *s, mica__op op, mica_array *const *in, size_t n_in, size_t first,
                                    const void *attr, size_t attr_size)
{
    const mica__op_info *info = mica__op_get((uint16_t)op);
    if (operands_agree(info, in, n_in, first)) return mica__build_usable(s, op, in, n_in, attr, attr_size);
    const mica_dtype dtype = operand_dtype(info, mica__promote_all(in + first, n_in - first));
    mica_array *operand[ELEMENTWISE_MAX];
    mica__spec spec = in[0]->spec;
    for (size_t i = 0; i < n_in; i++) {
        operand[i] = is_weak(in[i]) ? in[i] : mica_cast(s, in[i], i < first ? MICA_BOOL : dtype);
        if (!operand[i] || !mica__broadcast_spec(s, info->name, &spec, &in[i]->spec, &spec)) return NULL;
    }
    for (size_t i = 0; i < n_in; i++) {
        operand[i] = is_weak(in[i]) ? full_of_weak(s, in[i], i < first ? MICA_BOOL : dtype, spec)
                                    : mica__broadcast_like(s, operand[i], &spec);
        if (!operand[i]) return NULL;
    }
    return mica__build_usable(s, op, operand, n_in, attr, attr_size);
}

mica_array *mica__elementwise(mica_scope *s, mica__op op, mica_array *const *in, size_t n_in, const void *attr,
                              size_t attr_size)
{
    const mica__op_info *info = mica__op_get((uint16_t)op);
    if (!mica__usable(s, info->name, in, n_in)) return NULL;
    return elementwise_from(s, op, in, n_in, 0, attr, attr_size);
}

/* Integers need no rounding and are returned unchanged. */
static mica_array *elementwise_whole(mica_scope *s, mica__op op, mica_array *x)
{
    if (!mica__usable1(s, mica__op_get((uint16_t)op)->name, x)) return NULL;
    return mica__is_float((mica_dtype)x->spec.dtype) ? mica__elementwise(s, op, &x, 1, NULL, 0) : x;
}

/* The public constructors, by column ctor of ops.def. */
#define CONSTRUCT_PLAIN(NAME, name)                                   \
    mica_array *mica_##name(mica_scope *s, mica_array *x)             \
    {                                                                 \
        return mica__elementwise(s, MICA__OP_##NAME, &x, 1, NULL, 0); \
    }
#define CONSTRUCT_WHOLE(NAME, name) \
    mica_array *mica_##name(mica_scope *s, mica_array *x) { return elementwise_whole(s, MICA__OP_##NAME, x); }
#define CONSTRUCT_VALUE(NAME, name)                                                               \
    mica_array *mica_##name(mica_scope *s, mica_array *x, double value)                           \
    {                                                                                             \
        const mica__attr_value attr = {value};                                                    \
        return mica__elementwise(s, MICA__OP_##NAME, (mica_array *[]){x}, 1, &attr, sizeof attr); \
    }
#define MICA_MAP1(NAME, name, ctor, ...) CONSTRUCT_##ctor(NAME, name)
#define MICA_MAP2(NAME, name, ...)                                                        \
    mica_array *mica_##name(mica_scope *s, mica_array *a, mica_array *b)                  \
    {                                                                                     \
        return mica__elementwise(s, MICA__OP_##NAME, (mica_array *[]){a, b}, 2, NULL, 0); \
    }
#include "graph/ops.def"
#undef CONSTRUCT_PLAIN
#undef CONSTRUCT_WHOLE
#undef CONSTRUCT_VALUE

mica_array *mica_where(mica_scope *s, mica_array *condition, mica_array *a, mica_array *b)
{
    mica_array *const in[] = {condition, a, b};
    if (!mica__usable(s, "where", in, 3)) return NULL;
    return elementwise_from(s, MICA__OP_WHERE, in, 3, 1, NULL, 0);
}

/* Checked here so that the error message names clip, not maximum or minimum. */
static bool clip_bound(mica_scope *s, const mica_array *x, mica_array *bound)
{
    mica__spec spec;
    return !bound ||
           (mica__usable1(s, "clip", bound) && mica__broadcast_spec(s, "clip", &x->spec, &bound->spec, &spec));
}

mica_array *mica_clip(mica_scope *s, mica_array *x, mica_array *low, mica_array *high)
{
    if (!mica__usable1(s, "clip", x)) return NULL;
    if ((!low || !high) && !mica__is_omitted(s)) return NULL;
    if (!clip_bound(s, x, low) || !clip_bound(s, x, high)) return NULL;
    if (low) x = mica_maximum(s, x, low);
    if (high) x = mica_minimum(s, x, high);
    return x;
}

mica_array *mica_fma(mica_scope *s, mica_array *a, mica_array *b, mica_array *c)
{
    return mica__elementwise(s, MICA__OP_FMA, (mica_array *[]){a, b, c}, 3, NULL, 0);
}
