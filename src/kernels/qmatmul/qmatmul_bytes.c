/* Formats of 4 to 8 bits: byte panels (panel8.h) times 16-bit x. If x must not be rounded, it is split into two such
 * rows, x = h d + l d / 2^14, which keeps all bits of an f32 that is not far smaller than its neighbours. MICA_Q8 is
 * stored as panels. Other weights are packed into panels once; without a packed copy, each task packs the panel it is
 * about to read. */
#include "kernels/matmul/gemm.h"
#include "kernels/qmatmul/panel8.h"
#include "kernels/qmatmul/qmatmul.h"
#include "kernels/walk.h"

enum { BYTES_TASKS = 16, BYTES_LEAST = 1 << 16 }; /* most tasks, each has scratch; minimum codes per task */

typedef struct bytes_job {
    const mica__launch *launch;
    mica__quant_matrix m;
    const mica__p8_variant *v;
    mica__p8_format f;
    int64_t act, parts, count;   /* 16-bit rows: `parts` for each row of x                */
    int64_t cols, records, panels; /* cols: padded to blocks of 256                       */
    int64_t panel_bytes, tasks;
    const char *packed;          /* panels; NULL: each task packs its own                 */
    char *x;                     /* rows of mica__p8_x                                    */
    char *scratch;               /* of each task                                          */
    size_t scratch_bytes;
} bytes_job;

static int64_t bytes_panel(mica__quant_id id, int64_t cols)
{
    return mica__p8_records(cols) * mica__p8_record(mica__p8_format_of(id));
}

/* A row of x as floats, or a panel. */
static size_t bytes_scratch(const mica__attr_quant *attr)
{
    const size_t x = (size_t)mica__act_cols(attr->cols) * sizeof(float);
    const size_t panel = (size_t)bytes_panel((mica__quant_id)attr->format, attr->cols);
    return mica__round_up(x > panel ? x : panel, 64);
}

static int64_t bytes_parts(const mica__attr_quant *attr) { return attr->act == MICA_ACT_NONE ? 2 : 1; }

size_t mica__qmatmul_bytes_workspace(const mica__attr_quant *attr, int64_t count)
{
    return (size_t)(count * bytes_parts(attr)) * mica__p8_x_bytes(mica__act_cols(attr->cols)) +
           BYTES_TASKS * bytes_scratch(attr);
}

/* --------------------------------------------------------------- packing --- */

typedef struct bytes_filling {
    mica__quant_matrix m;
    char *to;
    int64_t panels, panel_bytes;
} bytes_filling;

static void fill_bytes(const void *context, int64_t begin, int64_t end)
{
    const bytes_filling *f = context;
    for (int64_t p = begin; p < end; p++) mica__p8_pack(&f->m, p, f->to + p * f->panel_bytes);
}

static void fill_bytes_copy(const void *context, void *to)
{
    const mica__launch *launch = context;
    const mica__attr_quant *attr = launch->attr;
    const bytes_filling f = {.m = mica__quant_operand(attr, launch->in + 1, launch->n_in - 1),
                             .to = to,
                             .panels = (attr->rows + MICA__P8_ROWS - 1) / MICA__P8_ROWS,
                             .panel_bytes = bytes_panel((mica__quant_id)attr->format, attr->cols)};
    mica__run_rows(launch->pool, f.panels, f.panel_bytes * 4, fill_bytes, &f);
}

/* Panels of a file can be read in place if its scales are aligned for float. */
static bool bytes_in_place(const mica__quant_matrix *m)
{
    return m->id == MICA__QUANT_MICA_Q8 && (uintptr_t)m->data % sizeof(float) == 0;
}

bool mica__qmatmul_bytes_prepack(const mica__launch *launch, mica__prepack *wish)
{
    static const char format = 0;
    const mica__attr_quant *attr = launch->attr;
    const mica__quant_matrix m = mica__quant_operand(attr, launch->in + 1, launch->n_in - 1);
    const int64_t panels = (attr->rows + MICA__P8_ROWS - 1) / MICA__P8_ROWS;
    if (bytes_in_place(&m)) return false;
    *wish = (mica__prepack){.format = &format,
                            .size = {attr->rows, attr->cols},
                            .step = {attr->format},
                            .nbytes = (size_t)(panels * bytes_panel(m.id, attr->cols)),
                            .fill = fill_bytes_copy,
                            .at_once = true,
                            .replaces = mica__quant_matrix_nbytes(&m)};
    return true;
}

/* -------------------------------------------------------------- products --- */

static mica__p8_x bytes_row(const bytes_job *job, int64_t t)
{
    return mica__p8_x_at(job->x + (size_t)t * mica__p8_x_bytes(job->cols), job->cols);
}

/* The part of x that h does not represent, in units of h's scale. Overwrites x. */
static void bytes_rest(const bytes_job *job, float *x, const mica__p8_x *h, const mica__p8_x *l)
{
    const float part = 16384, magic = 0x1.8p23f; /* no bits left for a fraction: rounds */
    for (int64_t k = 0; k < job->cols / MICA__P8_COLS; k++) {
        const float d = h->d[k], times = d > 1e-30f ? part / d : 0;
        float *from = x + k * MICA__P8_COLS, sum = 0;
        for (int64_t c = 0; c < MICA__P8_COLS; c++) {
            /* at most half a unit; the difference is exact or nearly so, because both are close */
            const float rest = times > 0 ? (from[c] - (float)h->q[k * MICA__P8_COLS + c] * d) * times : 0;
            const float whole = (rest + magic) - magic;
            l->q[k * MICA__P8_COLS + c] = (int16_t)whole;
            sum += whole; /* exact */
        }
        l->d[k] = d / part;
        l->sum[k] = sum * l->d[k];
    }
}

