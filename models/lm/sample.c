/* Chooses the next token. Few candidates remain, but the vocabulary is large. So a heap selects the best; its size
 * doubles until it holds all that top-k, top-p and min-p keep, and only these are sorted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lm.h"

typedef struct lm_candidate {
    float logit;
    int32_t token;
} lm_candidate;

struct mica_lm_sampler {
    mica_lm_sampler_options o;
    uint64_t draws;
    int32_t *recent;            /* the last repeat_last tokens, a ring                         */
    int64_t n_recent, at_recent;
    float *logits;              /* penalised copy                                              */
    lm_candidate *best;
    int64_t cap;                /* capacity of both                                            */
};

void mica_lm_sampler_options_init(mica_lm_sampler_options *options)
{
    if (!options) return;
    *options = (mica_lm_sampler_options){.struct_size = sizeof *options,
                                         .temperature = 0.8,
                                         .top_k = 40,
                                         .top_p = 0.95,
                                         .min_p = 0.05,
                                         .repeat_penalty = 1,
                                         .repeat_last = 64};
}

static mica_status check_sampler(const mica_lm_sampler_options *o)
{
    enum { MOST_RECENT = 1 << 24 };
    if (!(o->temperature >= 0) || isinf(o->temperature))
        return mica_fail(MICA_ERR_ARGUMENT, "sampler: temperature %g is not 0 or above", o->temperature);
    if (o->top_k < 0) return mica_fail(MICA_ERR_ARGUMENT, "sampler: top_k %lld is below 0", (long long)o->top_k);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return mica_fail(MICA_ERR_ARGUMENT, "sampler: top_p %g is not above 0 and up to 1", o->top_p);
    if (!(o->min_p >= 0 && o->min_p <= 1))
        return mica_fail(MICA_ERR_ARGUMENT, "sampler: min_p %g is not 0 to 1", o->min_p);
    if (!(o->repeat_penalty > 0) || isinf(o->repeat_penalty))
        return mica_fail(MICA_ERR_ARGUMENT, "sampler: repeat_penalty %g is not above 0", o->repeat_penalty);
    if (o->repeat_last < 0 || o->repeat_last > MOST_RECENT)
        return mica_fail(MICA_ERR_ARGUMENT, "sampler: repeat_last %lld is not 0 to %d", (long long)o->repeat_last,
                         MOST_RECENT);
    return MICA_OK;
}

mica_status mica_lm_sampler_open(const mica_lm_sampler_options *options, mica_lm_sampler **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "sampler: out is NULL");
    *out = NULL;
    mica_lm_sampler_options o;
    mica_lm_sampler_options_init(&o);
    LM_TRY(mica_struct_read("sampler: mica_lm_sampler_options", &o, sizeof o, options));
    LM_TRY(check_sampler(&o));
    mica_lm_sampler *p = calloc(1, sizeof *p);
    if (p) p->recent = calloc((size_t)o.repeat_last + 1, sizeof *p->recent);
    if (!p || !p->recent) {
        free(p);
        return mica_fail(MICA_ERR_MEMORY, "sampler: out of memory: %lld tokens", (long long)o.repeat_last);
    }
    p->o = o;
    *out = p;
    return MICA_OK;
}

void mica_lm_sampler_close(mica_lm_sampler *p)
{
    if (!p) return;
    free(p->recent);
    free(p->logits);
    free(p->best);
    free(p);
}

void mica_lm_sampler_accept(mica_lm_sampler *p, int32_t token)
{
    if (!p || !p->o.repeat_last) return;
    p->recent[p->at_recent] = token;
    p->at_recent = (p->at_recent + 1) % p->o.repeat_last;
    if (p->n_recent < p->o.repeat_last) p->n_recent++;
}

/* Penalises each recent token once, however often it occurred. */
static void penalise(const mica_lm_sampler *p, const float *logits, int64_t n, float *out)
{
    const float penalty = (float)p->o.repeat_penalty;
    memcpy(out, logits, (size_t)n * sizeof *out);
    for (int64_t i = 0; i < p->n_recent; i++) {
        const int32_t t = p->recent[i];
        if (t < 0 || t >= n) continue;
        out[t] = logits[t] > 0 ? logits[t] / penalty : logits[t] * penalty;
    }
}

/* ------------------------------------------------------------- selection --- */

