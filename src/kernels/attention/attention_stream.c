/* Attention that reads keys and values without packing them, for up to 8 queries at a time. This
 * is the decode case, in which reading keys and values is the main cost. f16, bf16 and i8 are
 * widened when they are loaded.
 *
 * Keys are split into parts of a fixed length. Each part gives a maximum, a sum and an unscaled
 * result for each query; the parts are combined in order. With few queries, threads share the
 * parts of a head. With many, each task has some queries and processes all parts. A query has the
 * same bits in both cases; they do not depend on the other queries, nor on the number of hidden
 * keys after the last visible one: a hidden key adds 0, and the index of a key determines the
 * lane of its sum. */
#include <math.h>

#include "kernels/attention/attention_job.h"
#include "kernels/attention/attention_stream.h"

enum {
    STREAM_QUERIES = 8,         /* at most, of all heads that share keys           */
    STREAM_KEYS = 512,          /* whose scores are stored at once                 */
    STREAM_PART = 512,          /* keys of a task: two threads share even 5 heads  */
    STREAM_SIZE = 256           /* dims and columns, at most                       */
};

/* The partial result of a query: maximum, sum, and columns of the result. */
static int64_t stream_row_floats(int64_t size) { return size + MICA__ATTENTION_WHOLE; }
static int64_t stream_parts(int64_t keys) { return mica__max_i64(1, (keys + STREAM_PART - 1) / STREAM_PART); }

static bool stream_whole(const mica__tensor *t)
{
    const int64_t n = t->spec.shape[3];
    return t->strides[3] == 1 && n % MICA__ATTENTION_WHOLE == 0 && n > 0 && n <= STREAM_SIZE;
}

static int64_t stream_queries(const mica__tensor *in)
{
    return in[0].spec.shape[1] / in[1].spec.shape[1] * in[0].spec.shape[2];
}

bool mica__attention_can_stream(const mica__tensor *in) { return stream_whole(&in[1]) && stream_whole(&in[2]); }

bool mica__attention_streams(const mica__tensor *in)
{
    return stream_queries(in) <= STREAM_QUERIES && mica__attention_can_stream(in);
}

size_t mica__attention_stream_floats(const mica__tensor *in)
{
    const mica__spec *q = &in[0].spec, *v = &in[2].spec;
    if (stream_queries(in) > STREAM_QUERIES) return 0;
    return (size_t)(q->shape[0] * q->shape[1] * q->shape[2] * stream_parts(v->shape[2]) *
                    stream_row_floats(v->shape[3]));
}

/* One part of one key head. */
typedef struct stream_part {
    const mica__attention_job *job;
    int64_t b, g, row, n;                        /* n queries from row on           */
    float top[STREAM_QUERIES], sum[STREAM_QUERIES];
    _Alignas(64) float query[STREAM_QUERIES * STREAM_SIZE];
    _Alignas(64) float out[STREAM_QUERIES * STREAM_SIZE];
    _Alignas(64) float score[STREAM_QUERIES * STREAM_KEYS];
} stream_part;

static int64_t stream_offset(const stream_part *part, const mica__tensor *t, int64_t r)
{
    const mica__attention_job *job = part->job;
    const int64_t row = part->row + r, head = part->g * job->share + row / job->times;
    return part->b * t->strides[0] + head * t->strides[1] + row % job->times * t->strides[2];
}

/* The number of keys that causality leaves visible to query r. */
static int64_t stream_seen(const stream_part *part, int64_t r)
{
    const mica__attention_job *job = part->job;
    return job->causal ? (part->row + r) % job->times + 1 + job->keys - job->times : job->keys;
}

static const char *stream_key(const stream_part *part, const mica__tensor *t, int64_t s)
{
    return mica__element(t, part->b * t->strides[0] + part->g * t->strides[1] + s * t->strides[2]);
}

