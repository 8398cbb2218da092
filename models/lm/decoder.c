/* The decoder: one graph for every architecture, its parts switched by the row of
 * arch.def and by which tensors the model has.
 *
 * Everything between two matrices is f32: BitNet's sub-norms see products of
 * squared activations, which f16 cannot hold. Positions and the number of keys are
 * data, so a plan serves every position. */
#include <math.h>
#include <stdlib.h>

#include "lm.h"

typedef struct lm_builder {
    const mica_lm *lm;
    mica_scope *s;
    const lm_step *step;
    lm_watch *watch;
    int64_t batch, time;
    mica_array *positions;      /* i32 (time) */
} lm_builder;

/* Notes an array for who watches, and returns it. */
static mica_array *show(const lm_builder *b, const char *name, int layer, mica_array *value)
{
    lm_watch *w = b->watch;
    if (!w || !value) return value;
    if (w->n == w->cap) {
        const size_t cap = w->cap ? 2 * w->cap : 256;
        lm_seen *grown = realloc(w->seen, cap * sizeof *grown);
        if (!grown) return mica_scope_fail(b->s, MICA_ERR_MEMORY, "trace: no memory for %zu names", cap);
        w->seen = grown;
        w->cap = cap;
    }
    w->seen[w->n++] = (lm_seen){name, layer, value};
    return value;
}

static mica_array *linear(const lm_builder *b, mica_array *x, const lm_linear *w)
{
    mica_array *y = mica_quant_matmul(b->s, x, &w->w, w->act);
    if (w->scale) y = mica_mul(b->s, y, w->scale);
    return w->bias ? mica_add(b->s, y, w->bias) : y;
}

static mica_array *norm(const lm_builder *b, mica_array *x, mica_array *weight)
{
    return weight ? mica_rms_norm(b->s, x, weight, b->lm->config.eps) : x;
}

/* ------------------------------------------------------------- attention --- */

/* (batch, time, heads * dim) to (batch, heads, time, dim), with a norm of each head
 * on the way where the model has one. */
static mica_array *lm_split_heads(const lm_builder *b, mica_array *x, int64_t heads, mica_array *weight)
{
    const int64_t dim = b->lm->config.head_dim;
    x = mica_reshape(b->s, x, 4, (int64_t[]){b->batch, b->time, heads, dim});
    return mica_permute(b->s, norm(b, x, weight), (int[]){0, 2, 1, 3});
}

static mica_array *rotate(const lm_builder *b, mica_array *x)
{
    const lm_config *c = &b->lm->config;
    mica_rope_options o;
    mica_rope_options_init(&o);
    o.dims = c->rope_dims;
    o.base = c->rope_base;
    o.interleaved = c->arch->rope == LM_ROPE_PAIRS;
    o.factors = b->lm->rope_factors;
    o.magnitude = b->lm->rope_magnitude;
    return mica_rope(b->s, x, b->positions, &o);
}

/* The cache after new values (batch, kv_heads, time, dim) went in. With scales it
 * holds 8 bits a value; *all_scales are those it has then. */
static mica_array *remember(const lm_builder *b, mica_array *cache, mica_array *scales, mica_array *x,
                            mica_array **all_scales)
{
    mica_scope *s = b->s;
    mica_array *scale = NULL;
    if (scales && mica_rows_to_i8(s, x, &x, &scale) != MICA_OK) return NULL;
    if (scales) *all_scales = mica_update(s, scales, scale, b->step->start, 2);
    return mica_update(s, cache, x, b->step->start, 2);
}

