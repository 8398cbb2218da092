/* Formats of two-bit codes: exact sums over panels (ternary.h), scaled as qmatmul.h defines. x that must not be
 * rounded to 8 bits is split into three 8-bit rows, x = (h + m / 128 + l / 128^2) d, with one scale d per 256
 * columns.
 *
 * MICA_T2 and MICA_T1 are stored as panels. Other weights are packed into panels once (memory/packed.h); without a
 * packed copy, each task packs the panel it is about to read. Tasks get consecutive panels, so a thread reads one
 * stream. A piece is a range of columns with one scale of the matrix and one of x; usually a row is one piece. */
#include <math.h>

#include "kernels/matmul/gemm.h"
#include "kernels/qmatmul/qmatmul.h"
#include "kernels/qmatmul/ternary.h"
#include "kernels/walk.h"

enum { TERNARY_TASKS = 16, TERNARY_LEAST = 1 << 16 }; /* most tasks, each has scratch; minimum codes per task */

/* Layout of a packed copy: this header, the panels, then scales (panels, steps, 16). There is one step if no row has
 * two different scales. */
typedef struct ternary_head {
    _Alignas(64) uint32_t one_step;
    int32_t top;                 /* largest code + 1                                      */
} ternary_head;

typedef struct ternary_job {
    const mica__launch *launch;
    mica__quant_matrix m;
    const mica__ternary_variant *v;
    int64_t act, parts, count;   /* 8-bit rows: `parts` for each row of x                 */
    int64_t cols, units, panels; /* cols: padded to blocks of 256                         */
    int64_t tasks;
    int top;                     /* of the packed copy                                    */
    bool trits;                  /* panels of MICA_T1                                     */
    int64_t panel_bytes;
    const uint8_t *packed;       /* panels; NULL: each task packs its own                 */
    const float *scales;         /* of the packed copy; NULL: a single one, or made by the task */
    float one[MICA__PANEL_ROWS];
    bool has_one;
    int64_t step, steps;         /* columns per weight scale; number of scales            */
    int64_t x_step, piece, pieces;
    int8_t *q;                   /* cells of x (ternary.h)                                */
    float *a, *d;                /* (count), (count, cols / 256)                          */
    int32_t *less;               /* (count, pieces): sums of x                            */
    char *scratch;
    size_t scratch_bytes;
} ternary_job;

/* Columns per scale in the file; 0: one scale for the matrix. */
static int64_t file_step(const mica__quant_matrix *m)
{
    float scale;
    const mica__quant *q = mica__quant_get(m->id);
    return mica__quant_one_scale(m, &scale) || !q ? 0 : q->block;
}

static size_t panel_bytes(int64_t cols) { return (size_t)mica__ternary_units(cols) * MICA__UNIT_BYTES; }

/* A row of x as floats and as codes; a panel, its scales and the scratch for packing it. */
static size_t task_bytes(int64_t cols)
{
    const size_t n = (size_t)mica__act_cols(cols), x = n * (sizeof(float) + 1);
    const size_t panel = panel_bytes(cols) + (n / 32) * MICA__PANEL_ROWS * sizeof(float) + mica__ternary_scratch(cols);
    return mica__round_up((x > panel ? x : panel) + 64, 64);
}

static size_t x_bytes(int64_t count, int64_t cols)
{
    const size_t n = (size_t)count, c = (size_t)cols;
    return mica__round_up(n * c, 64) + mica__round_up(n * (1 + c / MICA__ACT_BLOCK + c / 32) * sizeof(float), 64);
}

static int64_t parts_of(const mica__attr_quant *attr) { return attr->act == MICA_ACT_NONE ? 3 : 1; }

size_t mica__qmatmul_ternary_workspace(const mica__attr_quant *attr, int64_t count)
{
    return x_bytes(count * parts_of(attr), mica__act_cols(attr->cols)) + TERNARY_TASKS * task_bytes(attr->cols);
}

/* --------------------------------------------------------------- packing --- */

typedef struct ternary_filling {
    mica__quant_matrix m;
    int64_t steps, units;
    uint8_t *panels;
    float *scales;
    char *scratch;
    size_t scratch_bytes;
    int64_t tasks;
    atomic_bool several;         /* some row has two different scales                     */
    atomic_int top;
} ternary_filling;

