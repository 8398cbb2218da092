/* Sessions: the KV cache, and running the step over tokens.
 *
 * Tokens are processed in pieces whose sizes are powers of two, so that few plans serve every length. A remainder that
 * nearly fills the next power of two is padded to it. The padding writes past the end of the tokens, but these entries
 * are overwritten before they are read. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lm.h"

enum { MOST_ROWS = 512 };                  /* tokens in one piece, over all texts of the batch       */
enum { MOST_LOGITS = 1 << 24 };            /* logits of one piece, if every row has them: 64 MB      */

typedef struct lm_traced {
    mica_lm_session *session;
    lm_want want;
    mica_function *function;
} lm_traced;

struct mica_lm_session {
    mica_lm *lm;
    mica_scope *scope;          /* owns the cache                                              */
    lm_cache *cache;            /* one per layer                                               */
    int64_t batch, context, position;
    uint64_t nbytes;
    lm_traced traced[LM_WANT_COUNT];
    mica_array *logits;         /* kept: the array returned to the caller last                 */
    int32_t *ids;               /* 2 * MOST_ROWS: tokens and labels of a piece                 */
    mica_lm_trace_fn trace;
    void *trace_user;
};

void mica_lm_session_options_init(mica_lm_session_options *options)
{
    if (options) *options = (mica_lm_session_options){.struct_size = sizeof *options, .batch = 1};
}

/* ----------------------------------------------------------------- cache --- */

static const struct {
    mica_dtype dtype;
    bool scaled;
} kv_kinds[] = {
    [MICA_LM_KV_F16] = {MICA_F16, false}, [MICA_LM_KV_F32] = {MICA_F32, false}, [MICA_LM_KV_Q8] = {MICA_I8, true}};

static mica_status check_options(const mica_lm *lm, const mica_lm_session_options *given, mica_lm_session_options *o)
{
    mica_lm_session_options_init(o);
    LM_TRY(mica_struct_read("session: mica_lm_session_options", o, sizeof *o, given));
    if (o->context == 0) o->context = lm->config.context;
    if (o->context < 1 || o->context > lm->config.context)
        return mica_fail(MICA_ERR_ARGUMENT,
                         "session: a context of %" PRId64 " tokens is out of range (1 to %" PRId64 ")", o->context,
                         lm->config.context);
    if (o->batch < 1 || o->batch > MOST_ROWS)
        return mica_fail(MICA_ERR_ARGUMENT, "session: a batch of %" PRId64 " is out of range (1 to %d)", o->batch,
                         MOST_ROWS);
    if ((unsigned)o->kv >= sizeof kv_kinds / sizeof kv_kinds[0])
        return mica_fail(MICA_ERR_ARGUMENT, "session: kv is %d, which is not a mica_lm_kv", (int)o->kv);
    return MICA_OK;
}

/* At most 2^12 layers, 2^32 key values per token, 2^31 tokens and 2^9 texts were accepted; the product may exceed 64
 * bits, so it is computed in double first. */
static uint64_t cache_bytes(const lm_config *c, const mica_lm_session_options *o)
{
    const uint64_t one =
        (uint64_t)c->head_dim * mica_dtype_size(kv_kinds[o->kv].dtype) + (kv_kinds[o->kv].scaled ? sizeof(float) : 0);
    const double all =
        2.0 * (double)c->layers * (double)c->kv_heads * (double)o->context * (double)o->batch * (double)one;
    if (all > 0x1p62) return 0;
    return 2 * (uint64_t)c->layers * (uint64_t)c->kv_heads * (uint64_t)o->context * (uint64_t)o->batch * one;
}

uint64_t mica_lm_session_nbytes(const mica_lm *lm, const mica_lm_session_options *options)
{
    mica_lm_session_options o;
    if (!lm || check_options(lm, options, &o) != MICA_OK) return 0;
    return cache_bytes(&lm->config, &o);
}

static mica_status make_cache(mica_lm_session *p, const mica_lm_session_options *o)
{
    const lm_config *c = &p->lm->config;
    const int64_t shape[4] = {o->batch, c->kv_heads, o->context, c->head_dim};
    for (int64_t i = 0; i < c->layers; i++) {
        lm_cache *cache = &p->cache[i];
        cache->k = mica_state(p->scope, kv_kinds[o->kv].dtype, 4, shape);
        cache->v = mica_state(p->scope, kv_kinds[o->kv].dtype, 4, shape);
        if (!kv_kinds[o->kv].scaled) continue;
        cache->k_scale = mica_state(p->scope, MICA_F32, 3, shape);
        cache->v_scale = mica_state(p->scope, MICA_F32, 3, shape);
    }
    return mica_eval(p->scope, NULL, 0);
}