static void bytes_round(void *context, int64_t task)
{
    const bytes_job *job = context;
    const mica__tensor *in = &job->launch->in[0];
    const int64_t n = mica__row_size(&in->spec), count = job->count / job->parts;
    const int64_t tasks = mica__min_i64(count, BYTES_TASKS);
    const int64_t begin = count * task / tasks, end = count * (task + 1) / tasks;
    float *x = (float *)(void *)(job->scratch + (size_t)task * job->scratch_bytes);
    const int64_t step = job->act == MICA_ACT_TOKEN      ? job->cols
                         : job->act == MICA_ACT_BLOCK256 ? MICA__ACT_BLOCK
                                                         : MICA__P8_COLS;
    mica__walk walk;
    mica__walk_rows(&walk, in, begin);
    for (int64_t t = begin; t < end; t++, mica__walk_next(&walk)) {
        mica__load_f32(MICA_F32, n, x, mica__element(in, walk.offset), mica__row_stride(in));
        memset(x + n, 0, (size_t)(job->cols - n) * sizeof *x);
        const mica__p8_x to = bytes_row(job, t * job->parts);
        job->v->round(job->cols, x, job->act == MICA_ACT_NONE ? 32767 : 127, step,
                      job->act == MICA_ACT_TOKEN ? 1e-5f : 0, job->act == MICA_ACT_BLOCK256, &to);
        if (job->parts == 1) continue;
        const mica__p8_x rest = bytes_row(job, t * job->parts + 1);
        bytes_rest(job, x, &to, &rest);
    }
}

static void bytes_task(void *context, int64_t task)
{
    const bytes_job *job = context;
    const int64_t begin = job->panels * task / job->tasks, end = job->panels * (task + 1) / job->tasks;
    const int64_t rows = job->m.rows;
    char *own = job->scratch + (size_t)task * job->scratch_bytes;
    float *out = (float *)(void *)job->launch->out->data;
    for (int64_t p = begin; p < end; p++) {
        const char *panel = job->packed ? job->packed + p * job->panel_bytes : own;
        if (!job->packed) mica__p8_pack(&job->m, p, own);
        const int64_t r = p * MICA__P8_ROWS, n = mica__min_i64(MICA__P8_ROWS, rows - r);
        for (int64_t t = 0; t < job->count; t += MICA__P8_TILE) {
            mica__p8_x x[MICA__P8_TILE];
            float y[MICA__P8_TILE * MICA__P8_ROWS];
            const int64_t tokens = mica__min_i64(job->count - t, MICA__P8_TILE);
            for (int64_t j = 0; j < tokens; j++) x[j] = bytes_row(job, t + j);
            job->v->tile(job->f, job->records, panel, x, tokens, y);
            for (int64_t j = 0; j < tokens; j += job->parts) {
                float *sum = y + j * MICA__P8_ROWS;
                for (int64_t i = 0; i < MICA__P8_ROWS && job->parts == 2; i++) sum[i] += sum[MICA__P8_ROWS + i];
                memcpy(out + (t + j) / job->parts * rows + r, sum, (size_t)n * sizeof *y);
            }
        }
    }
    const int64_t first = begin * MICA__P8_ROWS, last = mica__min_i64(end * MICA__P8_ROWS, rows);
    mica__gemm_epilogue(job->launch->epilogue, 0, rows, 0, job->count / job->parts, first, last - first);
}

void mica__qmatmul_bytes(const mica__launch *launch)
{
    const mica__attr_quant *attr = launch->attr;
    bytes_job job = {.launch = launch,
                     .m = mica__quant_operand(attr, launch->in + 1, launch->n_in - 1),
                     .v = mica__p8_best(),
                     .f = mica__p8_format_of((mica__quant_id)attr->format),
                     .act = attr->act,
                     .parts = bytes_parts(attr),
                     .count = mica__row_count(&launch->in[0].spec) * bytes_parts(attr),
                     .cols = mica__act_cols(attr->cols),
                     .records = mica__p8_records(attr->cols),
                     .panels = (attr->rows + MICA__P8_ROWS - 1) / MICA__P8_ROWS,
                     .panel_bytes = bytes_panel((mica__quant_id)attr->format, attr->cols),
                     .packed = launch->packed,
                     .x = launch->workspace,
                     .scratch_bytes = bytes_scratch(attr)};
    if (bytes_in_place(&job.m)) job.packed = job.m.data;
    job.scratch = job.x + (size_t)job.count * mica__p8_x_bytes(job.cols);
    const int64_t rounds = mica__min_i64(job.count / job.parts, BYTES_TASKS);
    mica__pool_run(rounds > 1 && job.count * job.cols > BYTES_LEAST / 4 ? launch->pool : NULL, rounds, bytes_round,
                   &job);
    const int64_t work = job.panels * job.records * MICA__P8_BYTES * (job.count + 1);
    const int64_t wish = launch->pool ? 2 * mica__pool_threads(launch->pool) : 1;
    job.tasks = mica__max_i64(
        1, mica__min_i64(mica__min_i64(wish, BYTES_TASKS), mica__min_i64(job.panels, work / BYTES_LEAST)));
    mica__pool_run(job.tasks > 1 ? launch->pool : NULL, job.tasks, bytes_task, &job);
}
