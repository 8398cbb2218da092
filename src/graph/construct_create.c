/* Arrays from the caller's memory, constants, ranges and diagonals. */
#include <inttypes.h>
#include <math.h>

#include "graph/construct.h"

/* ------------------------------------------------------- from memory ------- */

mica_array *mica__ready_leaf(mica_scope *s, const char *op, const mica__spec *spec, mica__buffer *buffer,
                             const int64_t *strides)
{
    mica_array *node = mica__array_from(&s->spare, MICA__OP_LEAF, spec, NULL, 0, NULL, 0);
    if (!node) {
        mica__buffer_drop(buffer);
        return mica__scope_failed(s, mica__fail_memory(op, sizeof *node));
    }
    mica__array_set_ready(node, buffer, buffer->data, strides);
    return mica__scope_own(s, node);
}

mica_array *mica_from_data(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, const void *data)
{
    mica__spec spec;
    if (!mica__make_spec(s, "from_data", dtype, ndim, shape, &spec)) return NULL;
    int64_t count = 0, strides[MICA_MAX_DIMS] = {0};
    size_t nbytes = 0;
    mica__spec_count(&spec, &count, &nbytes);
    if (!data && nbytes > 0)
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "from_data: data is NULL for %zu bytes", nbytes);
    mica__buffer *buffer;
    const mica_status status = mica__buffer_new(s->memory, nbytes, &buffer);
    if (status != MICA_OK) return mica__scope_failed(s, status);
    if (dtype == MICA_BOOL) { /* a C bool must be 0 or 1 */
        for (size_t i = 0; i < nbytes; i++) ((uint8_t *)buffer->data)[i] = ((const uint8_t *)data)[i] != 0;
    } else if (nbytes > 0) {
        memcpy(buffer->data, data, nbytes);
    }
    mica__row_major(&spec, strides);
    mica_array *x = mica__ready_leaf(s, "from_data", &spec, buffer, strides);
    if (x) mica__count_copy(s->engine, nbytes);
    if (x) mica__count_conversion(s->engine, false);
    return x;
}

mica_array *mica__data_u64(mica_scope *s, uint64_t value)
{
    const mica__spec spec = {.dtype = MICA_U64};
    mica__buffer *buffer;
    const mica_status status = mica__buffer_new(s->memory, sizeof value, &buffer);
    if (status != MICA_OK) return mica__scope_failed(s, status);
    memcpy(buffer->data, &value, sizeof value);
    return mica__ready_leaf(s, "random", &spec, buffer, (int64_t[MICA_MAX_DIMS]){0});
}

/* Bytes from the lowest to the highest element; false on overflow. */
static bool wrapped_span(const mica__spec *spec, const int64_t *strides, size_t *nbytes)
{
    const size_t size = mica_dtype_size((mica_dtype)spec->dtype);
    int64_t reach = 1;
    *nbytes = 0;
    for (int d = 0; d < spec->ndim; d++) {
        if (spec->shape[d] == 0) return true;
        if (strides[d] == INT64_MIN) return false;
        int64_t step = strides[d] < 0 ? -strides[d] : strides[d];
        if (!mica__mul_i64(spec->shape[d] - 1, step, &step) || !mica__add_i64(reach, step, &reach)) return false;
    }
    return (uint64_t)reach <= SIZE_MAX / 2 && mica__mul_size((size_t)reach, size, nbytes) && *nbytes <= SIZE_MAX / 2;
}

/* Checks the arguments of mica_wrap; fills in row-major strides if the caller gave none. */
static bool wrap_check(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, const int64_t *given,
                       const void *data, mica__spec *spec, int64_t *strides, size_t *span)
{
    if (!mica__make_spec(s, "wrap", dtype, ndim, shape, spec)) return false;
    if (given) memcpy(strides, given, (size_t)ndim * sizeof *strides);
    else mica__row_major(spec, strides);
    char text[MICA__SPEC_TEXT];
    if (!wrapped_span(spec, strides, span)) {
        mica__scope_fail(s, MICA_ERR_SIZE, "wrap: the strides of %s are too large", mica__spec_text(text, spec));
        return false;
    }
    if (*span > 0 && (!data || (uintptr_t)data % mica_dtype_size(dtype) != 0)) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, data ? "wrap: data of %s is not aligned" : "wrap: data of %s is NULL",
                         mica__spec_text(text, spec));
        return false;
    }
    return true;
}

