/* The decoder in double precision as plain loops, written from the papers and not from decoder.c.
 * Each stage is computed from the engine's result of the stage before. So a difference names its
 * stage, and the rounding of activations to 8 bits does not turn a difference in the last bit into
 * a full quantisation step. */
#ifndef MICA_TEST_LM_REFERENCE_H
#define MICA_TEST_LM_REFERENCE_H

#include "lm_tiny.h"

/* ---------------------------------------------------------- traced values -- */

typedef struct traced_value {
    char name[32];
    int layer;
    int64_t n;
    float *value;
} traced_value;

typedef struct traced {
    traced_value seen[512];
    int n;
} traced;

static UNUSED void trace_take(const char *name, int layer, mica_array *value, void *user)
{
    traced *t = user;
    if (t->n == (int)COUNT(t->seen)) abort();
    traced_value *v = &t->seen[t->n++];
    snprintf(v->name, sizeof v->name, "%s", name);
    v->layer = layer;
    v->n = mica_array_size(value);
    v->value = malloc((size_t)v->n * sizeof(float) + 1);
    if (!v->value) abort();
    EXPECT_OK(mica_copy_out(value, v->value, (size_t)v->n * sizeof(float)));
}

static UNUSED void trace_clear(traced *t)
{
    for (int i = 0; i < t->n; i++) free(t->seen[i].value);
    t->n = 0;
}

static inline const float *trace_find_value(const traced *t, const char *name, int layer, int64_t n)
{
    static const float none[1 << 16];
    for (int i = 0; i < t->n; i++)
        if (t->seen[i].layer == layer && strcmp(t->seen[i].name, name) == 0) {
            EXPECT_MSG(t->seen[i].n == n, "%s of layer %d has %lld values, not %lld", name, layer,
                       (long long)t->seen[i].n, (long long)n);
            return t->seen[i].n == n ? t->seen[i].value : none;
        }
    EXPECT_MSG(false, "%s of layer %d was not shown", name, layer);
    return none;
}

/* ------------------------------------------------------------- reference --- */

typedef struct reference {
    const tiny_model *m;
    mica_act act;
    mica_lm_kv kv;
    int64_t past;               /* tokens before this step                                     */
    double *k[8], *v[8];        /* per layer: (context, kv_heads, dim), with the cache's rounding */
} reference;

static inline double *ref_new(int64_t n)
{
    double *p = calloc((size_t)n + 1, sizeof *p);
    if (!p) abort();
    return p;
}

static UNUSED void reference_open(reference *r, const tiny_model *m, mica_act act, mica_lm_kv kv)
{
    *r = (reference){.m = m, .act = act, .kv = kv};
    for (int i = 0; i < m->t.layers; i++) {
        r->k[i] = ref_new((int64_t)m->t.context * m->t.kv_heads * m->t.dim);
        r->v[i] = ref_new((int64_t)m->t.context * m->t.kv_heads * m->t.dim);
    }
}

static UNUSED void reference_close(reference *r)
{
    for (int i = 0; i < r->m->t.layers; i++) {
        free(r->k[i]);
        free(r->v[i]);
    }
}

/* got equals want up to rounding; frees want. The largest measured difference is 1.4e-6
 * of the largest element (AVX2; 3.4e-6 of an element). */
static inline void ref_check(const char *name, int layer, const float *got, double *want, int64_t n)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!test_close((double)got[i], want[i], 2e-6, 3e-6 * largest)) {
            EXPECT_MSG(false, "%s of layer %d: element %lld is %.9g, not %.9g", name, layer, (long long)i,
                       (double)got[i], want[i]);
            break;
        }
    free(want);
}

/* Activations as BitNet quantises them: 8 bits, one scale for each `group` values. */
static inline void ref_round(const float *x, int64_t n, int64_t group, double *out)
{
    for (int64_t from = 0; from < n; from += group) {
        const int64_t to = from + group < n ? from + group : n;
        float largest = 1e-5f;
        for (int64_t i = from; i < to; i++) largest = fmaxf(largest, fabsf(x[i]));
        const float scale = 127.0f / largest;
        for (int64_t i = from; i < to; i++) out[i] = fmin(fmax((double)rintf(x[i] * scale), -128), 127) / (double)scale;
    }
}