static void fill_panels(void *context, int64_t task)
{
    ternary_filling *f = context;
    const int64_t panels = mica__ternary_panels(f->m.rows);
    const int64_t scales = f->steps * MICA__PANEL_ROWS;
    char *scratch = f->scratch + (size_t)task * f->scratch_bytes;
    bool several = false;
    for (int64_t p = panels * task / f->tasks; p < panels * (task + 1) / f->tasks; p++) {
        float one[MICA__PANEL_ROWS], *to = f->scales ? f->scales + p * scales : one;
        memset(to, 0, (size_t)scales * sizeof *to);
        const int top = mica__ternary_panel(&f->m, p, f->panels + p * f->units * MICA__UNIT_BYTES, to, scratch);
        if (top > 2) atomic_store(&f->top, top);
        for (int64_t i = MICA__PANEL_ROWS; f->scales && i < scales; i++)
            several = several || memcmp(&to[i], &to[i - MICA__PANEL_ROWS], sizeof *to) != 0;
    }
    if (several) atomic_store(&f->several, true);
}

static void fill_copy(const void *context, void *to)
{
    const mica__launch *launch = context;
    const mica__attr_quant *attr = launch->attr;
    ternary_head *head = to;
    ternary_filling f = {.m = mica__quant_operand(attr, launch->in + 1, launch->n_in - 1),
                         .units = mica__ternary_units(attr->cols),
                         .panels = (uint8_t *)(head + 1),
                         .tasks = TERNARY_TASKS,
                         .top = 2,
                         .scratch_bytes = task_bytes(attr->cols)};
    const int64_t step = file_step(&f.m), panels = mica__ternary_panels(f.m.rows);
    f.steps = step ? f.m.cols / step : 1;
    /* the last part of the workspace, which is not in use yet */
    f.scratch = (char *)launch->workspace +
                x_bytes(mica__row_count(&launch->in[0].spec) * parts_of(attr), mica__act_cols(attr->cols));
    if (step) f.scales = (float *)(void *)(f.panels + panels * f.units * MICA__UNIT_BYTES);
    mica__pool_run(launch->pool, f.tasks, fill_panels, &f);
    const bool one_step = !atomic_load(&f.several);
    *head = (ternary_head){.one_step = one_step, .top = atomic_load(&f.top)};
    for (int64_t p = 1; f.scales && one_step && p < panels; p++)
        memmove(f.scales + p * MICA__PANEL_ROWS, f.scales + p * f.steps * MICA__PANEL_ROWS,
                MICA__PANEL_ROWS * sizeof *f.scales);
}

bool mica__qmatmul_ternary_prepack(const mica__launch *launch, mica__prepack *wish)
{
    static const char format = 0;
    const mica__attr_quant *attr = launch->attr;
    if (MICA__QUANT_IS_PANEL(attr->format)) return false;
    const mica__quant_matrix m = mica__quant_operand(attr, launch->in + 1, launch->n_in - 1);
    const int64_t step = file_step(&m), panels = mica__ternary_panels(attr->rows);
    const size_t scales = step ? (size_t)(panels * (attr->cols / step)) * MICA__PANEL_ROWS * sizeof(float) : 0;
    *wish = (mica__prepack){.format = &format,
                            .size = {attr->rows, attr->cols},
                            .step = {attr->format},
                            .nbytes = sizeof(ternary_head) + (size_t)panels * panel_bytes(attr->cols) + scales,
                            .fill = fill_copy,
                            .at_once = true,
                            .replaces = mica__quant_matrix_nbytes(&m)};
    return true;
}

/* --------------------------------------------------------------- rounding -- */

/* Rounds n elements with one scale and returns the scale. */
static float round_piece(const ternary_job *job, int64_t n, const float *x, int8_t *q)
{
    float most = job->v->largest(n, x), times;
    if (!isfinite(most)) {
        memset(q, 0, (size_t)n);
        return NAN;
    }
    if (job->act == MICA_ACT_TOKEN) {
        most = fmaxf(most, 1e-5f);
        job->v->round(n, x, 127.0f / most, q);
        return most / 127.0f;
    }
    if (most < 1e-30f) {
        memset(q, 0, (size_t)n);
        return 0;
    }
    int64_t first = 0;
    while (fabsf(x[first]) != most) first++;
    times = -127.0f / x[first];
    job->v->round(n, x, times, q);
    return 1.0f / times;
}

