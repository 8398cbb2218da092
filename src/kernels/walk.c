/* Copies and conversions of rows, and their distribution to threads. Uses vectors of four lanes, which every CPU
 * has. */
#define SIMD_BYTES 16
#include "kernels/walk.h"
#include "simd/narrow.h"

void mica__copy_row(size_t size, int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    if (n <= 0) return;
    if ((to_stride == 1 && from_stride == 1) || n == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    const int64_t to_step = to_stride * (int64_t)size, from_step = from_stride * (int64_t)size;
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++) to[i * to_step] = from[i * from_step];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, 2);
        break;
    case 4:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, 4);
        break;
    default:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, 8);
        break;
    }
}

void mica__copy_block(size_t size, int ndim, const int64_t *shape, char *to, const int64_t *to_strides,
                      const char *from, const int64_t *from_strides)
{
    if (ndim == 0) {
        memcpy(to, from, size);
        return;
    }
    /* Merge trailing axes that are contiguous in both arrays into one long row. */
    int64_t n = shape[ndim - 1];
    int outer = ndim - 1;
    const int64_t to_stride = to_strides[ndim - 1], from_stride = from_strides[ndim - 1];
    while (outer > 0 && to_strides[outer - 1] == n * to_stride && from_strides[outer - 1] == n * from_stride)
        n *= shape[--outer];
    const int64_t rows = mica__product(shape, outer);
    if (n == 0) return;
    mica__walk a, b;
    mica__walk_begin(&a, outer, shape, to_strides, 0);
    mica__walk_begin(&b, outer, shape, from_strides, 0);
    for (int64_t row = 0; row < rows; row++, mica__walk_next(&a), mica__walk_next(&b))
        mica__copy_row(size, n, to + a.offset * (int64_t)size, to_stride, from + b.offset * (int64_t)size, from_stride);
}

void mica__fill_row(size_t size, int64_t n, char *to, const void *value)
{
    if (n <= 0) return;
    const size_t all = (size_t)n * size;
    memcpy(to, value, size);
    for (size_t done = size, more; done < all; done += more) { /* doubles each time */
        more = done < all - done ? done : all - done;
        memcpy(to + done, to, more);
    }
}

/* As mica_f16_to_f32 and mica_bf16_to_f32, but inlined: these loops are hot. */
static inline float load_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = (uint32_t)(half & 0x7fffu) << 13;
    uint32_t bits = rest;
    float value;
    memcpy(&value, &bits, sizeof value);
    value *= 0x1p112f; /* shifts the exponent; exact, also for subnormals */
    memcpy(&bits, &value, sizeof bits);
    if (rest >= 0x0f800000u) bits = 0x7f800000u | rest | (rest > 0x0f800000u ? 0x400000u : 0);
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float load_brain(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t store_brain(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

void mica__load_f32(mica_dtype dtype, int64_t n, float *to, const char *from, int64_t stride)
{
    const uint16_t *half = (const uint16_t *)(const void *)from;
    switch (dtype) {
    case MICA_F32: mica__copy_row(sizeof(float), n, (char *)to, 1, from, stride); break;
    case MICA_BF16:
        for (int64_t i = 0; i < n; i++) to[i] = load_brain(half[i * stride]);
        break;
    case MICA_F16:
        for (int64_t i = 0; i < n; i++) to[i] = load_half(half[i * stride]);
        break;
    default:
        for (int64_t i = 0; i < n; i++) to[i] = (float)mica__get_f64(dtype, from, i * stride);
        break;
    }
}

void mica__load_f64(mica_dtype dtype, int64_t n, double *to, const char *from, int64_t stride)
{
    const float *single = (const float *)(const void *)from;
    switch (dtype) {
    case MICA_F64: mica__copy_row(sizeof(double), n, (char *)to, 1, from, stride); break;
    case MICA_F32:
        for (int64_t i = 0; i < n; i++) to[i] = (double)single[i * stride];
        break;
    default:
        for (int64_t i = 0; i < n; i++) to[i] = mica__get_f64(dtype, from, i * stride);
        break;
    }
}

void mica__load_i64(mica_dtype dtype, int64_t n, int64_t *to, const char *from, int64_t stride)
{
    const int32_t *narrow = (const int32_t *)(const void *)from;
    switch (dtype) {
    case MICA_I64:
    case MICA_U64: mica__copy_row(sizeof(int64_t), n, (char *)to, 1, from, stride); break;
    case MICA_I32:
        for (int64_t i = 0; i < n; i++) to[i] = narrow[i * stride];
        break;
    default:
        for (int64_t i = 0; i < n; i++) to[i] = mica__get_i64(dtype, from, i * stride);
        break;
    }
}

/* Stores whole vectors of floats as contiguous halves; returns how many elements it stored. */
static int64_t store_halves(mica_dtype dtype, int64_t n, uint16_t *to, const float *from)
{
    int64_t i = 0;
    if (dtype == MICA_F16)
        for (; i + SIMD_LANES <= n; i += SIMD_LANES) vf_to_f16(to + i, vf_load(from + i));
    if (dtype == MICA_BF16)
        for (; i + SIMD_LANES <= n; i += SIMD_LANES) vf_to_bf16(to + i, vf_load(from + i));
    return i;
}

void mica__store_f32(mica_dtype dtype, int64_t n, char *to, int64_t stride, const float *from)
{
    uint16_t *half = (uint16_t *)(void *)to;
    if (stride == 1) {
        const int64_t done = store_halves(dtype, n, half, from);
        n -= done;
        from += done;
        half += done;
        to += done * (int64_t)mica_dtype_size(dtype);
    }
    switch (dtype) {
    case MICA_F32: mica__copy_row(sizeof(float), n, to, stride, (const char *)from, 1); break;
    case MICA_BF16:
        for (int64_t i = 0; i < n; i++) half[i * stride] = store_brain(from[i]);
        break;
    case MICA_F16:
        for (int64_t i = 0; i < n; i++) half[i * stride] = mica_f16_from_f32(from[i]);
        break;
    default:
        for (int64_t i = 0; i < n; i++) mica__set_f64(dtype, to, i * stride, (double)from[i]);
        break;
    }
}

void mica__store_f64(mica_dtype dtype, int64_t n, char *to, int64_t stride, const double *from)
{
    float *single = (float *)(void *)to;
    switch (dtype) {
    case MICA_F64: mica__copy_row(sizeof(double), n, to, stride, (const char *)from, 1); break;
    case MICA_F32:
        for (int64_t i = 0; i < n; i++) single[i * stride] = (float)from[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++) mica__set_f64(dtype, to, i * stride, from[i]);
        break;
    }
}

void mica__store_i64(mica_dtype dtype, int64_t n, char *to, int64_t stride, const int64_t *from)
{
    for (int64_t i = 0; i < n; i++) mica__set_i64(dtype, to, i * stride, from[i]);
}

typedef struct rows_job {
    mica__rows_fn fn;
    const void *context;
    int64_t rows, grain;
} rows_job;

static void run_rows_task(void *context, int64_t task)
{
    const rows_job *job = context;
    const int64_t begin = task * job->grain;
    job->fn(job->context, begin, mica__min_i64(begin + job->grain, job->rows));
}

void mica__run_rows(mica__pool *pool, int64_t rows, int64_t work, mica__rows_fn fn, const void *context)
{
    /* About 20 us per task: long compared to the cost of dispatching it, short compared to a step. */
    const int64_t grain = mica__max_i64(1, 32768 / mica__max_i64(1, work));
    rows_job job = {fn, context, rows, grain};
    mica__pool_run(pool, rows / grain + (rows % grain != 0), run_rows_task, &job);
}