static inline double *ref_linear(const tiny_tensor *w, const tiny_tensor *bias, const float *x, int64_t rows,
                                 mica_act act)
{
    double *y = ref_new(rows * w->rows), *line = ref_new(w->cols);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < w->cols; c++) line[c] = (double)x[r * w->cols + c];
        if (act != MICA_ACT_NONE) ref_round(x + r * w->cols, w->cols, act == MICA_ACT_TOKEN ? w->cols : 256, line);
        for (int64_t o = 0; o < w->rows; o++) {
            double sum = bias ? (double)bias->value[o] : 0;
            for (int64_t c = 0; c < w->cols; c++) sum += line[c] * (double)w->value[o * w->cols + c];
            y[r * w->rows + o] = sum;
        }
    }
    free(line);
    return y;
}

static inline double *ref_norm(const tiny_tensor *w, const double *x, int64_t rows)
{
    double *y = ref_new(rows * w->cols);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t c = 0; c < w->cols; c++) sum += x[r * w->cols + c] * x[r * w->cols + c];
        const double scale = 1 / sqrt(sum / (double)w->cols + (double)1e-5f);
        for (int64_t c = 0; c < w->cols; c++) y[r * w->cols + c] = x[r * w->cols + c] * scale * (double)w->value[c];
    }
    return y;
}

static inline double *ref_widen(const float *x, int64_t n)
{
    double *y = ref_new(n);
    for (int64_t i = 0; i < n; i++) y[i] = (double)x[i];
    return y;
}

/* The angle of a pair at position 1, and the factor of the rotated values. */
static inline double ref_frequency(const tiny *t, int64_t pair, double *magnitude)
{
    const double pi = acos(-1), dims = t->rope_dims ? t->rope_dims : t->dim, trained = t->context / 4.0, stretch = 4;
    const double f = pow(t->theta, -2.0 * (double)pair / dims);
    *magnitude = 1;
    if (!t->scaling) return f;
    if (strcmp(t->scaling, "linear") == 0) return f / stretch;
    if (strcmp(t->scaling, "llama3") == 0) {
        const double wave = 2 * pi / f;
        if (wave < trained / 4) return f;
        if (wave > trained / 1) return f / stretch;
        const double smooth = (trained / wave - 1) / (4 - 1);
        return (1 - smooth) * f / stretch + smooth * f;
    }
    *magnitude = 0.1 * log(stretch) + 1;
    const double low = floor(dims * log(trained / (32 * 2 * pi)) / (2 * log(t->theta)));
    const double high = ceil(dims * log(trained / (1 * 2 * pi)) / (2 * log(t->theta)));
    const double from = low < 0 ? 0 : low, to = high > dims - 1 ? dims - 1 : high;
    double ramp = ((double)pair - from) / (to == from ? 0.001 : to - from);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return f / stretch * ramp + f * (1 - ramp);
}

/* x (time, heads, dim) to (heads, time, dim), rotated. */
static inline double *ref_rotate(const reference *r, const double *x, int64_t time, int64_t heads)
{
    const tiny *t = &r->m->t;
    const int64_t dim = t->dim, pairs = (t->rope_dims ? t->rope_dims : t->dim) / 2;
    double *y = ref_new(time * heads * dim);
    for (int64_t i = 0; i < time; i++)
        for (int64_t h = 0; h < heads; h++) {
            const double *from = x + (i * heads + h) * dim;
            double *to = y + (h * time + i) * dim;
            for (int64_t d = 0; d < dim; d++) to[d] = from[d];
            for (int64_t p = 0; p < pairs; p++) {
                const int64_t a = t->pairs ? 2 * p : p, b = t->pairs ? 2 * p + 1 : p + pairs;
                double magnitude;
                const double angle = (double)(r->past + i) * ref_frequency(t, p, &magnitude);
                to[a] = magnitude * (from[a] * cos(angle) - from[b] * sin(angle));
                to[b] = magnitude * (from[b] * cos(angle) + from[a] * sin(angle));
            }
        }
    return y;
}

/* Stores keys or values in the cache, rounded as the cache does. from has (heads, time,
 * dim), or (time, heads, dim). */
