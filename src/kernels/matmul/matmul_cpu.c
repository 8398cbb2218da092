/* Matmul on many threads: f32 and narrow operands have separate files; f64 and wide integers are computed here, by
 * rows. */
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_narrow.h"

typedef struct matmul_job {
    const mica__launch *launch;
    int outer;                  /* number of batch axes                        */
    int64_t m, n, k;
    int64_t parts_m;            /* blocks of rows of one product               */
} matmul_job;

static mica__gemm_view matmul_view(const matmul_job *job, int which, int64_t batch)
{
    return mica__matmul_view(job->launch, which, batch);
}

enum { MATMUL_ROWS = 4, MATMUL_COLS = 128 }; /* block of f64 and wide integers */

/* Sums in the order of k, like ref. */
static void matmul_block_f64(const matmul_job *job, mica__gemm_view a, mica__gemm_view b, int64_t m, int64_t n,
                             char *out)
{
    double sums[MATMUL_ROWS][MATMUL_COLS] = {{0}}, line[MATMUL_COLS];
    for (int64_t k = 0; k < job->k; k++) {
        mica__load_f64(b.dtype, n, line, b.data + k * b.k_step * (int64_t)sizeof(double), b.i_step);
        for (int64_t i = 0; i < m; i++) {
            const double x = mica__get_f64(a.dtype, a.data, k * a.k_step + i * a.i_step);
            for (int64_t j = 0; j < n; j++) sums[i][j] += x * line[j];
        }
    }
    for (int64_t i = 0; i < m; i++)
        memcpy(out + i * job->n * (int64_t)sizeof(double), sums[i], (size_t)n * sizeof(double));
}

static void matmul_block_int(const matmul_job *job, mica__gemm_view a, mica__gemm_view b, int64_t m, int64_t n,
                             char *out)
{
    int64_t sums[MATMUL_ROWS][MATMUL_COLS] = {{0}}, line[MATMUL_COLS];
    const int64_t size = (int64_t)mica_dtype_size(a.dtype);
    for (int64_t k = 0; k < job->k; k++) {
        mica__load_i64(b.dtype, n, line, b.data + k * b.k_step * size, b.i_step);
        for (int64_t i = 0; i < m; i++) {
            const uint64_t x = (uint64_t)mica__get_i64(a.dtype, a.data, k * a.k_step + i * a.i_step);
            for (int64_t j = 0; j < n; j++) sums[i][j] = (int64_t)((uint64_t)sums[i][j] + x * (uint64_t)line[j]);
        }
    }
    for (int64_t i = 0; i < m; i++) mica__store_i64(a.dtype, n, out + i * job->n * size, 1, sums[i]);
}

/* One part is a few whole rows of the result. */
static void matmul_rows(const void *context, int64_t begin, int64_t end)
{
    const matmul_job *job = context;
    const mica_dtype dtype = mica__dtype_of(job->launch->out);
    const int64_t size = (int64_t)mica_dtype_size(dtype);
    for (int64_t part = begin; part < end; part++) {
        const int64_t batch = part / job->parts_m, i = part % job->parts_m * MATMUL_ROWS,
                      first = batch * job->m * job->n;
        const int64_t m = mica__min_i64(MATMUL_ROWS, job->m - i);
        for (int64_t j = 0; j < job->n; j += MATMUL_COLS) {
            const int64_t n = mica__min_i64(MATMUL_COLS, job->n - j);
            mica__gemm_view a = matmul_view(job, 0, batch), b = matmul_view(job, 1, batch);
            a.data += i * a.i_step * size;
            b.data += j * b.i_step * size;
            char *out = mica__element(job->launch->out, first + i * job->n + j);
            if (dtype == MICA_F64) matmul_block_f64(job, a, b, m, n, out);
            else matmul_block_int(job, a, b, m, n, out);
        }
        mica__gemm_epilogue(job->launch->epilogue, first, job->n, i, m, 0, job->n);
    }
}

size_t mica__matmul_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)n_in, (void)attr;
    if (mica__matmul_is_narrow(&in[0].spec, &in[1].spec, out))
        return mica__matmul_narrow_workspace(&in[0].spec, &in[1].spec, out);
    return out->dtype == MICA_F32 ? mica__matmul_f32_workspace(in, out) : 0;
}

bool mica__matmul_prepack(const mica__launch *launch, mica__prepack *wish)
{
    const bool is_f32 = mica__dtype_of(launch->out) == MICA_F32 && mica__dtype_of(&launch->in[1]) == MICA_F32;
    return is_f32 && mica__matmul_f32_prepack(launch, wish);
}

mica_status mica__matmul_cpu(const mica__launch *launch)
{
    const mica__spec *a = &launch->in[0].spec, *out = &launch->out->spec;
    if (mica__matmul_is_narrow(a, &launch->in[1].spec, out)) return mica__matmul_narrow(launch);
    matmul_job job = {.launch = launch, .outer = out->ndim - 2};
    job.m = out->shape[job.outer];
    job.n = out->shape[job.outer + 1];
    job.k = a->shape[job.outer + 1];
    if (launch->epilogue && launch->epilogue_taken) *launch->epilogue_taken = true;
    if (mica__spec_size(out) == 0) return MICA_OK;
    const int64_t batches = mica__product(out->shape, job.outer);
    if (mica__dtype_of(launch->out) == MICA_F32) {
        mica__matmul_f32(launch);
        return MICA_OK;
    }
    job.parts_m = (job.m + MATMUL_ROWS - 1) / MATMUL_ROWS;
    mica__run_rows(launch->pool, batches * job.parts_m, 2 * (job.k + 8) * job.n * MATMUL_ROWS, matmul_rows, &job);
    return MICA_OK;
}
