/* Rotary positions on many threads; contiguous f32 rows with SIMD vectors. */
#include "kernels/rope/rope.h"

#include <math.h>

#include "kernels/walk.h"
#include "simd/fixed.h"

/* ------------------------------------------------------------------- table -- */

static void rope_fill_pairs(const void *context, int64_t begin, int64_t end)
{
    const mica__launch *launch = context;
    const mica__tensor *positions = &launch->in[0], *factors = launch->n_in > 1 ? &launch->in[1] : NULL;
    const mica__attr_rope_table *attr = launch->attr;
    const int64_t pairs = attr->dims / 2, n = mica__spec_size(&positions->spec);
    double *table = (double *)(void *)launch->out->data;
    for (int64_t i = begin; i < end; i++) {
        const double rate = pow(attr->base, -2.0 * (double)i / (double)attr->dims);
        const double factor =
            factors ? mica__get_f64(mica__dtype_of(factors), factors->data, i * factors->strides[0]) : 1;
        mica__walk walk;
        mica__walk_begin(&walk, positions->spec.ndim, positions->spec.shape, positions->strides, 0);
        for (int64_t p = 0; p < n; p++, mica__walk_next(&walk)) {
            const double position = mica__get_f64(mica__dtype_of(positions), positions->data, walk.offset);
            const double angle = position * attr->scale * rate / factor;
            table[p * attr->dims + i] = cos(angle) * attr->magnitude;
            table[p * attr->dims + pairs + i] = sin(angle) * attr->magnitude;
        }
    }
}

mica_status mica__rope_table_cpu(const mica__launch *launch)
{
    const mica__attr_rope_table *attr = launch->attr;
    const int64_t n = mica__spec_size(&launch->in[0].spec);
    mica__run_rows(launch->pool, attr->dims / 2, 64 + 64 * n, rope_fill_pairs, launch);
    return MICA_OK;
}

/* --------------------------------------------------------------- rotations -- */

typedef struct rope_job {
    const mica__launch *launch;
    int64_t strides[MICA_MAX_DIMS];     /* of the table; 0 for axes that are broadcast */
} rope_job;

/* A contiguous row whose first half is paired with its second half, four pairs at a time, in double. sign: of the
 * sines. */
static void rope_halves(const float *x, const double *cosine, const double *sine, double sign, int64_t pairs, float *y)
{
    int64_t i = 0;
    for (; i + 4 <= pairs; i += 4) {
        const f64x4 c = *(const f64x4_any *)(cosine + i), s = *(const f64x4_any *)(sine + i) * sign;
        const f64x4 v = __builtin_convertvector(*(const f32x4_any *)(x + i), f64x4);
        const f64x4 w = __builtin_convertvector(*(const f32x4_any *)(x + pairs + i), f64x4);
        *(f32x4_any *)(y + i) = __builtin_convertvector(v * c - w * s, f32x4);
        *(f32x4_any *)(y + pairs + i) = __builtin_convertvector(w * c + v * s, f32x4);
    }
    for (; i < pairs; i++) {
        const double v = (double)x[i], w = (double)x[pairs + i], s = sine[i] * sign;
        y[i] = (float)(v * cosine[i] - w * s);
        y[pairs + i] = (float)(w * cosine[i] + v * s);
    }
}

/* The pairs of a row of any dtype, with stride `step`. */
static void rope_pairs(const mica__attr_rope *attr, mica_dtype dtype, const char *from, int64_t step,
                       const double *table, int64_t table_step, char *to)
{
    const int64_t pairs = attr->dims / 2, next = attr->interleaved ? 2 : 1, other = attr->interleaved ? 1 : pairs;
    for (int64_t i = 0; i < pairs; i++) {
        const double c = table[i * table_step], sine = table[(pairs + i) * table_step];
        const double s = attr->inverse ? -sine : sine;
        const double v = mica__get_f64(dtype, from, i * next * step);
        const double w = mica__get_f64(dtype, from, (i * next + other) * step);
        mica__set_f64(dtype, to, i * next, v * c - w * s);
        mica__set_f64(dtype, to, i * next + other, w * c + v * s);
    }
}

static void rope_rows(const void *context, int64_t begin, int64_t end)
{
    const rope_job *job = context;
    const mica__tensor *x = &job->launch->in[0], *table = &job->launch->in[1];
    const mica__attr_rope *attr = job->launch->attr;
    const mica_dtype dtype = mica__dtype_of(x);
    const size_t size = mica_dtype_size(dtype);
    const int64_t n = mica__row_size(&x->spec), step = mica__row_stride(x), dims = attr->dims, pairs = dims / 2;
    const int64_t table_step = mica__row_stride(table);
    const bool plain = dtype == MICA_F32 && step == 1 && table_step == 1 && !attr->interleaved;
    mica__walk walk, which;
    mica__walk_rows(&walk, x, begin);
    mica__walk_begin(&which, x->spec.ndim - 1, x->spec.shape, job->strides, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk), mica__walk_next(&which)) {
        const char *from = mica__element(x, walk.offset);
        char *to = mica__element(job->launch->out, row * n);
        const double *turns = (const double *)(const void *)mica__element(table, which.offset);
        if (plain && pairs > 0)
            rope_halves((const float *)(const void *)from, turns, turns + pairs, attr->inverse ? -1 : 1, pairs,
                        (float *)(void *)to);
        else rope_pairs(attr, dtype, from, step, turns, table_step, to);
        mica__copy_row(size, n - dims, to + dims * (int64_t)size, 1, from + dims * step * (int64_t)size, step);
    }
}

mica_status mica__rope_cpu(const mica__launch *launch)
{
    rope_job job = {.launch = launch};
    if (mica__spec_size(&launch->out->spec) == 0) return MICA_OK;
    for (int d = 0; d < launch->in[1].spec.ndim - 1; d++) job.strides[d] = mica__rope_stride(&launch->in[1], d);
    mica__run_rows(launch->pool, mica__row_count(&launch->in[0].spec), 4 * mica__row_size(&launch->in[0].spec),
                   rope_rows, &job);
    return MICA_OK;
}