static inline void ref_remember(const reference *r, double *cache, const float *from, int64_t time, bool heads_first)
{
    const int64_t heads = r->m->t.kv_heads, dim = r->m->t.dim;
    for (int64_t i = 0; i < time; i++)
        for (int64_t h = 0; h < heads; h++) {
            const float *x = from + (heads_first ? h * time + i : i * heads + h) * dim;
            double *to = cache + ((r->past + i) * heads + h) * dim;
            float largest = 1e-20f;
            for (int64_t d = 0; d < dim; d++) largest = fmaxf(largest, fabsf(x[d]));
            const float scale = largest / 127;
            for (int64_t d = 0; d < dim; d++) {
                to[d] = (double)x[d];
                if (r->kv == MICA_LM_KV_F16) to[d] = (double)mica_f16_to_f32(mica_f16_from_f32(x[d]));
                if (r->kv == MICA_LM_KV_Q8) to[d] = (double)rintf(x[d] / scale) * (double)scale;
            }
        }
}

/* q (heads, time, dim); the result is (time, heads, dim). */
static inline double *ref_attention(const reference *r, int layer, const float *q, int64_t time)
{
    const tiny *t = &r->m->t;
    const int64_t dim = t->dim;
    double *y = ref_new(time * t->heads * dim), *p = ref_new(t->context);
    for (int64_t h = 0; h < t->heads; h++)
        for (int64_t i = 0; i < time; i++) {
            const int64_t keys = r->past + i + 1, group = h / (t->heads / t->kv_heads);
            double largest = -INFINITY, sum = 0;
            for (int64_t j = 0; j < keys; j++) {
                p[j] = 0;
                for (int64_t d = 0; d < dim; d++)
                    p[j] += (double)q[(h * time + i) * dim + d] * r->k[layer][(j * t->kv_heads + group) * dim + d];
                p[j] /= sqrt((double)dim);
                largest = fmax(largest, p[j]);
            }
            for (int64_t j = 0; j < keys; j++) sum += p[j] = exp(p[j] - largest);
            for (int64_t j = 0; j < keys; j++)
                for (int64_t d = 0; d < dim; d++)
                    y[(i * t->heads + h) * dim + d] += p[j] / sum * r->v[layer][(j * t->kv_heads + group) * dim + d];
        }
    free(p);
    return y;
}

static inline void ref_check_heads(reference *r, const traced *seen, int layer, const char *name, int64_t heads,
                                   int64_t time)
{
    const tiny_model *m = r->m;
    char rotated[16], part[16];
    snprintf(rotated, sizeof rotated, "%s_rope", name);
    snprintf(part, sizeof part, "attn_%s_norm", name);
    const int64_t n = time * heads * m->t.dim;
    double *x = ref_widen(trace_find_value(seen, name, layer, n), n);
    const tiny_tensor *norm = tiny_find(m, "blk.%d.%s", layer, part);
    if (norm) {
        double *y = ref_norm(norm, x, time * heads);
        free(x);
        x = y;
    }
    ref_check(rotated, layer, trace_find_value(seen, rotated, layer, n), ref_rotate(r, x, time, heads), n);
    free(x);
}

static inline void ref_check_attention(reference *r, const traced *seen, int layer, const float *x, int64_t time)
{
    const tiny *t = &r->m->t;
    const int64_t q = t->heads * t->dim, kv = t->kv_heads * t->dim;
    const struct {
        const char *name, *tensor;
        int64_t width;
    } products[] = {{"q", "attn_q", q}, {"k", "attn_k", kv}, {"v", "attn_v", kv}};
    for (int i = 0; i < 3; i++) {
        const tiny_tensor *w = tiny_find(r->m, "blk.%d.%s", layer, products[i].tensor);
        const tiny_tensor *bias = tiny_find(r->m, "blk.%d.%s.bias", layer, products[i].tensor);
        const int64_t n = time * products[i].width;
        ref_check(products[i].name, layer, trace_find_value(seen, products[i].name, layer, n),
                  ref_linear(w, bias, x, time, r->act), n);
    }
    ref_check_heads(r, seen, layer, "q", t->heads, time);
    ref_check_heads(r, seen, layer, "k", t->kv_heads, time);
    ref_remember(r, r->k[layer], trace_find_value(seen, "k_rope", layer, time * kv), time, true);
    ref_remember(r, r->v[layer], trace_find_value(seen, "v", layer, time * kv), time, false);
    const float *rotated = trace_find_value(seen, "q_rope", layer, time * q);
    const float *a = trace_find_value(seen, "attn", layer, time * q);
    ref_check("attn", layer, a, ref_attention(r, layer, rotated, time), time * q);
    const tiny_tensor *sub = tiny_find(r->m, "blk.%d.attn_sub_norm", layer);
    if (sub) {
        double *wide = ref_widen(a, time * q);
        a = trace_find_value(seen, "attn_sub_norm", layer, time * q);
        ref_check("attn_sub_norm", layer, a, ref_norm(sub, wide, time), time * q);
        free(wide);
    }
    ref_check("attn_out", layer, trace_find_value(seen, "attn_out", layer, time * t->hidden),
              ref_linear(tiny_find(r->m, "blk.%d.attn_output", layer), NULL, a, time, r->act), time * t->hidden);
}