/* Adds the mask to the scores of query r and sets hidden scores to -inf. */
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
    /* also the padding up to whole vectors of any variant, which the sum of weights includes */
    const int64_t whole = 2 * MICA__ATTENTION_WHOLE, end = (n + whole - 1) / whole * whole;
    for (int64_t i = mica__max_i64(0, mica__min_i64(n, stream_seen(part, r) - s)); i < end; i++) score[i] = -INFINITY;
}

/* Multiplies scores by the scales of the keys (i = 1), or weights by those of the values (2). A weight of
 * 0 stays 0 even if the scale is not finite. */
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

/* Replaces scores by weights; scales the sums so far to the new maximum. */
static void stream_weights(stream_part *part, int64_t n)
{
    const mica__attention_variant *variant = part->job->variant;
    for (int64_t r = 0; r < part->n; r++) {
        float *score = part->score + r * STREAM_KEYS, *out = part->out + r * part->job->size;
        const int64_t whole = 2 * MICA__ATTENTION_WHOLE, end = (n + whole - 1) / whole * whole;
        const float before = part->top[r], now = variant->top(end, score, before);
        if (now != before) {
            const float less = before == -INFINITY ? 0 : exp2f(before - now);
            variant->scale(part->job->size, out, less, out);
            part->sum[r] *= less;
            part->top[r] = now;
        }
        part->sum[r] += variant->weigh(end, score, now == -INFINITY ? 0 : now);
    }
}

/* out += weights * values. Skips weights of 0, because their values may be not finite. */
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

/* ------------------------------------------------------------ queries, results - */

/* Loads the n queries of a key head from `row` on. */
static void stream_begin(stream_part *part, const mica__attention_job *job, int64_t head, int64_t row, int64_t n)
{
    const mica__tensor *q = &job->launch->in[0];
    const int64_t groups = job->launch->in[1].spec.shape[1];
    part->job = job;
    part->b = head / groups;
    part->g = head % groups;
    part->row = row;
    part->n = n;
    for (int64_t r = 0; r < n; r++) {
        float *to = part->query + r * job->dims;
        mica__attention_widen(job->variant, q, stream_offset(part, q, r), q->strides[3], job->dims, to);
        job->variant->scale(job->dims, to, job->factor, to);
    }
}

/* Keys first ... last-1, at most one part. If a result is not finite, computes again and skips weights of 0. */
static void stream_part_of(stream_part *part, int64_t first, int64_t last)
{
    stream_run(part, first, last, false);
    if (!part->job->variant->finite(part->n * part->job->size, part->out)) stream_run(part, first, last, true);
}

/* The running state of a query: the maximum, the sum, the unscaled result. */
typedef struct stream_row {
    float top, sum, *line;
} stream_row;

/* Adds the next part. */
static void stream_merge(stream_row *row, float top, float sum, const float *line, int64_t size)
{
    if (sum == 0) return; /* no visible key */
    if (row->sum == 0) {
        row->top = top;
        row->sum = sum;
        memcpy(row->line, line, (size_t)size * sizeof *line);
        return;
    }
    const float most = top > row->top ? top : row->top;
    const float before = exp2f(row->top - most), now = exp2f(top - most);
    row->top = most;
    row->sum = row->sum * before + sum * now;
    for (int64_t e = 0; e < size; e++) row->line[e] = row->line[e] * before + line[e] * now;
}

/* Stores row `number` of the result. The rows of heads that share keys are contiguous. */
static void stream_finish(const mica__attention_job *job, const stream_row *row, int64_t number)
{
    const mica__tensor *out = job->launch->out;
    if (row->sum == 0) memset(row->line, 0, (size_t)job->size * sizeof *row->line);
    else job->variant->scale(job->size, row->line, 1 / row->sum, row->line);
    mica__store_f32(mica__dtype_of(out), job->size, mica__element(out, number * job->size), 1, row->line);
}

/* ------------------------------------------------------- few queries, by parts -- */