/* Copies the codes of row t into the cell layout of the kernels. */
static void place_cells(const ternary_job *job, int64_t t, const int8_t *q)
{
    const int64_t chunk = t / MICA__TERNARY_TOKENS * MICA__TERNARY_TOKENS, in_chunk = t - chunk;
    const int64_t tokens = mica__min_i64(MICA__TERNARY_TOKENS, job->count - chunk);
    const int64_t first = in_chunk / job->v->group * job->v->group, g = mica__min_i64(job->v->group, tokens - first);
    int8_t *to = job->q + chunk * job->cols + first * MICA__ACT_BLOCK + job->v->cell * (in_chunk - first);
    for (int64_t c = 0; c < job->cols; c += MICA__ACT_BLOCK, to += tokens * MICA__ACT_BLOCK)
        if (job->v->cell == 4)
            for (int64_t i = 0; i < MICA__ACT_BLOCK; i += 4) memcpy(to + i * g, q + c + i, 4);
        else
            for (int64_t i = 0; i < MICA__ACT_BLOCK; i += 8) memcpy(to + i * g, q + c + i, 8);
}

/* Eight bytes at a time: made unsigned, then added in pairs into 16 bits, which hold 128 such sums of two. */
static int32_t sum_of(const int8_t *q, int64_t n)
{
    int64_t sum = 0, i = 0;
    while (i + 8 <= n) {
        uint64_t pairs = 0;
        for (const int64_t end = mica__min_i64(n - 7, i + 8 * 128); i < end; i += 8) {
            uint64_t v;
            memcpy(&v, q + i, sizeof v);
            v ^= 0x8080808080808080u;
            pairs += (v & 0x00ff00ff00ff00ffu) + (v >> 8 & 0x00ff00ff00ff00ffu);
            sum -= 8 * 128;
        }
        for (int k = 0; k < 64; k += 16) sum += (int64_t)(pairs >> k & 0xffff);
    }
    for (; i < n; i++) sum += q[i];
    return (int32_t)sum;
}

/* Row t of 8-bit codes at q: stores their sums and copies them into cells. */
static void place_row(const ternary_job *job, int64_t t, const int8_t *q)
{
    for (int64_t i = 0; i < job->pieces; i++)
        job->less[t * job->pieces + i] =
            sum_of(q + i * job->piece, mica__min_i64(job->piece, job->cols - i * job->piece));
    if (job->count > 1) place_cells(job, t, q);
    else if (q != job->q) memcpy(job->q, q, (size_t)job->cols);
}

/* Splits a row into its parts. Overwrites x. */
static void round_parts(const ternary_job *job, int64_t t, float *x, int8_t *q)
{
    const int64_t blocks = job->cols / MICA__ACT_BLOCK;
    float *d = job->d + t * blocks;
    for (int64_t b = 0; b < blocks; b++) {
        float *from = x + b * MICA__ACT_BLOCK;
        const float most = job->v->largest(MICA__ACT_BLOCK, from), times = most >= 1e-30f ? 127.0f / most : 0;
        d[b] = !isfinite(most) ? NAN : times == 0 ? 0 : most / 127.0f;
        for (int64_t i = 1; i < job->parts; i++) d[i * blocks + b] = d[(i - 1) * blocks + b] / 128;
        for (int64_t i = 0; i < MICA__ACT_BLOCK; i++) from[i] = isfinite(most) ? from[i] * times : 0;
    }
    for (int64_t part = 0; part < job->parts; part++) {
        job->a[t + part] = 1;
        job->v->round(job->cols, x, 1, q);
        place_row(job, t + part, q);
        for (int64_t i = 0; i < job->cols; i++) x[i] = (x[i] - (float)q[i]) * 128; /* exact, at most 64 */
    }
}

