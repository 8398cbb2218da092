/* Rotary positions with a table: positions are mostly the same for all heads
 * and batches (strides of 0), and then each sine is computed once. */
#include "kernels/rope/rope.h"

#include <math.h>

#include "kernels/walk.h"

typedef struct rope_job {
    const mica__launch *launch;
    double *table;                      /* (positions, cos and sin, dims / 2)          */
    int64_t pairs;
    int64_t shape[MICA_MAX_DIMS];       /* of the positions that differ                */
    int64_t strides[MICA_MAX_DIMS];     /* row-major over them; 0 where they repeat    */
    int64_t count;
} rope_job;

static void rope_positions(const mica__tensor *in, const mica__attr_rope *attr, rope_job *job)
{
    job->pairs = attr->dims / 2;
    job->count = 1;
    for (int d = in[1].spec.ndim - 1; d >= 0; d--) {
        const bool repeats = mica__rope_stride(&in[1], d) == 0;
        job->shape[d] = repeats ? 1 : in[1].spec.shape[d];
        job->strides[d] = repeats ? 0 : job->count;
        job->count *= job->shape[d];
    }
}

size_t mica__rope_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)n_in;
    (void)out;
    rope_job job = {0};
    rope_positions(in, attr, &job);
    size_t nbytes;
    return mica__mul_size((size_t)job.count, (size_t)job.pairs * 2 * sizeof(double), &nbytes) ? nbytes : SIZE_MAX;
}

static void rope_fill_table(const void *context, int64_t begin, int64_t end)
{
    const rope_job *job = context;
    const mica__tensor *positions = &job->launch->in[1];
    const mica__attr_rope *attr = job->launch->attr;
    for (int64_t i = 0; i < job->pairs; i++) {
        const double rate = pow(attr->base, -2.0 * (double)i / (double)attr->dims);
        mica__walk walk;
        mica__walk_begin(&walk, positions->spec.ndim, job->shape, positions->strides, begin);
        for (int64_t p = begin; p < end; p++, mica__walk_next(&walk)) {
            const double position = mica__get_f64(mica__dtype_of(positions), positions->data, walk.offset);
            const double angle = position * attr->scale * rate;
            double *to = job->table + p * job->pairs * 2 + i;
            to[0] = cos(angle);
            to[job->pairs] = attr->inverse ? -sin(angle) : sin(angle);
        }
    }
}

/* Four pairs at a time; doubles, as everywhere here. */
typedef float rope_four __attribute__((vector_size(16), aligned(4), may_alias));
typedef double rope_wide __attribute__((vector_size(32), aligned(8), may_alias));

/* Halves of a row that lie side by side. */
static void rope_halves(const float *x, const double *cosine, const double *sine, int64_t pairs, float *y)
{
    int64_t i = 0;
    for (; i + 4 <= pairs; i += 4) {
        const rope_wide c = *(const rope_wide *)(cosine + i), s = *(const rope_wide *)(sine + i);
        const rope_wide v = __builtin_convertvector(*(const rope_four *)(x + i), rope_wide);
        const rope_wide w = __builtin_convertvector(*(const rope_four *)(x + pairs + i), rope_wide);
        *(rope_four *)(y + i) = __builtin_convertvector(v * c - w * s, rope_four);
        *(rope_four *)(y + pairs + i) = __builtin_convertvector(w * c + v * s, rope_four);
    }
    for (; i < pairs; i++) {
        const double v = (double)x[i], w = (double)x[pairs + i];
        y[i] = (float)(v * cosine[i] - w * sine[i]);
        y[pairs + i] = (float)(w * cosine[i] + v * sine[i]);
    }
}

static void rope_rows(const void *context, int64_t begin, int64_t end)
{
    const rope_job *job = context;
    const mica__tensor *x = &job->launch->in[0];
    const mica__attr_rope *attr = job->launch->attr;
    const mica_dtype dtype = mica__dtype_of(x);
    const size_t size = mica_dtype_size(dtype);
    const int64_t n = mica__row_size(&x->spec), step = mica__row_stride(x), dims = attr->dims;
    const int64_t next = attr->interleaved ? 2 : 1, other = attr->interleaved ? 1 : dims / 2;
    mica__walk walk, which;
    mica__walk_rows(&walk, x, begin);
    mica__walk_begin(&which, x->spec.ndim - 1, x->spec.shape, job->strides, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk), mica__walk_next(&which)) {
        const char *from = mica__element(x, walk.offset);
        char *to = mica__element(job->launch->out, row * n);
        const double *cosine = job->pairs ? job->table + which.offset * job->pairs * 2 : NULL;
        const double *sine = job->pairs ? cosine + job->pairs : NULL;
        if (dtype == MICA_F32 && step == 1 && !attr->interleaved) {
            rope_halves((const float *)(const void *)from, cosine, sine, job->pairs, (float *)(void *)to);
        } else if (dtype == MICA_F32) {
            const float *a = (const float *)(const void *)from;
            float *y = (float *)(void *)to;
            for (int64_t i = 0; i < job->pairs; i++) {
                const double c = cosine[i], s = sine[i];
                const double v = (double)a[i * next * step], w = (double)a[(i * next + other) * step];
                y[i * next] = (float)(v * c - w * s);
                y[i * next + other] = (float)(w * c + v * s);
            }
        } else {
            for (int64_t i = 0; i < job->pairs; i++) {
                const double c = cosine[i], s = sine[i];
                const double v = mica__get_f64(dtype, from, i * next * step),
                             w = mica__get_f64(dtype, from, (i * next + other) * step);
                mica__set_f64(dtype, to, i * next, v * c - w * s);
                mica__set_f64(dtype, to, i * next + other, w * c + v * s);
            }
        }
        mica__copy_row(size, n - dims, to + dims * (int64_t)size, 1, from + dims * step * (int64_t)size, step);
    }
}

mica_status mica__rope_cpu(const mica__launch *launch)
{
    rope_job job = {.launch = launch, .table = launch->workspace};
    if (mica__spec_size(&launch->out->spec) == 0) return MICA_OK;
    rope_positions(launch->in, launch->attr, &job);
    mica__run_rows(launch->pool, job.count, 64 * job.pairs, rope_fill_table, &job);
    mica__run_rows(launch->pool, mica__row_count(&launch->in[0].spec), 4 * mica__row_size(&launch->in[0].spec),
                   rope_rows, &job);
    return MICA_OK;
}
