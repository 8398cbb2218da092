/* The graph of one inference step: nn/decoder.h has the layers; this file adds packed
 * weights, rope, the KV cache and the output.
 *
 * Everything between two matrices is f32: BitNet's sub-norms read products of squared
 * activations, which f16 cannot represent. Positions and the number of keys are data, so
 * one plan serves every position. */
#include <math.h>
#include <stdlib.h>

#include "lm.h"

typedef struct lm_builder {
    const mica_lm *lm;
    mica_scope *s;
    const lm_step *step;
    const lm_cache *cache;      /* one for each layer */
    lm_watch *watch;
    int64_t batch, time;
    mica_array *positions;      /* i32 (time) */
} lm_builder;

/* Records an array for a trace, and returns it. */
static mica_array *show(const lm_builder *b, const char *name, int64_t layer, mica_array *value)
{
    lm_watch *w = b->watch;
    if (!w || !value) return value;
    if (w->n == w->cap) {
        const size_t cap = w->cap ? 2 * w->cap : 256;
        lm_seen *grown = realloc(w->seen, cap * sizeof *grown);
        if (!grown) return mica_scope_fail(b->s, MICA_ERR_MEMORY, "trace: out of memory: %zu names", cap);
        w->seen = grown;
        w->cap = cap;
    }
    w->seen[w->n++] = (lm_seen){name, (int)layer, value};
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

/* (batch, time, heads * dim) to (batch, heads, time, dim), each head normalised if the
 * model has a weight for that. */
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

/* Writes new values (batch, kv_heads, time, dim) into the cache and returns it. A cache
 * with scales stores 8 bits per value; *all_scales then are its scales, the new ones included. */
static mica_array *append_to_cache(const lm_builder *b, mica_array *cache, mica_array *scales, mica_array *x,
                                   mica_array **all_scales)
{
    mica_scope *s = b->s;
    mica_array *scale = NULL;
    if (scales && mica_rows_to_i8(s, x, &x, &scale) != MICA_OK) return NULL;
    if (scales) *all_scales = mica_update(s, scales, scale, b->step->start, 2);
    return mica_update(s, cache, x, b->step->start, 2);
}

static mica_array *lm_attend(void *user, int64_t layer, mica_array *q, mica_array *k, mica_array *v)
{
    const lm_builder *b = user;
    const lm_config *c = &b->lm->config;
    const lm_layer *w = &b->lm->layers[layer];
    const lm_cache *cache = &b->cache[layer];
    mica_scope *s = b->s;
    q = show(b, "q_rope", layer, rotate(b, lm_split_heads(b, q, c->heads, w->vector[DECODER_Q_NORM])));
    k = show(b, "k_rope", layer, rotate(b, lm_split_heads(b, k, c->kv_heads, w->vector[DECODER_K_NORM])));
    v = lm_split_heads(b, v, c->kv_heads, NULL);

    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = true;
    mica_array *keys = append_to_cache(b, cache->k, cache->k_scale, k, &o.k_scale);
    mica_array *values = append_to_cache(b, cache->v, cache->v_scale, v, &o.v_scale);
    mica_array *a = mica_attention_cached(s, q, keys, values, b->step->length, &o);
    a = mica_reshape(s, mica_permute(s, a, (int[]){0, 2, 1, 3}), 3,
                     (int64_t[]){b->batch, b->time, c->heads * c->head_dim});
    return show(b, "attn", layer, a);
}

/* ---------------------------------------------------------------- layers --- */

static mica_array *lm_norm_weight(void *user, int64_t layer, decoder_tensor t)
{
    return ((lm_builder *)user)->lm->layers[layer].vector[t];
}

static mica_array *lm_multiply(void *user, int64_t layer, decoder_tensor t, mica_array *x)
{
    const lm_builder *b = user;
    return linear(b, x, &b->lm->layers[layer].matrix[t]);
}

static mica_array *lm_watch_tensor(void *user, int64_t layer, decoder_tensor t, mica_array *x)
{
    return show(user, mica__decoder_tensors[t].trace, layer, x);
}

static mica_array *lm_watch_layer(void *user, int64_t layer, mica_array *x) { return show(user, "layer", layer, x); }

static mica_array *run_layers(lm_builder *b, mica_array *h)
{
    const lm_config *c = &b->lm->config;
    const decoder_graph graph = {.s = b->s,
                                 .user = b,
                                 .layers = c->layers,
                                 .activation = c->activation,
                                 .norm_eps = c->eps,
                                 .norm_weight = lm_norm_weight,
                                 .linear = lm_multiply,
                                 .attend = lm_attend,
                                 .watch = lm_watch_tensor,
                                 .watch_layer = lm_watch_layer};
    return mica__decoder_layers(&graph, h);
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
    lm_builder b = {
        .lm = lm, .s = s, .step = step, .cache = cache, .watch = watch, .batch = shape[0], .time = shape[1]};
    b.positions = mica_add(s, mica_arange(s, MICA_I32, 0, (double)b.time, 1), step->start);
    mica_array *h = show(&b, "embed", -1, mica_quant_rows(s, &lm->embed.w, step->tokens));
    h = run_layers(&b, h);
    return finish(&b, h, want);
}