static void round_task(void *context, int64_t task)
{
    const ternary_job *job = context;
    const mica__tensor *in = &job->launch->in[0];
    const int64_t n = mica__row_size(&in->spec), blocks = job->cols / MICA__ACT_BLOCK, count = job->count / job->parts;
    const int64_t tasks = mica__min_i64(count, TERNARY_TASKS);
    const int64_t begin = count * task / tasks, end = count * (task + 1) / tasks;
    float *x = (float *)(void *)(job->scratch + (size_t)task * job->scratch_bytes);
    int8_t *q = (int8_t *)(x + job->cols);
    mica__walk walk;
    mica__walk_rows(&walk, in, begin);
    for (int64_t t = begin; t < end; t++, mica__walk_next(&walk)) {
        mica__load_f32(MICA_F32, n, x, mica__element(in, walk.offset), mica__row_stride(in));
        memset(x + n, 0, (size_t)(job->cols - n) * sizeof *x);
        if (job->parts > 1) {
            round_parts(job, job->parts * t, x, q);
            continue;
        }
        job->a[t] = job->act == MICA_ACT_TOKEN ? round_piece(job, job->cols, x, q) : 1;
        for (int64_t b = 0; b < blocks; b++)
            job->d[t * blocks + b] =
                job->act == MICA_ACT_TOKEN
                    ? 1
                    : round_piece(job, MICA__ACT_BLOCK, x + b * MICA__ACT_BLOCK, q + b * MICA__ACT_BLOCK);
        place_row(job, t, q);
    }
}

/* --------------------------------------------------------------- products -- */

/* Panels that are multiplied together, and their scales. */
typedef struct ternary_pair {
    int64_t p, n;
    const uint8_t *panel[MICA__TERNARY_PANELS];
    const float *scales[MICA__TERNARY_PANELS];
} ternary_pair;

enum { TERNARY_SUMS = MICA__TERNARY_PANELS * MICA__TERNARY_TOKENS * MICA__PANEL_ROWS };

/* out[n][tokens][16] += piece i of the columns, for rows t, t + 1, ... of x. */
static void add_piece(const ternary_job *job, int64_t t, int64_t tokens, const ternary_pair *pair, int64_t i,
                      double *out)
{
    static const int32_t nothing[MICA__TERNARY_TOKENS];
    int32_t *sums = mica__scratch_alloc(TERNARY_SUMS * sizeof *sums);
    const int64_t c = i * job->piece, from = c / MICA__UNIT_COLS, blocks = job->cols / MICA__ACT_BLOCK;
    const int64_t units = mica__min_i64(mica__ternary_units(job->piece), job->units - from);
    const mica__ternary_x x = {job->q + t * job->cols, tokens};
    for (int64_t u = 0; u < units; u += MICA__TERNARY_UNITS) {
        const int64_t n = mica__min_i64(units - u, MICA__TERNARY_UNITS), unit = from + u;
        if (tokens == 1 && !job->trits)
            job->v->one(n, pair->panel[0] + unit * MICA__UNIT_BYTES, x.q + unit * MICA__UNIT_COLS, job->top, sums);
        else
            job->v->many(unit, n, pair->panel[0], pair->n > 1 ? pair->panel[1] - pair->panel[0] : 0, pair->n,
                         job->trits, &x, job->top, sums);
        const int32_t *less = u == 0 ? job->less + t * job->pieces + i : nothing;
        for (int64_t p = 0; p < pair->n; p++)
            job->v->scale(tokens, sums + p * tokens * MICA__PANEL_ROWS, less, u == 0 ? job->pieces : 1,
                          pair->scales[p] + c / job->step * MICA__PANEL_ROWS, job->d + t * blocks + c / job->x_step,
                          blocks, out + p * tokens * MICA__PANEL_ROWS);
    }
    mica__scratch_release(sums);
}

/* Multiplies 8-bit rows t, t + 1, ... of x and adds to the rows of the result they belong to. */
static void multiply(const ternary_job *job, int64_t t, int64_t tokens, const ternary_pair *pair)
{
    double *sums = mica__scratch_alloc(TERNARY_SUMS * sizeof *sums);
    float *y = mica__scratch_alloc(MICA__TERNARY_TOKENS * MICA__PANEL_ROWS * sizeof *y);
    float *out = (float *)(void *)job->launch->out->data;
    memset(sums, 0, (size_t)(pair->n * tokens * MICA__PANEL_ROWS) * sizeof *sums);
    for (int64_t i = 0; i < job->pieces; i++) add_piece(job, t, tokens, pair, i, sums);
    for (int64_t p = 0; p < pair->n; p++) {
        const int64_t r = (pair->p + p) * MICA__PANEL_ROWS, n = mica__min_i64(MICA__PANEL_ROWS, job->m.rows - r);
        double *own = sums + p * tokens * MICA__PANEL_ROWS;
        for (int64_t i = 0; job->parts > 1 && i < tokens / job->parts * MICA__PANEL_ROWS; i++) {
            const int64_t at = i / MICA__PANEL_ROWS * job->parts * MICA__PANEL_ROWS + i % MICA__PANEL_ROWS;
            own[i] = own[at] + own[at + MICA__PANEL_ROWS] + own[at + 2 * MICA__PANEL_ROWS];
        }
        job->v->finish(tokens / job->parts, own, job->a + t, y);
        for (int64_t j = 0; j < tokens / job->parts; j++) {
            float *to = out + (t / job->parts + j) * job->m.rows + r;
            if (n == MICA__PANEL_ROWS) memcpy(to, y + j * MICA__PANEL_ROWS, MICA__PANEL_ROWS * sizeof *y);
            else memcpy(to, y + j * MICA__PANEL_ROWS, (size_t)n * sizeof *y);
        }
    }
    mica__scratch_release(sums);
}