/* ------------------------------------------------------------------ open --- */

/* Refuses a session if weights and the caches of all sessions would exceed the limit. */
static mica_status reserve_bytes(mica_lm *lm, uint64_t nbytes)
{
    uint64_t sessions = atomic_load(&lm->session_bytes);
    do {
        const uint64_t want = lm->weight_bytes + sessions + nbytes;
        if (lm->memory_limit && want > lm->memory_limit)
            return mica_fail(MICA_ERR_MEMORY,
                             "session: weights and caches would be %" PRIu64 " bytes, the limit is %" PRIu64, want,
                             lm->memory_limit);
    } while (!atomic_compare_exchange_weak(&lm->session_bytes, &sessions, sessions + nbytes));
    return MICA_OK;
}

static mica_status step_trace(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                              void *user)
{
    const lm_traced *t = user;
    const lm_step step = {.tokens = in[0], .start = in[1], .length = in[2], .row = in[3], .labels = in[3]};
    (void)n_in, (void)n_out;
    out[0] = mica__lm_build_step(t->session->lm, t->session->cache, s, &step, t->want, NULL);
    return mica_scope_status(s);
}

static mica_status open_parts(mica_lm_session *p, const mica_lm_session_options *o)
{
    p->cache = calloc((size_t)p->lm->config.layers, sizeof *p->cache);
    p->ids = calloc(2 * MOST_ROWS, sizeof *p->ids);
    p->scope = mica_scope_begin(p->lm->engine);
    if (!p->cache || !p->ids || !p->scope) return mica_fail(MICA_ERR_MEMORY, "session: out of memory");
    for (int i = 0; i < LM_WANT_COUNT; i++) {
        p->traced[i] = (lm_traced){.session = p, .want = (lm_want)i};
        LM_TRY(mica_compile(p->lm->engine, step_trace, &p->traced[i], &p->traced[i].function));
    }
    return make_cache(p, o);
}

/* ---------------------------------------------------------------- ahead ----- */

/* Plans a prompt piece of `time` tokens and compiles its kernels; nothing runs. */
static mica_status plan_piece(mica_lm_session *p, int64_t time, lm_want want)
{
    const int64_t shape[2] = {p->batch, time}, one = 1;
    const int32_t zero = 0, length = (int32_t)time;
    mica_scope *s = mica_scope_begin(p->lm->engine);
    if (!s) return mica_fail(MICA_ERR_MEMORY, "model: out of memory: a scope");
    memset(p->ids, 0, 2 * MOST_ROWS * sizeof *p->ids);
    const lm_step step = {.tokens = mica_from_data(s, MICA_I32, 2, shape, p->ids),
                          .start = mica_from_data(s, MICA_I32, 1, &one, &zero),
                          .length = mica_from_data(s, MICA_I32, 1, &one, &length),
                          .row = mica_from_data(s, MICA_I32, 1, &one, &zero)};
    mica_status status = mica_scope_status(s);
    mica_array *out = status == MICA_OK ? mica__lm_build_step(p->lm, p->cache, s, &step, want, NULL) : NULL;
    if (status == MICA_OK) status = mica_scope_status(s);
    if (status == MICA_OK) status = mica_prepare(s, &out, 1);
    mica_scope_end(s);
    return status;
}

/* The largest power of two that is at most n, and at least 1. */
static int64_t power_of_two_at_most(int64_t n)
{
    int64_t power = 1;
    while (2 * power <= n) power *= 2;
    return power;
}

static mica_status compile_progress(const mica_lm_options *options, uint64_t done, uint64_t total)
{
    if (!options || !options->progress || options->progress(done, total, options->user)) return MICA_OK;
    return mica_fail(MICA_ERR_STATE, "model: stopped");
}

/* Plans one piece of each size that prompts are cut into. */
static mica_status plan_pieces(mica_lm_session *p, const mica_lm_options *options)
{
    const int64_t rows = MOST_ROWS / p->batch, most = power_of_two_at_most(p->context < rows ? p->context : rows);
    uint64_t done = 0, total = 1;
    for (int64_t time = 1; time <= most; time *= 2) total++;
    mica_status status = plan_piece(p, 1, LM_WANT_NOTHING);
    for (int64_t time = 1; time <= most && status == MICA_OK; time *= 2) {
        status = compile_progress(options, ++done, total);
        if (status == MICA_OK) status = plan_piece(p, time, LM_WANT_LOGITS);
    }
    return status == MICA_OK ? compile_progress(options, ++done, total) : status;
}

