/* Finds a recipe: first which columns are inputs and which are targets, from the options and the tables; then means,
 * deviations and categories, from the training rows only. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"

enum { FIT_MAX_CLASSES = 1000, FIT_FEW_KINDS = 20 };

/* ------------------------------------------------------------------ lists -- */

/* Calls take for each name of "a,b,c". */
typedef mica_status (*fit_name_fn)(void *user, const char *name);

static mica_status fit_each_name(const char *list, fit_name_fn take, void *user)
{
    char name[256];
    mica_status status = MICA_OK;
    for (const char *at = list; at && status == MICA_OK;) {
        const size_t length = strcspn(at, ",");
        if (length >= sizeof name) return mica_fail(MICA_ERR_ARGUMENT, "series: a column's name of %zu bytes", length);
        memcpy(name, at, length);
        name[length] = '\0';
        status = take(user, name);
        at = at[length] ? at + length + 1 : NULL;
    }
    return status;
}

static mica_status fit_no_column(const mica_table *t, const char *name)
{
    char names[256];
    size_t used = 0;
    for (int64_t i = 0; i < t->columns && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", mica_table_name(t, i));
    return mica_fail(MICA_ERR_ARGUMENT, "%s, line 1: there is no column '%.80s' among %s%s", t->path, name, names,
                     used < sizeof names ? "" : "...");
}

/* ----------------------------------------------------------------- choose -- */

typedef enum fit_use { FIT_FREE = 0, FIT_TARGET = 1, FIT_INPUT = 2, FIT_NOT = 4 } fit_use;

typedef struct fit_choice {
    const mica_table *table; /* the first table; all tables have its columns */
    mica_table *const *tables;
    size_t n;
    unsigned *use;           /* by column: fit_use bits               */
    unsigned mark;           /* the bit that names of a list get      */
} fit_choice;

/* Kind of a column over all tables: one text makes it a text column. */
static mica_column_kind fit_kind(const fit_choice *f, int64_t column)
{
    mica_column_kind kind = f->table->kind[column];
    for (size_t i = 1; i < f->n; i++)
        if (f->tables[i]->kind[column] != kind) kind = MICA_COLUMN_TEXTS;
    return kind;
}

static mica_status fit_mark(void *user, const char *name)
{
    fit_choice *f = user;
    const int64_t column = mica_table_find(f->table, name);
    if (column < 0) return fit_no_column(f->table, name);
    f->use[column] |= f->mark;
    return MICA_OK;
}

static mica_status fit_mark_list(fit_choice *f, const char *list, fit_use mark)
{
    f->mark = mark;
    return fit_each_name(list, fit_mark, f);
}

/* Adds a column that is neither an input nor a target. */
static mica_status fit_special(fit_choice *f, mica_recipe *r, const char *name, recipe_role role)
{
    if (!name) return MICA_OK;
    const int64_t column = mica_table_find(f->table, name);
    if (column < 0) return fit_no_column(f->table, name);
    if (role != RECIPE_GROUP && fit_kind(f, column) == MICA_COLUMN_TEXTS)
        return mica_fail(MICA_ERR_FORMAT, "%s, column %lld ('%.80s'): texts that are not dates cannot be the time",
                         f->table->path, (long long)column + 1, mica_table_name(f->table, column));
    f->use[column] |= FIT_NOT;
    return mica__recipe_add(r, role, mica_table_name(f->table, column), NULL);
}

static mica_status fit_targets(fit_choice *f, const mica_series_options *o)
{
    if (!o->targets) return mica_fail(MICA_ERR_ARGUMENT, "series: no target: which column is to be predicted?");
    if (strcmp(o->targets, "all") != 0) return fit_mark_list(f, o->targets, FIT_TARGET);
    for (int64_t i = 0; i < f->table->columns; i++)
        if (!(f->use[i] & FIT_NOT) && fit_kind(f, i) == MICA_COLUMN_NUMBERS) f->use[i] |= FIT_TARGET;
    return MICA_OK;
}

static bool fit_is_input(const fit_choice *f, const mica_series_options *o, int64_t column, int64_t ahead)
{
    const unsigned use = f->use[column];
    if (use & FIT_NOT || ((use & FIT_TARGET) && ahead == 0)) return false;
    return o->inputs ? use & FIT_INPUT : fit_kind(f, column) != MICA_COLUMN_DATES;
}

static mica_status fit_add_columns(fit_choice *f, mica_recipe *r, const mica_series_options *o)
{
    int64_t seen = 0;
    mica_status status = MICA_OK;
    const mica_table *t = f->table;
    r->ahead = o->ahead < 0 ? 0 : o->ahead;
    for (int64_t i = 0; i < t->columns; i++) seen += fit_is_input(f, o, i, r->ahead);
    if (seen == 0 && o->ahead < 0) r->ahead = 1;
    seen = 0;
    for (int64_t i = 0; i < t->columns && status == MICA_OK; i++) {
        if (!fit_is_input(f, o, i, r->ahead)) continue;
        const recipe_role role = fit_kind(f, i) == MICA_COLUMN_TEXTS ? RECIPE_CATEGORY : RECIPE_NUMBER;
        status = mica__recipe_add(r, role, mica_table_name(t, i), NULL);
        seen++;
    }
    for (int64_t i = 0; i < t->columns && status == MICA_OK; i++)
        if (f->use[i] & FIT_TARGET) status = mica__recipe_add(r, RECIPE_TARGET, mica_table_name(t, i), NULL);
    if (status == MICA_OK && (seen == 0 || r->targets == 0))
        status =
            mica_fail(MICA_ERR_ARGUMENT, "%s: no column is left to %s", t->path, seen ? "be predicted" : "be an input");
    return status;
}

static mica_status fit_same_columns(const mica_table *a, const mica_table *b)
{
    for (int64_t i = 0; i < a->columns && i < b->columns; i++)
        if (strcmp(mica_table_name(a, i), mica_table_name(b, i)) != 0)
            return mica_fail(MICA_ERR_FORMAT, "%s, line 1, column %lld is '%.80s', in %s it is '%.80s'", b->path,
                             (long long)i + 1, mica_table_name(b, i), a->path, mica_table_name(a, i));
    if (a->columns == b->columns) return MICA_OK;
    return mica_fail(MICA_ERR_FORMAT, "%s, line 1: %lld columns, in %s there are %lld", b->path, (long long)b->columns,
                     a->path, (long long)a->columns);
}

/* --------------------------------------------------------------- the task -- */

/* A column with few distinct whole numbers or texts is treated as classes. */
static bool fit_looks_like_classes(mica_table *const *tables, size_t n, int64_t column)
{
    double kinds[FIT_FEW_KINDS];
    int found = 0;
    for (size_t i = 0; i < n; i++) {
        if (tables[i]->kind[column] != MICA_COLUMN_NUMBERS) return tables[i]->kind[column] == MICA_COLUMN_TEXTS;
        for (int64_t row = 0; row < tables[i]->rows; row++) {
            const double v = mica_table_number(tables[i], row, column);
            int k = 0;
            if (isnan(v)) continue;
            while (k < found && kinds[k] != v) k++;
            if (k < found) continue;
            if (v != floor(v) || found == FIT_FEW_KINDS) return false;
            kinds[found++] = v;
        }
    }
    return found >= 2;
}

static mica_status fit_task(mica_recipe *r, const mica_series_options *o, mica_table *const *tables, size_t n)
{
    const recipe_column *target = mica__recipe_role(r, RECIPE_TARGET);
    const int64_t column = mica_table_find(tables[0], target->name);
    r->task = o->task;
    if (r->task == MICA_TASK_AUTO)
        r->task =
            r->targets == 1 && fit_looks_like_classes(tables, n, column) ? MICA_TASK_CLASSES : MICA_TASK_REGRESSION;
    if (r->task == MICA_TASK_CLASSES && r->targets > 1)
        return mica_fail(MICA_ERR_ARGUMENT, "series: classes of one column can be predicted, not of %lld",
                         (long long)r->targets);
    for (int64_t i = 0; i < r->n && r->task == MICA_TASK_REGRESSION; i++) {
        const int64_t at = mica_table_find(tables[0], r->columns[i].name);
        for (size_t k = 0; k < n && r->columns[i].role == RECIPE_TARGET; k++)
            if (tables[k]->kind[at] != MICA_COLUMN_NUMBERS)
                return mica_fail(MICA_ERR_FORMAT, "%s, column %lld ('%.80s'): %s cannot be predicted as numbers",
                                 tables[k]->path, (long long)at + 1, r->columns[i].name,
                                 tables[k]->kind[at] == MICA_COLUMN_DATES ? "dates" : "texts");
    }
    return MICA_OK;
}

mica_status mica__recipe_choose(mica_recipe *r, const mica_series_options *o, mica_table *const *tables, size_t n)
{
    fit_choice f = {.table = tables[0], .tables = tables, .n = n};
    mica_status status = MICA_OK;
    for (size_t i = 1; i < n && status == MICA_OK; i++) status = fit_same_columns(tables[0], tables[i]);
    if (status != MICA_OK) return status;
    f.use = calloc((size_t)tables[0]->columns, sizeof *f.use);
    if (!f.use) return mica_fail(MICA_ERR_MEMORY, "out of memory: columns");
    r->seq = o->seq;
    r->missing = o->missing;
    status = fit_special(&f, r, o->group, RECIPE_GROUP);
    if (status == MICA_OK) status = fit_special(&f, r, o->time, RECIPE_TIME);
    if (status == MICA_OK) status = fit_special(&f, r, o->span, RECIPE_SPAN);
    if (status == MICA_OK) status = fit_mark_list(&f, o->drop, FIT_NOT);
    if (status == MICA_OK) status = fit_targets(&f, o);
    if (status == MICA_OK) status = fit_mark_list(&f, o->inputs, FIT_INPUT);
    if (status == MICA_OK) status = fit_add_columns(&f, r, o);
    if (status == MICA_OK) status = fit_task(r, o, tables, n);
    free(f.use);
    return status;
}

/* ---------------------------------------------------------------- measure -- */

static mica_status fail_no_values(const recipe_column *c, const mica_table *t)
{
    return mica_fail(MICA_ERR_FORMAT,
                     "%s, column %lld ('%.80s'): there is no value in the training rows; drop the column", t->path,
                     (long long)mica_table_find(t, c->name) + 1, c->name);
}

/* Mean and deviation over the training rows, in two passes. */
static mica_status measure_numbers(recipe_column *c, const mica_series_options *o, mica_table *const *tables,
                                   const series_pieces *pieces)
{
    double sum = 0, squares = 0;
    int64_t count = 0;
    char place[MICA__PLACE];
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < pieces->n; i++) {
            const series_piece *p = &pieces->at[i];
            const mica_table *t = tables[p->table];
            const int64_t column = mica_table_find(t, c->name);
            for (int64_t row = p->row; p->part == MICA_PART_TRAIN && row < p->row + p->rows; row++) {
                const double v = mica_table_number(t, row, column);
                if (isnan(v) && o->missing == MICA_MISSING_REFUSE)
                    return mica_fail(MICA_ERR_FORMAT, "%s: the value is missing",
                                     mica__table_place(t, row, column, place));
                if (isnan(v)) continue;
                if (pass == 0) sum += v, count++;
                else squares += (v - c->mean) * (v - c->mean);
            }
        }
        if (count == 0) return fail_no_values(c, tables[0]);
        if (pass == 0) c->mean = sum / (double)count;
    }
    c->scale = sqrt(squares / (double)count);
    if (!(c->scale > 1e-12 * fabs(c->mean)) || !isfinite(c->scale)) c->scale = 1;
    if (o->raw) c->mean = 0, c->scale = 1;
    return MICA_OK;
}

