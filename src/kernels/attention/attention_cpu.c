/* Attention in f32, in blocks: up to 48 queries that share their keys (also of
 * several heads, where heads share) against 64 keys at a time. For each query
 * the maximum and the sum so far are kept, and what was added up is scaled down
 * when the maximum grows. The order is fixed by the sizes alone. */
#include "kernels/attention/attention.h"

#include <math.h>

#include "kernels/matmul/gemm.h"
#include "kernels/vec4.h"

/* rows: a multiple of what every gemm variant computes at once */
enum { ATTENTION_ROWS = 48, ATTENTION_KEYS = 64, ATTENTION_SIZE = 128 };

typedef struct attention_job {
    const mica__launch *launch;
    const mica__gemm_variant *gemm;
    int64_t share;              /* heads that read the same keys               */
    int64_t times, keys;        /* T, S                                        */
    int64_t blocks;             /* of the share * times queries of a key head  */
} attention_job;

/* Queries row ... row+n-1 of one batch and key head; query r is time r % times
 * of head g * share + r / times. */
typedef struct attention_block {
    const attention_job *job;
    int64_t b, g, row, n;
    int64_t last;               /* the last key that any of them sees          */
    bool packed;                /* query has all of them, in strips            */
    float query[ATTENTION_ROWS * MICA__GEMM_DEPTH];
    float top[ATTENTION_ROWS], sum[ATTENTION_ROWS];
    float score[ATTENTION_ROWS * ATTENTION_KEYS];
    float out[ATTENTION_ROWS * ATTENTION_SIZE];
} attention_block;

static int64_t attention_query_offset(const attention_block *block, const mica__tensor *t, int64_t r)
{
    const attention_job *job = block->job;
    const int64_t row = block->row + r, head = block->g * job->share + row / job->times;
    return block->b * t->strides[0] + head * t->strides[1] + row % job->times * t->strides[2];
}

/* q as an operand of gemm: lines may jump from one head to the next. */
static void attention_pack_queries(attention_block *block, int64_t k, int64_t depth)
{
    const mica__tensor *q = &block->job->launch->in[0];
    if (block->packed) return;
    block->packed = depth == q->spec.shape[3];
    float line[MICA__GEMM_DEPTH];
    const int mr = block->job->gemm->mr;
    for (int64_t r = 0; r < (block->n + mr - 1) / mr * mr; r++) {
        if (r < block->n)
            mica__load_f32(mica__dtype_of(q), depth, line,
                           mica__element(q, attention_query_offset(block, q, r) + k * q->strides[3]), q->strides[3]);
        else memset(line, 0, sizeof line);
        float *strip = block->query + r / mr * mr * depth + r % mr;
        for (int64_t kk = 0; kk < depth; kk++) strip[kk * mr] = line[kk];
    }
}

static void attention_products(attention_block *block, int64_t s, int64_t keys)
{
    const mica__tensor *q = &block->job->launch->in[0], *k = &block->job->launch->in[1];
    _Alignas(64) float b[MICA__GEMM_MAX_NR * MICA__GEMM_DEPTH];
    const mica__gemm_variant *gemm = block->job->gemm;
    const int64_t dims = q->spec.shape[3];
    const mica__gemm_view view = {mica__element(k, block->b * k->strides[0] + block->g * k->strides[1]),
                                  mica__dtype_of(k), k->strides[3], k->strides[2]};
    if (dims == 0) memset(block->score, 0, sizeof block->score);
    for (int64_t d = 0; d < dims; d += MICA__GEMM_DEPTH) {
        const int64_t depth = mica__min_i64(MICA__GEMM_DEPTH, dims - d);
        attention_pack_queries(block, d, depth);
        for (int64_t j = 0; j < keys; j += gemm->nr) {
            mica__gemm_pack_view(&view, d, depth, s + j, mica__min_i64(gemm->nr, keys - j), gemm->nr, b);
            for (int64_t r = 0; r < block->n; r += gemm->mr)
                gemm->packed(depth, block->query + r * depth, b, block->score + r * ATTENTION_KEYS + j, ATTENTION_KEYS,
                             d > 0);
        }
    }
}

