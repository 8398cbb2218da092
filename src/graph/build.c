/* Node construction: the checks that all constructors share, and the small graphs
 * that both constructors and gradients use. */
#include "graph/build.h"

#include <inttypes.h>

#include "graph/construct.h"

/* ------------------------------------------------------------------ nodes --- */

bool mica__usable(mica_scope *s, const char *op, mica_array *const *in, size_t n_in)
{
    if (mica__scope_check(s, op) != MICA_OK) return false;
    for (size_t i = 0; i < n_in; i++) {
        if (!in[i]) {
            /* A NULL after a failure is the result of that failure. */
            if (s->error.status == MICA_OK) mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: array %zu is NULL", op, i);
            return false;
        }
        if (in[i]->engine != s->engine) {
            mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: array %zu belongs to another engine than the scope", op, i);
            return false;
        }
    }
    return true;
}

bool mica__usable1(mica_scope *s, const char *op, mica_array *x) { return mica__usable(s, op, &x, 1); }

bool mica__is_omitted(mica_scope *s) { return s->error.status == MICA_OK; }

/* Runs the shape rule. Up to 16 specs are kept on the stack. */
static mica_status infer_spec(const mica__op_info *info, mica_array *const *in, size_t n_in, const void *attr,
                              mica__spec *out)
{
    const mica__spec *few[16];
    const mica__spec **specs = few;
    if (info->n_in >= 0 && n_in != (size_t)info->n_in)
        return mica__fail(MICA_ERR_INTERNAL, "%s: %zu inputs instead of %d", info->name, n_in, info->n_in);
    if (n_in > sizeof few / sizeof few[0]) {
        specs = mica__alloc_zero(n_in, sizeof *specs);
        if (!specs) return mica__fail_memory(info->name, n_in * sizeof *specs);
    }
    few[0] = NULL;
    for (size_t i = 0; i < n_in; i++) specs[i] = &in[i]->spec;
    *out = (mica__spec){0};
    const mica_status status = info->shape(info, specs, n_in, attr, out);
    if (specs != few) mica__free(specs);
    MICA_TRY(status);
    /* A result no larger than an input cannot overflow: that input was checked. */
    if (n_in && mica__shape_equal(out, &in[0]->spec) &&
        mica_dtype_size((mica_dtype)out->dtype) <= mica_dtype_size((mica_dtype)in[0]->spec.dtype))
        return MICA_OK;
    int64_t count;
    size_t nbytes;
    char text[MICA__SPEC_TEXT];
    if (!mica__spec_count(out, &count, &nbytes))
        return mica__fail(MICA_ERR_SIZE, "%s: %s has too many elements", info->name, mica__spec_text(text, out));
    return MICA_OK;
}

mica_array *mica__build_usable(mica_scope *s, mica__op op, mica_array *const *in, size_t n_in, const void *attr,
                               size_t attr_size)
{
    const mica__op_info *info = mica__op_get((uint16_t)op);
    mica__spec spec;
    const mica_status status = infer_spec(info, in, n_in, attr, &spec);
    if (status != MICA_OK) return mica__scope_failed(s, status);
    mica_array *node = mica__array_from(&s->spare, (uint16_t)op, &spec, in, n_in, attr, attr_size);
    if (!node) return mica__scope_failed(s, mica__fail_memory(info->name, sizeof *node + attr_size));
    return mica__scope_own(s, node);
}

mica_array *mica__build(mica_scope *s, mica__op op, mica_array *const *in, size_t n_in, const void *attr,
                        size_t attr_size)
{
    if (!mica__usable(s, mica__op_get((uint16_t)op)->name, in, n_in)) return NULL;
    return mica__build_usable(s, op, in, n_in, attr, attr_size);
}

mica_array *mica__build1(mica_scope *s, mica__op op, mica_array *x, const void *attr, size_t attr_size)
{
    return mica__build(s, op, &x, 1, attr, attr_size);
}

mica_array *mica__build2(mica_scope *s, mica__op op, mica_array *a, mica_array *b, const void *attr, size_t attr_size)
{
    return mica__build(s, op, (mica_array *[]){a, b}, 2, attr, attr_size);
}

/* -------------------------------------------------------------- arguments --- */

const char *mica__spec_text(char buffer[MICA__SPEC_TEXT], const mica__spec *spec)
{
    char shape[MICA__SHAPE_TEXT];
    mica__text text;
    mica__text_init(&text, buffer, MICA__SPEC_TEXT);
    mica__text_add(&text, "%s %s", mica_dtype_name((mica_dtype)spec->dtype),
                   mica__shape_text(shape, spec->ndim, spec->shape));
    return buffer;
}

bool mica__axis(mica_scope *s, const char *op, int ndim, int axis, int *out)
{
    if (axis < -ndim || axis >= ndim) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: axis %d is out of range for an array with %d axes", op, axis, ndim);
        return false;
    }
    *out = axis < 0 ? axis + ndim : axis;
    return true;
}

