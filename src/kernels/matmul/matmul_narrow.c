/* Runs a launch as products of narrow operands. */
#include "kernels/matmul/matmul_narrow.h"

#include "kernels/matmul/gemm_accelerate.h"
#include "kernels/matmul/gemv_narrow.h"
#include "kernels/matmul/matmul.h"

typedef struct narrow_job {
    const mica__launch *launch;
    const mica__lines *lines;
    int outer;                  /* number of batch axes                        */
    int64_t m, n, k, parts;
    bool few_rows;              /* thin products: the rows are few, not the columns */
} narrow_job;

static bool narrow_is_byte(int dtype) { return dtype == MICA_I8 || dtype == MICA_U8; }
static bool narrow_is_float(int dtype) { return dtype == MICA_F16 || dtype == MICA_BF16 || dtype == MICA_F32; }

bool mica__matmul_is_narrow(const mica__spec *a, const mica__spec *b, const mica__spec *out)
{
    if (narrow_is_byte(a->dtype) && narrow_is_byte(b->dtype)) return out->dtype == MICA_I32 || out->dtype == MICA_U32;
    const bool single = a->dtype == MICA_F32 && b->dtype == MICA_F32;
    return !single && narrow_is_float(a->dtype) && narrow_is_float(b->dtype);
}

/* Pairs of bf16 are used only for bf16 results: their instructions round sums differently, which is not visible in
 * bf16. */
static const mica__dot_variant *narrow_variant(const mica__spec *a, const mica__spec *b, const mica__spec *out)
{
    if (narrow_is_byte(a->dtype)) return mica__dot_best(MICA__DOT_INT);
    const bool pairs = a->dtype == MICA_BF16 && b->dtype == MICA_BF16 && out->dtype == MICA_BF16;
    const mica__dot_variant *v = pairs ? mica__dot_best(MICA__DOT_BF16) : NULL;
    return v ? v : mica__dot_best(MICA__DOT_HALF);
}

static bool narrow_is_thin(int64_t m, int64_t n, int64_t k)
{
    return m <= MICA__THIN_FEW || n <= MICA__THIN_FEW || k == 0;
}

/* The BLAS function to use; NULL: none. */
static mica__sgemm_fn narrow_sgemm(const mica__spec *a, int64_t m, int64_t n, int64_t k, const mica__spec *out)
{
    if (narrow_is_byte(a->dtype) || mica__min_i64(m, n) <= MICA__GEMM_FEW) return NULL;
    return mica__sgemm_scratch((mica_dtype)out->dtype, m, n, k) ? mica__accelerate_sgemm() : NULL;
}

size_t mica__matmul_narrow_workspace(const mica__spec *a, const mica__spec *b, const mica__spec *out)
{
    const int64_t m = out->shape[out->ndim - 2], n = out->shape[out->ndim - 1], k = a->shape[a->ndim - 1];
    if (narrow_is_thin(m, n, k)) return 0;
    if (narrow_sgemm(a, m, n, k, out)) return mica__sgemm_scratch((mica_dtype)out->dtype, m, n, k);
    return mica__dot_scratch(narrow_variant(a, b, out), (mica_dtype)out->dtype, m, n);
}

static void narrow_thin(const void *context, int64_t begin, int64_t end)
{
    const narrow_job *job = context;
    for (int64_t part = begin; part < end; part++) {
        const int64_t batch = part / job->parts, first = batch * job->m * job->n;
        const int64_t most = job->few_rows ? job->n : job->m, i = part % job->parts * MICA__THIN_MANY;
        const int64_t count = mica__min_i64(MICA__THIN_MANY, most - i);
        const mica__gemm_view a = mica__matmul_view(job->launch, 0, batch),
                              b = mica__matmul_view(job->launch, 1, batch);
        const mica__thin thin = {.lines = job->lines,
                                 .n_few = job->few_rows ? job->m : job->n,
                                 .k = job->k,
                                 .few = job->few_rows ? a : b,
                                 .many = job->few_rows ? b : a,
                                 .out = mica__element(job->launch->out, first),
                                 .dtype = mica__dtype_of(job->launch->out),
                                 .few_step = job->few_rows ? job->n : 1,
                                 .many_step = job->few_rows ? 1 : job->n};
        mica__thin_part(&thin, i, count);
        if (job->few_rows) mica__gemm_epilogue(job->launch->epilogue, first, job->n, 0, job->m, i, count);
        else mica__gemm_epilogue(job->launch->epilogue, first, job->n, i, count, 0, job->n);
    }
}

/* k = 0, and neither side is thin: writes zeros. */
static void narrow_zero(const narrow_job *job, int64_t count)
{
    const mica__launch *launch = job->launch;
    memset(launch->out->data, 0, (size_t)count * mica_dtype_size(mica__dtype_of(launch->out)));
    if (launch->epilogue) launch->epilogue->run(launch->epilogue, 0, count);
}

mica_status mica__matmul_narrow(const mica__launch *launch)
{
    const mica__spec *a = &launch->in[0].spec, *b = &launch->in[1].spec, *out = &launch->out->spec;
    narrow_job job = {.launch = launch, .lines = mica__lines_best(), .outer = out->ndim - 2};
    job.m = out->shape[job.outer];
    job.n = out->shape[job.outer + 1];
    job.k = a->shape[job.outer + 1];
    if (launch->epilogue && launch->epilogue_taken) *launch->epilogue_taken = true;
    const int64_t count = mica__spec_size(out), batches = mica__product(out->shape, job.outer);
    if (count == 0) return MICA_OK;
    if (job.k == 0) {
        narrow_zero(&job, count);
        return MICA_OK;
    }
    if (narrow_is_thin(job.m, job.n, job.k)) {
        job.few_rows = job.m <= MICA__THIN_FEW;
        const int64_t most = job.few_rows ? job.n : job.m;
        job.parts = (most + MICA__THIN_MANY - 1) / MICA__THIN_MANY;
        mica__run_rows(launch->pool, batches * job.parts, (job.k + 8) * mica__min_i64(MICA__THIN_MANY, most) / 2,
                       narrow_thin, &job);
        return MICA_OK;
    }
    if (!launch->workspace) return mica__fail(MICA_ERR_INTERNAL, "matmul: no scratch for narrow operands");
    const mica__sgemm_fn sgemm = narrow_sgemm(a, job.m, job.n, job.k, out);
    mica__dot_product p = {.v = narrow_variant(a, b, out),
                           .lines = job.lines,
                           .m = job.m,
                           .n = job.n,
                           .k = job.k,
                           .dtype = mica__dtype_of(launch->out),
                           .epilogue = launch->epilogue};
    for (int64_t batch = 0; batch < batches; batch++) {
        p.a = mica__matmul_view(launch, 0, batch);
        p.b = mica__matmul_view(launch, 1, batch);
        p.first = batch * job.m * job.n;
        p.out = mica__element(launch->out, p.first);
        if (!sgemm) {
            mica__dot_run(launch->pool, &p, launch->workspace);
            continue;
        }
        mica__gemm_by_wide_sgemm(sgemm, launch->pool, &p.a, &p.b, job.m, job.n, job.k, p.out, p.dtype,
                                 launch->workspace);
        mica__gemm_epilogue(launch->epilogue, p.first, job.n, 0, job.m, 0, job.n);
    }
    return MICA_OK;
}
