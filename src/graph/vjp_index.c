/* Gradients of gather, scatter and sort ops. */
#include "graph/vjp_util.h"

/* An element that is taken several times gets the sum of the cotangents. */
MICA__VJP_RULE(take)
{
    const int axis = (int)((const mica__attr_take *)y->attr)->axis;
    grads[0] = mica__scatter_axis(s, mica__zeros_like(s, y->in[0]), y->in[1], ct, axis, true, MICA__CALLER_NONE);
    return MICA_OK;
}

/* If several updates write to one position, the last one wins and only it has a gradient.
 * To find it, every update writes its number to its position; the winners read their own
 * number back. The result broadcasts over the updates. */
static mica_array *vjp_scatter_winners(mica_scope *s, mica_array *x, mica_array *indices, int axis)
{
    const mica__spec *idx = &indices->spec;
    const int64_t count = mica__spec_size(idx);
    mica_array *number = mica_reshape(s, mica_arange(s, MICA_I64, 0, (double)count, 1), idx->ndim, idx->shape);
    mica_array *places = mica_zeros(s, MICA_I64, 1, &x->spec.shape[axis]);
    mica_array *written = mica__scatter_axis(s, places, indices, number, 0, false, MICA__CALLER_NONE);
    mica_array *won = mica_equal(s, mica_take(s, written, indices, 0), number);
    int64_t shape[MICA_MAX_DIMS];
    int ndim = 0;
    for (int d = 0; d < idx->ndim; d++) shape[ndim++] = idx->shape[d];
    for (int d = axis + 1; d < x->spec.ndim; d++) shape[ndim++] = 1;
    return mica_reshape(s, won, ndim, shape);
}

MICA__VJP_RULE(scatter)
{
    const mica__attr_scatter *attr = y->attr;
    mica_array *x = y->in[0], *indices = y->in[1], *updates = y->in[2];
    const int axis = (int)attr->axis;
    mica_array *picked = mica_take(s, ct, indices, axis);
    if (attr->add) {
        grads[0] = ct;
        grads[2] = picked;
    } else {
        grads[0] = mica__scatter_axis(s, ct, indices, mica__zeros_like(s, updates), axis, false, MICA__CALLER_NONE);
        grads[2] = vjp_or_zero(s, vjp_scatter_winners(s, x, indices, axis), picked);
    }
    return MICA_OK;
}

MICA__VJP_RULE(sort)
{
    const mica__attr_sort *attr = y->attr;
    mica_array *order = mica_argsort(s, y->in[0], -1, attr->descending != 0);
    grads[0] = mica__add_along_axis(s, &y->spec, order, ct, y->spec.ndim - 1);
    return MICA_OK;
}
