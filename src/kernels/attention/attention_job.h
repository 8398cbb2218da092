/* What the ways to compute attention in f32 share: the sizes, and the keys and values
 * of some heads as the inner loops want them. */
#ifndef MICA_KERNELS_ATTENTION_JOB_H
#define MICA_KERNELS_ATTENTION_JOB_H

#include "kernels/attention/attention_kernels.h"

#define MICA__ATTENTION_LOG2E 0x1.715476p0f

typedef struct mica__attention_job {
    const mica__launch *launch;
    const mica__attention_variant *variant;
    int64_t share;              /* heads that read the same keys                        */
    int64_t times, keys, dims, size; /* T, S, D, E                                      */
    int64_t strips;             /* that the columns of values fill                      */
    bool causal, has_mask;
    bool scaled;                /* in[3], in[4]: of the rows of keys and values         */
    float factor;               /* scale * log2(e)                                      */
    int64_t first_head, heads;  /* of the B * G: those that are packed                  */
    int64_t blocks;             /* of the share * times queries of a key head           */
    float *values;              /* of each head, strips of (S, strip), 0 beyond E       */
    float *copies;              /* of keys, (S, D) each, where they cannot be read in place */
} mica__attention_job;

/* Queries row ... of one batch and key head; query r of them is time (row + r) % times
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

/* Keys that query r sees, as far as causality goes. */
static inline int64_t mica__attention_seen(const mica__attention_queries *q, int64_t r)
{
    if (!q->job->causal) return q->job->keys;
    return mica__max_i64(0, (q->row + r) % q->job->times + 1 + q->job->keys - q->job->times);
}

/* Queries first ... first+n-1 across the lanes: dims d ... d+depth-1 of t as (depth,
 * width), times a factor. Lanes without a query repeat the last. */
void mica__attention_turn(const mica__attention_queries *q, const mica__tensor *t, int64_t first, int64_t n, int width,
                          int64_t d, int64_t depth, float factor, float *to);

/* Hides what queries first ... first+n-1 do not see of `keys` keys from s on, adds the
 * mask, and raises top. */
void mica__attention_hide(const mica__attention_queries *q, int64_t first, int64_t n, int vectors, int64_t s,
                          int64_t keys, float *score, float *top);
/* Keys at the beginning of these that all of the queries see, in whole blocks. */
int64_t mica__attention_open(const mica__attention_queries *q, int64_t first, int64_t n, int64_t s, int64_t keys);
/* One more than the last key that any of the queries sees, or a few more for whole
 * blocks. */
int64_t mica__attention_last(const mica__attention_queries *q, int64_t first, int64_t n);

/* Floats of scratch that the job of these operands packs into. */
size_t mica__attention_packed_floats(const mica__tensor *in);
/* The same for any number of keys up to those there are. */
size_t mica__attention_packed_most(const mica__tensor *in);
/* heads: as many as are packed at once. */
mica__attention_job mica__attention_job_of(const mica__launch *launch);
/* Fills values and copies for `heads` heads from first_head on. */
void mica__attention_pack(const mica__attention_job *job);
/* Keys of a packed head, each *row floats after the one before. */
const float *mica__attention_keys(const mica__attention_job *job, int64_t head, int64_t *row);

/* What row s of a head of keys (i = 1) or values (2) is multiplied by. */
static inline float mica__attention_scale(const mica__attention_job *job, int i, int64_t b, int64_t g, int64_t s)
{
    if (!job->scaled) return 1;
    const mica__tensor *t = &job->launch->in[2 + i];
    const int64_t at = b * t->strides[0] + g * t->strides[1] + s * t->strides[2];
    return (float)mica__get_f64(mica__dtype_of(t), t->data, at);
}

/* n elements from `at` on, `stride` apart. */
static inline void mica__attention_widen(const mica__attention_variant *variant, const mica__tensor *t, int64_t at,
                                         int64_t stride, int64_t n, float *to)
{
    if (stride == 1) variant->widen(mica__dtype_of(t), n, mica__element(t, at), to);
    else mica__load_f32(mica__dtype_of(t), n, to, mica__element(t, at), stride);
}

#endif