/* Opening a model on a GPU compiles the kernels for f16 caches. Those for another cache type are compiled with the
 * first session that uses it, and again for a longer context, which may be read by another kernel. */
static mica_status compile_ahead(mica_lm_session *p, mica_lm_kv kv)
{
    _Atomic int64_t *ready = p->lm->compiled;
    if (!atomic_load(&ready[MICA_LM_KV_F16]) || atomic_load(&ready[kv]) >= p->context) return MICA_OK;
    LM_TRY(plan_pieces(p, NULL));
    atomic_store(&ready[kv], p->context);
    return MICA_OK;
}

mica_status mica_lm_session_open(mica_lm *lm, const mica_lm_session_options *options, mica_lm_session **out)
{
    if (!lm || !out) return mica_fail(MICA_ERR_ARGUMENT, "session: model or out is NULL");
    *out = NULL;
    mica_lm_session_options o;
    LM_TRY(check_options(lm, options, &o));
    const uint64_t nbytes = cache_bytes(&lm->config, &o);
    if (!nbytes) return mica_fail(MICA_ERR_SIZE, "session: the size of the cache exceeds 2^62 bytes");
    LM_TRY(reserve_bytes(lm, nbytes));
    mica_lm_session *p = calloc(1, sizeof *p);
    if (!p) {
        atomic_fetch_sub(&lm->session_bytes, nbytes);
        return mica_fail(MICA_ERR_MEMORY, "session: out of memory");
    }
    p->lm = lm;
    p->nbytes = nbytes;
    p->batch = o.batch;
    p->context = o.context;
    atomic_fetch_add(&lm->refs, 1);
    mica_status status = open_parts(p, &o);
    if (status == MICA_OK) status = compile_ahead(p, o.kv);
    if (status == MICA_OK) *out = p;
    else mica_lm_session_close(p);
    return status;
}

void mica_lm_session_close(mica_lm_session *p)
{
    if (!p) return;
    for (int i = 0; i < LM_WANT_COUNT; i++) mica_function_free(p->traced[i].function);
    mica_drop(p->logits);
    mica_scope_end(p->scope);
    free(p->cache);
    free(p->ids);
    atomic_fetch_sub(&p->lm->session_bytes, p->nbytes);
    mica__lm_release(p->lm);
    free(p);
}

int64_t mica_lm_session_position(const mica_lm_session *p) { return p ? p->position : 0; }
int64_t mica_lm_session_context(const mica_lm_session *p) { return p ? p->context : 0; }

const float *mica_lm_session_logits(const mica_lm_session *p)
{
    return p && p->logits ? mica_data_f32(p->logits) : NULL;
}

mica_status mica_lm_session_rewind(mica_lm_session *p, int64_t position)
{
    if (!p) return mica_fail(MICA_ERR_ARGUMENT, "rewind: session is NULL");
    if (position < 0 || position > p->position)
        return mica_fail(MICA_ERR_INDEX, "rewind: position %" PRId64 " is out of range (0 to %" PRId64 ")", position,
                         p->position);
    p->position = position;
    return MICA_OK;
}

void mica_lm_session_trace(mica_lm_session *p, mica_lm_trace_fn fn, void *user)
{
    if (!p) return;
    p->trace = fn;
    p->trace_user = user;
}

/* ---------------------------------------------------------------- pieces --- */

typedef struct lm_piece {
    int64_t at, n; /* range of the tokens                                         */
    int64_t time; /* n, or more if padded                                        */
} lm_piece;

/* Returns the next piece of `left` tokens that follow `position`. */
static lm_piece next_piece(const mica_lm_session *p, int64_t at, int64_t left, int64_t position, int64_t most)
{
    int64_t time = 1;
    while (2 * time <= left && 2 * time <= most) time *= 2;
    if (2 * left > 3 * time && 2 * time <= most && position + 2 * time <= p->context)
        return (lm_piece){at, left, 2 * time};
    return (lm_piece){at, time, time};
}

