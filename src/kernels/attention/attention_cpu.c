/* Attention in f32. A block has up to BLOCK_QUERIES queries with the same keys (of several
 * heads, if they share a key head). It processes BLOCK_KEYS keys at a time, panel by panel
 * (attention_kernels.h). Each query has a running maximum and sum; when the maximum grows,
 * its sum and result so far are scaled down. The order of additions depends on the sizes only.
 *
 * Values are packed into strips once for each key head. Keys that are not contiguous f32 are
 * copied. As many heads are processed at a time as fit into a cache. */
#include "kernels/attention/attention.h"

#include <math.h>

#include "kernels/attention/attention_job.h"
#include "kernels/attention/attention_stream.h"

enum {
    BLOCK_QUERIES = 96,         /* a multiple of the panel of every variant       */
    BLOCK_KEYS = 192,
    LEEWAY = 8,
    BLOCK_DIMS = 256,           /* of packed queries; with more they are repacked */
    BLOCK_SIZE = 256            /* columns of the result of one run over the keys */
};

typedef struct attention_block {
    const mica__attention_job *job;
    mica__attention_queries queries;
    int64_t n;                  /* number of queries                              */
    const float *keys;          /* of this head, with row stride keys_row         */
    int64_t keys_row;
    const float *values;        /* of this head, in strips                        */
    bool careful;               /* weights of 0 are not multiplied                */
    int64_t columns;            /* of out, in whole strips                        */
    float top[BLOCK_QUERIES], sum[BLOCK_QUERIES];
    _Alignas(64) float query[BLOCK_QUERIES * BLOCK_DIMS];
    _Alignas(64) float out[BLOCK_QUERIES * BLOCK_SIZE];
    _Alignas(64) float score[BLOCK_KEYS * MICA__ATTENTION_PANEL];
} attention_block;

/* n queries of a block from `first` on, in the lanes of vectors. */
typedef struct attention_panel {
    int64_t first, n;
    int vectors, width;
} attention_panel;

static attention_panel attention_panel_at(const attention_block *block, int64_t first)
{
    const int lanes = block->job->variant->lanes;
    const int64_t n = mica__min_i64(block->n - first, MICA__ATTENTION_VECTORS * lanes);
    const int vectors = (int)((n + lanes - 1) / lanes);
    return (attention_panel){first, n, vectors, vectors * lanes};
}

static void attention_pack_queries(attention_block *block, const attention_panel *panel, int64_t d, int64_t depth)
{
    mica__attention_turn(&block->queries, &block->job->launch->in[0], panel->first, panel->n, panel->width, d, depth,
                         block->job->factor, block->query + panel->first * depth);
}

/* Products with keys s ... s+n-1; top as in mica__attention_variant.scores. */
static void attention_products(attention_block *block, const attention_panel *panel, int64_t s, int64_t n, float *score,
                               float *top)
{
    const mica__attention_job *job = block->job;
    const float *keys = block->keys + s * block->keys_row;
    if (job->dims == 0) memset(score, 0, (size_t)(n * panel->width) * sizeof *score);
    for (int64_t d = 0; d < job->dims || d == 0; d += BLOCK_DIMS) {
        const int64_t depth = mica__min_i64(BLOCK_DIMS, job->dims - d);
        if (job->dims > BLOCK_DIMS) attention_pack_queries(block, panel, d, depth);
        job->variant->scores(panel->vectors, n, depth, keys + d, block->keys_row, block->query + panel->first * depth,
                             score, d > 0, d + depth == job->dims ? top : NULL);
    }
}

/* Scores of keys s ... s+n-1; hidden ones are -inf. Raises top. */
static void attention_scores_of(attention_block *block, const attention_panel *panel, int64_t s, int64_t n, float *top)
{
    const int64_t open = mica__attention_open(&block->queries, panel->first, panel->n, s, n);
    attention_products(block, panel, s, open, block->score, top);
    if (open == n) return;
    float *rest = block->score + open * panel->width;
    attention_products(block, panel, s + open, n - open, rest, NULL);
    mica__attention_hide(&block->queries, panel->first, panel->n, panel->vectors, s + open, n - open, rest, top);
}

