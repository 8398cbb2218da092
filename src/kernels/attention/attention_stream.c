/* Attention of a few queries over many keys, as when a text is continued token by
 * token: all the work is reading keys and values, once each and in order. Nothing is
 * packed, f16 and bf16 are widened on the way.
 *
 * Keys are cut into parts of a fixed length, so that threads can share one head. Each
 * part leaves, for each query, its maximum, its sum and its unscaled result; then the
 * parts are put together in order. */
#include <math.h>

#include "kernels/attention/attention_job.h"
#include "kernels/attention/attention_stream.h"

enum {
    STREAM_QUERIES = 8,         /* at most, of all heads that share keys           */
    STREAM_KEYS = 512,          /* whose scores are held at once                   */
    STREAM_PART = 512,          /* keys of a task: two threads share even 5 heads  */
    STREAM_SIZE = 256           /* dims and columns, at most                       */
};

/* What a part leaves: for each query top, sum, and columns of the result. */
static int64_t stream_row_floats(int64_t size) { return size + MICA__ATTENTION_WHOLE; }
static int64_t stream_parts(int64_t keys) { return mica__max_i64(1, (keys + STREAM_PART - 1) / STREAM_PART); }

static bool stream_whole(const mica__tensor *t)
{
    const int64_t n = t->spec.shape[3];
    return t->strides[3] == 1 && n % MICA__ATTENTION_WHOLE == 0 && n > 0 && n <= STREAM_SIZE;
}

bool mica__attention_streams(const mica__tensor *in)
{
    const int64_t queries = in[0].spec.shape[1] / in[1].spec.shape[1] * in[0].spec.shape[2];
    return queries <= STREAM_QUERIES && stream_whole(&in[1]) && stream_whole(&in[2]);
}

size_t mica__attention_stream_floats(const mica__tensor *in)
{
    const mica__spec *q = &in[0].spec, *v = &in[2].spec;
    return (size_t)(q->shape[0] * q->shape[1] * q->shape[2] * stream_parts(v->shape[2]) *
                    stream_row_floats(v->shape[3]));
}

/* One part of one key head. */
typedef struct stream_part {
    const mica__attention_job *job;
    int64_t b, g, n;                             /* n: queries                      */
    float top[STREAM_QUERIES], sum[STREAM_QUERIES];
    _Alignas(64) float query[STREAM_QUERIES * STREAM_SIZE];
    _Alignas(64) float out[STREAM_QUERIES * STREAM_SIZE];
    _Alignas(64) float score[STREAM_QUERIES * STREAM_KEYS];
} stream_part;

static int64_t stream_offset(const stream_part *part, const mica__tensor *t, int64_t r)
{
    const mica__attention_job *job = part->job;
    const int64_t head = part->g * job->share + r / job->times;
    return part->b * t->strides[0] + head * t->strides[1] + r % job->times * t->strides[2];
}

static const char *stream_key(const stream_part *part, const mica__tensor *t, int64_t s)
{
    return mica__element(t, part->b * t->strides[0] + part->g * t->strides[1] + s * t->strides[2]);
}

/* Adds the mask to the scores of query r and hides what it does not see. */
static void stream_hide(stream_part *part, int64_t r, int64_t s, int64_t n)
{
    const mica__attention_job *job = part->job;
    float *score = part->score + r * STREAM_KEYS;
    if (job->has_mask) {
        const mica__tensor *mask = &job->launch->in[3];
        const bool logical = mica__is_bool(mica__dtype_of(mask));
        float added[STREAM_KEYS];
        mica__load_f32(mica__dtype_of(mask), n, added,
                       mica__element(mask, stream_offset(part, mask, r) + s * mask->strides[3]), mask->strides[3]);
        for (int64_t i = 0; i < n; i++) {
            const bool hidden = logical ? added[i] == 0 : added[i] == -INFINITY;
            if (hidden) score[i] = -INFINITY;
            else if (!logical) score[i] += added[i] * MICA__ATTENTION_LOG2E;
        }
    }
    const int64_t seen = job->causal ? r % job->times + 1 + job->keys - job->times - s : n;
    for (int64_t i = mica__max_i64(0, seen); i < n; i++) score[i] = -INFINITY;
}

