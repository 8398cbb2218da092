/* Running sums, products and maxima; the cpu backend runs the same rows on
 * many threads. */
#include "kernels/cumulative/cumulative.h"

#include <math.h>

#include "kernels/walk.h"

typedef enum cumulative_kind { CUMULATIVE_SUM, CUMULATIVE_PROD, CUMULATIVE_MAX } cumulative_kind;

typedef struct cumulative_job {
    const mica__launch *launch;
    cumulative_kind kind;
} cumulative_job;

enum { CUMULATIVE_CHUNK = 256 };

static inline double cumulative_step_f64(cumulative_kind kind, double a, double b)
{
    if (kind == CUMULATIVE_SUM) return a + b;
    if (kind == CUMULATIVE_PROD) return a * b;
    return a != a || a >= b ? a : b;
}

/* In unsigned arithmetic, which wraps. */
static inline uint64_t cumulative_step_u64(cumulative_kind kind, bool is_signed, uint64_t a, uint64_t b)
{
    if (kind == CUMULATIVE_SUM) return a + b;
    if (kind == CUMULATIVE_PROD) return a * b;
    if (is_signed) return (int64_t)a >= (int64_t)b ? a : b;
    return a >= b ? a : b;
}

static uint64_t cumulative_lowest(mica_dtype dtype)
{
    if (mica__dtype_kind(dtype) != MICA__KIND_INT) return 0;
    return ~(uint64_t)0 << (8 * mica_dtype_size(dtype) - 1);
}

/* x[i] becomes the state after it (exclusive: before it); returns the last state. */
static double cumulate_f64(cumulative_kind kind, bool exclusive, double state, double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double before = state;
        state = cumulative_step_f64(kind, state, x[i]);
        x[i] = exclusive ? before : state;
    }
    return state;
}

static uint64_t cumulate_u64(cumulative_kind kind, bool exclusive, bool is_signed, uint64_t state, int64_t *x,
                             int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t before = state;
        state = cumulative_step_u64(kind, is_signed, state, (uint64_t)x[i]);
        x[i] = (int64_t)(exclusive ? before : state);
    }
    return state;
}

static void cumulative_rows(const void *context, int64_t begin, int64_t end)
{
    const cumulative_job *job = context;
    const mica__tensor *x = &job->launch->in[0], *out = job->launch->out;
    const mica__attr_cumulative *attr = job->launch->attr;
    const mica_dtype from_type = mica__dtype_of(x), to_type = mica__dtype_of(out);
    const bool is_signed = mica__dtype_kind(from_type) == MICA__KIND_INT, is_float = mica__is_float(from_type);
    const int64_t n = mica__row_size(&x->spec), way = attr->reverse ? -1 : 1, step = way * mica__row_stride(x);
    const int64_t start = attr->reverse ? n - 1 : 0;
    mica__walk walk;
    mica__walk_rows(&walk, x, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk)) {
        double f = job->kind == CUMULATIVE_SUM ? 0.0 : job->kind == CUMULATIVE_PROD ? 1.0 : -INFINITY;
        uint64_t u = job->kind == CUMULATIVE_MAX ? cumulative_lowest(from_type) : job->kind == CUMULATIVE_PROD;
        for (int64_t i = 0; i < n; i += CUMULATIVE_CHUNK) {
            const int64_t m = mica__min_i64(CUMULATIVE_CHUNK, n - i);
            const char *from = mica__element(x, walk.offset + start * mica__row_stride(x) + i * step);
            char *to = mica__element(out, row * n + start + i * way);
            if (is_float) {
                double chunk[CUMULATIVE_CHUNK];
                mica__load_f64(from_type, m, chunk, from, step);
                f = cumulate_f64(job->kind, attr->exclusive, f, chunk, m);
                mica__store_f64(to_type, m, to, way, chunk);
            } else {
                int64_t chunk[CUMULATIVE_CHUNK];
                mica__load_i64(from_type, m, chunk, from, step);
                u = cumulate_u64(job->kind, attr->exclusive, is_signed, u, chunk, m);
                mica__store_i64(to_type, m, to, way, chunk);
            }
        }
    }
}

static mica_status cumulative_run(const mica__launch *launch, cumulative_kind kind, mica__pool *pool)
{
    const cumulative_job job = {launch, kind};
    const mica__spec *spec = &launch->in[0].spec;
    mica__run_rows(pool, mica__row_count(spec), 8 * mica__row_size(spec), cumulative_rows, &job);
    return MICA_OK;
}

mica_status mica__cumsum_ref(const mica__launch *launch) { return cumulative_run(launch, CUMULATIVE_SUM, NULL); }
mica_status mica__cumprod_ref(const mica__launch *launch) { return cumulative_run(launch, CUMULATIVE_PROD, NULL); }
mica_status mica__cummax_ref(const mica__launch *launch) { return cumulative_run(launch, CUMULATIVE_MAX, NULL); }

mica_status mica__cumsum_cpu(const mica__launch *launch)
{
    return cumulative_run(launch, CUMULATIVE_SUM, launch->pool);
}
mica_status mica__cumprod_cpu(const mica__launch *launch)
{
    return cumulative_run(launch, CUMULATIVE_PROD, launch->pool);
}
mica_status mica__cummax_cpu(const mica__launch *launch)
{
    return cumulative_run(launch, CUMULATIVE_MAX, launch->pool);
}
