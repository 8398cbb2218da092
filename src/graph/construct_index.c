/* Indexing and sorting. Indices on several axes are checked by CHECK_INDEX, which also
 * resolves negative ones, and combined into one flat index. So TAKE and SCATTER along
 * one axis are the only primitives. */
#include <inttypes.h>

#include "graph/construct.h"

/* ------------------------------------------------------------ along an axis - */

mica_array *mica__checked_index(mica_scope *s, mica__index_caller caller, mica_array *indices, int64_t size)
{
    const mica__attr_index attr = {size, caller};
    return mica__build1(s, MICA__OP_CHECK_INDEX, indices, &attr, sizeof attr);
}

mica_array *mica__indices_of(mica_scope *s, mica__index_caller caller, mica_array *x, int64_t size)
{
    if (x && x->spec.dtype == MICA_U64) return mica__checked_index(s, caller, x, size);
    return mica__indices(s, mica__index_caller_name(caller, "take"), x);
}

static mica_array *take_for(mica_scope *s, mica__index_caller caller, mica_array *x, mica_array *indices, int axis)
{
    const char *op = mica__index_caller_name(caller, "take");
    if (!mica__usable(s, op, (mica_array *[]){x, indices}, 2)) return NULL;
    if (!mica__axis(s, op, x->spec.ndim, axis, &axis)) return NULL;
    const mica__attr_take attr = {axis, caller};
    indices = mica__indices_of(s, caller, indices, x->spec.shape[axis]);
    return mica__build2(s, MICA__OP_TAKE, x, indices, &attr, sizeof attr);
}

mica_array *mica_take(mica_scope *s, mica_array *x, mica_array *indices, int axis)
{
    return take_for(s, MICA__CALLER_TAKE, x, indices, axis);
}

mica_array *mica_embedding(mica_scope *s, mica_array *table, mica_array *ids)
{
    if (!mica__usable(s, "embedding", (mica_array *[]){table, ids}, 2)) return NULL;
    if (table->spec.ndim == 0) return mica__scope_fail(s, MICA_ERR_SHAPE, "embedding: the table has no axes");
    return take_for(s, MICA__CALLER_EMBEDDING, table, ids, 0);
}

mica_array *mica__scatter_axis(mica_scope *s, mica_array *x, mica_array *indices, mica_array *updates, int axis,
                               bool add, mica__index_caller caller)
{
    mica_array *in[] = {x, indices, updates};
    const char *op = mica__index_caller_name(caller, "scatter");
    if (!mica__usable(s, op, in, 3) || !mica__axis(s, op, x->spec.ndim, axis, &axis)) return NULL;
    in[1] = mica__indices_of(s, caller, indices, x->spec.shape[axis]);
    in[2] = mica_cast(s, updates, (mica_dtype)x->spec.dtype);
    const mica__attr_scatter attr = {axis, add, caller};
    return mica__build(s, MICA__OP_SCATTER, in, 3, &attr, sizeof attr);
}

/* NumPy's rule: all axes except `axis` broadcast. */
static bool along_shape(mica_scope *s, const char *op, const mica__spec *x, const mica__spec *indices, int axis,
                        mica__spec *out)
{
    *out = *indices;
    bool fits = x->ndim == indices->ndim;
    for (int d = 0; fits && d < x->ndim; d++) {
        if (d == axis) continue;
        fits = x->shape[d] == indices->shape[d] || x->shape[d] == 1 || indices->shape[d] == 1;
        if (indices->shape[d] == 1) out->shape[d] = x->shape[d];
    }
    if (fits) return true;
    char a[MICA__SHAPE_TEXT], b[MICA__SHAPE_TEXT];
    mica__scope_fail(s, MICA_ERR_SHAPE, "%s: shape %s and indices of shape %s do not match along axis %d", op,
                     mica__shape_text(a, x->ndim, x->shape), mica__shape_text(b, indices->ndim, indices->shape), axis);
    return false;
}

/* Flat positions, in a row-major array of spec x, of the elements that indices select;
 * *shape gets the shape of the result. */
static mica_array *flat_along(mica_scope *s, mica__index_caller caller, const mica__spec *x, mica_array *indices,
                              int axis, mica__spec *shape)
{
    const char *op = mica__index_caller_name(caller, "add_along_axis");
    if (!indices || !along_shape(s, op, x, &indices->spec, axis, shape)) return NULL;
    if (indices->spec.dtype != MICA_U64) indices = mica__indices(s, op, indices);
    int64_t strides[MICA_MAX_DIMS];
    mica__row_major(x, strides);
    mica_array *flat = mica__checked_index(s, caller, indices, x->shape[axis]);
    flat = mica_mul(s, mica__broadcast_like(s, flat, shape), mica_full_i64(s, MICA_I64, 0, NULL, strides[axis]));
    for (int d = 0; d < x->ndim; d++) {
        if (d == axis || x->shape[d] == 1) continue;
        flat = mica_add(s, flat, mica__index_iota(s, shape, d, 0, strides[d]));
    }
    return flat;
}

