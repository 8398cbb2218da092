/* Series: tables encoded by a recipe as network inputs, and the windows of the three parts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"

typedef struct series_rows {
    int64_t rows, filled;
    float *x;                /* (rows, inputs)                                      */
    float *span;             /* (rows); NULL: the recipe has no time column         */
    float *y;                /* (rows, targets); NaN: missing                       */
    int32_t *label;          /* (rows); -1: missing                                 */
} series_rows;

typedef struct series_list {
    mica_window *at;
    int64_t n, room;
} series_list;

struct mica_series {
    mica_recipe *recipe;
    size_t n;
    series_rows *tables;
    series_list parts[3];
    int64_t left_over, filled;
};

void mica_series_options_init(mica_series_options *options)
{
    if (!options) return;
    *options = (mica_series_options){
        .struct_size = sizeof *options, .ahead = -1, .seq = 32, .valid = 0.15, .test = 0.15, .max_categories = 64};
}

void mica_series_free(mica_series *series)
{
    if (!series) return;
    for (size_t i = 0; i < series->n && series->tables; i++) {
        free(series->tables[i].x);
        free(series->tables[i].span);
        free(series->tables[i].y);
        free(series->tables[i].label);
    }
    for (int i = 0; i < 3; i++) free(series->parts[i].at);
    free(series->tables);
    mica_recipe_free(series->recipe);
    free(series);
}

const mica_recipe *mica_series_recipe(const mica_series *series) { return series ? series->recipe : NULL; }
int64_t mica_series_left_over(const mica_series *series) { return series ? series->left_over : 0; }
int64_t mica_series_filled(const mica_series *series) { return series ? series->filled : 0; }

static bool is_part(mica_part part) { return (int)part >= MICA_PART_TRAIN && (int)part <= MICA_PART_TEST; }

int64_t mica_series_windows(const mica_series *series, mica_part part)
{
    return series && is_part(part) ? series->parts[part].n : 0;
}

bool mica_series_window(const mica_series *series, mica_part part, int64_t i, mica_window *window)
{
    if (!window || i < 0 || i >= mica_series_windows(series, part)) return false;
    return mica_struct_write("series_window: mica_window", window, &series->parts[part].at[i], sizeof *window) ==
           MICA_OK;
}