static mica_status measure_texts(recipe_column *c, const mica_series_options *o, mica_table *const *tables,
                                 const series_pieces *pieces)
{
    char number[MICA_NUMBER_TEXT], place[MICA__PLACE];
    const bool target = c->role == RECIPE_TARGET;
    const int64_t most = target ? FIT_MAX_CLASSES : o->max_categories;
    const mica_table *last = NULL;
    const char *stray = NULL; /* the first text that is not a number */
    int64_t column = -1;
    for (size_t i = 0; i < pieces->n; i++) {
        const series_piece *p = &pieces->at[i];
        const mica_table *t = tables[p->table];
        if (!target && p->part != MICA_PART_TRAIN) continue; /* classes are collected from all parts */
        if (t != last) column = mica_table_find(last = t, c->name);
        for (int64_t row = p->row; row < p->row + p->rows; row++) {
            const char *text = mica__cell_category(t, row, column, number);
            if (text && text != number && !stray) mica__table_place(t, row, column, place), stray = text;
            if (!text || mica__recipe_text_find(c, text) >= 0) continue;
            if (c->n_texts == most && stray)
                return mica_fail(MICA_ERR_FORMAT,
                                 "%s: '%.80s' is not a number, and more than %lld different values cannot be %s", place,
                                 stray, (long long)most, target ? "classes" : "a category");
            if (c->n_texts == most)
                return mica_fail(MICA_ERR_FORMAT, "%s: more than %lld different values cannot be %s",
                                 mica__table_place(t, row, column, place), (long long)most,
                                 target ? "classes" : "a category");
            const mica_status status = mica__recipe_text_add(c, text);
            if (status != MICA_OK) return status;
        }
    }
    return c->n_texts ? MICA_OK : fail_no_values(c, tables[0]);
}

