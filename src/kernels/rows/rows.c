/* Row kernels: chooses the variant, splits the rows into tasks and stores the result. See rows.h. */
#include "kernels/rows/rows.h"

#include "base/cpu.h"

#define MICA_ROWS(name, needs)                                                                               \
    mica__rows_kernel mica__rows_softmax_##name, mica__rows_log_softmax_##name, mica__rows_logsumexp_##name, \
        mica__rows_layer_norm_##name, mica__rows_rms_norm_##name;
#include "kernels/rows/rows.def"
#undef MICA_ROWS

static const mica__rows_variant rows_table[] = {
#define MICA_ROWS(name, needs)                                                               \
    {#name,                                                                                  \
     needs,                                                                                  \
     {mica__rows_softmax_##name, mica__rows_log_softmax_##name, mica__rows_logsumexp_##name, \
      mica__rows_layer_norm_##name, mica__rows_rms_norm_##name}},
#include "kernels/rows/rows.def"
#undef MICA_ROWS
};

const mica__rows_variant *mica__rows_variants(size_t *n)
{
    const unsigned have = mica__cpu_features();
    *n = 0;
    for (size_t i = 0; i < sizeof rows_table / sizeof *rows_table; i++)
        if ((rows_table[i].needs & ~have) == 0) *n = i + 1;
    return rows_table;
}

typedef struct rows_job {
    mica__rows rows;
    mica__rows_kernel *kernel;
    const mica__tensor *x;
    const mica__tensor *origin; /* NULL: none                                            */
    char *y;
    int64_t y_row;              /* bytes from one row of the result to the next          */
    bool even;                  /* all rows of x have the same stride                    */
    int64_t x_row;              /* that stride, in elements                              */
    int64_t together;           /* rows that are transposed together; 0 or 1: not at all */
    const mica__epilogue *epilogue; /* NULL: none, or done by the kernel                 */
    int64_t per_row;            /* elements of the result                                */
} rows_job;

/* Can the outer axes be walked as one? */
static bool rows_even(const mica__tensor *x, int64_t *step)
{
    const int outer = mica__outer_dims(&x->spec);
    int last = outer - 1;
    while (last >= 0 && x->spec.shape[last] == 1) last--;
    *step = last >= 0 ? x->strides[last] : 0;
    int64_t want = last >= 0 ? x->strides[last] * x->spec.shape[last] : 0;
    for (int d = last - 1; d >= 0; d--) {
        if (x->spec.shape[d] == 1) continue;
        if (x->strides[d] != want) return false;
        want *= x->spec.shape[d];
    }
    return true;
}

/* If the stride between rows is smaller than that of the elements of a row, a cache line has
 * elements of several rows. Then several rows are transposed together. */
enum { ROWS_TOGETHER = 16 };

static int64_t rows_together(const mica__rows *r, int64_t x_row)
{
    const bool across = r->step != 1 && mica__max_i64(x_row, -x_row) < mica__max_i64(r->step, -r->step);
    return across ? mica__min_i64(ROWS_TOGETHER, MICA__ROW_PIECE / (r->n + ROWS_TOGETHER)) : 0;
}

static void rows_across(const rows_job *job, const char *x, int64_t row, int64_t count)
{
    float line[ROWS_TOGETHER], *rows = mica__scratch_alloc(MICA__ROW_PIECE * sizeof *rows);
    const int64_t size = (int64_t)mica_dtype_size(job->rows.in);
    const int64_t pitch = job->rows.n + ROWS_TOGETHER; /* not a power of two: rows would share cache sets */
    mica__rows r = job->rows;
    r.in = MICA_F32;
    r.step = 1;
    for (int64_t k = 0, n; k < count; k += n) {
        n = mica__min_i64(job->together, count - k);
        const char *from = x + k * job->x_row * size;
        for (int64_t i = 0; i < r.n; i++) {
            mica__load_f32(job->rows.in, n, line, from + i * job->rows.step * size, job->x_row);
            for (int64_t g = 0; g < n; g++) rows[g * pitch + i] = line[g];
        }
        if (r.origin) r.origin = job->rows.origin + k;
        job->kernel(&r, (const char *)rows, pitch * (int64_t)sizeof *rows, job->y + (row + k) * job->y_row, n);
    }
    mica__scratch_release(rows);
}

static void rows_some(const rows_job *job, const char *x, int64_t row, int64_t count)
{
    const int64_t size = (int64_t)mica_dtype_size(job->rows.in);
    if (job->together > 1 && count > 1) rows_across(job, x, row, count);
    else job->kernel(&job->rows, x, job->x_row * size, job->y + row * job->y_row, count);
}

/* The same for rows with a separate origin each. */
static void rows_from_origins(const rows_job *job, const char *x, int64_t row, int64_t count)
{
    enum { AT_ONCE = 64 };
    float origin[AT_ONCE];
    rows_job part = *job;
    const mica__tensor *t = job->origin;
    mica__walk walk;
    mica__walk_begin(&walk, t->spec.ndim, t->spec.shape, t->strides, row);
    part.rows.origin = origin;
    for (int64_t i = 0, n; i < count; i += n) {
        n = mica__min_i64(AT_ONCE, count - i);
        for (int64_t k = 0; k < n; k++, mica__walk_next(&walk))
            mica__load_f32(mica__dtype_of(t), 1, &origin[k], mica__element(t, walk.offset), 1);
        rows_some(&part, x + i * job->x_row * (int64_t)mica_dtype_size(job->rows.in), row + i, n);
    }
}

static void rows_task(const void *context, int64_t begin, int64_t end)
{
    /* rows whose result stays in the first cache until the epilogue reads it */
    enum { HOT = 4096 };
    const rows_job *job = context;
    const int64_t group = job->epilogue ? mica__max_i64(1, HOT / mica__max_i64(1, job->per_row)) : end - begin;
    mica__walk walk;
    mica__walk_rows(&walk, job->x, begin);
    for (int64_t row = begin; row < end;) {
        const int64_t count = job->even ? mica__min_i64(group, end - row) : 1;
        const char *x = mica__element(job->x, walk.offset);
        if (job->origin) rows_from_origins(job, x, row, count);
        else rows_some(job, x, row, count);
        if (job->epilogue) job->epilogue->run(job->epilogue, row * job->per_row, (row + count) * job->per_row);
        row += count;
        if (job->even) walk.offset += count * job->x_row;
        else mica__walk_next(&walk);
    }
}

/* Bytes from which a result is stored past the caches. A larger result would be evicted before it
 * is read again, and would evict other data. The input has the same size: the limit is half the
 * last-level cache. */
static size_t rows_stream_from(void)
{
    const size_t last = mica__cpu_cache(3) ? mica__cpu_cache(3) : mica__cpu_cache(2);
    return last ? last / 2 : (size_t)16 << 20;
}

mica_status mica__rows_run(const mica__launch *launch, mica__row_kind kind, double eps)
{
    size_t n_variant;
    const mica__rows_variant *table = mica__rows_variants(&n_variant);
    const mica__tensor *x = &launch->in[0], *out = launch->out;
    const mica__epilogue *epilogue = launch->epilogue;
    const bool folds = kind == MICA__ROW_LOGSUMEXP, norm = kind == MICA__ROW_LAYER_NORM || kind == MICA__ROW_RMS_NORM;
    rows_job job = {.rows = {.n = mica__row_size(&x->spec),
                             .in = mica__dtype_of(x),
                             .out = mica__dtype_of(out),
                             .step = mica__row_stride(x),
                             .eps = eps},
                    .kernel = table[n_variant - 1].kernel[kind],
                    .x = x,
                    .origin = launch->n_in > 1 ? &launch->in[1] : NULL,
                    .y = out->data,
                    .epilogue = epilogue};
    if (epilogue && launch->epilogue_taken) *launch->epilogue_taken = true;
    if (epilogue && launch->affine && norm && job.rows.out == MICA_F32) {
        job.rows.affine = *launch->affine;
        job.rows.out = launch->affine->dtype;
        job.y = launch->affine->out;
        job.epilogue = NULL;
    }
    const int64_t count = mica__row_count(&x->spec), n = job.rows.n;
    if (count == 0 || n == 0) return MICA_OK; /* nothing to write: LOGSUMEXP never has empty rows */
    job.per_row = folds ? 1 : n;
    job.y_row = job.per_row * (int64_t)mica_dtype_size(job.rows.out);
    job.even = rows_even(x, &job.x_row);
    job.together = job.even ? rows_together(&job.rows, job.x_row) : 0;
    job.rows.stream = !job.epilogue && mica__rows_can_stream(&job.rows, job.y) &&
                      (size_t)count * (size_t)job.y_row > rows_stream_from();
    mica__run_rows(launch->pool, count, norm ? n / 4 : n / 2, rows_task, &job);
    return MICA_OK;
}