static mica_array *lm_attend(const lm_builder *b, const lm_layer *w, const lm_cache *cache, int layer, mica_array *x)
{
    const lm_config *c = &b->lm->config;
    mica_scope *s = b->s;
    mica_array *q = show(b, "q", layer, linear(b, x, &w->q));
    mica_array *k = show(b, "k", layer, linear(b, x, &w->k));
    mica_array *v = show(b, "v", layer, linear(b, x, &w->v));
    q = show(b, "q_rope", layer, rotate(b, lm_split_heads(b, q, c->heads, w->q_norm)));
    k = show(b, "k_rope", layer, rotate(b, lm_split_heads(b, k, c->kv_heads, w->k_norm)));
    v = lm_split_heads(b, v, c->kv_heads, NULL);

    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = true;
    mica_array *keys = remember(b, cache->k, cache->k_scale, k, &o.k_scale);
    mica_array *values = remember(b, cache->v, cache->v_scale, v, &o.v_scale);
    mica_array *a = mica_attention_cached(s, q, keys, values, b->step->length, &o);
    a = mica_reshape(s, mica_permute(s, a, (int[]){0, 2, 1, 3}), 3,
                     (int64_t[]){b->batch, b->time, c->heads * c->head_dim});
    a = show(b, "attn", layer, a);
    if (w->attn_sub_norm) a = show(b, "attn_sub_norm", layer, norm(b, a, w->attn_sub_norm));
    return show(b, "attn_out", layer, linear(b, a, &w->o));
}

/* ---------------------------------------------------------- feed forward --- */

static mica_array *lm_feed_forward(const lm_builder *b, const lm_layer *w, int layer, mica_array *x)
{
    mica_scope *s = b->s;
    mica_array *gate = show(b, "gate", layer, linear(b, x, &w->gate));
    mica_array *up = show(b, "up", layer, linear(b, x, &w->up));
    gate = b->lm->config.activation == LM_RELU2 ? mica_relu2(s, gate) : mica_silu(s, gate);
    mica_array *m = mica_mul(s, gate, up);
    if (w->ffn_sub_norm) m = show(b, "ffn_sub_norm", layer, norm(b, m, w->ffn_sub_norm));
    return show(b, "down", layer, linear(b, m, &w->down));
}

/* ------------------------------------------------------------------ step --- */

static mica_array *finish(const lm_builder *b, mica_array *h, lm_want want)
{
    mica_scope *s = b->s;
    const lm_config *c = &b->lm->config;
    if (want != LM_WANT_LOSSES) h = mica_take(s, h, b->step->row, 1); /* (batch, 1, hidden) */
    if (want == LM_WANT_NOTHING) return h;
    h = show(b, "norm", -1, norm(b, h, b->lm->norm));
    mica_array *logits = linear(b, h, &b->lm->head);
    if (want == LM_WANT_LOSSES) return mica_cross_entropy(s, show(b, "logits", -1, logits), b->step->labels);
    return show(b, "logits", -1, mica_reshape(s, logits, 2, (int64_t[]){b->batch, c->vocab}));
}

mica_array *mica__lm_build_step(const mica_lm *lm, const lm_cache *cache, mica_scope *s, const lm_step *step,
                                lm_want want, lm_watch *watch)
{
    const int64_t *shape = mica_array_shape(step->tokens);
    lm_builder b = {.lm = lm, .s = s, .step = step, .watch = watch, .batch = shape[0], .time = shape[1]};
    b.positions = mica_add(s, mica_arange(s, MICA_I32, 0, (double)b.time, 1), step->start);
    mica_array *h = show(&b, "embed", -1, mica_quant_rows(s, &lm->embed.w, step->tokens));
    for (int i = 0; i < (int)lm->config.layers; i++) {
        const lm_layer *w = &lm->layers[i];
        mica_array *x = show(&b, "attn_norm", i, norm(&b, h, w->attn_norm));
        h = mica_add(s, h, lm_attend(&b, w, &cache[i], i, x));
        x = show(&b, "ffn_norm", i, norm(&b, h, w->ffn_norm));
        h = show(&b, "layer", i, mica_add(s, h, lm_feed_forward(&b, w, i, x)));
    }
    return finish(&b, h, want);
}
