/* Softmax of f32, f16 and bf16 in f32, four at a time. */
#include <math.h>

#include "kernels/softmax/softmax.h"
#include "kernels/vec4.h"
#include "kernels/walk.h"

enum { SOFTMAX_CHUNK = 256 };

typedef struct softmax_job {
    const mica__launch *launch;
    bool logarithm;
} softmax_job;

/* A chunk of a row as floats: in place if it can be, else in buffer. The rest
 * of the last eight is filled with -inf, which changes no maximum and no sum. */
static const float *softmax_chunk(mica_dtype dtype, const char *row, int64_t first, int64_t n, int64_t step,
                                  float *buffer)
{
    const char *from = row + first * step * (int64_t)mica_dtype_size(dtype);
    if (dtype == MICA_F32 && step == 1 && n % 8 == 0) return (const float *)(const void *)from;
    mica__load_f32(dtype, n, buffer, from, step);
    for (int64_t i = n; i % 8; i++) buffer[i] = -INFINITY;
    return buffer;
}

static float softmax_max(const float *x, int64_t n, float top)
{
    mica__v4 even = mica__v4_all(top), odd = even;
    for (int64_t i = 0; i < n; i += 8) {
        even = mica__v4_max(mica__v4_load(x + i), even);
        odd = mica__v4_max(mica__v4_load(x + i + 4), odd);
    }
    const mica__v4 best = mica__v4_max(even, odd);
    for (int i = 0; i < 4; i++)
        if (best[i] > top) top = best[i];
    return top;
}

/* exp(x - top) into y; returns their sum. */
static float softmax_exp(const float *x, int64_t n, float top, float *y)
{
    mica__v4 even = mica__v4_all(0), odd = even;
    for (int64_t i = 0; i < n; i += 8) {
        const mica__v4 a = mica__v4_exp(mica__v4_load(x + i) - top), b = mica__v4_exp(mica__v4_load(x + i + 4) - top);
        mica__v4_store(y + i, a);
        mica__v4_store(y + i + 4, b);
        even += a;
        odd += b;
    }
    return mica__v4_sum(even + odd);
}

static void softmax_scale(float *y, int64_t n, float by)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) mica__v4_store(y + i, mica__v4_load(y + i) * by);
    for (; i < n; i++) y[i] *= by;
}

static void softmax_row(mica_dtype dtype, const char *from, int64_t step, int64_t n, char *to, bool logarithm)
{
    float buffer[SOFTMAX_CHUNK], powers[SOFTMAX_CHUNK];
    const int64_t size = (int64_t)mica_dtype_size(dtype);
    float top = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i += SOFTMAX_CHUNK) {
        const int64_t part = mica__min_i64(SOFTMAX_CHUNK, n - i);
        top = softmax_max(softmax_chunk(dtype, from, i, part, step, buffer), part, top);
    }
    for (int64_t i = 0; i < n; i += SOFTMAX_CHUNK) {
        const int64_t part = mica__min_i64(SOFTMAX_CHUNK, n - i);
        const float *x = softmax_chunk(dtype, from, i, part, step, buffer);
        /* -inf - -inf is NaN also in the filling: a row of -inf is NaN. */
        sum += (double)softmax_exp(x, part, top, powers);
        if (dtype == MICA_F32 && !logarithm) memcpy(to + i * size, powers, (size_t)(part * size));
    }
    const float inverse = (float)(1 / sum), log_sum = (float)log(sum);
    for (int64_t i = 0; i < n; i += SOFTMAX_CHUNK) {
        const int64_t part = mica__min_i64(SOFTMAX_CHUNK, n - i);
        if (dtype == MICA_F32 && !logarithm) {
            softmax_scale((float *)(void *)(to + i * size), part, inverse);
            continue;
        }
        const float *x = softmax_chunk(dtype, from, i, part, step, buffer);
        if (logarithm) {
            for (int64_t j = 0; j < part; j++) powers[j] = (x[j] - top) - log_sum;
        } else {
            softmax_exp(x, part, top, powers);
            softmax_scale(powers, part, inverse);
        }
        mica__store_f32(dtype, part, to + i * size, 1, powers);
    }
}

static void softmax_rows(const void *context, int64_t begin, int64_t end)
{
    const softmax_job *job = context;
    const mica__tensor *x = &job->launch->in[0];
    const int64_t n = mica__row_size(&x->spec);
    mica__walk walk;
    mica__walk_rows(&walk, x, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk))
        softmax_row(mica__dtype_of(x), mica__element(x, walk.offset), mica__row_stride(x), n,
                    mica__element(job->launch->out, row * n), job->logarithm);
}

static mica_status softmax_run(const mica__launch *launch, bool logarithm)
{
    const softmax_job job = {launch, logarithm};
    const mica__spec *spec = &launch->in[0].spec;
    mica__run_rows(launch->pool, mica__row_count(spec), 8 * mica__row_size(spec), softmax_rows, &job);
    return MICA_OK;
}

mica_status mica__softmax_cpu(const mica__launch *launch)
{
    return mica__dtype_of(launch->out) == MICA_F64 ? mica__softmax_ref(launch) : softmax_run(launch, false);
}

mica_status mica__log_softmax_cpu(const mica__launch *launch)
{
    return mica__dtype_of(launch->out) == MICA_F64 ? mica__log_softmax_ref(launch) : softmax_run(launch, true);
}
