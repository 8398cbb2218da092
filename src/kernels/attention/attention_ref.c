/* Attention in double. Each of three passes computes the scores again and needs no
 * scratch: the maximum, the sum, the result. */
#include "kernels/attention/attention.h"

#include <math.h>

#include "kernels/walk.h"

/* The scale of row s of k (1) or v (2). */
static double attention_scale_ref(const mica__attention_row *row, int i, int64_t s)
{
    if (mica__dtype_of(&row->launch->in[1]) != MICA_I8) return 1;
    const mica__tensor *t = &row->launch->in[2 + i];
    const int64_t at = row->b * t->strides[0] + row->g * t->strides[1] + s * t->strides[2];
    return mica__get_f64(mica__dtype_of(t), t->data, at);
}

double mica__attention_score(const mica__attention_row *row, int64_t s)
{
    const mica__launch *l = row->launch;
    const mica__attr_attention *attr = l->attr;
    const mica__tensor *q = &l->in[0], *k = &l->in[1];
    if (attr->causal && s > row->t + k->spec.shape[2] - q->spec.shape[2]) return -INFINITY;
    double added = 0;
    if (attr->has_mask) {
        const mica__tensor *mask = &l->in[3];
        const int64_t at =
            row->b * mask->strides[0] + row->h * mask->strides[1] + row->t * mask->strides[2] + s * mask->strides[3];
        const double value = mica__get_f64(mica__dtype_of(mask), mask->data, at);
        if (mica__is_bool(mica__dtype_of(mask))) added = value != 0 ? 0 : -INFINITY;
        else added = value;
        if (added == -INFINITY) return -INFINITY;
    }
    const int64_t q_at = row->b * q->strides[0] + row->h * q->strides[1] + row->t * q->strides[2];
    const int64_t k_at = row->b * k->strides[0] + row->g * k->strides[1] + s * k->strides[2];
    double sum = 0;
    for (int64_t d = 0; d < q->spec.shape[3]; d++)
        sum += mica__get_f64(mica__dtype_of(q), q->data, q_at + d * q->strides[3]) *
               mica__get_f64(mica__dtype_of(k), k->data, k_at + d * k->strides[3]);
    return sum * attention_scale_ref(row, 1, s) * attr->scale + added;
}

static void attention_row_ref(const mica__attention_row *row, int64_t index)
{
    const mica__tensor *v = &row->launch->in[2], *out = row->launch->out;
    const mica_dtype dtype = mica__dtype_of(v), result = mica__dtype_of(out);
    const int64_t keys = v->spec.shape[2], size = v->spec.shape[3];
    double top = -INFINITY, sum = 0;
    bool seen = false;
    for (int64_t s = 0; s < keys; s++) {
        const double score = mica__attention_score(row, s);
        if (score != -INFINITY) seen = true;
        if (score > top) top = score;
    }
    for (int64_t s = 0; s < keys && seen; s++) {
        const double score = mica__attention_score(row, s);
        if (score != -INFINITY) sum += exp(score - top);
    }
    for (int64_t e = 0; e < size; e++) mica__set_f64(result, out->data, index * size + e, 0);
    if (!seen) return;
    /* One element at a time would compute each score E times: blocks of 64. */
    for (int64_t first = 0; first < size; first += 64) {
        const int64_t n = mica__min_i64(64, size - first);
        double acc[64] = {0};
        for (int64_t s = 0; s < keys; s++) {
            const double score = mica__attention_score(row, s);
            if (score == -INFINITY) continue;
            const double p = exp(score - top) / sum * attention_scale_ref(row, 2, s);
            const int64_t v_at = row->b * v->strides[0] + row->g * v->strides[1] + s * v->strides[2];
            for (int64_t e = 0; e < n; e++)
                acc[e] += p * mica__get_f64(dtype, v->data, v_at + (first + e) * v->strides[3]);
        }
        for (int64_t e = 0; e < n; e++) mica__set_f64(result, out->data, index * size + first + e, acc[e]);
    }
}

void mica__attention_rows(const void *launch, int64_t begin, int64_t end)
{
    const mica__launch *l = launch;
    const int64_t heads = l->in[0].spec.shape[1], groups = l->in[1].spec.shape[1], times = l->in[0].spec.shape[2];
    for (int64_t i = begin; i < end; i++) {
        const int64_t h = i / times % heads;
        const mica__attention_row row = {l, i / times / heads, h, h / (heads / groups), i % times};
        attention_row_ref(&row, i);
    }
}

mica_status mica__attention_ref(const mica__launch *launch)
{
    mica__attention_rows(launch, 0, mica__row_count(&launch->out->spec));
    return MICA_OK;
}