static int compare_texts(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    double u, v;
    const bool is_number = mica__cell_number(x, strlen(x), &u), other_is = mica__cell_number(y, strlen(y), &v);
    if (is_number && other_is) return (u > v) - (u < v);
    return is_number != other_is ? other_is - is_number : strcmp(x, y);
}

mica_status mica__recipe_span(const mica_recipe *r, const mica_table *t, int64_t row, bool first, double *span)
{
    const recipe_column *time = mica__recipe_role(r, RECIPE_TIME), *c = mica__recipe_role(r, RECIPE_SPAN);
    char place[MICA__PLACE];
    *span = 1;
    if (!time && !c) return MICA_OK;
    const int64_t column = mica_table_find(t, time ? time->name : c->name);
    const double now = mica_table_number(t, row, column);
    if (isnan(now))
        return mica_fail(MICA_ERR_FORMAT, "%s: the time is missing", mica__table_place(t, row, column, place));
    if (!time && now > 0) *span = now;
    else if (!time)
        return mica_fail(MICA_ERR_FORMAT, "%s: %g is not a time span above 0", mica__table_place(t, row, column, place),
                         now);
    if (first || !time) return MICA_OK;
    const double before = mica_table_number(t, row - 1, column);
    if (now > before) {
        *span = (now - before) / time->scale;
        return MICA_OK;
    }
    return mica_fail(MICA_ERR_FORMAT, "%s: the time does not increase: %.17g after %.17g",
                     mica__table_place(t, row, column, place), now, before);
}

