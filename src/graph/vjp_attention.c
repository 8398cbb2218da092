/* The gradient of attention: an op that computes the weights again, block by block,
 * and never has all of them. What that op cannot give, gradients of float masks and
 * of the gradients, is the rules of matmul and softmax written out.
 *
 * Heads that share keys are one batch of more queries: (B, kv r, T, D) read as
 * (B, kv, r T, D) is the same memory, and the sums over heads that share fall
 * out of the matmuls. */
#include <math.h>

#include "graph/reverse.h"
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

/* What the gradients are made of, by ops that have gradients themselves. */
typedef struct vjp_attention_parts {
    mica_array *q, *k, *c;       /* in f32 if narrower, q and c with heads joined */
    mica_array *p, *ds;          /* weights, gradients of the scores              */
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

static vjp_attention_sizes vjp_attention_look(mica_array *const *in)
{
    const mica__spec *q = &in[0]->spec, *k = &in[1]->spec;
    return (vjp_attention_sizes){q->shape[0], q->shape[1], k->shape[1], q->shape[2], k->shape[2]};
}

/* n elements of a row from *at on, in the shape of like. */
static mica_array *vjp_attention_cut(mica_scope *s, mica_array *row, int64_t *at, const mica_array *like)
{
    const int64_t n = mica__spec_size(&like->spec), start = *at;
    *at += n;
    return vjp_reshape_like(s, mica_slice(s, row, &start, &(int64_t){start + n}, NULL), like);
}

MICA__VJP_RULE(attention)
{
    const mica__attr_attention *attr = y->attr;
    const vjp_attention_sizes z = vjp_attention_look(y->in);
    if (mica__spec_size(&y->spec) == 0 || mica__spec_size(&y->in[1]->spec) == 0) return MICA_OK;
    mica_array *in[5] = {y->in[0], y->in[1], y->in[2], attr->has_mask ? y->in[3] : ct, ct};
    mica_array *row = mica__build(s, MICA__OP_ATTENTION_GRAD, in, y->n_in + 1, attr, sizeof *attr);
    int64_t at = 0;
    for (int i = 0; i < 3; i++) grads[i] = vjp_attention_cut(s, row, &at, y->in[i]);
    /* built in vain if nobody asks, but then never computed */
    if (attr->has_mask && mica__is_float(vjp_dtype(y->in[3])))
        grads[3] = vjp_narrow(s, vjp_attention_compose(s, attr, y->in, ct, &z).ds, vjp_dtype(y->in[3]));
    return MICA_OK;
}

/* Gradients of gradients are rare enough for the long way: the three results written
 * out, and back through that. The inputs are taken "after ct" to have nodes of their
 * own: one array may be several of them. */
MICA__VJP_RULE(attention_grad)
{
    const mica__attr_attention *attr = y->attr;
    const vjp_attention_sizes z = vjp_attention_look(y->in);
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