bool mica__axes(mica_scope *s, const char *op, const mica_array *x, const int *axes, int n_axes, int64_t *mask)
{
    const int ndim = x->spec.ndim;
    if (n_axes < 0 || (!axes && n_axes > 0)) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: n_axes is %d%s", op, n_axes, axes ? "" : ", but axes is NULL");
        return false;
    }
    *mask = axes ? 0 : ((int64_t)1 << ndim) - 1;
    for (int i = 0; i < n_axes; i++) {
        int axis;
        if (!mica__axis(s, op, ndim, axes[i], &axis)) return false;
        const int64_t bit = (int64_t)1 << axis;
        if (*mask & bit) {
            mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: axis %d is repeated", op, axis);
            return false;
        }
        *mask |= bit;
    }
    return true;
}

int64_t mica__folded(const mica_array *x, int64_t mask)
{
    int64_t n = 1;
    for (int d = 0; d < x->spec.ndim; d++)
        if (mask >> d & 1) n *= x->spec.shape[d];
    return n;
}

bool mica__make_spec(mica_scope *s, const char *op, mica_dtype dtype, int ndim, const int64_t *shape, mica__spec *out)
{
    char text[MICA__SPEC_TEXT];
    if (mica__scope_check(s, op) != MICA_OK) return false;
    if (!mica__dtype_valid(dtype)) {
        mica__scope_fail(s, MICA_ERR_DTYPE, "%s: %d is not a dtype", op, (int)dtype);
        return false;
    }
    if (ndim < 0 || ndim > MICA_MAX_DIMS) {
        mica__scope_fail(s, MICA_ERR_SHAPE, "%s: %d axes is out of range (0 to %d)", op, ndim, MICA_MAX_DIMS);
        return false;
    }
    if (ndim > 0 && !shape) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: shape is NULL with %d axes", op, ndim);
        return false;
    }
    *out = (mica__spec){.dtype = (int32_t)dtype, .ndim = ndim};
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0) {
            mica__scope_fail(s, MICA_ERR_SHAPE, "%s: size %" PRId64 " of axis %d is negative", op, shape[d], d);
            return false;
        }
        out->shape[d] = shape[d];
    }
    int64_t count;
    size_t nbytes;
    if (!mica__spec_count(out, &count, &nbytes)) {
        mica__scope_fail(s, MICA_ERR_SIZE, "%s: %s has too many elements", op, mica__spec_text(text, out));
        return false;
    }
    return true;
}

bool mica__read_options(mica_scope *s, const char *op, const void *options, void *out, size_t nbytes)
{
    if (mica_struct_read(op, out, nbytes, options) == MICA_OK) return true;
    mica__scope_failed(s, MICA_ERR_ARGUMENT);
    return false;
}

/* -------------------------------------------------------------- constants --- */

mica__number mica__number_f64(mica_dtype dtype, double value)
{
    mica__number n = {0};
    if (mica__is_float(dtype)) n.f = mica__round_f64(dtype, value);
    else n.i = mica__f64_to_int(dtype, value);
    return n;
}

mica__number mica__number_i64(mica_dtype dtype, int64_t value)
{
    mica__number n = {0};
    uint64_t element = 0;
    mica__set_i64(dtype, &element, 0, value);
    if (mica__is_float(dtype)) n.f = mica__get_f64(dtype, &element, 0);
    else n.i = mica__get_i64(dtype, &element, 0);
    return n;
}

bool mica__fits_f64(mica_dtype dtype, double value)
{
    if (dtype == MICA_BOOL) return value == 0 || value == 1;
    const bool is_signed = mica__dtype_kind(dtype) == MICA__KIND_INT;
    double end = is_signed ? 0.5 : 1;
    for (size_t i = 0; i < 8 * mica_dtype_size(dtype); i++) end *= 2;
    /* Check the range first: the conversion is undefined outside it. */
    if (!(value >= (is_signed ? -end : 0) && value < end)) return false;
    return value < 0 ? value == (double)(int64_t)value : value == (double)(uint64_t)value;
}

mica_array *mica__full(mica_scope *s, const mica__spec *spec, mica__number value)
{
    const mica__attr_full attr = {*spec, value};
    return mica__build(s, MICA__OP_FULL, NULL, 0, &attr, sizeof attr);
}

mica_array *mica__constant(mica_scope *s, mica_dtype dtype, double value)
{
    return mica__full(s, &(mica__spec){.dtype = (int32_t)dtype}, mica__number_f64(dtype, value));
}

mica_array *mica__zeros_like(mica_scope *s, mica_array *x)
{
    if (!mica__usable1(s, "zeros", x)) return NULL;
    return mica__full(s, &x->spec, (mica__number){0});
}

mica_array *mica__index_iota(mica_scope *s, const mica__spec *shape, int axis, int64_t start, int64_t step)
{
    mica__attr_iota attr = {.spec = *shape, .axis = axis, .start = {.i = start}, .step = {.i = step}};
    attr.spec.dtype = MICA_I64;
    return mica__build(s, MICA__OP_IOTA, NULL, 0, &attr, sizeof attr);
}

/* ----------------------------------------------------------------- shapes --- */