/* Panels [begin, end) times one 8-bit row that is one piece: the usual case when decoding a token. */
static void multiply_row(const ternary_job *job, int64_t begin, int64_t end)
{
    const mica__ternary_x x = {job->q, 1};
    float *out = (float *)(void *)job->launch->out->data;
    for (int64_t p = begin; p < end; p++) {
        int32_t sums[MICA__PANEL_ROWS];
        float y[MICA__PANEL_ROWS];
        const int64_t r = p * MICA__PANEL_ROWS, n = mica__min_i64(MICA__PANEL_ROWS, job->m.rows - r);
        const uint8_t *panel = job->packed + p * job->panel_bytes;
        if (job->trits) job->v->many(0, job->units, panel, 0, 1, true, &x, job->top, sums);
        else job->v->one(job->units, panel, job->q, job->top, sums);
        job->v->write(1, sums, job->less, job->has_one ? job->one : job->scales + r, job->d, 1, job->a,
                      n == MICA__PANEL_ROWS ? out + r : y, MICA__PANEL_ROWS);
        if (n < MICA__PANEL_ROWS) memcpy(out + r, y, (size_t)n * sizeof *y);
    }
}

/* The same for many rows of one piece each, and whole panels. */
static void multiply_rows(const ternary_job *job, int64_t t, int64_t tokens, const ternary_pair *pair)
{
    int32_t *sums = mica__scratch_alloc(TERNARY_SUMS * sizeof *sums);
    const mica__ternary_x x = {job->q + t * job->cols, tokens};
    const int64_t blocks = job->cols / MICA__ACT_BLOCK;
    float *out = (float *)(void *)job->launch->out->data + t * job->m.rows;
    job->v->many(0, job->units, pair->panel[0], pair->n > 1 ? pair->panel[1] - pair->panel[0] : 0, pair->n, job->trits,
                 &x, job->top, sums);
    for (int64_t p = 0; p < pair->n; p++)
        job->v->write(tokens, sums + p * tokens * MICA__PANEL_ROWS, job->less + t, pair->scales[p], job->d + t * blocks,
                      blocks, job->a + t, out + (pair->p + p) * MICA__PANEL_ROWS, job->m.rows);
    mica__scratch_release(sums);
}

static void ternary_task(void *context, int64_t task)
{
    const ternary_job *job = context;
    const int64_t begin = job->panels * task / job->tasks, end = job->panels * (task + 1) / job->tasks;
    const int64_t together = job->packed && job->count > 1 ? MICA__TERNARY_PANELS : 1;
    const bool row = job->packed && job->count == 1 && job->pieces == 1 && job->units <= MICA__TERNARY_UNITS;
    if (row) multiply_row(job, begin, end);
    for (ternary_pair pair = {.p = row ? end : begin}; pair.p < end; pair.p += pair.n) {
        pair.n = mica__min_i64(together, end - pair.p);
        for (int64_t i = 0; i < pair.n && job->packed; i++) {
            pair.panel[i] = job->packed + (pair.p + i) * job->panel_bytes;
            if (!job->has_one) pair.scales[i] = job->scales + (pair.p + i) * job->steps * MICA__PANEL_ROWS;
        }
        if (!job->packed) {
            uint8_t *own = (uint8_t *)job->scratch + (size_t)task * job->scratch_bytes;
            float *scales = (float *)(void *)(own + job->panel_bytes);
            (void)mica__ternary_panel(&job->m, pair.p, own, scales, scales + job->cols / 32 * MICA__PANEL_ROWS);
            pair.panel[0] = own;
            pair.scales[0] = scales;
        }
        for (int64_t i = 0; i < pair.n && job->has_one; i++) pair.scales[i] = job->one;
        const bool rows = job->count > 1 && job->parts == 1 && job->pieces == 1 && job->units <= MICA__TERNARY_UNITS &&
                          (pair.p + pair.n) * MICA__PANEL_ROWS <= job->m.rows;
        for (int64_t t = 0; t < job->count; t += MICA__TERNARY_TOKENS) {
            const int64_t tokens = mica__min_i64(job->count - t, MICA__TERNARY_TOKENS);
            if (rows && tokens > 1) multiply_rows(job, t, tokens, &pair);
            else multiply(job, t, tokens, &pair);
        }
    }
    const int64_t first = begin * MICA__PANEL_ROWS, last = mica__min_i64(end * MICA__PANEL_ROWS, job->m.rows);
    mica__gemm_epilogue(job->launch->epilogue, 0, job->m.rows, 0, job->count / job->parts, first, last - first);
}

