/* Gradients of attention in double: first the maximum, the sum and the mean slope of
 * each query, then dq query by query, and dk and dv key by key. Scores are computed
 * again in each of these passes. */
#include <math.h>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_grad.h"
#include "kernels/walk.h"

typedef struct grad_job {
    const mica__launch *launch;
    int64_t heads, groups, times, keys, dims, size;
    double *top, *sum, *mean;   /* of each query */
} grad_job;

static grad_job grad_job_of(const mica__launch *launch)
{
    const mica__spec *q = &launch->in[0].spec, *k = &launch->in[1].spec, *v = &launch->in[2].spec;
    grad_job job = {launch,      q->shape[1], k->shape[1],       q->shape[2], k->shape[2],
                    q->shape[3], v->shape[3], launch->workspace, NULL,        NULL};
    const int64_t rows = q->shape[0] * job.heads * job.times;
    job.sum = job.top + rows;
    job.mean = job.sum + rows;
    return job;
}

/* Query number `row` of all heads. */
static mica__attention_row grad_row(const grad_job *job, int64_t row)
{
    const int64_t h = row / job->times % job->heads;
    return (mica__attention_row){job->launch, row / job->times / job->heads, h, h / (job->heads / job->groups),
                                 row % job->times};
}

static double grad_element(const mica__tensor *t, int64_t b, int64_t h, int64_t i, int64_t d)
{
    return mica__get_f64(mica__dtype_of(t), t->data,
                         b * t->strides[0] + h * t->strides[1] + i * t->strides[2] + d * t->strides[3]);
}

/* <c, v[s]> */
static double grad_weight_slope(const grad_job *job, const mica__attention_row *row, int64_t s)
{
    const mica__tensor *v = &job->launch->in[2], *c = &job->launch->in[job->launch->n_in - 1];
    double sum = 0;
    for (int64_t e = 0; e < job->size; e++)
        sum += grad_element(c, row->b, row->h, row->t, e) * grad_element(v, row->b, row->g, s, e);
    return sum;
}

static double grad_weight(const grad_job *job, const mica__attention_row *row, int64_t number, int64_t s)
{
    const double score = mica__attention_score(row, s);
    return score == -INFINITY ? 0 : exp(score - job->top[number]) / job->sum[number];
}

static void grad_rows(const void *context, int64_t begin, int64_t end)
{
    const grad_job *job = context;
    for (int64_t number = begin; number < end; number++) {
        const mica__attention_row row = grad_row(job, number);
        double top = -INFINITY, sum = 0, mean = 0;
        for (int64_t s = 0; s < job->keys; s++) {
            const double score = mica__attention_score(&row, s);
            if (score > top) top = score;
        }
        for (int64_t s = 0; s < job->keys; s++) {
            const double score = mica__attention_score(&row, s);
            if (score != -INFINITY) sum += exp(score - top);
        }
        job->top[number] = top;
        job->sum[number] = sum;
        for (int64_t s = 0; s < job->keys; s++) {
            const double p = grad_weight(job, &row, number, s);
            if (p != 0) mean += p * grad_weight_slope(job, &row, s);
        }
        job->mean[number] = mean;
    }
}

/* Elements of one row at a time are 64 sums. */
enum { GRAD_SUMS = 64 };

static void grad_queries(const void *context, int64_t begin, int64_t end)
{
    const grad_job *job = context;
    const mica__launch *l = job->launch;
    const mica__attr_attention *attr = l->attr;
    for (int64_t number = begin; number < end; number++) {
        const mica__attention_row row = grad_row(job, number);
        for (int64_t first = 0; first < job->dims; first += GRAD_SUMS) {
            const int64_t n = mica__min_i64(GRAD_SUMS, job->dims - first);
            double sum[GRAD_SUMS] = {0};
            for (int64_t s = 0; s < job->keys; s++) {
                const double p = grad_weight(job, &row, number, s);
                if (p == 0) continue;
                const double slope = p * (grad_weight_slope(job, &row, s) - job->mean[number]) * attr->scale;
                for (int64_t d = 0; d < n; d++) sum[d] += slope * grad_element(&l->in[1], row.b, row.g, s, first + d);
            }
            for (int64_t d = 0; d < n; d++)
                mica__set_f64(mica__dtype_of(l->out), l->out->data, number * job->dims + first + d, sum[d]);
        }
    }
}

/* Elements first ... first+n-1 of dk or dv of one key: sums over all queries that
 * read it, in order. */
static void grad_key(const grad_job *job, int64_t number, bool values, int64_t first, int64_t n, double *sum)
{
    const mica__launch *l = job->launch;
    const mica__tensor *from = values ? &l->in[l->n_in - 1] : &l->in[0];
    const double scale = ((const mica__attr_attention *)l->attr)->scale;
    const int64_t share = job->heads / job->groups, s = number % job->keys, head = number / job->keys;
    for (int64_t i = 0; i < n; i++) sum[i] = 0;
    for (int64_t r = 0; r < share * job->times; r++) {
        const int64_t query = head * share * job->times + r;
        const mica__attention_row row = grad_row(job, query);
        const double p = grad_weight(job, &row, query, s);
        if (p == 0) continue;
        const double factor = values ? p : p * (grad_weight_slope(job, &row, s) - job->mean[query]) * scale;
        for (int64_t i = 0; i < n; i++) sum[i] += factor * grad_element(from, row.b, row.h, row.t, first + i);
    }
}

static void grad_keys(const void *context, int64_t begin, int64_t end)
{
    const grad_job *job = context;
    const mica__tensor *out = job->launch->out;
    const int64_t keys = job->launch->in[1].spec.shape[0] * job->groups * job->keys;
    const int64_t dk = mica__spec_size(&job->launch->in[0].spec), dv = dk + keys * job->dims;
    double sum[GRAD_SUMS];
    for (int64_t number = begin; number < end; number++)
        for (int values = 0; values < 2; values++) {
            const int64_t size = values ? job->size : job->dims, base = (values ? dv : dk) + number * size;
            for (int64_t first = 0; first < size; first += GRAD_SUMS) {
                const int64_t n = mica__min_i64(GRAD_SUMS, size - first);
                grad_key(job, number, values, first, n, sum);
                for (int64_t i = 0; i < n; i++) mica__set_f64(mica__dtype_of(out), out->data, base + first + i, sum[i]);
            }
        }
}

size_t mica__attention_grad_double_bytes(const mica__tensor *in)
{
    const mica__spec *q = &in[0].spec;
    return (size_t)(3 * q->shape[0] * q->shape[1] * q->shape[2]) * sizeof(double);
}

void mica__attention_grad_double(const mica__launch *launch, mica__pool *pool)
{
    const grad_job job = grad_job_of(launch);
    const int64_t batch = launch->in[0].spec.shape[0], rows = batch * job.heads * job.times,
                  keys = batch * job.groups * job.keys, work = 8 * (job.dims + job.size);
    mica__run_rows(pool, rows, work * job.keys, grad_rows, &job);
    mica__run_rows(pool, rows, work * job.keys, grad_queries, &job);
    mica__run_rows(pool, keys, work * job.times, grad_keys, &job);
}

mica_status mica__attention_grad_ref(const mica__launch *launch)
{
    mica__attention_grad_double(launch, NULL);
    return MICA_OK;
}