/* Scores by the scales of keys (i = 1), or weights by those of values (2); a weight of 0
 * stays 0 whatever its scale. */
static void stream_scale(stream_part *part, int i, int64_t s, int64_t n)
{
    const mica__tensor *t = &part->job->launch->in[2 + i];
    float scale[STREAM_KEYS];
    mica__load_f32(mica__dtype_of(t), n, scale,
                   mica__element(t, part->b * t->strides[0] + part->g * t->strides[1] + s * t->strides[2]),
                   t->strides[2]);
    for (int64_t r = 0; r < part->n; r++) {
        float *x = part->score + r * STREAM_KEYS;
        for (int64_t j = 0; j < n; j++) x[j] = i == 2 && x[j] == 0 ? 0 : x[j] * scale[j];
    }
}

static void stream_scores(stream_part *part, int64_t s, int64_t n)
{
    const mica__tensor *k = &part->job->launch->in[1];
    for (int64_t r = 0; r < part->n; r += MICA__ATTENTION_ROWS) {
        const int rows = (int)mica__min_i64(MICA__ATTENTION_ROWS, part->n - r);
        part->job->variant->dots(mica__dtype_of(k), rows, n, part->job->dims, stream_key(part, k, s), k->strides[2],
                                 part->query + r * part->job->dims, part->score + r * STREAM_KEYS, STREAM_KEYS);
    }
    if (part->job->scaled) stream_scale(part, 1, s, n);
    for (int64_t r = 0; r < part->n; r++) stream_hide(part, r, s, n);
}

/* Scores to weights; what was added up is brought to the new maximum. */
static void stream_weights(stream_part *part, int64_t n)
{
    const mica__attention_variant *variant = part->job->variant;
    for (int64_t r = 0; r < part->n; r++) {
        float *score = part->score + r * STREAM_KEYS, *out = part->out + r * part->job->size;
        const float before = part->top[r], now = variant->top(n, score, before);
        if (now != before) {
            const float less = before == -INFINITY ? 0 : exp2f(before - now);
            variant->scale(part->job->size, out, less, out);
            part->sum[r] *= less;
            part->top[r] = now;
        }
        part->sum[r] += variant->weigh(n, score, now == -INFINITY ? 0 : now);
    }
}

/* out += weights * values without the weights that are 0: values may be anything there. */
static void stream_add_careful(stream_part *part, int64_t s, int64_t n)
{
    const mica__tensor *v = &part->job->launch->in[2];
    float line[STREAM_SIZE];
    for (int64_t i = 0; i < n; i++) {
        mica__load_f32(mica__dtype_of(v), part->job->size, line, stream_key(part, v, s + i), 1);
        for (int64_t r = 0; r < part->n; r++) {
            const float p = part->score[r * STREAM_KEYS + i];
            for (int64_t e = 0; e < part->job->size && p != 0; e++) part->out[r * part->job->size + e] += p * line[e];
        }
    }
}

static void stream_add(stream_part *part, int64_t s, int64_t n)
{
    const mica__tensor *v = &part->job->launch->in[2];
    const int64_t size = part->job->size;
    for (int64_t r = 0; r < part->n; r += MICA__ATTENTION_ROWS) {
        const int rows = (int)mica__min_i64(MICA__ATTENTION_ROWS, part->n - r);
        part->job->variant->mix(mica__dtype_of(v), rows, n, size, part->score + r * STREAM_KEYS, STREAM_KEYS,
                                stream_key(part, v, s), v->strides[2], part->out + r * size);
    }
}

static void stream_run(stream_part *part, int64_t first, int64_t last, bool careful)
{
    memset(part->out, 0, (size_t)(part->n * part->job->size) * sizeof *part->out);
    for (int64_t r = 0; r < part->n; r++) {
        part->top[r] = -INFINITY;
        part->sum[r] = 0;
    }
    for (int64_t s = first; s < last; s += STREAM_KEYS) {
        const int64_t n = mica__min_i64(STREAM_KEYS, last - s);
        stream_scores(part, s, n);
        stream_weights(part, n);
        if (part->job->scaled) stream_scale(part, 2, s, n);
        if (careful) stream_add_careful(part, s, n);
        else stream_add(part, s, n);
    }
}