/* Scale, add the mask, and hide: -inf, also up to the end of the block. */
static void attention_hide(attention_block *block, int64_t s, int64_t keys)
{
    const attention_job *job = block->job;
    const mica__attr_attention *attr = job->launch->attr;
    const mica__tensor *mask = attr->has_mask ? &job->launch->in[3] : NULL;
    const float scale = (float)attr->scale;
    for (int64_t r = 0; r < block->n; r++) {
        float *score = block->score + r * ATTENTION_KEYS;
        const int64_t time = (block->row + r) % job->times;
        int64_t seen = attr->causal ? mica__min_i64(keys, time + job->keys - job->times + 1 - s) : keys;
        if (seen < 0) seen = 0;
        for (int64_t j = 0; j < seen; j++) score[j] *= scale;
        if (mask) {
            const char *at = mica__element(mask, attention_query_offset(block, mask, r) + s * mask->strides[3]);
            float value[ATTENTION_KEYS];
            const bool logical = mica__is_bool(mica__dtype_of(mask));
            mica__load_f32(mica__dtype_of(mask), seen, value, at, mask->strides[3]);
            for (int64_t j = 0; j < seen; j++)
                score[j] = (logical ? value[j] == 0 : value[j] == -INFINITY) ? -INFINITY
                           : logical                                         ? score[j]
                                                                             : score[j] + value[j];
        }
        for (int64_t j = seen; j < ATTENTION_KEYS; j++) score[j] = -INFINITY;
    }
}

/* Scores to weights; brings the sums so far to the new maximum. */
static void attention_weights(attention_block *block, int64_t size)
{
    for (int64_t r = 0; r < block->n; r++) {
        float *score = block->score + r * ATTENTION_KEYS, *out = block->out + r * ATTENTION_SIZE;
        mica__v4 best = mica__v4_all(block->top[r]);
        for (int j = 0; j < ATTENTION_KEYS; j += 4) best = mica__v4_max(mica__v4_load(score + j), best);
        const float top = fmaxf(fmaxf(best[0], best[1]), fmaxf(best[2], best[3]));
        if (top != block->top[r]) {
            const float less = mica__exp_f32(block->top[r] - top); /* 0 if nothing was seen before */
            block->sum[r] *= less;
            for (int64_t e = 0; e < size; e++) out[e] *= less;
            block->top[r] = top;
        }
        mica__v4 sum = mica__v4_all(0);
        for (int j = 0; j < ATTENTION_KEYS; j += 4) {
            const mica__v4 x = mica__v4_load(score + j);
            /* -inf - -inf is NaN, but what is hidden has weight 0. */
            const mica__v4 p = mica__v4_select(x == -INFINITY, mica__v4_all(0), mica__v4_exp(x - top));
            mica__v4_store(score + j, p);
            sum += p;
        }
        block->sum[r] += mica__v4_sum(sum);
    }
}

/* out += weights * v without the weights that are 0: v may be anything there. */
static void attention_add_careful(attention_block *block, const float *v, int64_t keys, int64_t e)
{
    const int nr = block->job->gemm->nr;
    for (int64_t r = 0; r < block->n; r++)
        for (int64_t j = 0; j < keys; j++) {
            const float p = block->score[r * ATTENTION_KEYS + j];
            for (int64_t i = 0; i < nr && p != 0; i++) block->out[r * ATTENTION_SIZE + e + i] += p * v[j * nr + i];
        }
}

static bool attention_all_finite(const float *x, int64_t n)
{
    mica__v4 zero = mica__v4_all(0);
    for (int64_t i = 0; i < n; i += 4) zero += mica__v4_load(x + i) * 0.0f; /* NaN from NaN and infinities */
    return mica__v4_sum(zero) == 0;
}

