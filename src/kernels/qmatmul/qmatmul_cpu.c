/* Products with block formats on many threads (qmatmul.h). Formats with codes are in qmatmul_ternary.c, those of 4 to 8
 * bits in qmatmul_bytes.c. The others are here, computed as floats: plain formats in place, the rest unpacked one row
 * at a time. */
#include "kernels/index/index.h"
#include "kernels/matmul/gemm.h"
#include "kernels/qmatmul/panel8.h"
#include "kernels/qmatmul/qmatmul.h"
#include "kernels/walk.h"

/* Most tasks, each has scratch; columns per step of the vector loop. */
enum { QMATMUL_TASKS = 16, QMATMUL_LAST = 64, QMATMUL_ROWS = MICA__P8_DOT_ROWS, QMATMUL_TOKENS = MICA__P8_DOT_TOKENS };

typedef enum qmatmul_path { QMATMUL_TERNARY, QMATMUL_BYTES, QMATMUL_FLOATS } qmatmul_path;

static qmatmul_path path_of(const mica__attr_quant *attr)
{
    const mica__quant_id id = (mica__quant_id)attr->format;
    if (mica__quant_has_codes(id)) return QMATMUL_TERNARY;
    return mica__p8_format_of(id).scales ? QMATMUL_BYTES : QMATMUL_FLOATS;
}

typedef struct qmatmul_job {
    const mica__launch *launch;
    mica__quant_matrix m;
    const mica__p8_variant *v;
    int64_t act, count; /* rows of x                                              */
    int64_t cols; /* of m, padded to blocks of 256                          */
    int64_t tasks;
    float *x; /* (count, cols): x, or its dequantised codes             */
    char *scratch; /* of each task: rows of floats, and one of codes         */
    size_t scratch_bytes;
} qmatmul_job;

static size_t row_bytes(int64_t cols) { return mica__round_up((size_t)cols * sizeof(float), 64); }
static size_t task_row_bytes(int64_t cols) { return QMATMUL_ROWS * row_bytes(cols) + mica__p8_x_bytes(cols); }

size_t mica__qmatmul_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)n_in, (void)out;
    const mica__attr_quant *quant = attr;
    const int64_t count = mica__row_count(&in[0].spec), cols = mica__act_cols(quant->cols);
    switch (path_of(quant)) {
    case QMATMUL_TERNARY: return mica__qmatmul_ternary_workspace(quant, count);
    case QMATMUL_BYTES: return mica__qmatmul_bytes_workspace(quant, count);
    default: return (size_t)count * row_bytes(cols) + QMATMUL_TASKS * task_row_bytes(cols);
    }
}

bool mica__qmatmul_prepack(const mica__launch *launch, mica__prepack *wish)
{
    const mica__attr_quant *attr = launch->attr;
    if (mica__spec_size(&launch->out->spec) == 0 || attr->cols == 0) return false;
    switch (path_of(attr)) {
    case QMATMUL_TERNARY: return mica__qmatmul_ternary_prepack(launch, wish);
    case QMATMUL_BYTES: return mica__qmatmul_bytes_prepack(launch, wish);
    default: return false;
    }
}

/* -------------------------------------------------------------- floats ----- */

static void read_task(void *context, int64_t task)
{
    const qmatmul_job *job = context;
    const mica__tensor *in = &job->launch->in[0];
    const int64_t n = mica__row_size(&in->spec), tasks = mica__min_i64(job->count, QMATMUL_TASKS);
    const int64_t begin = job->count * task / tasks, end = job->count * (task + 1) / tasks;
    const mica__p8_x q = mica__p8_x_at(job->scratch + (size_t)task * job->scratch_bytes, job->cols);
    mica__walk walk;
    mica__walk_rows(&walk, in, begin);
    for (int64_t t = begin; t < end; t++, mica__walk_next(&walk)) {
        float *x = job->x + t * job->cols;
        mica__load_f32(MICA_F32, n, x, mica__element(in, walk.offset), mica__row_stride(in));
        memset(x + n, 0, (size_t)(job->cols - n) * sizeof *x);
        float bad = 0;
        for (int64_t c = 0; c < n; c++) bad += x[c] * 0; /* NaN if one of them is not finite */
        if (bad != 0) x[0] = bad;
        if (job->act == MICA_ACT_NONE) continue;
        const bool token = job->act == MICA_ACT_TOKEN;
        job->v->round(job->cols, x, 127, token ? job->cols : MICA__ACT_BLOCK, token ? 1e-5f : 0, !token, &q);
        for (int64_t c = 0; c < job->cols; c++) x[c] = (float)q.q[c] * q.d[c / MICA__P8_COLS];
    }
}

/* Rows of the matrix: address, dtype, and the zero-padded tail of each row. */
typedef struct qmatmul_rows {
    int64_t r;
    int n;
    mica_dtype dtype;
    const char *w;
    int64_t step, whole; /* bytes between rows; columns in whole vector steps      */
    float last[QMATMUL_ROWS][QMATMUL_LAST];
} qmatmul_rows;