/* The only part of a key head is the result. */
static void stream_store(stream_part *part, int64_t head)
{
    const mica__attention_job *job = part->job;
    const mica__tensor *out = job->launch->out;
    for (int64_t r = 0; r < part->n; r++) {
        float *line = part->out + r * job->size;
        if (part->sum[r] == 0) memset(line, 0, (size_t)job->size * sizeof *line); /* saw nothing */
        else job->variant->scale(job->size, line, 1 / part->sum[r], line);
        mica__store_f32(mica__dtype_of(out), job->size, mica__element(out, (head * part->n + r) * job->size), 1, line);
    }
}

static void stream_parts_of(const void *context, int64_t begin, int64_t end)
{
    const mica__attention_job *job = context;
    const mica__tensor *q = &job->launch->in[0];
    const int64_t parts = stream_parts(job->keys), groups = job->launch->in[1].spec.shape[1];
    const int64_t row = stream_row_floats(job->size);
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / parts, first = i % parts * STREAM_PART;
        const int64_t last = mica__min_i64(job->keys, first + STREAM_PART);
        stream_part part; /* large: not all of it is used, and none is read before it is written */
        part.job = job;
        part.b = head / groups;
        part.g = head % groups;
        part.n = job->share * job->times;
        for (int64_t r = 0; r < part.n; r++) {
            float *to = part.query + r * job->dims;
            mica__attention_widen(job->variant, q, stream_offset(&part, q, r), q->strides[3], job->dims, to);
            job->variant->scale(job->dims, to, job->factor, to);
        }
        stream_run(&part, first, last, false);
        if (!job->variant->finite(part.n * job->size, part.out)) stream_run(&part, first, last, true);
        if (parts == 1) {
            stream_store(&part, head);
            continue;
        }
        for (int64_t r = 0; r < part.n; r++) {
            float *to = (float *)job->launch->workspace + (i * part.n + r) * row;
            to[0] = part.top[r];
            to[1] = part.sum[r];
            memcpy(to + MICA__ATTENTION_WHOLE, part.out + r * job->size, (size_t)job->size * sizeof *to);
        }
    }
}

/* Query r of a key head, from all parts. */
static void stream_join(const mica__attention_job *job, int64_t head, int64_t r, float *line)
{
    const int64_t parts = stream_parts(job->keys), queries = job->share * job->times,
                  row = stream_row_floats(job->size);
    const float *from = (const float *)job->launch->workspace + (head * parts * queries + r) * row;
    float top = -INFINITY, sum = 0;
    for (int64_t p = 0; p < parts; p++) top = from[p * queries * row] > top ? from[p * queries * row] : top;
    for (int64_t e = 0; e < job->size; e++) line[e] = 0;
    for (int64_t p = 0; p < parts; p++) {
        const float *part = from + p * queries * row;
        if (part[1] == 0) continue; /* saw nothing */
        const float less = exp2f(part[0] - top);
        sum += part[1] * less;
        for (int64_t e = 0; e < job->size; e++) line[e] += part[MICA__ATTENTION_WHOLE + e] * less;
    }
    const float inverse = sum == 0 ? 0 : 1 / sum;
    for (int64_t e = 0; e < job->size; e++) line[e] *= inverse;
}

static void stream_join_rows(const void *context, int64_t begin, int64_t end)
{
    const mica__attention_job *job = context;
    const mica__tensor *out = job->launch->out;
    const int64_t queries = job->share * job->times;
    float line[STREAM_SIZE];
    for (int64_t i = begin; i < end; i++) { /* in the order of the result: heads that share follow each other */
        stream_join(job, i / queries, i % queries, line);
        mica__store_f32(mica__dtype_of(out), job->size, mica__element(out, i * job->size), 1, line);
    }
}

void mica__attention_stream(const mica__attention_job *job)
{
    const mica__spec *q = &job->launch->in[0].spec;
    const int64_t rows = q->shape[0] * q->shape[1] * q->shape[2], queries = job->share * job->times;
    const int64_t parts = stream_parts(job->keys);
    mica__run_rows(job->launch->pool, rows / queries * parts,
                   mica__min_i64(job->keys, STREAM_PART) * (job->dims + job->size) / 4, stream_parts_of, job);
    if (parts > 1) mica__run_rows(job->launch->pool, rows, parts * job->size, stream_join_rows, job);
}