mica_array *mica__take_along(mica_scope *s, mica__index_caller caller, mica_array *x, mica_array *indices, int axis)
{
    mica__spec shape;
    mica_array *flat = flat_along(s, caller, &x->spec, indices, axis, &shape);
    return flat ? take_for(s, caller, mica_flatten(s, x), flat, 0) : NULL;
}

mica_array *mica_take_along_axis(mica_scope *s, mica_array *x, mica_array *indices, int axis)
{
    if (!mica__usable(s, "take_along_axis", (mica_array *[]){x, indices}, 2)) return NULL;
    if (!mica__axis(s, "take_along_axis", x->spec.ndim, axis, &axis)) return NULL;
    return mica__take_along(s, MICA__CALLER_TAKE_ALONG_AXIS, x, indices, axis);
}

mica_array *mica__add_along_axis(mica_scope *s, const mica__spec *spec, mica_array *indices, mica_array *updates,
                                 int axis)
{
    if (!mica__usable(s, "add_along_axis", (mica_array *[]){indices, updates}, 2)) return NULL;
    mica__spec shape;
    mica_array *flat = flat_along(s, MICA__CALLER_NONE, spec, indices, axis, &shape);
    if (!flat) return NULL;
    const int64_t count = mica__spec_size(spec);
    mica_array *sum = mica__scatter_axis(s, mica_zeros(s, (mica_dtype)spec->dtype, 1, &count), flat,
                                         mica__broadcast_like(s, updates, &shape), 0, true, MICA__CALLER_NONE);
    return mica_reshape(s, sum, spec->ndim, spec->shape);
}

/* --------------------------------------------------- on several axes at once - */

/* indices (..., k) select on the first k axes of x. x is treated as (rows, cols); returns
 * the row of each index and both sizes. */
static mica_array *flat_rows(mica_scope *s, mica__index_caller caller, const mica_array *x, mica_array *indices,
                             int64_t *rows, int64_t *cols)
{
    const char *op = mica__index_caller_name(caller, "gather");
    const mica__spec *spec = &indices->spec;
    if (spec->ndim == 0) return mica__scope_fail(s, MICA_ERR_SHAPE, "%s: indices have no axes", op);
    const int last = spec->ndim - 1;
    const int64_t k = spec->shape[last];
    if (k > x->spec.ndim)
        return mica__scope_fail(s, MICA_ERR_SHAPE, "%s: indices for %" PRId64 " axes of an array with %d", op, k,
                                (int)x->spec.ndim);
    if (indices->spec.dtype != MICA_U64) indices = mica__indices(s, op, indices);
    if (!indices) return NULL;
    mica_array *row = NULL;
    *rows = *cols = 1;
    for (int d = 0; d < x->spec.ndim; d++) {
        const int64_t size = x->spec.shape[d];
        if (d >= k) {
            *cols *= size;
            continue;
        }
        *rows *= size;
        mica_array *at = mica_squeeze(s, mica_slice_axis(s, indices, last, d, d + 1, 1), last);
        at = mica__checked_index(s, caller, at, size);
        row = d == 0 ? at : mica_add(s, mica_mul(s, row, mica_full_i64(s, MICA_I64, 0, NULL, size)), at);
    }
    return k > 0 ? row : mica_zeros(s, MICA_I64, last, spec->shape);
}

/* The shape of the indices without the last axis, then the axes of x that are not indexed. */
static bool gathered_shape(mica_scope *s, const char *op, const mica_array *x, const mica_array *indices,
                           mica__spec *out)
{
    const int64_t k = indices->spec.shape[indices->spec.ndim - 1];
    int64_t shape[2 * MICA_MAX_DIMS];
    int ndim = 0;
    for (int d = 0; d < indices->spec.ndim - 1; d++) shape[ndim++] = indices->spec.shape[d];
    for (int64_t d = k; d < x->spec.ndim; d++) shape[ndim++] = x->spec.shape[d];
    return mica__make_spec(s, op, (mica_dtype)x->spec.dtype, ndim, shape, out);
}

mica_array *mica_gather(mica_scope *s, mica_array *x, mica_array *indices)
{
    if (!mica__usable(s, "gather", (mica_array *[]){x, indices}, 2)) return NULL;
    int64_t rows, cols;
    mica__spec spec;
    mica_array *row = flat_rows(s, MICA__CALLER_GATHER, x, indices, &rows, &cols);
    if (!row || !gathered_shape(s, "gather", x, indices, &spec)) return NULL;
    mica_array *y = take_for(s, MICA__CALLER_GATHER, mica_reshape(s, x, 2, (int64_t[]){rows, cols}), row, 0);
    return mica_reshape(s, y, spec.ndim, spec.shape);
}