void mica_series_shuffle(uint64_t seed, int64_t epoch, int64_t n, int64_t *order)
{
    const uint64_t base = mica_seed_split(seed, (uint64_t)epoch);
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t k = (int64_t)(mica_seed_split(base, (uint64_t)i) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

/* ---------------------------------------------------------------- encode --- */

typedef struct series_encoder {
    const mica_recipe *recipe;
    const mica_table *table;
    series_rows *out;
    bool lenient;            /* targets may be missing or absent                    */
    int64_t inputs;
    int64_t *column;         /* table column by recipe column; -1: absent           */
} series_encoder;

static mica_status encode_number(const series_encoder *e, const recipe_column *c, int64_t row, int64_t column,
                                 bool first, int64_t at)
{
    char place[MICA__PLACE];
    const mica_table *t = e->table;
    const double v = mica_table_number(t, row, column);
    float *to = &e->out->x[row * e->inputs + at];
    if (t->kind[column] == MICA_COLUMN_TEXTS && mica_table_text(t, row, column))
        return mica_fail(MICA_ERR_FORMAT, "%s: '%.80s' is not a number", mica__table_place(t, row, column, place),
                         mica_table_text(t, row, column));
    if (!isnan(v)) {
        *to = (float)((v - c->mean) / c->scale);
        if (isfinite(*to)) return MICA_OK;
        return mica_fail(MICA_ERR_FORMAT, "%s: %g is too large", mica__table_place(t, row, column, place), v);
    }
    if (e->recipe->missing == MICA_MISSING_REFUSE)
        return mica_fail(MICA_ERR_FORMAT, "%s: the value is missing", mica__table_place(t, row, column, place));
    e->out->filled++;
    *to = e->recipe->missing == MICA_MISSING_LAST && !first ? to[-e->inputs] : 0;
    return MICA_OK;
}

/* One-hot: an input is 1 if the cell has its text. A text not seen in training sets no input. */
static void encode_category(const series_encoder *e, const recipe_column *c, int64_t row, int64_t column, int64_t at)
{
    char number[MICA_NUMBER_TEXT];
    const char *text = mica__cell_category(e->table, row, column, number);
    const int64_t which = text ? mica__recipe_text_find(c, text) : -1;
    for (int64_t i = 0; i < c->n_texts; i++) e->out->x[row * e->inputs + at + i] = i == which ? 1 : 0;
}

static mica_status encode_target(const series_encoder *e, const recipe_column *c, int64_t row, int64_t column,
                                 int64_t at)
{
    char number[MICA_NUMBER_TEXT], place[MICA__PLACE];
    const mica_table *t = e->table;
    if (e->recipe->task == MICA_TASK_CLASSES) {
        const char *text = column < 0 ? NULL : mica__cell_category(t, row, column, number);
        const int32_t label = text ? (int32_t)mica__recipe_text_find(c, text) : -1;
        e->out->label[row] = label;
        if (label >= 0 || e->lenient) return MICA_OK;
        return mica_fail(MICA_ERR_FORMAT, "%s: the target is missing", mica__table_place(t, row, column, place));
    }
    const double v = column < 0 ? NAN : mica_table_number(t, row, column);
    e->out->y[row * e->recipe->targets + at] = (float)((v - c->mean) / c->scale);
    if (!isnan(v) || e->lenient) return MICA_OK;
    return mica_fail(MICA_ERR_FORMAT, "%s: the target is missing", mica__table_place(t, row, column, place));
}

static mica_status encode_row(const series_encoder *e, int64_t row, bool first)
{
    int64_t at = 0, target = 0;
    mica_status status = MICA_OK;
    for (int64_t i = 0; i < e->recipe->n && status == MICA_OK; i++) {
        const recipe_column *c = &e->recipe->columns[i];
        if (c->role == RECIPE_NUMBER) status = encode_number(e, c, row, e->column[i], first, at++);
        if (c->role == RECIPE_CATEGORY) encode_category(e, c, row, e->column[i], at), at += c->n_texts;
        if (c->role == RECIPE_TARGET) status = encode_target(e, c, row, e->column[i], target++);
    }
    if (status == MICA_OK && e->out->span) {
        double span;
        status = mica__recipe_span(e->recipe, e->table, row, first, &span);
        e->out->span[row] = (float)span;
    }
    return status;
}

static mica_status encode_allocate(const series_encoder *e)
{
    const size_t rows = (size_t)e->table->rows;
    const bool classes = e->recipe->task == MICA_TASK_CLASSES, timed = mica_recipe_knows_time(e->recipe);
    series_rows *o = e->out;
    o->rows = e->table->rows;
    o->x = calloc(rows * (size_t)e->inputs, sizeof *o->x);
    if (timed) o->span = calloc(rows, sizeof *o->span);
    if (classes) o->label = calloc(rows, sizeof *o->label);
    else o->y = calloc(rows * (size_t)e->recipe->targets, sizeof *o->y);
    if (o->x && (!timed || o->span) && (classes ? o->label != NULL : o->y != NULL)) return MICA_OK;
    return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu rows of %lld numbers", rows, (long long)e->inputs);
}

static mica_status encode_columns(series_encoder *e)
{
    for (int64_t i = 0; i < e->recipe->n; i++) {
        const recipe_column *c = &e->recipe->columns[i];
        e->column[i] = mica_table_find(e->table, c->name);
        if (e->column[i] < 0 && !(c->role == RECIPE_TARGET && e->lenient))
            return mica_fail(MICA_ERR_ARGUMENT,
                             "%s, line 1: there is no column '%.80s', which the network was trained with",
                             e->table->path, c->name);
    }
    return MICA_OK;
}

static mica_status encode_table(const mica_recipe *r, const mica_table *t, bool lenient, series_rows *out)
{
    const recipe_column *group = mica__recipe_role(r, RECIPE_GROUP);
    const int64_t group_column = group ? mica_table_find(t, group->name) : -1;
    series_encoder e = {.recipe = r, .table = t, .out = out, .lenient = lenient, .inputs = mica_recipe_inputs(r)};
    e.column = malloc((size_t)r->n * sizeof *e.column);
    if (!e.column) return mica_fail(MICA_ERR_MEMORY, "out of memory: columns");
    mica_status status = encode_columns(&e);
    if (status == MICA_OK) status = encode_allocate(&e);
    for (int64_t row = 0, length; row < t->rows && status == MICA_OK; row += length) {
        length = mica__series_run_length(t, group_column, row);
        for (int64_t i = 0; i < length && status == MICA_OK; i++) status = encode_row(&e, row + i, i == 0);
    }
    free(e.column);
    return status;
}

static mica_status encode_all(mica_series *d, mica_table *const *tables, size_t n, bool lenient)
{
    mica_status status = MICA_OK;
    d->tables = calloc(n, sizeof *d->tables);
    if (!d->tables) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu tables", n);
    d->n = n;
    for (size_t i = 0; i < n && status == MICA_OK; i++)
        status = encode_table(d->recipe, tables[i], lenient, &d->tables[i]), d->filled += d->tables[i].filled;
    return status;
}

/* --------------------------------------------------------------- windows --- */

static mica_status add_window(series_list *l, mica_window w)
{
    if (l->n == l->room) {
        const int64_t room = l->room ? 2 * l->room : 64;
        mica_window *at = realloc(l->at, (size_t)room * sizeof *at);
        if (!at) return mica_fail(MICA_ERR_MEMORY, "out of memory: %lld windows", (long long)room);
        l->at = at;
        l->room = room;
    }
    l->at[l->n++] = w;
    return MICA_OK;
}

/* Training windows may overlap; other windows cover each row once. */
static mica_status cut_windows_of(mica_series *d, const series_pieces *pieces, int64_t stride)
{
    const int64_t seq = d->recipe->seq, ahead = d->recipe->ahead;
    mica_status status = MICA_OK;
    for (size_t i = 0; i < pieces->n && status == MICA_OK; i++) {
        const series_piece *p = &pieces->at[i];
        const int64_t step = p->part == MICA_PART_TRAIN ? stride : seq;
        int64_t at = 0, covered = 0;
        for (; at + seq + ahead <= p->rows && status == MICA_OK; at += step, covered = at - step + seq)
            status = add_window(&d->parts[p->part],
                                (mica_window){sizeof(mica_window), p->table, p->row + at, seq, 0, p->row + p->rows});
        d->left_over += p->rows - (covered ? covered + ahead : 0);
    }
    return status;
}

static mica_status check_windows(const mica_series *d, const mica_series_options *o, mica_table *const *tables)
{
    static const char *const what[] = {"to train on", "to validate with", "to test with"};
    int64_t rows = 0;
    for (size_t i = 0; i < d->n; i++) rows += d->tables[i].rows;
    for (int i = 0; i < 3; i++) {
        if (d->parts[i].n > 0 || (i == MICA_PART_VALID && o->valid == 0) || (i == MICA_PART_TEST && o->test == 0))
            continue;
        return mica_fail(MICA_ERR_ARGUMENT,
                         "%s, line %lld: the data ends after %lld rows, and no series in the part %s has a sequence of "
                         "%lld rows%s",
                         tables[d->n - 1]->path,
                         (long long)mica_table_line(tables[d->n - 1], tables[d->n - 1]->rows - 1), (long long)rows,
                         what[i], (long long)d->recipe->seq, d->recipe->ahead ? " and the one to predict" : "");
    }
    return MICA_OK;
}

static mica_status check_series_options(const mica_series_options *o, mica_table *const *tables, const mica_part *parts,
                                        size_t n)
{
    if (!tables || n == 0) return mica_fail(MICA_ERR_ARGUMENT, "series: no table");
    for (size_t i = 0; i < n; i++) {
        if (!tables[i]) return mica_fail(MICA_ERR_ARGUMENT, "series: table %zu is NULL", i);
        if (parts && ((int)parts[i] < 0 || (int)parts[i] > MICA_PART_CUT))
            return mica_fail(MICA_ERR_ARGUMENT, "series: table %zu: part %d is not a mica_part", i, (int)parts[i]);
    }
    if (o->seq < 1 || o->seq > 1000000 || o->stride < 0 || o->stride > 1000000 || o->ahead < -1 || o->ahead > 1000000)
        return mica_fail(MICA_ERR_ARGUMENT, "series: seq %lld, stride %lld or ahead %lld is out of range",
                         (long long)o->seq, (long long)o->stride, (long long)o->ahead);
    if (!(o->valid >= 0 && o->test >= 0 && o->valid + o->test < 1))
        return mica_fail(MICA_ERR_ARGUMENT, "series: %g to validate with and %g to test with leave nothing to train on",
                         o->valid, o->test);
    if (o->time && o->span) return mica_fail(MICA_ERR_ARGUMENT, "series: set time or span, not both");
    if (o->max_categories < 1 || (int)o->task < 0 || (int)o->task > MICA_TASK_CLASSES || (int)o->missing < 0 ||
        (int)o->missing > MICA_MISSING_REFUSE || (int)o->split < 0 || (int)o->split > MICA_SPLIT_WHOLE)
        return mica_fail(MICA_ERR_ARGUMENT,
                         "series: max_categories %lld, task %d, missing %d or split %d is out of range",
                         (long long)o->max_categories, (int)o->task, (int)o->missing, (int)o->split);
    return MICA_OK;
}

static mica_status open_series(mica_series *d, const mica_series_options *o, mica_table *const *tables,
                               const mica_part *parts, size_t n)
{
    series_pieces pieces = {0};
    mica_status status = mica__recipe_choose(d->recipe, o, tables, n);
    if (status == MICA_OK) status = mica__series_cut(o, tables, parts, n, d->recipe, &pieces);
    if (status == MICA_OK) status = mica__recipe_measure(d->recipe, o, tables, &pieces);
    if (status == MICA_OK) status = encode_all(d, tables, n, false);
    if (status == MICA_OK) status = cut_windows_of(d, &pieces, o->stride ? o->stride : (o->seq + 3) / 4);
    if (status == MICA_OK) status = check_windows(d, o, tables);
    free(pieces.at);
    return status;
}

mica_status mica_series_open(const mica_series_options *options, mica_table *const *tables, const mica_part *parts,
                             size_t n, mica_series **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "series: out is NULL");
    *out = NULL;
    mica_series_options o;
    mica_series_options_init(&o);
    if (!options) return mica_fail(MICA_ERR_ARGUMENT, "series: no options");
    mica_status status = mica_struct_read("series: mica_series_options", &o, sizeof o, options);
    if (status == MICA_OK) status = check_series_options(&o, tables, parts, n);
    if (status != MICA_OK) return status;
    mica_series *d = calloc(1, sizeof *d);
    if (d) d->recipe = calloc(1, sizeof *d->recipe);
    if (!d || !d->recipe) status = mica_fail(MICA_ERR_MEMORY, "out of memory: a series");
    if (status == MICA_OK) status = open_series(d, &o, tables, parts, n);
    if (status == MICA_OK) *out = d;
    else mica_series_free(d);
    return status;
}

static mica_status apply_windows(mica_series *d, const mica_table *t, size_t table, int64_t seq, int64_t context)
{
    const recipe_column *group = mica__recipe_role(d->recipe, RECIPE_GROUP);
    const int64_t column = group ? mica_table_find(t, group->name) : -1;
    mica_status status = MICA_OK;
    for (int64_t row = 0, length; row < t->rows && status == MICA_OK; row += length) {
        length = mica__series_run_length(t, column, row);
        const int64_t most = seq ? seq : length;
        for (int64_t at = 0, fresh = 0; at + fresh < length && status == MICA_OK;
             at += most - context, fresh = context) {
            const int64_t rows = length - at < most ? length - at : most;
            status = add_window(&d->parts[MICA_PART_TEST],
                                (mica_window){sizeof(mica_window), table, row + at, rows, fresh, row + length});
        }
    }
    return status;
}

mica_status mica_series_apply(const mica_recipe *recipe, mica_table *const *tables, size_t n, int64_t seq,
                              int64_t context, mica_series **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "series: out is NULL");
    *out = NULL;
    if (!recipe || !tables || n == 0) return mica_fail(MICA_ERR_ARGUMENT, "series: no recipe or no table");
    for (size_t i = 0; i < n; i++)
        if (!tables[i]) return mica_fail(MICA_ERR_ARGUMENT, "series: table %zu is NULL", i);
    if (seq < 0 || context < 0 || (seq && context >= seq) || (!seq && context))
        return mica_fail(MICA_ERR_ARGUMENT, "series: windows of %lld rows cannot overlap by %lld", (long long)seq,
                         (long long)context);
    mica_series *d = calloc(1, sizeof *d);
    if (!d) return mica_fail(MICA_ERR_MEMORY, "out of memory: a series");
    mica_status status = mica_recipe_copy(recipe, &d->recipe);
    if (status == MICA_OK) status = encode_all(d, tables, n, true);
    for (size_t i = 0; i < n && status == MICA_OK; i++) status = apply_windows(d, tables[i], i, seq, context);
    if (status == MICA_OK) *out = d;
    else mica_series_free(d);
    return status;
}

