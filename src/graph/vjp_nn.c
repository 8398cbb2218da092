/* Gradients of row-wise families, matmul and rope. */
#include <math.h>

#include "graph/vjp_util.h"

/* y (ct - <ct, y>) */
MICA__VJP_RULE(softmax)
{
    mica_array *p = vjp_widen(s, y), *c = vjp_widen(s, ct);
    mica_array *g = mica_mul(s, p, mica_sub(s, c, vjp_row_sum(s, mica_mul(s, c, p))));
    grads[0] = vjp_narrow(s, g, vjp_dtype(y));
    return MICA_OK;
}

/* ct - softmax <ct, 1> */
MICA__VJP_RULE(log_softmax)
{
    mica_array *c = vjp_widen(s, ct);
    mica_array *g = mica_sub(s, c, mica_mul(s, mica_exp(s, vjp_widen(s, y)), vjp_row_sum(s, c)));
    grads[0] = vjp_narrow(s, g, vjp_dtype(y));
    return MICA_OK;
}

/* ct softmax(x); -ct for the origin, which is subtracted */
MICA__VJP_RULE(logsumexp)
{
    mica_array *x = y->in[0], *c = mica_expand_dims(s, vjp_widen(s, ct), -1);
    mica_array *p = mica__build1(s, MICA__OP_SOFTMAX, vjp_widen(s, x), NULL, 0);
    grads[0] = vjp_narrow(s, mica_mul(s, c, p), vjp_dtype(x));
    if (y->n_in > 1) grads[1] = mica_neg(s, ct);
    return MICA_OK;
}

/* With r = 1 / sqrt(mean square + eps) of the input (centred for layer_norm):
 * r (ct - [mean ct] - y mean(ct y)), where [] is for layer_norm only. */
static mica_array *vjp_norm(mica_scope *s, mica_array *y, mica_array *ct, bool centred)
{
    const double eps = ((const mica__attr_norm *)y->attr)->eps;
    mica_array *x = vjp_widen(s, y->in[0]), *c = vjp_widen(s, ct), *n = vjp_widen(s, y);
    if (centred) x = mica_sub(s, x, vjp_row_mean(s, x));
    mica_array *r = mica_rsqrt(s, vjp_plus(s, vjp_row_mean(s, mica_square(s, x)), eps));
    mica_array *g = mica_sub(s, c, mica_mul(s, n, vjp_row_mean(s, mica_mul(s, c, n))));
    if (centred) g = mica_sub(s, g, vjp_row_mean(s, c));
    return vjp_narrow(s, mica_mul(s, r, g), vjp_dtype(y->in[0]));
}

MICA__VJP_RULE(layer_norm)
{
    grads[0] = vjp_norm(s, y, ct, true);
    return MICA_OK;
}

MICA__VJP_RULE(rms_norm)
{
    grads[0] = vjp_norm(s, y, ct, false);
    return MICA_OK;
}

MICA__VJP_RULE(matmul)
{
    grads[0] = mica_matmul(s, ct, mica_transpose(s, y->in[1]));
    grads[1] = mica_matmul(s, mica_transpose(s, y->in[0]), ct);
    return MICA_OK;
}

/* ----------------------------------------------------------------- rope ---- */

/* The first (which = 0) or second elements of the rotated pairs. */
static mica_array *vjp_rope_half(mica_scope *s, mica_array *x, const mica__attr_rope *attr, int which)
{
    const int64_t half = attr->dims / 2;
    if (attr->interleaved) return mica_slice_axis(s, x, -1, which, attr->dims, 2);
    return mica_slice_axis(s, x, -1, which * half, (which + 1) * half, 1);
}

/* x summed over the axes along which the table is broadcast. */
static mica_array *vjp_rope_shared(mica_scope *s, mica_array *x, const mica__spec *spec)
{
    int64_t shared = 0;
    for (int d = 0; x && d < spec->ndim; d++)
        if (spec->shape[d] != x->spec.shape[d]) shared |= (int64_t)1 << d;
    return shared ? mica__reduce(s, MICA__OP_SUM, x, shared, true) : x;
}

/* (a, b) becomes (a c - b s, b c + a s). Its derivative by c is (a, b), by s it is (-b, a). */
static mica_array *vjp_rope_table_grad(mica_scope *s, mica_array *y, mica_array *ct)
{
    const mica__attr_rope *attr = y->attr;
    mica_array *x = mica_cast(s, y->in[0], MICA_F64), *c = mica_cast(s, ct, MICA_F64), *half[2][2];
    for (int i = 0; i < 2; i++) {
        half[0][i] = vjp_rope_half(s, x, attr, i);
        half[1][i] = vjp_rope_half(s, c, attr, i);
    }
    mica_array *parts[2] = {
        mica_add(s, mica_mul(s, half[1][0], half[0][0]), mica_mul(s, half[1][1], half[0][1])),
        mica_sub(s, mica_mul(s, half[1][1], half[0][0]), mica_mul(s, half[1][0], half[0][1])),
    };
    if (attr->inverse) parts[1] = mica_neg(s, parts[1]);
    return vjp_rope_shared(s, mica_concat(s, parts, 2, -1), &y->in[1]->spec);
}

/* A rotation times a magnitude. Its transpose rotates in the opposite direction, with the same magnitude. */
MICA__VJP_RULE(rope)
{
    mica__attr_rope back = *(const mica__attr_rope *)y->attr;
    back.inverse = !back.inverse;
    grads[0] = mica__build2(s, MICA__OP_ROPE, ct, y->in[1], &back, sizeof back);
    grads[1] = vjp_rope_table_grad(s, y, ct);
    return MICA_OK;
}

/* The derivative of the cosine by its angle is -sine, of the sine it is cosine; both are in the table y. */
MICA__VJP_RULE(rope_table)
{
    const mica__attr_rope_table *attr = y->attr;
    const int64_t half = attr->dims / 2;
    mica_array *turn =
        mica_sub(s, mica_mul(s, mica_slice_axis(s, ct, -1, half, MICA_AUTO, 1), mica_slice_axis(s, y, -1, 0, half, 1)),
                 mica_mul(s, mica_slice_axis(s, ct, -1, 0, half, 1), mica_slice_axis(s, y, -1, half, MICA_AUTO, 1)));
    mica_array *pair = mica_arange(s, MICA_F64, 0, (double)half, 1);
    mica_array *rate =
        vjp_times(s, mica_exp(s, vjp_times(s, pair, -2 * log(attr->base) / (double)attr->dims)), attr->scale);
    if (y->n_in > 1) {
        mica_array *factors = mica_cast(s, y->in[1], MICA_F64);
        rate = mica_div(s, rate, factors);
        mica_array *angle = mica_mul(s, mica_expand_dims(s, mica_cast(s, y->in[0], MICA_F64), -1), rate);
        mica_array *g = mica_neg(s, mica_div(s, mica_mul(s, turn, angle), factors));
        const int64_t axes = ((int64_t)1 << y->in[0]->spec.ndim) - 1;
        grads[1] = mica_cast(s, mica__reduce(s, MICA__OP_SUM, g, axes, false), vjp_dtype(y->in[1]));
    }
    if (!mica__is_float(vjp_dtype(y->in[0]))) return MICA_OK;
    grads[0] = mica_cast(s, mica_sum(s, mica_mul(s, turn, rate), (const int[]){-1}, 1, false), vjp_dtype(y->in[0]));
    return MICA_OK;
}
