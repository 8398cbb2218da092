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
    float factor;               /* scale * log2(e)                                      */
    int64_t first_head, heads;  /* of the B * G: those that are packed                  */
    int64_t blocks;             /* of the share * times queries of a key head           */
    float *values;              /* of each head, strips of (S, strip), 0 beyond E       */
    float *copies;              /* of keys, (S, D) each, where they cannot be read in place */
} mica__attention_job;

/* Floats of scratch that the job of these operands packs into. */
size_t mica__attention_packed_floats(const mica__tensor *in);
/* heads: as many as are packed at once. */
mica__attention_job mica__attention_job_of(const mica__launch *launch);
/* Fills values and copies for `heads` heads from first_head on. */
void mica__attention_pack(const mica__attention_job *job);
/* Keys of a packed head, each *row floats after the one before. */
const float *mica__attention_keys(const mica__attention_job *job, int64_t head, int64_t *row);

/* n elements from `at` on, `stride` apart. */
static inline void mica__attention_widen(const mica__attention_variant *variant, const mica__tensor *t, int64_t at,
                                         int64_t stride, int64_t n, float *to)
{
    if (stride == 1) variant->widen(mica__dtype_of(t), n, mica__element(t, at), to);
    else mica__load_f32(mica__dtype_of(t), n, to, mica__element(t, at), stride);
}

#endif