/* Runs a step with a trace: the same graph, evaluated without a compiled function. */
static mica_status run_traced(mica_lm_session *p, mica_scope *s, mica_array *const in[4], lm_want want,
                              mica_array **out)
{
    const lm_step step = {.tokens = in[0], .start = in[1], .length = in[2], .row = in[3], .labels = in[3]};
    lm_watch watch = {0};
    *out = mica__lm_build_step(p->lm, p->cache, s, &step, want, &watch);
    mica_array **all = malloc((watch.n + 1) * sizeof *all);
    mica_status status = mica_scope_status(s);
    if (!all) status = mica_fail(MICA_ERR_MEMORY, "trace: out of memory: %zu arrays", watch.n);
    if (status == MICA_OK) {
        for (size_t i = 0; i < watch.n; i++) all[i] = watch.seen[i].value;
        all[watch.n] = *out;
        status = mica_eval(s, all, watch.n + 1);
    } else if (all) status = mica_eval(s, NULL, 0); /* returns the error of the scope */
    for (size_t i = 0; i < watch.n && status == MICA_OK; i++)
        p->trace(watch.seen[i].name, watch.seen[i].layer, watch.seen[i].value, p->trace_user);
    free(all);
    free(watch.seen);
    return status;
}

/* Runs one piece through the model; *out is made in s. */
static mica_status run_piece(mica_lm_session *p, mica_scope *s, const int32_t *tokens, int64_t stride, lm_piece w,
                             int64_t position, lm_want want, mica_array **out)
{
    const int64_t shape[2] = {p->batch, w.time};
    int32_t *ids = p->ids, *labels = p->ids + MOST_ROWS;
    memset(ids, 0, 2 * MOST_ROWS * sizeof *ids);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < w.n; i++) {
            ids[b * w.time + i] = tokens[b * stride + w.at + i];
            if (w.at + i + 1 < stride) labels[b * w.time + i] = tokens[b * stride + w.at + i + 1];
        }
    const int32_t start = (int32_t)position, length = (int32_t)(position + w.time), row = (int32_t)(w.n - 1);
    const int64_t one = 1;
    mica_array *in[4] = {mica_from_data(s, MICA_I32, 2, shape, ids), mica_from_data(s, MICA_I32, 1, &one, &start),
                         mica_from_data(s, MICA_I32, 1, &one, &length),
                         want == LM_WANT_LOSSES ? mica_from_data(s, MICA_I32, 2, shape, labels)
                                                : mica_from_data(s, MICA_I32, 1, &one, &row)};
    if (p->trace) return run_traced(p, s, in, want, out);
    if (mica_scope_status(s) != MICA_OK) return mica_eval(s, NULL, 0);
    return mica_call(s, p->traced[want].function, in, 4, out, 1);
}

static mica_status check_tokens(const mica_lm_session *p, const char *op, const int32_t *tokens, int64_t n)
{
    if (!p || !tokens || n < 1)
        return mica_fail(MICA_ERR_ARGUMENT, "%s: session or tokens is NULL, or their number %" PRId64 " is below 1", op,
                         n);
    if (n > p->context - p->position)
        return mica_fail(MICA_ERR_SIZE, "%s: %" PRId64 " tokens after %" PRId64 " exceed the context of %" PRId64, op,
                         n, p->position, p->context);
    for (int64_t i = 0; i < n * p->batch; i++)
        if (tokens[i] < 0 || tokens[i] >= p->lm->config.vocab)
            return mica_fail(MICA_ERR_INDEX, "%s: token %d at index %" PRId64 "; the vocabulary has %" PRId64 " tokens",
                             op, (int)tokens[i], i, p->lm->config.vocab);
    return MICA_OK;
}

mica_status mica_lm_feed(mica_lm_session *p, const int32_t *tokens, int64_t n, const float **logits)
{
    if (logits) *logits = NULL;
    LM_TRY(check_tokens(p, "feed", tokens, n));
    const int64_t most = power_of_two_at_most(MOST_ROWS / p->batch);
    int64_t done = 0;
    mica_status status = MICA_OK;
    while (done < n && status == MICA_OK) {
        const lm_piece w = next_piece(p, done, n - done, p->position + done, most);
        const lm_want want = logits && done + w.n == n ? LM_WANT_LOGITS : LM_WANT_NOTHING;
        mica_array *out = NULL;
        mica_scope *s = mica_scope_begin(p->lm->engine);
        if (!s) return mica_fail(MICA_ERR_MEMORY, "feed: out of memory: a scope");
        status = run_piece(p, s, tokens, n, w, p->position + done, want, &out);
        if (status == MICA_OK && want == LM_WANT_LOGITS) {
            mica_drop(p->logits);
            p->logits = mica_keep(out);
            *logits = mica_data_f32(out);
            if (!*logits) status = MICA_ERR_INTERNAL;
        }
        mica_scope_end(s);
        done += w.n;
    }
    if (status == MICA_OK) p->position += n;
    return status;
}

