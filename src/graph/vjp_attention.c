/* The gradient of attention is one op that computes the weights again, block by block,
 * and never stores all of them. That op does not compute gradients of float masks or
 * second derivatives: these are built from matmul and elementary ops.
 *
 * r heads that share keys are one head with r times as many queries: (B, kv r, T, D) and
 * (B, kv, r T, D) are the same memory. The matmuls then also sum over these heads. */
#include <math.h>

#include "graph/reverse.h"
#include "graph/vjp_util.h"

typedef struct vjp_attention_sizes {
    int64_t batch, heads, kv, time, keys;
} vjp_attention_sizes;

/* (B, H, T, X) to (B, kv, r T, X) and back */
static mica_array *vjp_heads_join(mica_scope *s, mica_array *x, const vjp_attention_sizes *z)
{
    return mica_reshape(s, x, 4,
                        (const int64_t[]){z->batch, z->kv, z->heads / z->kv * z->time, x ? x->spec.shape[3] : 0});
}
static mica_array *vjp_heads_split(mica_scope *s, mica_array *x, const vjp_attention_sizes *z)
{
    return mica_reshape(s, x, 4, (const int64_t[]){z->batch, z->heads, z->time, x ? x->spec.shape[3] : 0});
}

/* softmax(scale q k + mask), and 0 in a row where every key is masked. Not SOFTMAX: of
 * a row of -infinities it is NaN, and the second derivative would bring back a NaN that a
 * where hides. The maximum is treated as a constant: the result does not depend on it. */
static mica_array *vjp_attention_weights(mica_scope *s, const mica__attr_attention *attr, mica_array *q, mica_array *k,
                                         mica_array *mask, const vjp_attention_sizes *z)
{
    mica_array *hidden = mica_scalar(s, (double)-INFINITY);
    mica_array *scores = vjp_times(s, mica_matmul(s, q, mica_transpose(s, k)), attr->scale);
    scores = vjp_heads_split(s, scores, z);
    if (mask) {
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

/* Factors of the gradients, built from ops that have gradients themselves. */
typedef struct vjp_attention_parts {
    mica_array *q, *k, *c;       /* c: cotangent; at least f32; q and c with heads joined */
    mica_array *p, *ds;          /* weights, gradients of the scores                      */
} vjp_attention_parts;

static vjp_attention_parts vjp_attention_compose(mica_scope *s, const mica__attr_attention *attr, mica_array *const *in,
                                                 mica_array *ct, const vjp_attention_sizes *z)
{
    vjp_attention_parts parts = {vjp_heads_join(s, vjp_widen(s, in[0]), z), vjp_widen(s, in[1]),
                                 vjp_heads_join(s, vjp_widen(s, ct), z), NULL, NULL};
    parts.p = vjp_attention_weights(s, attr, parts.q, parts.k, attr->has_mask ? in[3] : NULL, z);
    mica_array *dp = vjp_heads_split(s, mica_matmul(s, parts.c, mica_transpose(s, vjp_widen(s, in[2]))), z);
    parts.ds = mica_mul(s, parts.p, mica_sub(s, dp, vjp_row_sum(s, mica_mul(s, dp, parts.p))));
    return parts;
}

static vjp_attention_sizes vjp_attention_sizes_of(mica_array *const *in)
{
    const mica__spec *q = &in[0]->spec, *k = &in[1]->spec;
    return (vjp_attention_sizes){q->shape[0], q->shape[1], k->shape[1], q->shape[2], k->shape[2]};
}

/* The next elements of a flat array, from *at, in the shape of like; advances *at. */
static mica_array *vjp_attention_cut(mica_scope *s, mica_array *row, int64_t *at, const mica_array *like)
{
    const int64_t n = mica__spec_size(&like->spec), start = *at;
    *at += n;
    return vjp_reshape_like(s, mica_slice(s, row, &start, &(int64_t){start + n}, NULL), like);
}

MICA__VJP_RULE(attention)
{
    const mica__attr_attention *attr = y->attr;
    const vjp_attention_sizes z = vjp_attention_sizes_of(y->in);
    if (mica__spec_size(&y->spec) == 0 || mica__spec_size(&y->in[1]->spec) == 0) return MICA_OK;
    mica_array *in[5] = {y->in[0], y->in[1], y->in[2], attr->has_mask ? y->in[3] : ct, ct};
    mica_array *row = mica__build(s, MICA__OP_ATTENTION_GRAD, in, y->n_in + 1, attr, sizeof *attr);
    int64_t at = 0;
    for (int i = 0; i < 3; i++) grads[i] = vjp_attention_cut(s, row, &at, y->in[i]);
    /* if no caller needs it, it is built but never evaluated */
    if (attr->has_mask && mica__is_float(vjp_dtype(y->in[3])))
        grads[3] = vjp_narrow(s, vjp_attention_compose(s, attr, y->in, ct, &z).ds, vjp_dtype(y->in[3]));
    return MICA_OK;
}

/* Second derivatives are rare, so this is simple instead of fast: it builds the three results
 * from elementary ops and runs the reverse pass over them. mica__after gives each input a
 * separate node, because one array may be several inputs. */
MICA__VJP_RULE(attention_grad)
{
    const mica__attr_attention *attr = y->attr;
    const vjp_attention_sizes z = vjp_attention_sizes_of(y->in);
    const size_t n = y->n_in;
    mica_array *in[5] = {NULL}, *outs[3], *cts[3];
    for (size_t i = 0; i < n; i++) {
        in[i] = mica__after(s, y->in[i], ct);
        if (!in[i]) return s->error.status;
    }
    const uint64_t mark = mica__serial_now();
    const mica_dtype dtype = vjp_dtype(y);
    const vjp_attention_parts g = vjp_attention_compose(s, attr, in, in[n - 1], &z);
    mica_array *ds = vjp_times(s, vjp_heads_join(s, g.ds, &z), attr->scale);
    outs[0] = vjp_narrow(s, vjp_heads_split(s, mica_matmul(s, ds, g.k), &z), dtype);
    outs[1] = vjp_narrow(s, mica_matmul(s, mica_transpose(s, ds), g.q), dtype);
    outs[2] = vjp_narrow(s, mica_matmul(s, mica_transpose(s, vjp_heads_join(s, g.p, &z)), g.c), dtype);
    int64_t at = 0;
    for (int i = 0; i < 3; i++) cts[i] = vjp_attention_cut(s, ct, &at, y->in[i]);
    if (s->error.status != MICA_OK) return s->error.status;
    return mica__reverse(s, outs, cts, 3, in, n, mark, grads);
}