/* Scales the sums and results so far to the new maxima. Weights up to 2^LEEWAY cannot overflow:
 * if a maximum grows by less than that, nothing is scaled and top is set to the old maximum. */
static void attention_lower(attention_block *block, const attention_panel *panel, float *top)
{
    for (int64_t r = 0; r < panel->width; r++) {
        const float before = block->top[panel->first + r], now = top[r];
        if (now <= before + (float)LEEWAY) {
            top[r] = before;
            continue;
        }
        const float less = before == -INFINITY ? 0 : exp2f(before - now);
        float *out = block->out + (panel->first + r) * block->columns;
        block->sum[panel->first + r] *= less;
        block->job->variant->scale(block->columns, out, less, out);
    }
}

/* out += weights * values. Skips weights of 0, because their values may be not finite. */
static void attention_add_careful(attention_block *block, const attention_panel *panel, int64_t n, const float *values)
{
    const int strip = block->job->variant->strip;
    const int64_t v_strip = block->job->keys * strip;
    for (int64_t r = 0; r < panel->n; r++)
        for (int64_t e = 0; e < block->columns; e++)
            for (int64_t s = 0; s < n; s++) {
                const float p = block->score[s * panel->width + r];
                float *to = &block->out[(panel->first + r) * block->columns + e];
                if (p != 0) *to += p * values[e / strip * v_strip + s * strip + e % strip];
            }
}

/* Adds keys s ... s+n-1 to one panel; columns of the result from first_strip * strip on. */
static void attention_step(attention_block *block, const attention_panel *panel, int64_t s, int64_t n,
                           int64_t first_strip)
{
    const mica__attention_variant *variant = block->job->variant;
    const int64_t v_strip = block->job->keys * variant->strip;
    const float *values = block->values + first_strip * v_strip + s * variant->strip;
    float top[MICA__ATTENTION_PANEL], *sum = block->sum + panel->first;
    float *out = block->out + panel->first * block->columns;
    memcpy(top, block->top + panel->first, (size_t)panel->width * sizeof *top);
    attention_scores_of(block, panel, s, n, top);
    if (s > 0) attention_lower(block, panel, top);
    memcpy(block->top + panel->first, top, (size_t)panel->width * sizeof *top);
    variant->weights(panel->vectors, n, block->score, top, sum);
    if (block->careful) attention_add_careful(block, panel, n, values);
    else
        variant->values(panel->vectors, n, block->score, block->columns / variant->strip, values, v_strip, out,
                        block->columns, s > 0);
}

/* Computes the columns from first_strip on into out. Returns whether all are finite. */
static bool attention_run(attention_block *block, int64_t first_strip)
{
    const int64_t whole = MICA__ATTENTION_VECTORS * block->job->variant->lanes;
    int64_t last[BLOCK_QUERIES], most = 0;
    for (int64_t first = 0, i = 0; first < block->n; first += whole) {
        const attention_panel panel = attention_panel_at(block, first);
        last[i] = mica__attention_last(&block->queries, first, panel.n);
        most = mica__max_i64(most, last[i++]);
    }
    for (int64_t r = 0; r < BLOCK_QUERIES; r++) {
        block->top[r] = -INFINITY;
        block->sum[r] = 0;
    }
    if (block->careful) memset(block->out, 0, sizeof block->out);
    for (int64_t s = 0; s < most; s += BLOCK_KEYS)
        for (int64_t first = 0, i = 0; first < block->n; first += whole, i++) {
            const attention_panel panel = attention_panel_at(block, first);
            if (last[i] > s) attention_step(block, &panel, s, mica__min_i64(BLOCK_KEYS, last[i] - s), first_strip);
        }
    bool finite = true;
    for (int64_t first = 0, i = 0; first < block->n; first += whole, i++) {
        const attention_panel panel = attention_panel_at(block, first);
        const float *out = block->out + first * block->columns;
        if (last[i] > 0) finite &= block->job->variant->finite(panel.n * block->columns, out);
    }
    return finite;
}