/* Reads a plain format in place; unpacks others. */
static void take_rows(const qmatmul_job *job, int64_t r, int n, float *scratch, qmatmul_rows *to)
{
    const mica__quant *q = mica__quant_get(job->m.id);
    const bool plain = q && (q->dtype == MICA_F32 || q->dtype == MICA_F16 || q->dtype == MICA_BF16);
    to->r = r;
    to->n = n;
    to->dtype = plain ? (mica_dtype)q->dtype : MICA_F32;
    to->whole = plain ? job->m.cols / QMATMUL_LAST * QMATMUL_LAST : job->cols;
    to->step = (plain ? job->m.cols : job->cols) * (int64_t)mica_dtype_size(to->dtype);
    to->w = plain ? (const char *)job->m.data + r * to->step : (const char *)scratch;
    for (int64_t i = 0; i < n && !plain; i++) {
        mica__quant_unpack_row(&job->m, r + i, scratch + i * job->cols);
        memset(scratch + i * job->cols + job->m.cols, 0, (size_t)(job->cols - job->m.cols) * sizeof *scratch);
    }
    if (to->whole >= job->m.cols) return;
    memset(to->last, 0, sizeof to->last);
    for (int64_t i = 0; i < n; i++)
        mica__load_f32(to->dtype, job->m.cols - to->whole, to->last[i],
                       to->w + i * to->step + to->whole * (int64_t)mica_dtype_size(to->dtype), 1);
}

static void multiply_floats(const qmatmul_job *job, const qmatmul_rows *rows, int64_t t, int tokens)
{
    float *out = (float *)(void *)job->launch->out->data + t * job->m.rows + rows->r;
    const float *x = job->x + t * job->cols;
    job->v->dots(rows->dtype, rows->n, tokens, rows->whole, rows->w, rows->step, x, job->cols, out, job->m.rows);
    if (rows->whole >= job->m.cols) return;
    float rest[QMATMUL_TOKENS * QMATMUL_ROWS];
    job->v->dots(MICA_F32, rows->n, tokens, QMATMUL_LAST, (const char *)rows->last, sizeof rows->last[0],
                 x + rows->whole, job->cols, rest, QMATMUL_ROWS);
    for (int64_t i = 0; i < tokens; i++)
        for (int64_t r = 0; r < rows->n; r++) out[i * job->m.rows + r] += rest[i * QMATMUL_ROWS + r];
}

static void product_task(void *context, int64_t task)
{
    const qmatmul_job *job = context;
    const int64_t begin = job->m.rows * task / job->tasks, end = job->m.rows * (task + 1) / job->tasks;
    float *scratch = (float *)(void *)(job->scratch + (size_t)task * job->scratch_bytes);
    for (int64_t t = 0; t < job->count; t += QMATMUL_TOKENS)
        for (int64_t r = begin; r < end; r += QMATMUL_ROWS) {
            qmatmul_rows rows;
            take_rows(job, r, (int)mica__min_i64(QMATMUL_ROWS, end - r), scratch, &rows);
            multiply_floats(job, &rows, t, (int)mica__min_i64(QMATMUL_TOKENS, job->count - t));
        }
    mica__gemm_epilogue(job->launch->epilogue, 0, job->m.rows, 0, job->count, begin, end - begin);
}

static void product_floats(const mica__launch *launch)
{
    const mica__attr_quant *attr = launch->attr;
    qmatmul_job job = {.launch = launch,
                       .m = mica__quant_operand(attr, launch->in + 1, launch->n_in - 1),
                       .v = mica__p8_best(),
                       .act = attr->act,
                       .count = mica__row_count(&launch->in[0].spec),
                       .cols = mica__act_cols(attr->cols),
                       .x = launch->workspace};
    job.scratch_bytes = task_row_bytes(job.cols);
    job.scratch = (char *)launch->workspace + (size_t)job.count * row_bytes(job.cols);
    const int64_t reads = mica__min_i64(job.count, QMATMUL_TASKS);
    mica__pool_run(reads > 1 && job.count * job.cols > 1 << 15 ? launch->pool : NULL, reads, read_task, &job);
    const int64_t work = job.m.rows * (job.cols * (job.count + 4) / 4096 + 1) / 8;
    job.tasks = mica__max_i64(1, mica__min_i64(mica__min_i64(QMATMUL_TASKS, job.m.rows), work));
    mica__pool_run(job.tasks > 1 ? launch->pool : NULL, job.tasks, product_task, &job);
}

mica_status mica__qmatmul_cpu(const mica__launch *launch)
{
    if (launch->epilogue && launch->epilogue_taken) *launch->epilogue_taken = true;
    if (mica__spec_size(&launch->out->spec) == 0) return MICA_OK;
    switch (path_of(launch->attr)) {
    case QMATMUL_TERNARY: mica__qmatmul_ternary(launch); break;
    case QMATMUL_BYTES: mica__qmatmul_bytes(launch); break;
    default: product_floats(launch); break;
    }
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