mica_array *mica_wrap(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                      const void *data, mica_release_fn release, void *user)
{
    mica__spec spec;
    int64_t all_strides[MICA_MAX_DIMS] = {0};
    size_t span;
    if (!wrap_check(s, dtype, ndim, shape, strides, data, &spec, all_strides, &span)) {
        if (release) release((void *)(uintptr_t)data, user);
        return NULL;
    }
    mica__buffer *buffer;
    const mica_status status = mica__buffer_wrap(s->memory, data, span, release, user, &buffer);
    if (status != MICA_OK) return mica__scope_failed(s, status);
    for (int d = 0; d < spec.ndim && span > 0; d++)
        if (all_strides[d] < 0)
            buffer->below += (size_t)(spec.shape[d] - 1) * (size_t)-all_strides[d] * mica_dtype_size(dtype);
    mica_array *x = mica__ready_leaf(s, "wrap", &spec, buffer, all_strides);
    if (x) mica__count_conversion(s->engine, true);
    return x;
}

/* --------------------------------------------------------- constants ------- */

mica_array *mica_scalar(mica_scope *s, double value)
{
    mica__attr_weak attr = {.exact = value};
    attr.full.spec.dtype = MICA_F32;
    attr.full.value = mica__number_f64(MICA_F32, value);
    if (mica__scope_check(s, "scalar") != MICA_OK) return NULL;
    mica_array *x = mica__build(s, MICA__OP_FULL, NULL, 0, &attr, sizeof attr);
    if (x) x->weak = true;
    return x;
}

mica_array *mica_full(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, double value)
{
    mica__spec spec;
    if (!mica__make_spec(s, "full", dtype, ndim, shape, &spec)) return NULL;
    return mica__full(s, &spec, mica__number_f64(dtype, value));
}

static mica_array *full_of(mica_scope *s, const char *op, mica_dtype dtype, int ndim, const int64_t *shape,
                           int64_t value)
{
    mica__spec spec;
    if (!mica__make_spec(s, op, dtype, ndim, shape, &spec)) return NULL;
    return mica__full(s, &spec, mica__number_i64(dtype, value));
}

mica_array *mica_full_i64(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, int64_t value)
{
    return full_of(s, "full", dtype, ndim, shape, value);
}

mica_array *mica_zeros(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape)
{
    return full_of(s, "zeros", dtype, ndim, shape, 0);
}

mica_array *mica_ones(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape)
{
    return full_of(s, "ones", dtype, ndim, shape, 1);
}

/* ------------------------------------------------------------- ranges ------- */

static mica_array *arange_floats(mica_scope *s, mica_dtype dtype, double start, double stop, double step)
{
    const double n = ceil((stop - start) / step);
    if (!(n < 9.0e18)) return mica__scope_fail(s, MICA_ERR_SIZE, "arange: %g values are too many", n);
    const int64_t count = n > 0 ? (int64_t)n : 0;
    mica__attr_iota attr = {.start = {.f = start}, .step = {.f = step}};
    if (!mica__make_spec(s, "arange", dtype, 1, &count, &attr.spec)) return NULL;
    return mica__build(s, MICA__OP_IOTA, NULL, 0, &attr, sizeof attr);
}

/* Counts in integers: a quotient of doubles may be off by one. */
static mica_array *arange_integers(mica_scope *s, mica_dtype dtype, double start, double stop, double step)
{
    /* The first whole number at or after stop, in the direction of step. */
    const double whole = step > 0 ? ceil(stop) : floor(stop);
    if (!mica__fits_f64(MICA_I64, start) || !mica__fits_f64(MICA_I64, step) || !mica__fits_f64(MICA_I64, whole))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "arange: from %g to %g by %g is not possible with dtype %s",
                                start, stop, step, mica_dtype_name(dtype));
    const int64_t first = (int64_t)start, by = (int64_t)step, end = (int64_t)whole;
    int64_t count = 0;
    if (by > 0 ? first < end : first > end) {
        const uint64_t distance = by > 0 ? (uint64_t)end - (uint64_t)first : (uint64_t)first - (uint64_t)end;
        const uint64_t stride = by > 0 ? (uint64_t)by : (uint64_t)0 - (uint64_t)by;
        const uint64_t n = (distance - 1) / stride + 1;
        if (n > INT64_MAX) return mica__scope_fail(s, MICA_ERR_SIZE, "arange: %" PRIu64 " values are too many", n);
        count = (int64_t)n;
    }
    /* Computed modulo 2^64: exact, because the last value is between start and stop. */
    const int64_t last = (int64_t)((uint64_t)first + (uint64_t)(count - 1) * (uint64_t)by);
    const mica__kind kind = mica__dtype_kind(dtype);
    if (count > 0 && (mica__wrap_i64(dtype, first) != first || mica__wrap_i64(dtype, last) != last ||
                      (kind == MICA__KIND_UINT && (first < 0 || last < 0))))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "arange: %" PRId64 " to %" PRId64 " do not fit %s", first, last,
                                mica_dtype_name(dtype));
    mica__attr_iota attr = {.start = {.i = first}, .step = {.i = by}};
    if (!mica__make_spec(s, "arange", dtype, 1, &count, &attr.spec)) return NULL;
    return mica__build(s, MICA__OP_IOTA, NULL, 0, &attr, sizeof attr);
}

