/* Chooses the variant of attention's inner loops, and packs keys and values for them: as many
 * heads at a time as fit into a part of the third-level cache, at least one. */
#include <math.h>

#include "base/cpu.h"
#include "kernels/attention/attention_job.h"
#include "simd/fixed.h"

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
    PACKED_COLUMNS = 256,   /* of a row that are converted at once        */
    HIDDEN_KEYS = 128       /* whose mask is read at once                 */
};

static bool attention_copies_keys(const mica__tensor *k)
{
    return mica__dtype_of(k) != MICA_F32 || (k->strides[3] != 1 && k->spec.shape[3] > 1);
}

/* Floats of one head: strips of values for any variant, and the copy of the keys. */
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

size_t mica__attention_packed_most(const mica__tensor *in)
{
    const int64_t head = attention_head_floats(&in[1], &in[2]), heads = in[1].spec.shape[0] * in[1].spec.shape[1];
    return (size_t)mica__max_i64(head, mica__min_i64(heads * head, PACKED_BYTES / (int64_t)sizeof(float)));
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
                               .scaled = mica__dtype_of(k) == MICA_I8,
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

/* Packs key and value s of a head. */
static void attention_pack_key(const mica__attention_job *job, int64_t head, int64_t s)
{
    const mica__tensor *k = &job->launch->in[1], *v = &job->launch->in[2];
    const int64_t strip = job->variant->strip, v_strip = job->keys * strip;
    const int64_t groups = k->spec.shape[1], b = (job->first_head + head) / groups,
                  g = (job->first_head + head) % groups;
    const int64_t from = attention_head_offset(job, v, head) + s * v->strides[2];
    float *to = job->values + head * job->strips * v_strip + s * strip;
    float line[PACKED_COLUMNS];
    for (int64_t e = 0; e < job->size; e += PACKED_COLUMNS, to += PACKED_COLUMNS / strip * v_strip) {
        const int64_t n = mica__min_i64(PACKED_COLUMNS, job->size - e), at = from + e * v->strides[3];
        const float *row = line;
        if (mica__dtype_of(v) == MICA_F32 && v->strides[3] == 1)
            row = (const float *)(const void *)mica__element(v, at);
        else mica__attention_widen(job->variant, v, at, v->strides[3], n, line);
        if (job->scaled) job->variant->scale(n, line, mica__attention_scale(job, 2, b, g, s), line);
        job->variant->split(n, row, to, v_strip);
    }
    if (!job->copies) return;
    float *copy = job->copies + (head * job->keys + s) * job->dims;
    mica__attention_widen(job->variant, k, attention_head_offset(job, k, head) + s * k->strides[2], k->strides[3],
                          job->dims, copy);
    if (job->scaled) job->variant->scale(job->dims, copy, mica__attention_scale(job, 1, b, g, s), copy);
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

/* ----------------------------------------------------------------- queries -- */

/* Transposes four rows of `depth` to (depth, 4), with row stride `width`, times a factor. */
static void attention_turn_four(const float *const from[4], int64_t depth, float factor, float *to, int64_t width)
{
    int64_t i = 0;
    for (; i + 4 <= depth; i += 4, to += 4 * width) {
        const f32x4 a = f32x4_load(from[0] + i), b = f32x4_load(from[1] + i);
        const f32x4 c = f32x4_load(from[2] + i), d = f32x4_load(from[3] + i);
        const f32x4 ac = f32x4_low_pairs(a, c), bd = f32x4_low_pairs(b, d);
        const f32x4 ca = f32x4_high_pairs(a, c), db = f32x4_high_pairs(b, d);
        f32x4_store(to, f32x4_low_pairs(ac, bd) * factor);
        f32x4_store(to + width, f32x4_high_pairs(ac, bd) * factor);
        f32x4_store(to + 2 * width, f32x4_low_pairs(ca, db) * factor);
        f32x4_store(to + 3 * width, f32x4_high_pairs(ca, db) * factor);
    }
    for (; i < depth; i++, to += width)
        for (int r = 0; r < 4; r++) to[r] = from[r][i] * factor;
}

void mica__attention_turn(const mica__attention_queries *q, const mica__tensor *t, int64_t first, int64_t n, int width,
                          int64_t d, int64_t depth, float factor, float *to)
{
    float lines[4][PACKED_COLUMNS];
    const bool in_place = mica__dtype_of(t) == MICA_F32 && t->strides[3] == 1;
    for (int64_t lane = 0; lane < width; lane += 4) {
        int64_t at[4];
        for (int64_t r = 0; r < 4; r++)
            at[r] = mica__attention_offset(q, t, first + mica__min_i64(lane + r, n - 1)) + d * t->strides[3];
        for (int64_t i = 0; i < depth; i += PACKED_COLUMNS) {
            const int64_t count = mica__min_i64(PACKED_COLUMNS, depth - i);
            const float *from[4];
            for (int64_t r = 0; r < 4; r++) {
                const int64_t begin = at[r] + i * t->strides[3];
                from[r] = in_place ? (const float *)(const void *)mica__element(t, begin) : lines[r];
                if (!in_place) mica__attention_widen(q->job->variant, t, begin, t->strides[3], count, lines[r]);
            }
            attention_turn_four(from, count, factor, to + i * width + lane, width);
        }
    }
}

int64_t mica__attention_open(const mica__attention_queries *q, int64_t first, int64_t n, int64_t s, int64_t keys)
{
    int64_t open = keys;
    if (q->job->has_mask) return 0;
    for (int64_t r = 0; r < n && q->job->causal; r++)
        open = mica__min_i64(open, mica__attention_seen(q, first + r) - s);
    if (open == keys) return keys;
    return mica__max_i64(0, open) / q->job->variant->keys * q->job->variant->keys;
}

int64_t mica__attention_last(const mica__attention_queries *q, int64_t first, int64_t n)
{
    const int64_t whole = q->job->variant->keys;
    int64_t last = 0;
    for (int64_t r = 0; r < n; r++) last = mica__max_i64(last, mica__attention_seen(q, first + r));
    return mica__min_i64(q->job->keys, (last + whole - 1) / whole * whole);
}

/* The mask as terms for the scores of keys s ... s+keys-1, times log2(e): (keys, width). */
static void attention_mask(const mica__attention_queries *q, int64_t first, int64_t n, int width, int64_t s,
                           int64_t keys, float *added)
{
    const mica__tensor *mask = &q->job->launch->in[3];
    const bool logical = mica__is_bool(mica__dtype_of(mask));
    float line[HIDDEN_KEYS];
    for (int64_t r = 0; r < width; r++) {
        const int64_t row = first + mica__min_i64(r, n - 1);
        mica__load_f32(mica__dtype_of(mask), keys, line,
                       mica__element(mask, mica__attention_offset(q, mask, row) + s * mask->strides[3]),
                       mask->strides[3]);
        for (int64_t j = 0; j < keys; j++)
            added[j * width + r] = !logical ? line[j] * MICA__ATTENTION_LOG2E : line[j] != 0 ? 0 : -INFINITY;
    }
}

void mica__attention_hide(const mica__attention_queries *q, int64_t first, int64_t n, int vectors, int64_t s,
                          int64_t keys, float *score, float *top)
{
    const int width = vectors * q->job->variant->lanes;
    int32_t seen[MICA__ATTENTION_PANEL];
    float *added = mica__scratch_alloc(HIDDEN_KEYS * MICA__ATTENTION_PANEL * sizeof *added);
    for (int64_t j = 0; j < keys; j += HIDDEN_KEYS) {
        const int64_t count = mica__min_i64(HIDDEN_KEYS, keys - j);
        for (int64_t r = 0; r < width; r++) {
            const int64_t sees = mica__attention_seen(q, first + mica__min_i64(r, n - 1)) - s - j;
            seen[r] = (int32_t)mica__max_i64(0, mica__min_i64(count, sees));
        }
        if (q->job->has_mask) attention_mask(q, first, n, width, s + j, count, added);
        q->job->variant->hide(vectors, count, score + j * width, q->job->has_mask ? added : NULL, seen, top);
    }
    mica__scratch_release(added);
}