static mica_array *scattered(mica_scope *s, mica__index_caller caller, mica_array *x, mica_array *indices,
                             mica_array *updates, bool add)
{
    const char *op = mica__index_caller_name(caller, "scatter");
    if (!mica__usable(s, op, (mica_array *[]){x, indices, updates}, 3)) return NULL;
    int64_t rows, cols;
    mica__spec spec, both;
    mica_array *row = flat_rows(s, caller, x, indices, &rows, &cols);
    if (!row || !gathered_shape(s, op, x, indices, &spec)) return NULL;
    if (!mica__broadcast_spec(s, op, &spec, &updates->spec, &both)) return NULL;
    if (!mica__shape_equal(&spec, &both)) {
        char got[MICA__SHAPE_TEXT], want[MICA__SHAPE_TEXT];
        return mica__scope_fail(s, MICA_ERR_SHAPE, "%s: updates of shape %s do not broadcast to %s", op,
                                mica__shape_text(got, updates->spec.ndim, updates->spec.shape),
                                mica__shape_text(want, spec.ndim, spec.shape));
    }
    mica__spec flat = row->spec;
    flat.shape[flat.ndim++] = cols;
    updates = mica_reshape(s, mica__broadcast_like(s, updates, &spec), flat.ndim, flat.shape);
    mica_array *y = mica__scatter_axis(s, mica_reshape(s, x, 2, (int64_t[]){rows, cols}), row, updates, 0, add, caller);
    return mica_reshape(s, y, x->spec.ndim, x->spec.shape);
}

mica_array *mica_scatter(mica_scope *s, mica_array *x, mica_array *indices, mica_array *updates)
{
    return scattered(s, MICA__CALLER_SCATTER, x, indices, updates, false);
}

mica_array *mica_scatter_add(mica_scope *s, mica_array *x, mica_array *indices, mica_array *updates)
{
    return scattered(s, MICA__CALLER_SCATTER_ADD, x, indices, updates, true);
}

mica_array *mica_one_hot(mica_scope *s, mica_array *ids, int64_t depth, mica_dtype dtype)
{
    if (!mica__usable1(s, "one_hot", ids)) return NULL;
    mica__spec spec;
    int64_t shape[MICA_MAX_DIMS + 1];
    memcpy(shape, ids->spec.shape, sizeof ids->spec.shape);
    shape[ids->spec.ndim] = depth;
    if (!mica__make_spec(s, "one_hot", dtype, ids->spec.ndim + 1, shape, &spec)) return NULL;
    ids = mica_expand_dims(s, mica__indices(s, "one_hot", ids), -1);
    return mica_cast(s, mica_equal(s, ids, mica__index_iota(s, &spec, spec.ndim - 1, 0, 1)), dtype);
}

/* ---------------------------------------------------------------- sorting --- */

mica_array *mica_sort(mica_scope *s, mica_array *x, int axis, bool descending)
{
    if (!mica__usable1(s, "sort", x) || !mica__axis(s, "sort", x->spec.ndim, axis, &axis)) return NULL;
    const mica__attr_sort attr = {descending, x->spec.shape[axis]};
    return mica__axis_back(s, mica__build1(s, MICA__OP_SORT, mica__axis_last(s, x, axis), &attr, sizeof attr), axis);
}

static mica_array *first_order(mica_scope *s, mica_array *x, int axis, bool descending, int64_t k)
{
    const mica__attr_sort attr = {descending, k};
    return mica__axis_back(s, mica__build1(s, MICA__OP_ARGSORT, mica__axis_last(s, x, axis), &attr, sizeof attr), axis);
}

mica_array *mica_argsort(mica_scope *s, mica_array *x, int axis, bool descending)
{
    if (!mica__usable1(s, "argsort", x) || !mica__axis(s, "argsort", x->spec.ndim, axis, &axis)) return NULL;
    return first_order(s, x, axis, descending, x->spec.shape[axis]);
}

mica_status mica_topk(mica_scope *s, mica_array *x, int64_t k, int axis, mica_array **values, mica_array **indices)
{
    if (values) *values = NULL;
    if (indices) *indices = NULL;
    MICA_TRY(mica__scope_check(s, "topk"));
    if (!mica__usable1(s, "topk", x) || !mica__axis(s, "topk", x->spec.ndim, axis, &axis)) return s->error.status;
    const int64_t n = x->spec.shape[axis];
    if (k < 0 || k > n) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "topk: k is %" PRId64 "; it must be 0 to %" PRId64, k, n);
        return s->error.status;
    }
    mica_array *order = first_order(s, x, axis, true, k);
    mica_array *found = order && values ? mica_take_along_axis(s, x, order, axis) : order;
    if (!found) return s->error.status;
    if (values) *values = found;
    if (indices) *indices = order;
    return MICA_OK;
}