static bool is_better(lm_candidate a, lm_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

static int candidates_by_rank(const void *a, const void *b)
{
    const lm_candidate x = *(const lm_candidate *)a, y = *(const lm_candidate *)b;
    return is_better(x, y) ? -1 : is_better(y, x);
}

/* Restores the heap below i; heap[0] is the worst candidate. */
static void sink(lm_candidate *heap, int64_t n, int64_t i)
{
    for (;;) {
        int64_t worst = i;
        for (int64_t c = 2 * i + 1; c <= 2 * i + 2 && c < n; c++)
            if (is_better(heap[worst], heap[c])) worst = c;
        if (worst == i) return;
        const lm_candidate t = heap[i];
        heap[i] = heap[worst];
        heap[worst] = t;
        i = worst;
    }
}

/* Selects the k best of n, best first. */
static void select_best(const float *logits, int64_t n, lm_candidate *best, int64_t k)
{
    for (int64_t i = 0; i < k; i++) best[i] = (lm_candidate){logits[i], (int32_t)i};
    for (int64_t i = k / 2; i-- > 0;) sink(best, k, i);
    for (int64_t i = k; i < n; i++) {
        if (!(logits[i] > best[0].logit)) continue; /* ties: the first is kept, which is already in the heap */
        best[0] = (lm_candidate){logits[i], (int32_t)i};
        sink(best, k, 0);
    }
    qsort(best, (size_t)k, sizeof *best, candidates_by_rank);
}

/* Returns how many of the k best top-p and min-p keep; k + 1: more candidates are needed to decide. total is the sum
 * of exp(logit - best) over all that top-k kept. */
static int64_t count_kept(const mica_lm_sampler *p, const lm_candidate *best, int64_t k, double total)
{
    double sum = 0;
    for (int64_t i = 0; i < k; i++) {
        const double weight = exp((double)best[i].logit - (double)best[0].logit);
        if (weight < p->o.min_p) return i;
        sum += weight;
        if (p->o.top_p < 1 && sum >= p->o.top_p * total) return i + 1;
    }
    return k + 1;
}

static double total_weight(const float *logits, int64_t n, float best)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp((double)logits[i] - (double)best);
    return sum;
}

static int64_t select_kept(mica_lm_sampler *p, const float *logits, int64_t n)
{
    const int64_t most = p->o.top_k && p->o.top_k < n ? p->o.top_k : n;
    const bool all_needed = p->o.top_p >= 1 && p->o.min_p <= 0;
    int64_t k = p->o.top_k || all_needed ? most : most < 64 ? most : 64;
    double total = 0;
    for (;;) {
        select_best(logits, n, p->best, k);
        if (k == p->o.top_k) {
            total = 0;
            for (int64_t i = 0; i < k; i++) total += exp((double)p->best[i].logit - (double)p->best[0].logit);
        } else if (total == 0 && p->o.top_p < 1) {
            total = total_weight(logits, n, p->best[0].logit);
        }
        const int64_t kept = count_kept(p, p->best, k, total);
        if (kept <= k) return kept;
        if (k == most) return k;
        k = 4 * k < most ? 4 * k : most;
    }
}

/* ------------------------------------------------------------------ draw --- */

static mica_status reserve(mica_lm_sampler *p, int64_t n)
{
    if (n <= p->cap) return MICA_OK;
    float *logits = malloc((size_t)n * sizeof *logits);
    lm_candidate *best = malloc((size_t)n * sizeof *best);
    if (!logits || !best) {
        free(logits);
        free(best);
        return mica_fail(MICA_ERR_MEMORY, "sample: out of memory: %lld logits", (long long)n);
    }
    free(p->logits);
    free(p->best);
    p->logits = logits;
    p->best = best;
    p->cap = n;
    return MICA_OK;
}

static int64_t draw(mica_lm_sampler *p, int64_t kept)
{
    const double u = (double)(mica_seed_split(p->o.seed, p->draws++) >> 11) * 0x1p-53;
    const double top = (double)p->best[0].logit;
    double total = 0, sum = 0;
    for (int64_t i = 0; i < kept; i++) total += exp(((double)p->best[i].logit - top) / p->o.temperature);
    for (int64_t i = 0; i < kept; i++) {
        sum += exp(((double)p->best[i].logit - top) / p->o.temperature);
        if (u * total < sum) return i;
    }
    return kept - 1;
}

mica_status mica_lm_sample(mica_lm_sampler *p, const float *logits, int64_t n, int32_t *token)
{
    if (!p || !logits || !token || n < 1 || n > INT32_MAX)
        return mica_fail(MICA_ERR_ARGUMENT, "sample: sampler, logits or token is NULL, or %lld logits are out of range",
                         (long long)n);
    LM_TRY(reserve(p, n));
    penalise(p, logits, n, p->logits);
    int64_t top = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(p->logits[i]))
            return mica_fail(MICA_ERR_STATE, "sample: the logit of token %lld is not a number", (long long)i);
        if (p->logits[i] > p->logits[top]) top = i;
    }
    if (isinf(p->logits[top])) return mica_fail(MICA_ERR_STATE, "sample: the best logit is %g", (double)p->logits[top]);
    if (p->o.temperature > 0) top = p->best[draw(p, select_kept(p, p->logits, n))].token;
    *token = (int32_t)top;
    mica_lm_sampler_accept(p, *token);
    return MICA_OK;
}
