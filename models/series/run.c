/* Runs a series model over the windows of a part: predictions for each row, and their score. Scores are summed in
 * double, in row order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

typedef struct run_state {
    mica_series_model *model;
    const mica_series *series;
    mica_part part;
    mica_network *network;
    mica_series_row_fn row_fn;
    void *user;
    int64_t outputs, targets, classes, ahead;
    float *values;           /* one row, in the units of the file                   */
    double *sum, *squares;   /* over the true values, for r2                        */
    int64_t *seen;           /* by class                                            */
    int64_t rows, scored, right;
    double loss, error2, error1;
} run_state;

static mica_status run_build(mica_forward *f, mica_array *const *data, size_t n, mica_array **out, size_t n_out,
                             void *user)
{
    (void)n_out;
    out[0] = mica_contiguous(f->s, mica_series_outputs(f, user, data, n)); /* rows are read from contiguous memory */
    return mica_scope_status(f->s);
}

/* Converts logits to probabilities. */
static int64_t run_classes(run_state *r, const float *y, int32_t label)
{
    int64_t best = 0;
    double total = 0;
    for (int64_t i = 1; i < r->classes; i++)
        if (y[i] > y[best]) best = i;
    for (int64_t i = 0; i < r->classes; i++) total += exp((double)y[i] - (double)y[best]);
    for (int64_t i = 0; i < r->classes; i++) r->values[i] = (float)(exp((double)y[i] - (double)y[best]) / total);
    if (label < 0) return best;
    r->scored++;
    r->right += best == label;
    r->seen[label]++;
    r->loss += log(total) + (double)y[best] - (double)y[label];
    return best;
}

static void run_numbers(run_state *r, const float *y, const float *right)
{
    bool whole = true;
    for (int64_t i = 0; i < r->targets; i++) {
        double scale, shift;
        mica_recipe_scale(r->model->recipe, i, &scale, &shift);
        r->values[i] = (float)((double)y[i] * scale + shift);
        whole &= !isnan(right[i]);
    }
    if (!whole) return;
    r->scored++;
    for (int64_t i = 0; i < r->targets; i++) {
        double scale, shift;
        mica_recipe_scale(r->model->recipe, i, &scale, &shift);
        const double d = (double)y[i] - (double)right[i], real = d * scale, value = (double)right[i] * scale;
        r->loss += d * d;
        r->error2 += real * real;
        r->error1 += fabs(real);
        r->sum[i] += value;
        r->squares[i] += value * value;
    }
}

static mica_status run_window(run_state *r, const mica_window *w, const float *y, const void *right)
{
    mica_status status = MICA_OK;
    for (int64_t i = w->fresh; i < w->rows && status == MICA_OK; i++) {
        int64_t best = -1;
        r->rows++;
        if (r->classes) best = run_classes(r, y + i * r->outputs, ((const int32_t *)right)[i]);
        else run_numbers(r, y + i * r->outputs, (const float *)right + i * r->targets);
        const int64_t row = w->row + i + r->ahead;
        const mica_series_row said = {w->table, row, row < w->end, r->values, r->outputs, best};
        if (r->row_fn) status = r->row_fn(r->user, &said);
    }
    return status;
}

/* Runs windows first ... first + n - 1, which have the same length. */
static mica_status run_batch(run_state *r, mica_engine *engine, const int64_t *windows, int64_t n)
{
    mica_array *data[3], *y = NULL;
    size_t n_data = 0;
    mica_scope *s = mica_scope_begin(engine);
    if (!s) return MICA_ERR_MEMORY;
    mica_status status = mica_series_batch(s, r->series, r->part, windows, n, data, &n_data);
    if (status == MICA_OK) status = mica_network_run(r->network, s, data, n_data, &y, 1);
    const char *right = status == MICA_OK ? mica_data(data[1]) : NULL;
    for (int64_t i = 0; i < n && status == MICA_OK; i++) {
        mica_window w = {.struct_size = sizeof w};
        (void)mica_series_window(r->series, r->part, windows[i], &w);
        const int64_t each = r->classes ? 1 : r->targets;
        status = run_window(r, &w, mica_data_f32(y) + i * w.rows * r->outputs,
                            right + (size_t)(i * w.rows * each) * sizeof(float));
    }
    mica_scope_end(s);
    return status;
}