mica_status mica_lm_score(mica_lm_session *p, const int32_t *tokens, int64_t n, float *losses)
{
    LM_TRY(check_tokens(p, "score", tokens, n));
    if (!losses && n > 1) return mica_fail(MICA_ERR_ARGUMENT, "score: losses is NULL");
    int64_t rows = MOST_LOGITS / p->lm->config.vocab / p->batch;
    if (rows > MOST_ROWS / p->batch) rows = MOST_ROWS / p->batch;
    const int64_t most = power_of_two_at_most(rows);
    int64_t done = 0;
    mica_status status = MICA_OK;
    while (done < n && status == MICA_OK) {
        const lm_piece w = next_piece(p, done, n - done, p->position + done, most);
        mica_array *out = NULL;
        mica_scope *s = mica_scope_begin(p->lm->engine);
        if (!s) return mica_fail(MICA_ERR_MEMORY, "score: out of memory: a scope");
        status = run_piece(p, s, tokens, n, w, p->position + done, LM_WANT_LOSSES, &out);
        const float *loss = status == MICA_OK ? mica_data_f32(out) : NULL;
        if (status == MICA_OK && !loss) status = MICA_ERR_INTERNAL;
        for (int64_t b = 0; b < p->batch && status == MICA_OK; b++)
            for (int64_t i = 0; i < w.n && done + i < n - 1; i++) losses[b * (n - 1) + done + i] = loss[b * w.time + i];
        mica_scope_end(s);
        done += w.n;
    }
    if (status == MICA_OK) p->position += n;
    return status;
}

/* -------------------------------------------------------------- generate --- */

mica_status mica_lm_generate(mica_lm_session *p, mica_lm_sampler *sampler, const int32_t *prompt, int64_t n,
                             int64_t max_tokens, mica_lm_token_fn fn, void *user, int64_t *count)
{
    if (count) *count = 0;
    if (!p || !sampler || n < 0 || (n && !prompt))
        return mica_fail(MICA_ERR_ARGUMENT,
                         "generate: session, sampler or prompt is NULL, or the prompt's length is below 0");
    if (p->batch != 1)
        return mica_fail(MICA_ERR_ARGUMENT, "generate: the session has a batch of %" PRId64 ", not 1", p->batch);
    if (n == 0 && (!p->position || !p->logits))
        return mica_fail(MICA_ERR_STATE, "generate: the prompt is empty and there are no logits of earlier tokens");
    const mica_tokenizer *t = mica_lm_tokenizer(p->lm);
    const float *logits = p->logits ? mica_data_f32(p->logits) : NULL;
    for (int64_t i = 0; i < n; i++) mica_lm_sampler_accept(sampler, prompt[i]);
    if (n) LM_TRY(mica_lm_feed(p, prompt, n, &logits));
    for (int64_t i = 0; i < max_tokens; i++) {
        int32_t token;
        LM_TRY(mica_lm_sample(sampler, logits, p->lm->config.vocab, &token));
        if (t && mica_tokenizer_ends(t, token)) return MICA_OK;
        if (count) *count = i + 1;
        if (fn && !fn(token, user)) return MICA_OK;
        if (i + 1 < max_tokens) LM_TRY(mica_lm_feed(p, &token, 1, &logits));
    }
    return MICA_OK;
}

/* ---------------------------------------------------------------- at start -- */

/* Kernels depend on the context only in how a long cache is read. A context whose cache exceeds MOST_CACHE bytes is
 * shortened. */
mica_status mica__lm_compile(mica_lm *lm, const mica_lm_options *options)
{
    enum { MOST_CACHE = 64 << 20 };
    mica_lm_session *p;
    mica_lm_session_options o;
    if (!mica__lm_on_gpu(lm)) return MICA_OK;
    mica_lm_session_options_init(&o);
    o.context = lm->config.context;
    while (o.context > MOST_ROWS && cache_bytes(&lm->config, &o) > MOST_CACHE) o.context /= 2;
    mica_status status = mica_lm_session_open(lm, &o, &p);
    if (status == MICA_ERR_MEMORY) return MICA_OK; /* compiled at first use instead */
    if (status != MICA_OK) return status;
    status = plan_pieces(p, options);
    mica_lm_session_close(p);
    if (status == MICA_OK) atomic_store(&lm->compiled[o.kv], INT64_MAX);
    return status;
}