static int compare_spans(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The unit of time is the median span, so that most spans are near 1. */
static mica_status measure_time(mica_recipe *r, recipe_column *time, mica_table *const *tables,
                                const series_pieces *pieces)
{
    int64_t rows = 0, n = 0;
    mica_status status = MICA_OK;
    for (size_t i = 0; i < pieces->n; i++) rows += pieces->at[i].rows;
    double *spans = malloc((size_t)(rows + 1) * sizeof *spans);
    if (!spans) return mica_fail(MICA_ERR_MEMORY, "out of memory: %lld spans", (long long)rows);
    for (size_t i = 0; i < pieces->n; i++) {
        const series_piece *p = &pieces->at[i];
        for (int64_t k = 1; k < p->rows && p->part == MICA_PART_TRAIN && status == MICA_OK; k++)
            status = mica__recipe_span(r, tables[p->table], p->row + k, false, &spans[n++]);
    }
    if (status == MICA_OK && n) {
        qsort(spans, (size_t)n, sizeof *spans, compare_spans);
        time->scale = spans[n / 2];
    }
    free(spans);
    return status;
}

mica_status mica__recipe_measure(mica_recipe *r, const mica_series_options *o, mica_table *const *tables,
                                 const series_pieces *pieces)
{
    mica_status status = MICA_OK;
    for (int64_t i = 0; i < r->n && status == MICA_OK; i++) {
        recipe_column *c = &r->columns[i];
        const bool classes = c->role == RECIPE_TARGET && r->task == MICA_TASK_CLASSES;
        if (c->role == RECIPE_CATEGORY || classes) {
            status = measure_texts(c, o, tables, pieces);
            if (status == MICA_OK && c->n_texts > 1)
                qsort(c->texts, (size_t)c->n_texts, sizeof *c->texts, compare_texts);
        } else if (c->role == RECIPE_NUMBER || c->role == RECIPE_TARGET) {
            status = measure_numbers(c, o, tables, pieces);
        } else if (c->role == RECIPE_TIME) status = measure_time(r, c, tables, pieces);
        if (status == MICA_OK && classes && c->n_texts < 2)
            status = mica_fail(MICA_ERR_FORMAT, "%s, column %lld ('%.80s'): there is only one class", tables[0]->path,
                               (long long)mica_table_find(tables[0], c->name) + 1, c->name);
    }
    return status;
}