bool mica__broadcast_spec(mica_scope *s, const char *op, const mica__spec *a, const mica__spec *b, mica__spec *out)
{
    if (b->ndim == 0 || mica__shape_equal(a, b)) {
        if (out != a) *out = *a;
        return true;
    }
    mica__spec r = {.dtype = a->dtype, .ndim = a->ndim > b->ndim ? a->ndim : b->ndim};
    for (int i = 1; i <= r.ndim; i++) {
        const int64_t m = i <= a->ndim ? a->shape[a->ndim - i] : 1;
        const int64_t n = i <= b->ndim ? b->shape[b->ndim - i] : 1;
        if (m != n && m != 1 && n != 1) {
            char first[MICA__SHAPE_TEXT], second[MICA__SHAPE_TEXT];
            mica__scope_fail(s, MICA_ERR_SHAPE, "%s: shapes %s and %s do not broadcast", op,
                             mica__shape_text(first, a->ndim, a->shape), mica__shape_text(second, b->ndim, b->shape));
            return false;
        }
        r.shape[r.ndim - i] = m == 1 ? n : m;
    }
    *out = r;
    return true;
}

mica_array *mica__broadcast_like(mica_scope *s, mica_array *x, const mica__spec *spec)
{
    if (!mica__usable1(s, "broadcast", x)) return NULL;
    if (mica__shape_equal(&x->spec, spec)) return x;
    mica__attr_shape attr = {.ndim = spec->ndim};
    memcpy(attr.shape, spec->shape, sizeof attr.shape);
    return mica__build_usable(s, MICA__OP_BROADCAST, &x, 1, &attr, sizeof attr);
}

mica_array *mica__sum_to(mica_scope *s, mica_array *x, const mica__spec *spec)
{
    if (!mica__usable1(s, "sum", x)) return NULL;
    if (mica__shape_equal(&x->spec, spec)) return x;
    const int more = x->spec.ndim - spec->ndim;
    int64_t axes = 0;
    for (int d = 0; d < x->spec.ndim; d++)
        if (d < more || (spec->shape[d - more] == 1 && x->spec.shape[d] != 1)) axes |= (int64_t)1 << d;
    return mica_reshape(s, mica__reduce(s, MICA__OP_SUM, x, axes, false), spec->ndim, spec->shape);
}

mica_array *mica__reduce(mica_scope *s, mica__op op, mica_array *x, int64_t axes, bool keep)
{
    const char *name = mica__op_get((uint16_t)op)->name;
    if (!mica__usable1(s, name, x)) return NULL;
    const mica__kind kind = mica__dtype_kind((mica_dtype)x->spec.dtype);
    if (op == MICA__OP_ANY || op == MICA__OP_ALL) x = mica_cast(s, x, MICA_BOOL);
    else if ((op == MICA__OP_SUM || op == MICA__OP_PROD) && kind != MICA__KIND_FLOAT)
        x = mica_cast(s, x, kind == MICA__KIND_UINT ? MICA_U64 : MICA_I64);
    if (axes == 0) return x;
    return mica__build1(s, op, x, &(mica__attr_reduce){axes, keep}, sizeof(mica__attr_reduce));
}

mica_array *mica__axis_last(mica_scope *s, mica_array *x, int axis)
{
    if (!x) return NULL;
    int axes[MICA_MAX_DIMS], n = 0;
    for (int d = 0; d < x->spec.ndim; d++)
        if (d != axis) axes[n++] = d;
    axes[n] = axis;
    return mica_permute(s, x, axes);
}

mica_array *mica__axis_back(mica_scope *s, mica_array *x, int axis)
{
    if (!x) return NULL;
    int axes[MICA_MAX_DIMS];
    const int last = x->spec.ndim - 1;
    for (int d = 0; d <= last; d++) axes[d] = d < axis ? d : d == axis ? last : d - 1;
    return mica_permute(s, x, axes);
}

/* ------------------------------------------------------------ single nodes --- */

mica_array *mica__cumulative(mica_scope *s, mica__op op, mica_array *x, bool reverse, bool exclusive)
{
    if (!mica__usable1(s, mica__op_get((uint16_t)op)->name, x)) return NULL;
    const mica__kind kind = mica__dtype_kind((mica_dtype)x->spec.dtype);
    if (op != MICA__OP_CUMMAX && kind != MICA__KIND_FLOAT)
        x = mica_cast(s, x, kind == MICA__KIND_UINT ? MICA_U64 : MICA_I64);
    return mica__build1(s, op, x, &(mica__attr_cumulative){reverse, exclusive}, sizeof(mica__attr_cumulative));
}

mica_array *mica__after(mica_scope *s, mica_array *x, mica_array *dep)
{
    return mica__build2(s, MICA__OP_AFTER, x, dep, NULL, 0);
}

mica_array *mica__param(mica_scope *s, const mica__spec *spec, int64_t index)
{
    const mica__attr_param attr = {*spec, index};
    return mica__build(s, MICA__OP_PARAM, NULL, 0, &attr, sizeof attr);
}
