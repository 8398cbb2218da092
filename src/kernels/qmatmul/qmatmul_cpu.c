/* Products with block formats on many threads (qmatmul.h).
 *
 * x is brought into rows first, rounded to 8 bits where that is asked for. Then
 * each task takes some rows of the matrix: unpacks one into cache and multiplies
 * it with every row of x. No sum depends on how rows are cut into tasks. */
#include <math.h>

#include "kernels/index/index.h"
#include "kernels/matmul/gemm.h"
#include "kernels/qmatmul/qmatmul.h"
#include "kernels/walk.h"

enum { QMATMUL_TASKS = 32 }; /* at most; each has scratch for a row */

typedef struct qmatmul_job {
    const mica__launch *launch;
    mica__quant_matrix m;
    int64_t act, count;       /* rows of x                                              */
    int64_t cols;             /* of m, padded to blocks of activations                  */
    int64_t tasks;
    bool codes;
    float *x;                 /* (count, cols): x, or what its codes stand for          */
    int8_t *q;                /* (count, cols)                                          */
    float *a, *d;             /* (count), (count, cols / 256)                           */
    char *scratch;            /* of a task                                              */
    size_t scratch_bytes;
} qmatmul_job;

static size_t qmatmul_scratch(int64_t cols) { return mica__round_up((size_t)cols * 6, 64) + 64; }

static size_t qmatmul_x_bytes(int64_t count, int64_t cols)
{
    const size_t n = (size_t)count, c = (size_t)cols;
    return mica__round_up(n * c * sizeof(float), 64) + mica__round_up(n * c, 64) +
           mica__round_up(n * (c / MICA__ACT_BLOCK + 1) * sizeof(float), 64);
}

size_t mica__qmatmul_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)n_in, (void)out;
    const mica__attr_quant *quant = attr;
    const int64_t cols = (int64_t)mica__round_up((size_t)mica__max_i64(quant->cols, 1), MICA__ACT_BLOCK);
    return qmatmul_x_bytes(mica__row_count(&in[0].spec), cols) + QMATMUL_TASKS * qmatmul_scratch(cols);
}

/* --------------------------------------------------------- activations ----- */

/* n elements from x, rounded with one scale; that scale. */
static float round_piece(int64_t act, int64_t n, const float *x, int8_t *q)
{
    float top = 0, bad = 0;
    for (int64_t i = 0; i < n; i++) {
        bad += x[i] * 0; /* NaN as soon as one is not finite */
        top = fabsf(x[i]) > fabsf(top) ? x[i] : top;
    }
    float times, scale;
    if (act == MICA_ACT_TOKEN) {
        const float most = fmaxf(fabsf(top), 1e-5f);
        times = 127.0f / most;
        scale = most / 127.0f;
    } else {
        times = fabsf(top) < 1e-30f ? 0 : -127.0f / top;
        scale = times == 0 ? 0 : 1.0f / times;
    }
    if (bad != 0) {
        times = 0;
        scale = NAN;
    }
    /* adding 1.5 * 2^23 leaves no room for a fraction: rounds to even */
    const float magic = 0x1.8p23f;
    for (int64_t i = 0; i < n; i++) q[i] = bad != 0 ? 0 : (int8_t)((x[i] * times + magic) - magic);
    return scale;
}