static inline void ref_check_ffn(reference *r, const traced *seen, int layer, const float *x, int64_t time)
{
    const tiny *t = &r->m->t;
    const int64_t n = time * t->ffn;
    const float *gate = trace_find_value(seen, "gate", layer, n), *up = trace_find_value(seen, "up", layer, n);
    ref_check("gate", layer, gate, ref_linear(tiny_find(r->m, "blk.%d.ffn_gate", layer), NULL, x, time, r->act), n);
    ref_check("up", layer, up, ref_linear(tiny_find(r->m, "blk.%d.ffn_up", layer), NULL, x, time, r->act), n);
    double *m = ref_new(n);
    for (int64_t i = 0; i < n; i++) {
        const double g = (double)gate[i];
        m[i] = (double)up[i] * (t->relu2 ? (g > 0 ? g * g : 0) : g / (1 + exp(-g)));
    }
    const tiny_tensor *sub = tiny_find(r->m, "blk.%d.ffn_sub_norm", layer);
    float *narrow = malloc((size_t)n * sizeof *narrow);
    if (!narrow) abort();
    for (int64_t i = 0; i < n; i++) narrow[i] = (float)m[i];
    const float *into = narrow;
    if (sub) {
        into = trace_find_value(seen, "ffn_sub_norm", layer, n);
        ref_check("ffn_sub_norm", layer, into, ref_norm(sub, m, time), n);
    }
    ref_check("down", layer, trace_find_value(seen, "down", layer, time * t->hidden),
              ref_linear(tiny_find(r->m, "blk.%d.ffn_down", layer), NULL, into, time, r->act), time * t->hidden);
    free(narrow);
    free(m);
}

/* Checks every stage of one traced step of `time` tokens. */
static UNUSED void reference_check(reference *r, const traced *seen, const int32_t *tokens, int64_t time)
{
    const tiny *t = &r->m->t;
    const int64_t n = time * t->hidden;
    const tiny_tensor *embed = tiny_find(r->m, "token_embd"), *head = tiny_find(r->m, "output");
    double *h = ref_new(n);
    for (int64_t i = 0; i < time; i++)
        for (int64_t d = 0; d < t->hidden; d++) h[i * t->hidden + d] = (double)embed->value[tokens[i] * t->hidden + d];
    ref_check("embed", -1, trace_find_value(seen, "embed", -1, n), h, n);
    h = ref_widen(trace_find_value(seen, "embed", -1, n), n);
    for (int layer = 0; layer < t->layers; layer++) {
        const float *x = trace_find_value(seen, "attn_norm", layer, n);
        ref_check("attn_norm", layer, x, ref_norm(tiny_find(r->m, "blk.%d.attn_norm", layer), h, time), n);
        ref_check_attention(r, seen, layer, x, time);
        const float *out = trace_find_value(seen, "attn_out", layer, n);
        for (int64_t i = 0; i < n; i++) h[i] += (double)out[i];
        x = trace_find_value(seen, "ffn_norm", layer, n);
        ref_check("ffn_norm", layer, x, ref_norm(tiny_find(r->m, "blk.%d.ffn_norm", layer), h, time), n);
        ref_check_ffn(r, seen, layer, x, time);
        out = trace_find_value(seen, "down", layer, n);
        for (int64_t i = 0; i < n; i++) h[i] += (double)out[i];
        const float *end = trace_find_value(seen, "layer", layer, n);
        ref_check("layer", layer, end, h, n);
        h = ref_widen(end, n);
    }
    const float *last = trace_find_value(seen, "norm", -1, t->hidden);
    ref_check("norm", -1, last, ref_norm(tiny_find(r->m, "output_norm"), h + n - t->hidden, 1), t->hidden);
    ref_check("logits", -1, trace_find_value(seen, "logits", -1, t->vocab),
              ref_linear(head ? head : embed, NULL, last, 1, MICA_ACT_NONE), t->vocab);
    free(h);
    r->past += time;
}

#endif