static mica_status run_all(run_state *r, mica_engine *engine, int64_t batch)
{
    const int64_t all = mica_series_windows(r->series, r->part);
    int64_t *windows = malloc((size_t)batch * sizeof *windows);
    mica_status status =
        windows ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "out of memory: %lld windows", (long long)batch);
    for (int64_t at = 0, n; at < all && status == MICA_OK; at += n) {
        mica_window first = {.struct_size = sizeof first}, next = {.struct_size = sizeof next};
        (void)mica_series_window(r->series, r->part, at, &first);
        for (n = 0; n < batch && mica_series_window(r->series, r->part, at + n, &next) && next.rows == first.rows; n++)
            windows[n] = at + n;
        status = run_batch(r, engine, windows, n);
    }
    free(windows);
    return status;
}

static void run_score(const run_state *r, mica_series_score *score)
{
    const double n = (double)r->scored, values = n * (double)r->targets;
    *score = (mica_series_score){.struct_size = sizeof *score,
                                 .rows = r->rows,
                                 .scored = r->scored,
                                 .loss = NAN,
                                 .mse = NAN,
                                 .mae = NAN,
                                 .r2 = NAN,
                                 .accuracy = NAN,
                                 .majority = NAN};
    if (r->scored == 0) return;
    score->loss = r->loss / values;
    if (r->classes) {
        int64_t most = 0;
        for (int64_t i = 0; i < r->classes; i++) most = r->seen[i] > most ? r->seen[i] : most;
        score->accuracy = (double)r->right / n;
        score->majority = (double)most / n;
        return;
    }
    double spread = 0;
    for (int64_t i = 0; i < r->targets; i++) spread += r->squares[i] - r->sum[i] * r->sum[i] / n;
    score->mse = r->error2 / values;
    score->mae = r->error1 / values;
    score->r2 = spread > 0 ? 1 - r->error2 / spread : NAN;
}

mica_status mica_series_run(mica_engine *engine, mica_series_model *model, const mica_series *series, mica_part part,
                            int64_t batch, mica_series_score *score, mica_series_row_fn row_fn, void *user)
{
    if (!engine || !model || !series || batch < 1 || (int)part < 0 || part > MICA_PART_TEST)
        return mica_fail(MICA_ERR_ARGUMENT, "series run: no engine, model, series, part or batch");
    const mica_recipe *recipe = mica_series_recipe(series);
    run_state r = {.model = model, .series = series, .part = part, .row_fn = row_fn, .user = user};
    r.targets = mica_recipe_targets(recipe);
    r.classes = mica_recipe_classes(recipe);
    r.outputs = r.classes ? r.classes : r.targets;
    r.ahead = mica_recipe_ahead(recipe);
    if (mica_recipe_inputs(recipe) != mica_recipe_inputs(model->recipe) || r.outputs != model->outputs ||
        mica_recipe_knows_time(recipe) != mica_recipe_knows_time(model->recipe))
        return mica_fail(MICA_ERR_ARGUMENT, "series run: the model and the series follow different recipes");
    const size_t n = (size_t)r.outputs;
    r.values = calloc(n, sizeof *r.values);
    r.sum = calloc(n, sizeof *r.sum);
    r.squares = calloc(n, sizeof *r.squares);
    r.seen = calloc(n, sizeof *r.seen);
    mica_status status =
        r.values && r.sum && r.squares && r.seen ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "out of memory: a score");
    if (status == MICA_OK) status = mica_network_open(engine, model->params, run_build, model, &r.network);
    if (status == MICA_OK) status = run_all(&r, engine, batch);
    if (status == MICA_OK && score) {
        mica_series_score full = {.struct_size = sizeof full};
        run_score(&r, &full);
        status = mica_struct_write("series run: mica_series_score", score, &full, sizeof full);
    }
    mica_network_close(r.network);
    free(r.values);
    free(r.sum);
    free(r.squares);
    free(r.seen);
    return status;
}
