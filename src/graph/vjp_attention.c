/* The gradient of attention: the scores are computed again, then the rules of
 * matmul and softmax written out.
 *
 * Heads that share keys are one batch of more queries: (B, kv r, T, D) read as
 * (B, kv, r T, D) is the same memory, and the sums over heads that share fall
 * out of the matmuls. */
#include <math.h>

#include "graph/vjp_util.h"

typedef struct vjp_attention_sizes {
    int64_t batch, heads, kv, time, keys;
} vjp_attention_sizes;

/* (B, H, T, X) as (B, kv, r T, X) and back */
static mica_array *vjp_heads_join(mica_scope *s, mica_array *x, const vjp_attention_sizes *z)
{
    return mica_reshape(s, x, 4,
                        (const int64_t[]){z->batch, z->kv, z->heads / z->kv * z->time, x ? x->spec.shape[3] : 0});
}
static mica_array *vjp_heads_split(mica_scope *s, mica_array *x, const vjp_attention_sizes *z)
{
    return mica_reshape(s, x, 4, (const int64_t[]){z->batch, z->heads, z->time, x ? x->spec.shape[3] : 0});
}

/* softmax(scale q k + mask), 0 in a row that may see nothing. Written out: a
 * softmax of -infinities is NaN, and a NaN under a where comes back in the
 * second derivative. The largest score is a constant here; any would do. */
static mica_array *vjp_attention_weights(mica_scope *s, mica_array *y, mica_array *q, mica_array *k,
                                         const vjp_attention_sizes *z)
{
    const mica__attr_attention *attr = y->attr;
    mica_array *hidden = mica_scalar(s, (double)-INFINITY);
    mica_array *scores = vjp_times(s, mica_matmul(s, q, mica_transpose(s, k)), attr->scale);
    scores = vjp_heads_split(s, scores, z);
    if (attr->has_mask) {
        mica_array *mask = y->in[3];
        if (mica__is_bool(vjp_dtype(mask))) scores = mica_where(s, mask, scores, hidden);
        else scores = mica_add(s, scores, vjp_widen(s, mask));
    }
    if (attr->causal)
        scores = mica_where(s, mica_tri(s, MICA_BOOL, z->time, z->keys, z->keys - z->time), scores, hidden);
    mica_array *top = mica_stop_gradient(s, mica_max(s, scores, (const int[]){-1}, 1, true));
    top = mica_where(s, mica_isfinite(s, top), top, mica_scalar(s, 0));
    mica_array *e = mica_exp(s, mica_sub(s, scores, top));
    return mica_div(s, e, vjp_not_zero(s, vjp_row_sum(s, e)));
}

MICA__VJP_RULE(attention)
{
    const mica__attr_attention *attr = y->attr;
    const mica__spec *sq = &y->in[0]->spec, *sk = &y->in[1]->spec;
    const vjp_attention_sizes z = {sq->shape[0], sq->shape[1], sk->shape[1], sq->shape[2], sk->shape[2]};
    if (mica__spec_size(&y->spec) == 0 || mica__spec_size(sk) == 0) return MICA_OK;
    const mica_dtype dtype = vjp_dtype(y);
    mica_array *q = vjp_heads_join(s, vjp_widen(s, y->in[0]), &z);
    mica_array *k = vjp_widen(s, y->in[1]), *v = vjp_widen(s, y->in[2]);
    mica_array *c = vjp_heads_join(s, vjp_widen(s, ct), &z);

    mica_array *p = vjp_attention_weights(s, y, q, k, &z);
    mica_array *dp = vjp_heads_split(s, mica_matmul(s, c, mica_transpose(s, v)), &z);
    mica_array *ds = mica_mul(s, p, mica_sub(s, dp, vjp_row_sum(s, mica_mul(s, dp, p))));
    mica_array *dscores = vjp_times(s, vjp_heads_join(s, ds, &z), attr->scale);

    grads[0] = vjp_narrow(s, vjp_heads_split(s, mica_matmul(s, dscores, k), &z), dtype);
    grads[1] = vjp_narrow(s, mica_matmul(s, mica_transpose(s, dscores), q), dtype);
    grads[2] = vjp_narrow(s, mica_matmul(s, mica_transpose(s, vjp_heads_join(s, p, &z)), c), dtype);
    if (attr->has_mask && mica__is_float(vjp_dtype(y->in[3]))) grads[3] = vjp_narrow(s, ds, vjp_dtype(y->in[3]));
    return MICA_OK;
}