/* Columns first ... first+size-1 of v. */
static void attention_add(attention_block *block, int64_t s, int64_t keys, int64_t first, int64_t size)
{
    const mica__tensor *v = &block->job->launch->in[2];
    _Alignas(64) float a[ATTENTION_ROWS * ATTENTION_KEYS], b[MICA__GEMM_MAX_NR * ATTENTION_KEYS];
    const mica__gemm_variant *gemm = block->job->gemm;
    const mica__gemm_view view = {mica__element(v, block->b * v->strides[0] + block->g * v->strides[1]),
                                  mica__dtype_of(v), v->strides[2], v->strides[3]};
    const mica__gemm_view weights = {(const char *)block->score, MICA_F32, 1, ATTENTION_KEYS};
    for (int64_t r = 0; r < block->n; r += gemm->mr)
        mica__gemm_pack_view(&weights, 0, keys, r, mica__min_i64(gemm->mr, block->n - r), gemm->mr, a + r * keys);
    for (int64_t e = 0; e < size; e += gemm->nr) {
        mica__gemm_pack_view(&view, s, keys, first + e, mica__min_i64(gemm->nr, size - e), gemm->nr, b);
        if (attention_all_finite(b, keys * gemm->nr))
            for (int64_t r = 0; r < block->n; r += gemm->mr)
                gemm->packed(keys, a + r * keys, b, block->out + r * ATTENTION_SIZE + e, ATTENTION_SIZE, true);
        else attention_add_careful(block, b, keys, e);
    }
}

static void attention_store(const attention_block *block, int64_t first, int64_t size)
{
    const mica__tensor *out = block->job->launch->out;
    float line[ATTENTION_SIZE];
    for (int64_t r = 0; r < block->n; r++) {
        const float sum = block->sum[r], inverse = sum == 0 ? 0 : 1 / sum; /* 0: saw nothing */
        for (int64_t e = 0; e < size; e++) line[e] = block->out[r * ATTENTION_SIZE + e] * inverse;
        mica__store_f32(mica__dtype_of(out), size, mica__element(out, attention_query_offset(block, out, r) + first), 1,
                        line);
    }
}

static void attention_blocks(const void *context, int64_t begin, int64_t end)
{
    const attention_job *job = context;
    const mica__tensor *k = &job->launch->in[1], *v = &job->launch->in[2];
    const bool causal = ((const mica__attr_attention *)job->launch->attr)->causal != 0;
    for (int64_t part = begin; part < end; part++) {
        attention_block block;
        block.job = job;
        block.packed = false;
        block.row = part % job->blocks * ATTENTION_ROWS;
        block.n = mica__min_i64(ATTENTION_ROWS, job->share * job->times - block.row);
        block.g = part / job->blocks % k->spec.shape[1];
        block.b = part / job->blocks / k->spec.shape[1];
        /* The latest time among the queries; a block may hold the end of a head. */
        const int64_t from = block.row % job->times, latest = mica__min_i64(from + block.n - 1, job->times - 1);
        block.last = causal ? latest + job->keys - job->times : job->keys - 1;
        for (int64_t first = 0; first < v->spec.shape[3]; first += ATTENTION_SIZE) {
            const int64_t size = mica__min_i64(ATTENTION_SIZE, v->spec.shape[3] - first);
            for (int64_t r = 0; r < ATTENTION_ROWS; r++) {
                block.top[r] = -INFINITY;
                block.sum[r] = 0;
            }
            memset(block.out, 0, sizeof block.out);
            for (int64_t s = 0; s <= block.last; s += ATTENTION_KEYS) {
                const int64_t keys = mica__min_i64(ATTENTION_KEYS, job->keys - s);
                attention_products(&block, s, keys);
                attention_hide(&block, s, keys);
                attention_weights(&block, size);
                attention_add(&block, s, keys, first, size);
            }
            attention_store(&block, first, size);
        }
    }
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
    attention_job job = {.launch = launch,
                         .gemm = mica__gemm_best(),
                         .share = q->shape[1] / k->shape[1],
                         .times = q->shape[2],
                         .keys = keys};
    job.blocks = (job.share * job.times + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    mica__run_rows(launch->pool, q->shape[0] * k->shape[1] * job.blocks, ATTENTION_ROWS * (keys + 8) * dims / 4,
                   attention_blocks, &job);
    return MICA_OK;
}