static void find_scales(ternary_job *job)
{
    const ternary_head *head = job->launch->packed;
    const int64_t step = file_step(&job->m);
    job->has_one = step == 0;
    if (job->has_one) {
        (void)mica__quant_one_scale(&job->m, job->one);
        for (int i = 1; i < MICA__PANEL_ROWS; i++) job->one[i] = job->one[0];
    }
    if (MICA__QUANT_IS_PANEL(job->m.id)) job->packed = job->m.data;
    else if (head) {
        job->packed = (const uint8_t *)(head + 1);
        job->scales = (const float *)(const void *)(job->packed + job->panels * job->units * MICA__UNIT_BYTES);
    }
    const bool whole = step == 0 || (head && head->one_step);
    job->step = whole ? job->cols : step;
    job->steps = whole ? 1 : job->m.cols / step;
    job->x_step = job->act == MICA_ACT_TOKEN ? job->cols : MICA__ACT_BLOCK;
    job->piece = mica__min_i64(job->step, job->x_step);
    job->pieces = (job->m.cols + job->piece - 1) / job->piece;
}

void mica__qmatmul_ternary(const mica__launch *launch)
{
    const mica__attr_quant *attr = launch->attr;
    ternary_job job = {.launch = launch,
                       .m = mica__quant_operand(attr, launch->in + 1, launch->n_in - 1),
                       .v = mica__ternary_best(),
                       .act = attr->act,
                       .parts = parts_of(attr),
                       .count = mica__row_count(&launch->in[0].spec) * parts_of(attr),
                       .cols = mica__act_cols(attr->cols),
                       .units = mica__ternary_units(attr->cols),
                       .panels = mica__ternary_panels(attr->rows),
                       .scratch_bytes = task_bytes(attr->cols)};
    job.top = launch->packed ? ((const ternary_head *)launch->packed)->top : MICA__QUANT_IS_PANEL(job.m.id) ? 2 : 3;
    job.trits = job.m.id == MICA__QUANT_MICA_T1;
    job.panel_bytes = job.trits ? job.cols / MICA__ACT_BLOCK * MICA__TRITS_BYTES : job.units * MICA__UNIT_BYTES;
    find_scales(&job);
    const size_t n = (size_t)job.count, c = (size_t)job.cols;
    char *at = launch->workspace;
    job.q = (int8_t *)at;
    job.a = (float *)(void *)(at + mica__round_up(n * c, 64));
    job.d = job.a + n;
    job.less = (int32_t *)(void *)(job.d + n * (c / MICA__ACT_BLOCK));
    job.scratch = at + x_bytes(job.count, job.cols);
    const int64_t rounds = mica__min_i64(job.count / job.parts, TERNARY_TASKS);
    mica__pool_run(rounds > 1 && job.count * job.cols > TERNARY_LEAST / 4 ? launch->pool : NULL, rounds, round_task,
                   &job);
    /* Twice as many runs of panels as threads. No sum depends on this number. */
    const int64_t work = job.panels * job.units * MICA__UNIT_COLS * MICA__PANEL_ROWS * (job.count + 1);
    const int64_t wish = launch->pool ? 2 * mica__pool_threads(launch->pool) : 1;
    job.tasks = mica__max_i64(
        1, mica__min_i64(mica__min_i64(wish, TERNARY_TASKS), mica__min_i64(job.panels, work / TERNARY_LEAST)));
    mica__pool_run(job.tasks > 1 ? launch->pool : NULL, job.tasks, ternary_task, &job);
}
