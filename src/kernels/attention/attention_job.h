/* The common part of the algorithms for attention in f32: the sizes, and the packed keys and
 * values of some heads. */
#ifndef MICA_KERNELS_ATTENTION_JOB_H
#define MICA_KERNELS_ATTENTION_JOB_H

#include "kernels/attention/attention_kernels.h"

#define MICA__ATTENTION_LOG2E 0x1.715476p0f

typedef struct mica__attention_job {
    const mica__launch *launch;
    const mica__attention_variant *variant;
    int64_t share;              /* heads that read the same keys                        */
    int64_t times, keys, dims, size; /* T, S, D, E                                      */
    int64_t strips;             /* of the columns of the values                         */
    bool causal, has_mask;
    bool scaled;                /* in[3], in[4] are scales of the rows of keys and values */
    float factor;               /* scale * log2(e)                                      */
    int64_t first_head, heads;  /* the packed heads of the B * G                        */
    int64_t blocks;             /* of the share * times queries of a key head           */
    float *values;              /* of each head, strips of (S, strip), padded with 0    */
    float *copies;              /* of keys, (S, D) each; NULL: keys are read in place   */
} mica__attention_job;

/* Queries of one batch and key head from `row` on; query r of them is time (row + r) % times
 * of head g * share + (row + r) / times. */
typedef struct mica__attention_queries {
    const mica__attention_job *job;
    int64_t b, g, row;
} mica__attention_queries;

static inline int64_t mica__attention_offset(const mica__attention_queries *q, const mica__tensor *t, int64_t r)
{
    const int64_t row = q->row + r, head = q->g * q->job->share + row / q->job->times;
    return q->b * t->strides[0] + head * t->strides[1] + row % q->job->times * t->strides[2];
}

/* The number of keys that causality leaves visible to query r. */
static inline int64_t mica__attention_seen(const mica__attention_queries *q, int64_t r)
{
    if (!q->job->causal) return q->job->keys;
    return mica__max_i64(0, (q->row + r) % q->job->times + 1 + q->job->keys - q->job->times);
}

/* Transposes queries first ... first+n-1 into lanes: dims d ... d+depth-1 of t as (depth,
 * width), times a factor. Lanes without a query repeat the last query. */
void mica__attention_turn(const mica__attention_queries *q, const mica__tensor *t, int64_t first, int64_t n, int width,
                          int64_t d, int64_t depth, float factor, float *to);

/* For queries first ... first+n-1 and `keys` keys from s on: hides keys that are not visible, adds
 * the mask, and raises top. */
void mica__attention_hide(const mica__attention_queries *q, int64_t first, int64_t n, int vectors, int64_t s,
                          int64_t keys, float *score, float *top);
/* How many keys from s on are visible to all of the queries, rounded down to whole blocks. */
int64_t mica__attention_open(const mica__attention_queries *q, int64_t first, int64_t n, int64_t s, int64_t keys);
/* One more than the last key that is visible to any of the queries, rounded up to whole blocks. */
int64_t mica__attention_last(const mica__attention_queries *q, int64_t first, int64_t n);

/* Floats of scratch that the job of these operands needs for packing. */
size_t mica__attention_packed_floats(const mica__tensor *in);
/* The same for any number of keys up to that of the operands. */
size_t mica__attention_packed_most(const mica__tensor *in);
/* Sets heads to the number of heads that are packed at once. */
mica__attention_job mica__attention_job_of(const mica__launch *launch);
/* Fills values and copies for `heads` heads from first_head on. */
void mica__attention_pack(const mica__attention_job *job);
/* Keys of a packed head; *row: their stride in floats. */
const float *mica__attention_keys(const mica__attention_job *job, int64_t head, int64_t *row);

/* The scale of row s of a head of keys (i = 1) or values (2). */
static inline float mica__attention_scale(const mica__attention_job *job, int i, int64_t b, int64_t g, int64_t s)
{
    if (!job->scaled) return 1;
    const mica__tensor *t = &job->launch->in[2 + i];
    const int64_t at = b * t->strides[0] + g * t->strides[1] + s * t->strides[2];
    return (float)mica__get_f64(mica__dtype_of(t), t->data, at);
}

/* Converts n elements from `at` on, with this stride, to floats. */
static inline void mica__attention_widen(const mica__attention_variant *variant, const mica__tensor *t, int64_t at,
                                         int64_t stride, int64_t n, float *to)
{
    if (stride == 1) variant->widen(mica__dtype_of(t), n, mica__element(t, at), to);
    else mica__load_f32(mica__dtype_of(t), n, to, mica__element(t, at), stride);
}

#endif
