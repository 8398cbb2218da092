/* Shape rules of reductions and of ops over the last axis. */
#include <inttypes.h>

#include "graph/construct.h"

static mica_status folded_shape(const mica__op_info *info, const mica__spec *x, const mica__attr_reduce *a,
                                mica__spec *out)
{
    if (a->axes < 0 || a->axes >> x->ndim)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: axes 0x%" PRIx64 " are out of range for an array with %d axes",
                          info->name, (uint64_t)a->axes, (int)x->ndim);
    *out = (mica__spec){.dtype = x->dtype};
    for (int d = 0; d < x->ndim; d++) {
        const bool folded = a->axes >> d & 1;
        if (!folded) out->shape[out->ndim++] = x->shape[d];
        else if (a->keep) out->shape[out->ndim++] = 1;
    }
    return MICA_OK;
}

/* The maximum of no elements is undefined. */
static mica_status check_not_empty(const mica__op_info *info, const mica__spec *x, const mica__spec *out)
{
    if (mica__spec_size(x) == 0 && mica__spec_size(out) != 0) {
        char text[MICA__SHAPE_TEXT];
        return mica__fail(MICA_ERR_SHAPE, "%s: no elements to choose from in shape %s", info->name,
                          mica__shape_text(text, x->ndim, x->shape));
    }
    return MICA_OK;
}

static int32_t sum_dtype(int32_t dtype)
{
    switch (mica__dtype_kind((mica_dtype)dtype)) {
    case MICA__KIND_FLOAT: return dtype;
    case MICA__KIND_UINT: return MICA_U64;
    default: return MICA_I64;
    }
}

MICA__SHAPE_RULE(sum)
{
    (void)n_in;
    MICA_TRY(folded_shape(info, in[0], attr, out));
    out->dtype = sum_dtype(out->dtype);
    return MICA_OK;
}

MICA__SHAPE_RULE(extreme)
{
    (void)n_in;
    MICA_TRY(folded_shape(info, in[0], attr, out));
    return check_not_empty(info, in[0], out);
}

MICA__SHAPE_RULE(anyall)
{
    (void)n_in;
    if (in[0]->dtype != MICA_BOOL)
        return mica__fail(MICA_ERR_DTYPE, "%s: dtype %s; it must be bool", info->name,
                          mica_dtype_name((mica_dtype)in[0]->dtype));
    return folded_shape(info, in[0], attr, out);
}

static mica_status check_has_axis(const mica__op_info *info, const mica__spec *x)
{
    if (x->ndim == 0) return mica__fail(MICA_ERR_SHAPE, "%s: the array has no axes", info->name);
    return MICA_OK;
}

MICA__SHAPE_RULE(argmax)
{
    (void)n_in;
    (void)attr;
    MICA_TRY(check_has_axis(info, in[0]));
    *out = *in[0];
    out->dtype = MICA_I64;
    out->shape[--out->ndim] = 0;
    return check_not_empty(info, in[0], out);
}

MICA__SHAPE_RULE(cumulative)
{
    (void)n_in;
    (void)attr;
    MICA_TRY(check_has_axis(info, in[0]));
    *out = *in[0];
    if (info->op != MICA__OP_CUMMAX) out->dtype = sum_dtype(out->dtype);
    return MICA_OK;
}

static mica_status check_float_rows(const mica__op_info *info, const mica__spec *x)
{
    MICA_TRY(check_has_axis(info, x));
    if (!mica__is_float((mica_dtype)x->dtype))
        return mica__fail(MICA_ERR_DTYPE, "%s: dtype %s; it must be a float", info->name,
                          mica_dtype_name((mica_dtype)x->dtype));
    return MICA_OK;
}

MICA__SHAPE_RULE(rows)
{
    (void)n_in;
    (void)attr;
    *out = *in[0];
    return check_float_rows(info, in[0]);
}

MICA__SHAPE_RULE(norm)
{
    (void)n_in;
    *out = *in[0];
    if (((const mica__attr_norm *)attr)->wide && mica_dtype_size((mica_dtype)out->dtype) < 4) out->dtype = MICA_F32;
    return check_float_rows(info, in[0]);
}

MICA__SHAPE_RULE(logsumexp)
{
    (void)attr;
    MICA_TRY(check_float_rows(info, in[0]));
    *out = *in[0];
    out->shape[--out->ndim] = 0;
    if (n_in > 1 && !mica__spec_equal(in[1], out)) {
        char got[MICA__SPEC_TEXT], want[MICA__SPEC_TEXT];
        return mica__fail(MICA_ERR_SHAPE, "%s: origins %s instead of %s", info->name, mica__spec_text(got, in[1]),
                          mica__spec_text(want, out));
    }
    return check_not_empty(info, in[0], out);
}

MICA__SHAPE_RULE(rows_any)
{
    (void)n_in;
    (void)attr;
    MICA_TRY(check_has_axis(info, in[0]));
    *out = *in[0];
    return MICA_OK;
}

MICA__SHAPE_RULE(argsort)
{
    (void)n_in;
    MICA_TRY(check_has_axis(info, in[0]));
    const int64_t k = ((const mica__attr_sort *)attr)->k, n = in[0]->shape[in[0]->ndim - 1];
    if (k < 0 || k > n)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: k is %" PRId64 "; it must be 0 to %" PRId64, info->name, k, n);
    *out = *in[0];
    out->dtype = MICA_I64;
    out->shape[out->ndim - 1] = k;
    return MICA_OK;
}
