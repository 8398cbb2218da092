/* Choosing the variant of attention's inner loops, and packing keys and values for
 * them: as many heads at a time as fit a part of the third-level cache, at least one. */
#include "base/cpu.h"
#include "kernels/attention/attention_job.h"

/* ---------------------------------------------------------------- variants -- */

typedef struct attention_entry {
    const char *name;
    unsigned needs; /* CPU features */
    const mica__attention_variant *variant;
} attention_entry;

static const attention_entry attention_table[] = {
#define MICA_ATTENTION(name, needs) {#name, needs, &mica__attention_##name},
#include "kernels/attention/attention.def"
#undef MICA_ATTENTION
};

const mica__attention_variant *mica__attention_variant_at(size_t i, const char **name)
{
    const unsigned have = mica__cpu_features();
    if (i >= sizeof attention_table / sizeof *attention_table || (attention_table[i].needs & ~have)) return NULL;
    if (name) *name = attention_table[i].name;
    return attention_table[i].variant;
}

const mica__attention_variant *mica__attention_best(void)
{
    const mica__attention_variant *best = NULL, *next;
    for (size_t i = 0; (next = mica__attention_variant_at(i, NULL)) != NULL; i++) best = next;
    return best;
}

/* ----------------------------------------------------------------- packing -- */

enum {
    PACKED_BYTES = 4 << 20, /* of all heads at once, unless one is larger */
    PACKED_COLUMNS = 256    /* of a row that are converted at once        */
};

static bool attention_copies_keys(const mica__tensor *k)
{
    return mica__dtype_of(k) != MICA_F32 || (k->strides[3] != 1 && k->spec.shape[3] > 1);
}

/* Floats of one head: strips of any variant, and keys. */
static int64_t attention_head_floats(const mica__tensor *k, const mica__tensor *v)
{
    const int64_t strip = MICA__ATTENTION_STRIP, columns = (v->spec.shape[3] + strip - 1) / strip * strip;
    return v->spec.shape[2] * (columns + (attention_copies_keys(k) ? k->spec.shape[3] : 0));
}

static int64_t attention_packed_heads(const mica__tensor *in)
{
    const int64_t bytes = mica__max_i64(1, attention_head_floats(&in[1], &in[2])) * (int64_t)sizeof(float);
    const int64_t heads = mica__max_i64(1, in[1].spec.shape[0] * in[1].spec.shape[1]);
    return mica__max_i64(1, mica__min_i64(heads, PACKED_BYTES / bytes));
}

size_t mica__attention_packed_floats(const mica__tensor *in)
{
    return (size_t)(attention_packed_heads(in) * attention_head_floats(&in[1], &in[2]));
}

mica__attention_job mica__attention_job_of(const mica__launch *launch)
{
    const mica__tensor *q = &launch->in[0], *k = &launch->in[1], *v = &launch->in[2];
    const mica__attr_attention *attr = launch->attr;
    mica__attention_job job = {.launch = launch,
                               .variant = mica__attention_best(),
                               .share = q->spec.shape[1] / k->spec.shape[1],
                               .times = q->spec.shape[2],
                               .keys = k->spec.shape[2],
                               .dims = q->spec.shape[3],
                               .size = v->spec.shape[3],
                               .causal = attr->causal != 0,
                               .has_mask = attr->has_mask != 0,
                               .factor = (float)(attr->scale * (double)MICA__ATTENTION_LOG2E),
                               .heads = attention_packed_heads(launch->in),
                               .values = launch->workspace};
    job.strips = (job.size + job.variant->strip - 1) / job.variant->strip;
    if (attention_copies_keys(k)) job.copies = job.values + job.heads * job.strips * job.variant->strip * job.keys;
    return job;
}

static int64_t attention_head_offset(const mica__attention_job *job, const mica__tensor *t, int64_t head)
{
    const int64_t groups = t->spec.shape[1], at = job->first_head + head;
    return at / groups * t->strides[0] + at % groups * t->strides[1];
}

const float *mica__attention_keys(const mica__attention_job *job, int64_t head, int64_t *row)
{
    const mica__tensor *k = &job->launch->in[1];
    *row = job->copies ? job->dims : k->strides[2];
    if (job->copies) return job->copies + head * job->keys * job->dims;
    return (const float *)(const void *)mica__element(k, attention_head_offset(job, k, head));
}

/* Keys and values s of a head. */
static void attention_pack_key(const mica__attention_job *job, int64_t head, int64_t s)
{
    const mica__tensor *k = &job->launch->in[1], *v = &job->launch->in[2];
    const int64_t strip = job->variant->strip, v_strip = job->keys * strip;
    const int64_t from = attention_head_offset(job, v, head) + s * v->strides[2];
    float *to = job->values + head * job->strips * v_strip + s * strip;
    float line[PACKED_COLUMNS];
    for (int64_t e = 0; e < job->size; e += PACKED_COLUMNS, to += PACKED_COLUMNS / strip * v_strip) {
        const int64_t n = mica__min_i64(PACKED_COLUMNS, job->size - e), at = from + e * v->strides[3];
        const float *row = line;
        if (mica__dtype_of(v) == MICA_F32 && v->strides[3] == 1)
            row = (const float *)(const void *)mica__element(v, at);
        else mica__attention_widen(job->variant, v, at, v->strides[3], n, line);
        job->variant->split(n, row, to, v_strip);
    }
    if (job->copies)
        mica__attention_widen(job->variant, k, attention_head_offset(job, k, head) + s * k->strides[2], k->strides[3],
                              job->dims, job->copies + (head * job->keys + s) * job->dims);
}

static void attention_pack_keys(const void *context, int64_t begin, int64_t end)
{
    const mica__attention_job *job = context;
    for (int64_t i = begin; i < end; i++) attention_pack_key(job, i / job->keys, i % job->keys);
}

void mica__attention_pack(const mica__attention_job *job)
{
    mica__run_rows(job->launch->pool, job->heads * job->keys, job->size + job->dims, attention_pack_keys, job);
}