static void read_rows(const void *context, int64_t begin, int64_t end)
{
    const qmatmul_job *job = context;
    const mica__tensor *in = &job->launch->in[0];
    const int64_t n = mica__row_size(&in->spec), blocks = job->cols / MICA__ACT_BLOCK;
    mica__walk walk;
    mica__walk_rows(&walk, in, begin);
    for (int64_t t = begin; t < end; t++, mica__walk_next(&walk)) {
        float *x = job->x + t * job->cols;
        int8_t *q = job->q + t * job->cols;
        mica__load_f32(MICA_F32, n, x, mica__element(in, walk.offset), mica__row_stride(in));
        memset(x + n, 0, (size_t)(job->cols - n) * sizeof *x);
        if (job->act == MICA_ACT_NONE) continue;
        job->a[t] = job->act == MICA_ACT_TOKEN ? round_piece(job->act, job->cols, x, q) : 1;
        for (int64_t b = 0; b < blocks; b++) {
            float *d = job->d + t * blocks + b;
            *d = job->act == MICA_ACT_TOKEN
                     ? 1
                     : round_piece(job->act, MICA__ACT_BLOCK, x + b * MICA__ACT_BLOCK, q + b * MICA__ACT_BLOCK);
            const float scale = job->a[t] * *d;
            for (int64_t i = b * MICA__ACT_BLOCK; i < (b + 1) * MICA__ACT_BLOCK; i++) x[i] = (float)q[i] * scale;
        }
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

static float dot_codes(const qmatmul_job *job, int64_t t, const int8_t *codes, const float *scales, int64_t step)
{
    const int8_t *q = job->q + t * job->cols;
    const int64_t x_step = job->act == MICA_ACT_TOKEN ? job->m.cols : MICA__ACT_BLOCK,
                  piece = mica__min_i64(step, x_step);
    const float *d = job->d + t * (job->cols / MICA__ACT_BLOCK);
    double sum = 0;
    for (int64_t from = 0; from < job->m.cols; from += piece) {
        const int64_t to = mica__min_i64(from + piece, job->m.cols);
        int32_t part = 0;
        for (int64_t i = from; i < to; i++) part += codes[i] * q[i];
        sum += (double)part * (double)scales[from / step] * (double)d[from / x_step];
    }
    return (float)(sum * (double)job->a[t]);
}

static void product_task(void *context, int64_t task)
{
    const qmatmul_job *job = context;
    const int64_t begin = job->m.rows * task / job->tasks, end = job->m.rows * (task + 1) / job->tasks;
    float *w = (float *)(void *)(job->scratch + (size_t)task * job->scratch_bytes);
    int8_t *codes = (int8_t *)(w + job->cols);
    float *out = (float *)(void *)job->launch->out->data;
    for (int64_t r = begin; r < end; r++) {
        int64_t step = 0;
        if (job->codes) (void)mica__quant_codes_row(&job->m, r, codes, w, &step);
        else mica__quant_unpack_row(&job->m, r, w);
        if (!job->codes) memset(w + job->m.cols, 0, (size_t)(job->cols - job->m.cols) * sizeof *w);
        for (int64_t t = 0; t < job->count; t++)
            out[t * job->m.rows + r] =
                job->codes ? dot_codes(job, t, codes, w, step) : dot_f32(job->cols, job->x + t * job->cols, w);
    }
    mica__gemm_epilogue(job->launch->epilogue, 0, job->m.rows, 0, job->count, begin, end - begin);
}

mica_status mica__qmatmul_cpu(const mica__launch *launch)
{
    const mica__attr_quant *attr = launch->attr;
    qmatmul_job job = {.launch = launch,
                       .m = mica__quant_operand(attr, launch->in + 1, launch->n_in - 1),
                       .act = attr->act,
                       .count = mica__row_count(&launch->in[0].spec)};
    if (launch->epilogue && launch->epilogue_taken) *launch->epilogue_taken = true;
    if (mica__spec_size(&launch->out->spec) == 0) return MICA_OK;
    const mica__quant *q = mica__quant_get(job.m.id);
    job.codes = attr->act != MICA_ACT_NONE && (q ? q->codes != NULL : job.m.id == MICA__QUANT_HF_TERNARY);
    job.cols = (int64_t)mica__round_up((size_t)mica__max_i64(job.m.cols, 1), MICA__ACT_BLOCK);
    const size_t n = (size_t)job.count, c = (size_t)job.cols;
    char *at = launch->workspace;
    job.x = (float *)(void *)at;
    at += mica__round_up(n * c * sizeof(float), 64);
    job.q = (int8_t *)at;
    at += mica__round_up(n * c, 64);
    job.a = (float *)(void *)at;
    job.d = job.a + n;
    at += mica__round_up(n * (c / MICA__ACT_BLOCK + 1) * sizeof(float), 64);
    job.scratch = at;
    job.scratch_bytes = qmatmul_scratch(job.cols);
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