static void stream_parts_of(const void *context, int64_t begin, int64_t end)
{
    const mica__attention_job *job = context;
    const int64_t parts = stream_parts(job->keys), n = job->share * job->times, row = stream_row_floats(job->size);
    stream_part *part = mica__scratch_alloc(sizeof *part);
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / parts, first = i % parts * STREAM_PART;
        stream_begin(part, job, head, 0, n);
        stream_part_of(part, first, mica__min_i64(job->keys, first + STREAM_PART));
        for (int64_t r = 0; r < n; r++) {
            float *line = part->out + r * job->size, *to = (float *)job->launch->workspace + (i * n + r) * row;
            if (parts == 1) {
                stream_finish(job, &(stream_row){part->top[r], part->sum[r], line}, head * n + r);
                continue;
            }
            to[0] = part->top[r];
            to[1] = part->sum[r];
            memcpy(to + MICA__ATTENTION_WHOLE, line, (size_t)job->size * sizeof *to);
        }
    }
    mica__scratch_release(part);
}

static void stream_join_rows(const void *context, int64_t begin, int64_t end)
{
    const mica__attention_job *job = context;
    const int64_t parts = stream_parts(job->keys), n = job->share * job->times, row = stream_row_floats(job->size);
    float line[STREAM_SIZE];
    for (int64_t i = begin; i < end; i++) {
        const float *from = (const float *)job->launch->workspace + (i / n * parts * n + i % n) * row;
        stream_row all = {.line = line};
        for (int64_t p = 0; p < parts; p++, from += n * row)
            stream_merge(&all, from[0], from[1], from + MICA__ATTENTION_WHOLE, job->size);
        stream_finish(job, &all, i);
    }
}

/* ------------------------------------------------------ many queries, by blocks -- */

static void stream_blocks_of(const void *context, int64_t begin, int64_t end)
{
    const mica__attention_job *job = context;
    const int64_t n = job->share * job->times, blocks = (n + STREAM_QUERIES - 1) / STREAM_QUERIES;
    stream_part *part = mica__scratch_alloc(sizeof *part);
    float *line = mica__scratch_alloc(STREAM_QUERIES * STREAM_SIZE * sizeof *line);
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / blocks, first = i % blocks * STREAM_QUERIES;
        stream_row rows[STREAM_QUERIES];
        stream_begin(part, job, head, first, mica__min_i64(STREAM_QUERIES, n - first));
        int64_t last = 0;
        for (int64_t r = 0; r < part->n; r++) {
            rows[r] = (stream_row){.line = line + r * job->size};
            last = mica__max_i64(last, stream_seen(part, r));
        }
        for (int64_t s = 0; s < last; s += STREAM_PART) {
            stream_part_of(part, s, mica__min_i64(last, s + STREAM_PART));
            for (int64_t r = 0; r < part->n; r++)
                stream_merge(&rows[r], part->top[r], part->sum[r], part->out + r * job->size, job->size);
        }
        for (int64_t r = 0; r < part->n; r++) stream_finish(job, &rows[r], head * n + first + r);
    }
    mica__scratch_release(part);
}

void mica__attention_stream(const mica__attention_job *job)
{
    const mica__spec *q = &job->launch->in[0].spec;
    const int64_t rows = q->shape[0] * q->shape[1] * q->shape[2], n = job->share * job->times;
    const int64_t work = (job->dims + job->size) / 4, parts = stream_parts(job->keys);
    if (n > STREAM_QUERIES) {
        const int64_t blocks = (n + STREAM_QUERIES - 1) / STREAM_QUERIES;
        mica__run_rows(job->launch->pool, rows / n * blocks, job->keys * work, stream_blocks_of, job);
        return;
    }
    mica__run_rows(job->launch->pool, rows / n * parts, mica__min_i64(job->keys, STREAM_PART) * work, stream_parts_of,
                   job);
    if (parts > 1) mica__run_rows(job->launch->pool, rows, parts * job->size, stream_join_rows, job);
}
