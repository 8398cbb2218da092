/* Shape rules of ops whose result has the shape of their inputs, or the shape in
 * their attributes. */
#include <inttypes.h>

#include "graph/construct.h"

/* Inputs of an element-wise op have one shape and one dtype; the constructors convert them. */
static mica_status inputs_alike(const mica__op_info *info, const mica__spec *const *in, size_t n_in, size_t first)
{
    for (size_t i = first + 1; i < n_in; i++) {
        if (mica__spec_equal(in[first], in[i])) continue;
        char a[MICA__SPEC_TEXT], b[MICA__SPEC_TEXT];
        return mica__fail(in[first]->dtype == in[i]->dtype ? MICA_ERR_SHAPE : MICA_ERR_DTYPE,
                          "%s: operands %s and %s differ", info->name, mica__spec_text(a, in[first]),
                          mica__spec_text(b, in[i]));
    }
    return MICA_OK;
}

static mica_status wrong_dtype(const mica__op_info *info, const mica__spec *x, const char *wanted)
{
    return mica__fail(MICA_ERR_DTYPE, "%s: dtype %s; it must be %s", info->name, mica_dtype_name((mica_dtype)x->dtype),
                      wanted);
}

static mica_status check_spec(const mica__op_info *info, const mica__spec *spec)
{
    if (!mica__dtype_valid((mica_dtype)spec->dtype))
        return mica__fail(MICA_ERR_DTYPE, "%s: %d is not a dtype", info->name, (int)spec->dtype);
    if (spec->ndim < 0 || spec->ndim > MICA_MAX_DIMS)
        return mica__fail(MICA_ERR_SHAPE, "%s: %d axes is out of range (0 to %d)", info->name, (int)spec->ndim,
                          MICA_MAX_DIMS);
    for (int d = 0; d < MICA_MAX_DIMS; d++)
        if (spec->shape[d] < 0 || (d >= spec->ndim && spec->shape[d] != 0))
            return mica__fail(MICA_ERR_SHAPE, "%s: size %" PRId64 " of axis %d is invalid", info->name, spec->shape[d],
                              d);
    return MICA_OK;
}

MICA__SHAPE_RULE(given)
{
    if (!attr) return mica__fail(MICA_ERR_INTERNAL, "%s: no attributes", info->name);
    if (info->op == MICA__OP_CAST) {
        *out = *in[0];
        out->dtype = (int32_t)((const mica__attr_cast *)attr)->dtype;
    } else {
        memcpy(out, attr, sizeof *out); /* the spec is the first member of all other attributes with this rule */
    }
    MICA_TRY(check_spec(info, out));
    if (info->op == MICA__OP_RANDOM && (n_in > 1 || (n_in == 1 && (in[0]->dtype != MICA_U64 || in[0]->ndim != 0))))
        return mica__fail(MICA_ERR_INTERNAL, "random: the seed is not a single u64");
    if (info->op == MICA__OP_IOTA) {
        const int64_t axis = ((const mica__attr_iota *)attr)->axis;
        if (axis < 0 || axis >= out->ndim)
            return mica__fail(MICA_ERR_ARGUMENT, "%s: axis %" PRId64 " is out of range for %d axes", info->name, axis,
                              (int)out->ndim);
    }
    return MICA_OK;
}

MICA__SHAPE_RULE(same)
{
    (void)attr;
    MICA_TRY(inputs_alike(info, in, n_in, 0));
    *out = *in[0];
    return MICA_OK;
}

MICA__SHAPE_RULE(floating)
{
    (void)attr;
    MICA_TRY(inputs_alike(info, in, n_in, 0));
    if (!mica__is_float((mica_dtype)in[0]->dtype)) return wrong_dtype(info, in[0], "a float");
    *out = *in[0];
    return MICA_OK;
}

MICA__SHAPE_RULE(predicate)
{
    MICA_TRY(mica__shape_floating(info, in, n_in, attr, out));
    out->dtype = MICA_BOOL;
    return MICA_OK;
}

MICA__SHAPE_RULE(compare)
{
    MICA_TRY(mica__shape_same(info, in, n_in, attr, out));
    out->dtype = MICA_BOOL;
    return MICA_OK;
}

MICA__SHAPE_RULE(logical)
{
    MICA_TRY(mica__shape_same(info, in, n_in, attr, out));
    return out->dtype == MICA_BOOL ? MICA_OK : wrong_dtype(info, in[0], "bool");
}

MICA__SHAPE_RULE(integer)
{
    MICA_TRY(mica__shape_same(info, in, n_in, attr, out));
    const mica_dtype dtype = (mica_dtype)out->dtype;
    /* Shifts are not defined on bool. */
    if (info->op == MICA__OP_SHIFT_LEFT || info->op == MICA__OP_SHIFT_RIGHT)
        return mica__is_int(dtype) ? MICA_OK : wrong_dtype(info, in[0], "an integer");
    return mica__is_float(dtype) ? wrong_dtype(info, in[0], "bool or an integer") : MICA_OK;
}

MICA__SHAPE_RULE(check_index)
{
    (void)n_in;
    const int64_t size = ((const mica__attr_index *)attr)->size;
    if (in[0]->dtype != MICA_I64 && in[0]->dtype != MICA_U64) return wrong_dtype(info, in[0], "i64 or u64");
    if (size < 0) return mica__fail(MICA_ERR_ARGUMENT, "%s: size %" PRId64 " is negative", info->name, size);
    *out = *in[0];
    out->dtype = MICA_I64;
    return MICA_OK;
}

MICA__SHAPE_RULE(where)
{
    (void)attr;
    if (in[0]->dtype != MICA_BOOL) return wrong_dtype(info, in[0], "bool for the condition");
    MICA_TRY(inputs_alike(info, in, n_in, 1));
    if (!mica__shape_equal(in[0], in[1])) {
        char a[MICA__SPEC_TEXT], b[MICA__SPEC_TEXT];
        return mica__fail(MICA_ERR_SHAPE, "%s: shapes of operands %s and %s differ", info->name,
                          mica__spec_text(a, in[0]), mica__spec_text(b, in[1]));
    }
    *out = *in[1];
    return MICA_OK;
}

MICA__SHAPE_RULE(alias)
{
    (void)attr;
    if (n_in == 0) return mica__fail(MICA_ERR_INTERNAL, "%s: no inputs", info->name);
    *out = *in[0];
    return MICA_OK;
}

mica_status mica__one_integer(const mica__op_info *info, const char *what, const mica__spec *x)
{
    char text[MICA__SPEC_TEXT];
    if (!mica__is_int((mica_dtype)x->dtype))
        return mica__fail(MICA_ERR_DTYPE, "%s: %s is %s instead of an integer", info->name, what,
                          mica__spec_text(text, x));
    if (mica__spec_size(x) != 1)
        return mica__fail(MICA_ERR_SHAPE, "%s: %s is %s instead of one element", info->name, what,
                          mica__spec_text(text, x));
    return MICA_OK;
}
