/* Products with block formats on many threads (qmatmul.h): those of codes in
 * qmatmul_ternary.c, the others here.
 *
 * x is brought into rows first, rounded to 8 bits where that is asked for. Then
 * each task takes some rows of the matrix: unpacks one into cache and multiplies
 * it with every row of x. No sum depends on how rows are cut into tasks. */
#include <math.h>

#include "kernels/index/index.h"
#include "kernels/matmul/gemm.h"
#include "kernels/qmatmul/qmatmul.h"
#include "kernels/qmatmul/ternary.h"
#include "kernels/walk.h"

enum { QMATMUL_TASKS = 32 }; /* at most; each has scratch for a row */

typedef struct qmatmul_job {
    const mica__launch *launch;
    mica__quant_matrix m;
    int64_t act, count;       /* rows of x                                              */
    int64_t cols;             /* of m, padded to blocks of activations                  */
    int64_t tasks;
    float *x;                 /* (count, cols): x, or what its codes stand for          */
    char *scratch;            /* of a task: a row                                       */
    size_t scratch_bytes;
} qmatmul_job;

static size_t row_bytes(int64_t cols) { return mica__round_up((size_t)cols * sizeof(float), 64); }

size_t mica__qmatmul_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)n_in, (void)out;
    const mica__attr_quant *quant = attr;
    const int64_t count = mica__row_count(&in[0].spec);
    if (quant->act != MICA_ACT_NONE && mica__quant_has_codes((mica__quant_id)quant->format))
        return mica__qmatmul_ternary_workspace(quant, count);
    const int64_t cols = (int64_t)mica__round_up((size_t)mica__max_i64(quant->cols, 1), MICA__ACT_BLOCK);
    return ((size_t)count + QMATMUL_TASKS) * row_bytes(cols);
}

/* --------------------------------------------------------- activations ----- */

/* n elements of x, to what their codes stand for. */
static void round_values(int64_t act, int64_t n, float *x)
{
    const mica__ternary_variant *v = mica__ternary_best();
    float most = v->largest(n, x), times = 0, scale = 0;
    const bool finite = isfinite(most);
    if (!finite) most = 1;
    if (act == MICA_ACT_TOKEN) {
        most = fmaxf(most, 1e-5f);
        times = 127.0f / most;
        scale = most / 127.0f;
    } else if (finite && most >= 1e-30f) {
        int64_t first = 0;
        while (fabsf(x[first]) != most) first++;
        times = -127.0f / x[first];
        scale = 1.0f / times;
    }
    const float magic = 0x1.8p23f; /* leaves no room for a fraction: rounds to even */
    for (int64_t i = 0; i < n; i++) x[i] = finite ? ((x[i] * times + magic) - magic) * scale : NAN;
}

static void read_rows(const void *context, int64_t begin, int64_t end)
{
    const qmatmul_job *job = context;
    const mica__tensor *in = &job->launch->in[0];
    const int64_t n = mica__row_size(&in->spec);
    mica__walk walk;
    mica__walk_rows(&walk, in, begin);
    for (int64_t t = begin; t < end; t++, mica__walk_next(&walk)) {
        float *x = job->x + t * job->cols;
        mica__load_f32(MICA_F32, n, x, mica__element(in, walk.offset), mica__row_stride(in));
        memset(x + n, 0, (size_t)(job->cols - n) * sizeof *x);
        if (job->act == MICA_ACT_NONE) continue;
        const int64_t step = job->act == MICA_ACT_TOKEN ? job->cols : MICA__ACT_BLOCK;
        for (int64_t c = 0; c < job->cols; c += step) round_values(job->act, step, x + c);
    }
}

/* -------------------------------------------------------------- products --- */

static float dot_f32(int64_t n, const float *a, const float *b)
{
    float sum[16] = {0};
    for (int64_t i = 0; i < n; i += 16)
        for (int j = 0; j < 16; j++) sum[j] += a[i + j] * b[i + j];
    for (int half = 8; half > 0; half /= 2)
        for (int j = 0; j < half; j++) sum[j] += sum[j + half];
    return sum[0];
}

static void product_task(void *context, int64_t task)
{
    const qmatmul_job *job = context;
    const int64_t begin = job->m.rows * task / job->tasks, end = job->m.rows * (task + 1) / job->tasks;
    float *w = (float *)(void *)(job->scratch + (size_t)task * job->scratch_bytes);
    float *out = (float *)(void *)job->launch->out->data;
    memset(w + job->m.cols, 0, (size_t)(job->cols - job->m.cols) * sizeof *w);
    for (int64_t r = begin; r < end; r++) {
        mica__quant_unpack_row(&job->m, r, w);
        for (int64_t t = 0; t < job->count; t++)
            out[t * job->m.rows + r] = dot_f32(job->cols, job->x + t * job->cols, w);
    }
    mica__gemm_epilogue(job->launch->epilogue, 0, job->m.rows, 0, job->count, begin, end - begin);
}

mica_status mica__qmatmul_cpu(const mica__launch *launch)
{
    const mica__attr_quant *attr = launch->attr;
    if (launch->epilogue && launch->epilogue_taken) *launch->epilogue_taken = true;
    if (mica__spec_size(&launch->out->spec) == 0) return MICA_OK;
    if (attr->act != MICA_ACT_NONE && mica__quant_has_codes((mica__quant_id)attr->format)) {
        mica__qmatmul_ternary(launch);
        return MICA_OK;
    }
    qmatmul_job job = {.launch = launch,
                       .m = mica__quant_operand(attr, launch->in + 1, launch->n_in - 1),
                       .act = attr->act,
                       .count = mica__row_count(&launch->in[0].spec),
                       .x = launch->workspace};
    job.cols = (int64_t)mica__round_up((size_t)mica__max_i64(job.m.cols, 1), MICA__ACT_BLOCK);
    job.scratch_bytes = row_bytes(job.cols);
    job.scratch = (char *)launch->workspace + (size_t)job.count * job.scratch_bytes;
    mica__run_rows(launch->pool, job.count, job.cols, read_rows, &job);
    const int64_t work = job.m.rows * (job.cols * (job.count + 4) / 4096 + 1) / 8;
    job.tasks = mica__max_i64(1, mica__min_i64(mica__min_i64(QMATMUL_TASKS, job.m.rows), work));
    mica__pool_run(job.tasks > 1 ? launch->pool : NULL, job.tasks, product_task, &job);
    return MICA_OK;
}

/* ------------------------------------------------------------------ rows --- */

typedef struct qrows_job {
    const mica__launch *launch;
    mica__quant_matrix m;
} qrows_job;

static void unpack_rows(const void *context, int64_t begin, int64_t end)
{
    const qrows_job *job = context;
    for (int64_t i = begin; i < end; i++)
        mica__quant_unpack_row(&job->m, mica__index_at(&job->launch->in[0], i, job->m.rows),
                               (float *)(void *)job->launch->out->data + i * job->m.cols);
}

mica_status mica__qrows_cpu(const mica__launch *launch)
{
    const qrows_job job = {launch, mica__quant_operand(launch->attr, launch->in + 1, launch->n_in - 1)};
    MICA_TRY(mica__check_indices(launch->pool, "quant_rows", &launch->in[0], job.m.rows));
    if (mica__spec_size(&launch->out->spec) == 0) return MICA_OK;
    mica__run_rows(launch->pool, mica__spec_size(&launch->in[0].spec), 4 * job.m.cols, unpack_rows, &job);
    return MICA_OK;
}
