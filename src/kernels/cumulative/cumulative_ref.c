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

static double cumulative_step_f64(cumulative_kind kind, double a, double b)
{
    if (kind == CUMULATIVE_SUM) return a + b;
    if (kind == CUMULATIVE_PROD) return a * b;
    return a != a || a >= b ? a : b;
}

/* In unsigned arithmetic, which wraps. */
static uint64_t cumulative_step_u64(cumulative_kind kind, bool is_signed, uint64_t a, uint64_t b)
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

static void cumulative_rows(const void *context, int64_t begin, int64_t end)
{
    const cumulative_job *job = context;
    const mica__tensor *x = &job->launch->in[0], *out = job->launch->out;
    const mica__attr_cumulative *attr = job->launch->attr;
    const mica_dtype from_type = mica__dtype_of(x), to_type = mica__dtype_of(out);
    const bool is_signed = mica__dtype_kind(from_type) == MICA__KIND_INT;
    const int64_t n = mica__row_size(&x->spec), step = mica__row_stride(x);
    const double first_f64 = job->kind == CUMULATIVE_SUM ? 0.0 : job->kind == CUMULATIVE_PROD ? 1.0 : -INFINITY;
    const uint64_t first_u64 =
        job->kind == CUMULATIVE_MAX ? cumulative_lowest(from_type) : job->kind == CUMULATIVE_PROD;
    mica__walk walk;
    mica__walk_rows(&walk, x, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk)) {
        const char *from = mica__element(x, walk.offset);
        double f = first_f64;
        uint64_t u = first_u64;
        for (int64_t j = 0; j < n; j++) {
            const int64_t i = attr->reverse ? n - 1 - j : j;
            const double f_before = f;
            const uint64_t u_before = u;
            if (mica__is_float(from_type)) {
                f = cumulative_step_f64(job->kind, f, mica__get_f64(from_type, from, i * step));
                mica__set_f64(to_type, out->data, row * n + i, attr->exclusive ? f_before : f);
            } else {
                const uint64_t v = (uint64_t)mica__get_i64(from_type, from, i * step);
                u = cumulative_step_u64(job->kind, is_signed, u, v);
                mica__set_i64(to_type, out->data, row * n + i, (int64_t)(attr->exclusive ? u_before : u));
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