mica_array *mica_arange(mica_scope *s, mica_dtype dtype, double start, double stop, double step)
{
    mica__spec spec;
    if (!mica__make_spec(s, "arange", dtype, 0, NULL, &spec)) return NULL;
    if (dtype == MICA_BOOL) return mica__scope_fail(s, MICA_ERR_DTYPE, "arange: dtype bool is not supported");
    if (!isfinite(start) || !isfinite(stop) || !isfinite(step) || step == 0)
        return mica__scope_fail(s, MICA_ERR_ARGUMENT,
                                "arange: from %g to %g by %g: all must be finite and the step not 0", start, stop,
                                step);
    return mica__is_float(dtype) ? arange_floats(s, dtype, start, stop, step)
                                 : arange_integers(s, dtype, start, stop, step);
}

mica_array *mica_linspace(mica_scope *s, mica_dtype dtype, double start, double stop, int64_t n)
{
    /* Integers are computed in f64 and truncated. */
    const mica_dtype made = mica__dtype_valid(dtype) && !mica__is_float(dtype) ? MICA_F64 : dtype;
    mica__attr_iota attr = {.start = {.f = start}};
    if (!mica__make_spec(s, "linspace", made, 1, &n, &attr.spec)) return NULL;
    if (!isfinite(start) || !isfinite(stop))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "linspace: from %g to %g: both must be finite", start, stop);
    const double gaps = (double)(n - 1), length = stop - start;
    if (n > 1) attr.step.f = isfinite(length) ? length / gaps : 2 * ((stop / 2 - start / 2) / gaps);
    mica_array *x = mica__build(s, MICA__OP_IOTA, NULL, 0, &attr, sizeof attr);
    if (n > 1) {
        mica_array *last = mica__index_iota(s, &attr.spec, 0, 1 - n, 1);
        x = mica_where(s, mica_equal(s, last, mica_scalar(s, 0)), mica__constant(s, made, stop), x);
    }
    return mica_cast(s, x, dtype);
}

/* ----------------------------------------------------------- diagonals ------ */

static mica_array *diagonal(mica_scope *s, const char *op, mica__op compare, mica_dtype dtype, int64_t rows,
                            int64_t cols, int64_t k)
{
    mica__spec spec;
    if (!mica__make_spec(s, op, dtype, 2, (int64_t[]){rows, cols}, &spec)) return NULL;
    /* Past the corners k has no effect; limiting it prevents overflow of row + k. */
    k = mica__max_i64(-rows, mica__min_i64(k, cols));
    mica_array *column = mica__index_iota(s, &spec, 1, 0, 1), *row = mica__index_iota(s, &spec, 0, k, 1);
    return mica_cast(s, mica__elementwise(s, compare, (mica_array *[]){column, row}, 2, NULL, 0), dtype);
}

mica_array *mica_eye(mica_scope *s, mica_dtype dtype, int64_t rows, int64_t cols, int64_t k)
{
    return diagonal(s, "eye", MICA__OP_EQUAL, dtype, rows, cols, k);
}

mica_array *mica_tri(mica_scope *s, mica_dtype dtype, int64_t rows, int64_t cols, int64_t k)
{
    return diagonal(s, "tri", MICA__OP_LESS_EQUAL, dtype, rows, cols, k);
}