/* --------------------------------------------------------------- batches --- */

/* Copies n rows of `width` numbers of a series that ends at `end`; rows past the end are NaN. */
static void gather_rows(float *to, const float *from, int64_t end, int64_t row, int64_t n, int64_t width)
{
    const int64_t there = row + n <= end ? n : row < end ? end - row : 0;
    memcpy(to, from + (there ? row * width : 0), (size_t)(there * width) * sizeof *to);
    for (int64_t i = there * width; i < n * width; i++) to[i] = NAN;
}

static void gather_labels(int32_t *to, const int32_t *from, int64_t end, int64_t row, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = row + i < end ? from[row + i] : -1;
}

mica_status mica_series_batch(mica_scope *s, const mica_series *series, mica_part part, const int64_t *windows,
                              int64_t n, mica_array *out[3], size_t *n_out)
{
    if (!s || !series || !is_part(part) || !windows || n < 1 || !out || !n_out)
        return mica_fail(MICA_ERR_ARGUMENT, "series batch: no series, part, windows or place for them");
    const series_list *l = &series->parts[part];
    const mica_recipe *r = series->recipe;
    const bool classes = r->task == MICA_TASK_CLASSES, timed = mica_recipe_knows_time(r);
    int64_t rows = 0;
    for (int64_t i = 0; i < n; i++) {
        if (windows[i] < 0 || windows[i] >= l->n)
            return mica_fail(MICA_ERR_INDEX, "series batch: window %lld of %lld", (long long)windows[i],
                             (long long)l->n);
        const int64_t here = l->at[windows[i]].rows;
        if (i && here != rows)
            return mica_fail(MICA_ERR_ARGUMENT, "series batch: windows of %lld and of %lld rows", (long long)rows,
                             (long long)here);
        rows = here;
    }
    const int64_t inputs = mica_recipe_inputs(r), shape[] = {n, rows, inputs}, right[] = {n, rows, r->targets};
    const size_t all = (size_t)(n * rows);
    float *x = malloc(all * (size_t)inputs * sizeof *x), *span = malloc(all * sizeof *span);
    void *y = malloc(all * (size_t)r->targets * sizeof(float));
    mica_status status = x && span && y ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "out of memory: %zu rows", all);
    for (int64_t i = 0; i < n && status == MICA_OK; i++) {
        const mica_window *w = &l->at[windows[i]];
        const series_rows *t = &series->tables[w->table];
        gather_rows(x + i * rows * inputs, t->x, w->end, w->row, rows, inputs);
        if (timed) gather_rows(span + i * rows, t->span, w->end, w->row, rows, 1);
        if (classes) gather_labels((int32_t *)y + i * rows, t->label, w->end, w->row + r->ahead, rows);
        else gather_rows((float *)y + i * rows * r->targets, t->y, w->end, w->row + r->ahead, rows, r->targets);
    }
    if (status == MICA_OK) {
        out[0] = mica_from_data(s, MICA_F32, 3, shape, x);
        out[1] = mica_from_data(s, classes ? MICA_I32 : MICA_F32, classes ? 2 : 3, right, y);
        out[2] = timed ? mica_from_data(s, MICA_F32, 2, shape, span) : NULL;
        *n_out = timed ? 3 : 2;
        status = mica_scope_status(s);
    }
    free(x);
    free(span);
    free(y);
    return status;
}
