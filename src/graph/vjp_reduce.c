/* Gradients of reductions and of cumulative ops. */
#include "graph/vjp_util.h"

/* Broadcasts v, which has the shape of the reduction y, to the shape of the input of y. */
static mica_array *vjp_spread(mica_scope *s, mica_array *y, mica_array *v)
{
    const mica__attr_reduce *attr = y->attr;
    mica__spec kept = y->in[0]->spec;
    for (int d = 0; d < kept.ndim; d++)
        if (attr->axes >> d & 1) kept.shape[d] = 1;
    return mica__broadcast_like(s, mica_reshape(s, v, kept.ndim, kept.shape), &y->in[0]->spec);
}

MICA__VJP_RULE(sum)
{
    grads[0] = vjp_spread(s, y, ct);
    return MICA_OK;
}

/* Equal extremes share the cotangent evenly. If the extreme is NaN, no element equals it and all gradients are 0. */
MICA__VJP_RULE(extreme)
{
    const mica__attr_reduce *attr = y->attr;
    mica_array *x = y->in[0];
    mica_array *extreme = mica_equal(s, x, vjp_spread(s, y, y));
    mica_array *count = mica__reduce(s, MICA__OP_SUM, mica_cast(s, extreme, vjp_dtype(x)), attr->axes, attr->keep != 0);
    grads[0] = vjp_or_zero(s, extreme, vjp_spread(s, y, mica_div(s, ct, count)));
    return MICA_OK;
}

/* The derivative by an element is the product of all elements before it times the product of
 * all after it. Unlike y / x this is right if some elements are 0. */
MICA__VJP_RULE(prod)
{
    const mica__attr_reduce *attr = y->attr;
    mica_array *x = y->in[0];
    const int ndim = x->spec.ndim;
    int axes[MICA_MAX_DIMS], back[MICA_MAX_DIMS], n = 0;
    int64_t flat[MICA_MAX_DIMS + 1], moved[MICA_MAX_DIMS], folded = 1;
    for (int d = 0; d < ndim; d++)
        if (!(attr->axes >> d & 1)) axes[n++] = d;
    const int n_kept = n;
    for (int d = 0; d < ndim; d++)
        if (attr->axes >> d & 1) axes[n++] = d, folded *= x->spec.shape[d];
    if (n_kept == ndim || folded == 1) {
        grads[0] = vjp_spread(s, y, ct);
        return MICA_OK;
    }
    for (int d = 0; d < ndim; d++) {
        back[axes[d]] = d;
        flat[d] = moved[d] = x->spec.shape[axes[d]];
    }
    flat[n_kept] = folded;
    mica_array *rows = mica_reshape(s, mica_permute(s, x, axes), n_kept + 1, flat);
    mica_array *others = mica_mul(s, mica__cumulative(s, MICA__OP_CUMPROD, rows, false, true),
                                  mica__cumulative(s, MICA__OP_CUMPROD, rows, true, true));
    others = mica_permute(s, mica_reshape(s, others, ndim, moved), back);
    grads[0] = mica_mul(s, vjp_spread(s, y, ct), others);
    return MICA_OK;
}

/* ----------------------------------------------------------- cumulative ---- */

static const mica__attr_cumulative *vjp_cumulative(const mica_array *y) { return y->attr; }

/* result[i] = x[i + 1] along the last axis; the last element is 0. */
static mica_array *vjp_shift(mica_scope *s, mica_array *x)
{
    mica__attr_pad pad = {0};
    const int last = x ? x->spec.ndim - 1 : 0;
    pad.low[last] = -1;
    pad.high[last] = 1;
    return mica__build1(s, MICA__OP_PAD, x, &pad, sizeof pad);
}

MICA__VJP_RULE(cumsum)
{
    const mica__attr_cumulative *attr = vjp_cumulative(y);
    grads[0] = mica__cumulative(s, MICA__OP_CUMSUM, ct, !attr->reverse, attr->exclusive != 0);
    return MICA_OK;
}

static mica_status vjp_cumprod_step(mica_scope *s, mica_array *const *carry, mica_array *const *x,
                                    mica_array **carry_out, mica_array **y_out, void *user)
{
    (void)user;
    y_out[0] = carry_out[0] = mica_add(s, x[0], mica_mul(s, x[1], carry[0]));
    return MICA_OK;
}

/* S[k] = ct[k] + x[k+1] S[k+1] along the last axis */
static mica_array *vjp_cumprod_sums(mica_scope *s, mica_array *x, mica_array *ct)
{
    const int ndim = x->spec.ndim;
    int front[MICA_MAX_DIMS], back[MICA_MAX_DIMS];
    front[0] = ndim - 1;
    back[ndim - 1] = 0;
    for (int d = 1; d < ndim; d++) front[d] = d - 1, back[d - 1] = d;
    mica_array *xs[2] = {mica_permute(s, ct, front), mica_permute(s, vjp_shift(s, x), front)};
    mica_array *zero = mica_zeros(s, vjp_dtype(x), ndim - 1, x->spec.shape), *last, *sums;
    mica_scan_options options;
    mica_scan_options_init(&options);
    options.n_carry = 1;
    options.n_x = 2;
    options.n_y = 1;
    options.reverse = true;
    if (mica_scan(s, vjp_cumprod_step, NULL, &options, &zero, xs, &last, &sums) != MICA_OK) return NULL;
    return mica_permute(s, sums, back);
}

/* y[i] is the product of x[j], j <= i. The gradient at k is (the product before k) * S[k].
 * It is exact if elements are 0, because nothing is divided. For an exclusive product, ct is
 * shifted by one. */
MICA__VJP_RULE(cumprod)
{
    const mica__attr_cumulative *attr = vjp_cumulative(y);
    mica_array *x = y->in[0];
    if (mica__spec_size(&x->spec) == 0) return MICA_OK;
    if (attr->reverse) x = mica_flip(s, x, -1), ct = mica_flip(s, ct, -1);
    if (attr->exclusive) ct = vjp_shift(s, ct);
    if (!x || !ct) return s->error.status;
    mica_array *before = mica__cumulative(s, MICA__OP_CUMPROD, x, false, true);
    mica_array *g = mica_mul(s, before, vjp_cumprod_sums(s, x, ct));
    grads[0] = attr->reverse ? mica_flip(s, g, -1) : g;
    return MICA_OK;
}

/* Each result is the element at the last index up to there that equals the running maximum; that element
 * gets the cotangent. */
MICA__VJP_RULE(cummax)
{
    const mica__attr_cumulative *attr = vjp_cumulative(y);
    mica_array *x = y->in[0];
    if (mica__spec_size(&x->spec) == 0) return MICA_OK;
    const int last = x->spec.ndim - 1;
    if (attr->reverse) x = mica_flip(s, x, -1), ct = mica_flip(s, ct, -1);
    if (attr->exclusive) ct = vjp_shift(s, ct);
    mica_array *index = mica_arange(s, MICA_I64, 0, (double)y->spec.shape[last], 1);
    mica_array *record = mica_equal(s, x, mica__cumulative(s, MICA__OP_CUMMAX, x, false, false));
    mica_array *from = mica_where(s, record, index, mica_scalar(s, 0));
    from = mica__cumulative(s, MICA__OP_CUMMAX, from, false, false);
    mica_array *g = mica__add_along_axis(s, &y->spec, from, ct, last);
    grads[0] = attr->reverse ? mica_flip(s, g, -1) : g;
    return MICA_OK;
}
