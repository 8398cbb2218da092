/* Norms of f32, f16 and bf16: sums of chunks in f32, of the chunks in double. */
#include <math.h>

#include "kernels/norm/norm.h"
#include "kernels/vec4.h"
#include "kernels/walk.h"

enum { NORM_CHUNK = 256 };

typedef struct norm_job {
    const mica__launch *launch;
    bool centred;
} norm_job;

/* A chunk of a row as floats: in place if it can be, else in buffer. */
static const float *norm_chunk(mica_dtype dtype, const char *row, int64_t first, int64_t n, int64_t step, float *buffer)
{
    const char *from = row + first * step * (int64_t)mica_dtype_size(dtype);
    if (dtype == MICA_F32 && step == 1) return (const float *)(const void *)from;
    mica__load_f32(dtype, n, buffer, from, step);
    return buffer;
}

/* Sum of x - shift. */
static float norm_sum(const float *x, int64_t n, float shift)
{
    mica__v4 even = mica__v4_all(0), odd = even;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const mica__v4 v = mica__v4_load(x + i) - shift;
        if (i & 4) odd += v;
        else even += v;
    }
    float sum = mica__v4_sum(even + odd);
    for (; i < n; i++) sum += x[i] - shift;
    return sum;
}

/* Sum of (x - mean)^2, the mean in two parts. */
static float norm_squares(const float *x, int64_t n, float high, float low)
{
    mica__v4 even = mica__v4_all(0), odd = even;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const mica__v4 v = (mica__v4_load(x + i) - high) - low;
        if (i & 4) odd += v * v;
        else even += v * v;
    }
    float sum = mica__v4_sum(even + odd);
    for (; i < n; i++) {
        const float v = (x[i] - high) - low;
        sum += v * v;
    }
    return sum;
}

static void norm_scale(const float *x, int64_t n, float high, float low, float scale, float *y)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) mica__v4_store(y + i, ((mica__v4_load(x + i) - high) - low) * scale);
    for (; i < n; i++) y[i] = ((x[i] - high) - low) * scale;
}

/* The mean is needed to more than f32's digits where it is large against the
 * deviations. So sums are of distances from the first element, which cannot be
 * far from the rest compared with the deviations, and the mean is kept as a sum
 * of two floats. */
static void norm_row(mica_dtype dtype, const char *from, int64_t step, int64_t n, char *to, bool centred, double eps)
{
    float buffer[NORM_CHUNK], result[NORM_CHUNK];
    const float shift = centred && n > 0 ? *norm_chunk(dtype, from, 0, 1, step, buffer) : 0.0f;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n && centred; i += NORM_CHUNK) {
        const int64_t part = mica__min_i64(NORM_CHUNK, n - i);
        sum += (double)norm_sum(norm_chunk(dtype, from, i, part, step, buffer), part, shift);
    }
    const double mean = centred ? (double)shift + sum / (double)n : 0;
    const float high = (float)mean, low = (float)(mean - (double)high);
    for (int64_t i = 0; i < n; i += NORM_CHUNK) {
        const int64_t part = mica__min_i64(NORM_CHUNK, n - i);
        squares += (double)norm_squares(norm_chunk(dtype, from, i, part, step, buffer), part, high, low);
    }
    const float scale = (float)(1 / sqrt(squares / (double)n + eps));
    for (int64_t i = 0; i < n; i += NORM_CHUNK) {
        const int64_t part = mica__min_i64(NORM_CHUNK, n - i);
        norm_scale(norm_chunk(dtype, from, i, part, step, buffer), part, high, low, scale, result);
        mica__store_f32(dtype, part, to + i * (int64_t)mica_dtype_size(dtype), 1, result);
    }
}

static void norm_rows(const void *context, int64_t begin, int64_t end)
{
    const norm_job *job = context;
    const mica__tensor *x = &job->launch->in[0];
    const int64_t n = mica__row_size(&x->spec);
    mica__walk walk;
    mica__walk_rows(&walk, x, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk))
        norm_row(mica__dtype_of(x), mica__element(x, walk.offset), mica__row_stride(x), n,
                 mica__element(job->launch->out, row * n), job->centred,
                 ((const mica__attr_norm *)job->launch->attr)->eps);
}

static mica_status norm_run(const mica__launch *launch, bool centred)
{
    const norm_job job = {launch, centred};
    const mica__spec *spec = &launch->in[0].spec;
    mica__run_rows(launch->pool, mica__row_count(spec), 3 * mica__row_size(spec), norm_rows, &job);
    return MICA_OK;
}

mica_status mica__layer_norm_cpu(const mica__launch *launch)
{
    return mica__dtype_of(launch->out) == MICA_F64 ? mica__layer_norm_ref(launch) : norm_run(launch, true);
}

mica_status mica__rms_norm_cpu(const mica__launch *launch)
{
    return mica__dtype_of(launch->out) == MICA_F64 ? mica__rms_norm_ref(launch) : norm_run(launch, false);
}