static void attention_store(const attention_block *block, int64_t first, int64_t size)
{
    const mica__tensor *out = block->job->launch->out;
    float line[BLOCK_SIZE];
    for (int64_t r = 0; r < block->n; r++) {
        const float sum = block->sum[r];
        char *to = mica__element(out, mica__attention_offset(&block->queries, out, r) + first);
        float *row = mica__dtype_of(out) == MICA_F32 ? (float *)(void *)to : line;
        if (sum == 0) memset(row, 0, (size_t)size * sizeof *row); /* no visible key: out may not be set */
        else block->job->variant->scale(size, block->out + r * block->columns, 1 / sum, row);
        if (row == line) mica__store_f32(mica__dtype_of(out), size, to, 1, line);
    }
}

static void attention_blocks(const void *context, int64_t begin, int64_t end)
{
    const mica__attention_job *job = context;
    const int64_t groups = job->launch->in[1].spec.shape[1], strip = job->variant->strip;
    attention_block *block = mica__scratch_alloc(sizeof *block);
    for (int64_t part = begin; part < end; part++) {
        const int64_t head = part / job->blocks;
        block->job = job;
        block->queries =
            (mica__attention_queries){job, (job->first_head + head) / groups, (job->first_head + head) % groups,
                                      part % job->blocks * BLOCK_QUERIES};
        block->n = mica__min_i64(BLOCK_QUERIES, job->share * job->times - block->queries.row);
        block->keys = mica__attention_keys(job, head, &block->keys_row);
        block->values = job->values + head * job->strips * strip * job->keys;
        for (int64_t first = 0; job->dims <= BLOCK_DIMS && first < block->n;) {
            const attention_panel panel = attention_panel_at(block, first);
            attention_pack_queries(block, &panel, 0, job->dims);
            first += panel.n;
        }
        for (int64_t first = 0; first < job->size; first += BLOCK_SIZE) {
            const int64_t size = mica__min_i64(BLOCK_SIZE, job->size - first), strips = (size + strip - 1) / strip;
            block->careful = false;
            block->columns = strips * strip;
            if (!attention_run(block, first / strip)) {
                block->careful = true;
                (void)attention_run(block, first / strip);
            }
            attention_store(block, first, size);
        }
    }
    mica__scratch_release(block);
}

size_t mica__attention_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)n_in, (void)attr;
    if (out->dtype == MICA_F64 || mica__spec_size(out) == 0) return 0;
    return (mica__attention_streams(in) ? mica__attention_stream_floats(in) : mica__attention_packed_floats(in)) *
           sizeof(float);
}

mica_status mica__attention_cpu(const mica__launch *launch)
{
    const mica__spec *q = &launch->in[0].spec, *k = &launch->in[1].spec, *out = &launch->out->spec;
    if (mica__spec_size(out) == 0) return MICA_OK;
    const int64_t dims = q->shape[3] + out->shape[3], keys = k->shape[2];
    if (mica__dtype_of(launch->out) == MICA_F64) {
        mica__run_rows(launch->pool, mica__row_count(out), 4 * keys * dims, mica__attention_rows, launch);
        return MICA_OK;
    }
    mica__attention_job job = mica__attention_job_of(launch);
    if (mica__attention_streams(launch->in)) {
        mica__attention_stream(&job);
        return MICA_OK;
    }
    const int64_t heads = q->shape[0] * k->shape[1];
    job.blocks = (job.share * job.times + BLOCK_QUERIES - 1) / BLOCK_QUERIES;
    for (job.first_head = 0; job.first_head < heads; job.first_head += job.heads) {
        job.heads = mica__min_i64(job.heads, heads - job.first_head);
        mica__attention_pack(&job);
        mica__run_rows(launch->pool, job.heads * job.blocks, BLOCK_QUERIES * (keys + 8) * dims / 4, attention_blocks,
                       &job);
    }
    return MICA_OK;
}
