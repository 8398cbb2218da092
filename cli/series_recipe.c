/* How columns become numbers. A column is what its first value is: a number, a date, or
 * text; a later value that does not fit is an error with its place. Text of up to 32
 * values becomes that many inputs of 0 and 1; dates and texts with more are left out.
 * What is missing takes the value of the row before, and before any the mean. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "series.h"

typedef enum column_kind { COLUMN_EMPTY, COLUMN_NUMBER, COLUMN_DATE, COLUMN_TEXT } column_kind;

static column_kind kind_of(const series_table *t, int64_t column)
{
    double value;
    for (size_t f = 0; f < t->files; f++) {
        if (t->file[f].value) return COLUMN_NUMBER;
        for (int64_t row = 0; row < t->file[f].rows; row++) {
            const char *cell = series_text(t, f, row, column);
            if (series_missing(cell)) continue;
            return series_number(cell, &value) ? COLUMN_NUMBER : series_date(cell, &value) ? COLUMN_DATE : COLUMN_TEXT;
        }
    }
    return COLUMN_EMPTY;
}

static int no_memory(const series_table *t) { return fprintf(stderr, "%s: no memory\n", t->command), CLI_FAILED; }

/* ------------------------------------------------------------- categories -- */

typedef struct text_set {
    char *item[SERIES_CATEGORIES + 1];
    size_t n; /* SERIES_CATEGORIES + 1: too many */
} text_set;

static bool set_add(text_set *set, const char *text)
{
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->item[i], text) == 0) return true;
    if (set->n > SERIES_CATEGORIES) return true;
    set->item[set->n] = strdup(text);
    return set->item[set->n++] != NULL;
}

static void set_free(text_set *set)
{
    for (size_t i = 0; i < set->n; i++) free(set->item[i]);
    set->n = 0;
}

static int by_number_or_text(const void *a, const void *b)
{
    double x, y;
    const char *p = *(char *const *)a, *q = *(char *const *)b;
    if (series_number(p, &x) && series_number(q, &y)) return (x > y) - (x < y);
    return strcmp(p, q);
}

/* A value as text, numbers as they print shortest; NULL: missing. */
static const char *value_text(const series_table *t, size_t file, int64_t row, int64_t column, char number[32])
{
    const char *cell = series_text(t, file, row, column);
    double value = NAN;
    if (cell && series_missing(cell)) return NULL;
    if (cell && !series_number(cell, &value)) return cell;
    if (!cell) (void)series_value(t, file, row, column, &value);
    if (isnan(value)) return NULL;
    snprintf(number, 32, "%.15g", value);
    return number;
}

/* The values of a column, in order. */
static bool collect_values(const series_table *t, int64_t column, text_set *set)
{
    char number[32];
    for (size_t f = 0; f < t->files; f++)
        for (int64_t row = 0; row < t->file[f].rows && set->n <= SERIES_CATEGORIES; row++) {
            const char *text = value_text(t, f, row, column, number);
            if (text && !set_add(set, text)) return false;
        }
    if (set->n <= SERIES_CATEGORIES) qsort(set->item, set->n, sizeof *set->item, by_number_or_text);
    return true;
}

/* ------------------------------------------------------------------- plan -- */

static bool add_part(series_part **list, size_t *n, const char *name, const char *category)
{
    series_part *more = realloc(*list, (*n + 1) * sizeof *more);
    if (!more) return false;
    *list = more;
    more[*n] = (series_part){.name = strdup(name), .category = category ? strdup(category) : NULL, .deviation = 1};
    const bool good = more[*n].name && (!category || more[*n].category);
    ++*n;
    return good;
}

/* Is this column among names with commas between? */
static bool named(const series_table *t, const char *names, int64_t column)
{
    for (const char *at = names; names && *at;) {
        char one[256];
        const size_t n = strcspn(at, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        if (series_column(t, one) == column) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static int check_names(const series_table *t, const char *names, const char *what)
{
    for (const char *at = names; at && *at;) {
        char one[256];
        const size_t n = strcspn(at, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        if (series_column(t, one) < 0) {
            fprintf(stderr, "%s: %s: there is no column '%s' for %s among", t->command, t->file[0].path, one, what);
            for (int64_t i = 0; i < t->columns && i < 12; i++) fprintf(stderr, " %s", t->name[i]);
            fprintf(stderr, "%s\n", t->columns > 12 ? " ..." : "");
            return CLI_USAGE;
        }
        at += n + (at[n] == ',');
    }
    return CLI_OK;
}

/* Classes, if that is what the target looks like: text, or a few whole numbers. */
static int plan_classes(series_recipe *r, const series_table *t, const series_wish *wish, int64_t column)
{
    text_set set = {0};
    const column_kind kind = kind_of(t, column);
    const int most = wish->task == 2 ? SERIES_CATEGORIES : kind == COLUMN_TEXT ? SERIES_CATEGORIES : 10;
    bool whole = true;
    double value;
    if (!collect_values(t, column, &set)) return set_free(&set), no_memory(t);
    for (size_t i = 0; i < set.n; i++) whole = whole && (!series_number(set.item[i], &value) || value == floor(value));
    const bool fits = set.n >= 2 && set.n <= (size_t)most && whole;
    if (wish->task == 2 && !fits) {
        fprintf(stderr, "%s: column '%s' has %s values, not 2 to %d classes\n", t->command, t->name[column],
                set.n < 2 ? "fewer than two"
                : whole   ? "too many"
                          : "fractional",
                SERIES_CATEGORIES);
        return set_free(&set), CLI_USAGE;
    }
    if (!fits) return set_free(&set), CLI_OK;
    r->label = calloc(set.n, sizeof *r->label);
    if (!r->label) return set_free(&set), no_memory(t);
    memcpy(r->label, set.item, set.n * sizeof *set.item);
    r->classes = set.n;
    return CLI_OK;
}

static int plan_targets(series_recipe *r, const series_table *t, const series_wish *wish)
{
    const bool all = strcmp(wish->target, "all") == 0 && series_column(t, "all") < 0;
    int64_t only = -1;
    if (!all && check_names(t, wish->target, "--target") != CLI_OK) return CLI_USAGE;
    for (int64_t i = 0; i < t->columns; i++) {
        if (all ? kind_of(t, i) != COLUMN_NUMBER : !named(t, wish->target, i)) continue;
        if (!add_part(&r->target, &r->targets, t->name[i], NULL)) return no_memory(t);
        only = i;
    }
    if (r->targets == 1 && wish->task != 1) {
        const int code = plan_classes(r, t, wish, only);
        if (code != CLI_OK) return code;
    }
    for (int64_t i = 0; i < t->columns && !r->classes; i++) {
        const column_kind kind = kind_of(t, i);
        if (!(all ? kind == COLUMN_NUMBER : named(t, wish->target, i)) || kind == COLUMN_NUMBER) continue;
        fprintf(stderr, "%s: %s: the target '%s' has no numbers\n", t->command, t->file[0].path, t->name[i]);
        return CLI_USAGE;
    }
    return r->targets ? CLI_OK : (fprintf(stderr, "%s: no column is a target\n", t->command), CLI_USAGE);
}

static void leave_out(char *left, size_t room, const char *name)
{
    const size_t at = strlen(left);
    snprintf(left + at, room - at, "%s%s", at ? ", " : "", name);
}

static int plan_inputs(series_recipe *r, const series_table *t, const series_wish *wish, char *left, size_t room)
{
    if (check_names(t, wish->inputs, "--inputs") != CLI_OK) return CLI_USAGE;
    for (int64_t i = 0; i < t->columns; i++) {
        bool target = false;
        for (size_t k = 0; k < r->targets; k++) target = target || strcmp(r->target[k].name, t->name[i]) == 0;
        if (wish->inputs ? !named(t, wish->inputs, i) : (target && wish->ahead == 0) || named(t, wish->time, i))
            continue;
        text_set set = {0};
        bool good = true;
        switch (kind_of(t, i)) {
        case COLUMN_NUMBER: good = add_part(&r->input, &r->inputs, t->name[i], NULL); break;
        case COLUMN_TEXT:
            good = collect_values(t, i, &set);
            if (set.n > SERIES_CATEGORIES) leave_out(left, room, t->name[i]);
            else
                for (size_t k = 0; k < set.n && good; k++)
                    good = add_part(&r->input, &r->inputs, t->name[i], set.item[k]);
            break;
        case COLUMN_DATE:
        case COLUMN_EMPTY: leave_out(left, room, t->name[i]); break;
        }
        set_free(&set);
        if (!good) return no_memory(t);
    }
    return r->inputs ? CLI_OK : (fprintf(stderr, "%s: no column is an input\n", t->command), CLI_USAGE);
}

int series_plan(series_recipe *r, const series_table *t, const series_wish *wish, char *left, size_t room)
{
    *r = (series_recipe){.ahead = wish->ahead, .time_unit = 1};
    left[0] = '\0';
    int code = plan_targets(r, t, wish);
    if (code == CLI_OK) code = plan_inputs(r, t, wish, left, room);
    if (code == CLI_OK && wish->time) {
        code = check_names(t, wish->time, "--time");
        if (code == CLI_OK && !(r->time = strdup(t->name[series_column(t, wish->time)]))) code = no_memory(t);
    }
    return code;
}

/* ---------------------------------------------------------------- measure -- */

static int measure_part(series_part *p, const series_table *t, const bool *training)
{
    double sum = 0, squares = 0;
    int64_t n = 0;
    const int64_t column = series_column(t, p->name);
    for (int pass = 0; pass < 2; pass++) {
        const bool *is = training;
        for (size_t f = 0; f < t->files; f++)
            for (int64_t row = 0; row < t->file[f].rows; row++, is++) {
                double value;
                if (!series_value(t, f, row, column, &value)) return CLI_USAGE;
                if (!*is || isnan(value)) continue;
                if (pass) squares += (value - p->mean) * (value - p->mean);
                else sum += value, n++;
            }
        if (pass == 0) p->mean = n ? sum / (double)n : 0;
    }
    p->deviation = n ? sqrt(squares / (double)n) : 1;
    if (!(p->deviation > 1e-12 * fabs(p->mean)) || p->deviation == 0) p->deviation = 1; /* a constant column */
    return CLI_OK;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle one of the steps in time. */
static int measure_time(series_recipe *r, const series_table *t, const bool *training)
{
    const int64_t column = series_column(t, r->time);
    int64_t rows = 0, n = 0;
    for (size_t f = 0; f < t->files; f++) rows += t->file[f].rows;
    double *step = malloc((size_t)rows * sizeof *step), before = NAN, value;
    if (!step) return no_memory(t);
    for (size_t f = 0; f < t->files; f++, before = NAN)
        for (int64_t row = 0; row < t->file[f].rows; row++, training++) {
            if (!series_value(t, f, row, column, &value)) return free(step), CLI_USAGE;
            if (*training && value - before > 0) step[n++] = value - before;
            before = value;
        }
    if (n > 0) qsort(step, (size_t)n, sizeof *step, by_size);
    r->time_unit = n > 0 ? step[n / 2] : 1;
    free(step);
    return CLI_OK;
}

int series_measure(series_recipe *r, const series_table *t, const bool *training)
{
    int code = CLI_OK;
    for (size_t i = 0; i < r->inputs && code == CLI_OK; i++)
        if (!r->input[i].category) code = measure_part(&r->input[i], t, training);
    for (size_t i = 0; i < r->targets && code == CLI_OK && !r->classes; i++)
        code = measure_part(&r->target[i], t, training);
    return code == CLI_OK && r->time ? measure_time(r, t, training) : code;
}

/* ---------------------------------------------------------------- numbers -- */

static int part_numbers(const series_part *p, const series_table *t, size_t file, int64_t shift, size_t at,
                        size_t width, float *out, int64_t *filled)
{
    const int64_t column = series_column(t, p->name), rows = t->file[file].rows;
    float before = 0; /* the mean, after it was taken away */
    for (int64_t row = 0; row < rows; row++) {
        float *to = &out[(size_t)row * width + at];
        if (row + shift >= rows) {
            *to = NAN;
            continue;
        }
        if (p->category) {
            const char *cell = series_text(t, file, row + shift, column);
            *to = cell && strcmp(cell, p->category) == 0;
            continue;
        }
        double value;
        if (!series_value(t, file, row + shift, column, &value)) return CLI_USAGE;
        if (isnan(value)) ++*filled;
        else before = (float)((value - p->mean) / p->deviation);
        *to = before;
    }
    return CLI_OK;
}

static int label_numbers(const series_recipe *r, const series_table *t, size_t file, series_data *d)
{
    const int64_t column = series_column(t, r->target[0].name);
    int32_t before = 0;
    for (int64_t row = 0; row < d->rows; row++) {
        d->label[row] = -1;
        if (row + r->ahead >= d->rows) continue;
        char number[32];
        const char *cell = value_text(t, file, row + r->ahead, column, number);
        if (!cell) {
            d->filled++;
            d->label[row] = before;
            continue;
        }
        for (size_t k = 0; k < r->classes; k++)
            if (strcmp(cell, r->label[k]) == 0) d->label[row] = before = (int32_t)k;
        if (d->label[row] >= 0) continue;
        fprintf(stderr, "%s: %s:%lld: column '%s': '%.40s' is none of the %zu classes\n", t->command,
                t->file[file].path, (long long)(t->file[file].line ? t->file[file].line[row + r->ahead] : row),
                t->name[column], cell, r->classes);
        return CLI_USAGE;
    }
    return CLI_OK;
}

static int span_numbers(const series_recipe *r, const series_table *t, size_t file, series_data *d)
{
    const int64_t column = series_column(t, r->time);
    double before = NAN, value;
    for (int64_t row = 0; row < d->rows; row++) {
        if (!series_value(t, file, row, column, &value)) return CLI_USAGE;
        if (isnan(value) || value < before) {
            fprintf(stderr, "%s: %s:%lld: column '%s': the time is %s\n", t->command, t->file[file].path,
                    (long long)(t->file[file].line ? t->file[file].line[row] : row), r->time,
                    isnan(value) ? "missing" : "before that of the row above");
            return CLI_USAGE;
        }
        d->span[row] = row ? (float)((value - before) / r->time_unit) : 1;
        before = value;
    }
    return CLI_OK;
}

static int check_recipe_columns(const series_recipe *r, const series_table *t, bool wants_target, bool *has_target)
{
    *has_target = true;
    for (size_t i = 0; i < r->targets; i++) *has_target = *has_target && series_column(t, r->target[i].name) >= 0;
    if (!*has_target && wants_target) return check_names(t, r->target[0].name, "the target");
    for (size_t i = 0; i < r->inputs; i++)
        if (check_names(t, r->input[i].name, "an input") != CLI_OK) return CLI_USAGE;
    return r->time ? check_names(t, r->time, "the time") : CLI_OK;
}

int series_numbers(const series_recipe *r, const series_table *t, size_t file, bool wants_target, series_data *out)
{
    bool has_target;
    int code = check_recipe_columns(r, t, wants_target, &has_target);
    *out = (series_data){.rows = t->file[file].rows};
    if (code != CLI_OK) return code;
    const size_t rows = (size_t)out->rows;
    out->x = malloc(rows * r->inputs * sizeof *out->x);
    if (has_target && r->classes) out->label = malloc(rows * sizeof *out->label);
    if (has_target && !r->classes) out->y = malloc(rows * r->targets * sizeof *out->y);
    if (r->time) out->span = malloc(rows * sizeof *out->span);
    if (!out->x || (has_target && !out->label && !out->y) || (r->time && !out->span)) return no_memory(t);
    for (size_t i = 0; i < r->inputs && code == CLI_OK; i++)
        code = part_numbers(&r->input[i], t, file, 0, i, r->inputs, out->x, &out->filled);
    for (size_t i = 0; out->y && i < r->targets && code == CLI_OK; i++)
        code = part_numbers(&r->target[i], t, file, r->ahead, i, r->targets, out->y, &out->filled);
    if (code == CLI_OK && out->label) code = label_numbers(r, t, file, out);
    if (code == CLI_OK && r->time) code = span_numbers(r, t, file, out);
    return code;
}

void series_data_free(series_data *d)
{
    free(d->x);
    free(d->y);
    free(d->span);
    free(d->label);
    *d = (series_data){0};
}

void series_recipe_free(series_recipe *r)
{
    for (size_t i = 0; i < r->inputs; i++) free(r->input[i].name), free(r->input[i].category);
    for (size_t i = 0; i < r->targets; i++) free(r->target[i].name), free(r->target[i].category);
    for (size_t i = 0; i < r->classes; i++) free(r->label[i]);
    free(r->input);
    free(r->target);
    free(r->label);
    free(r->time);
    *r = (series_recipe){0};
}

/* ------------------------------------------------------------------- text -- */

static void print_parts(FILE *to, const char *kind, const series_part *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(to, "%s\t%s\t%s%s\t%a\t%a\n", kind, p[i].name, p[i].category ? "=" : "",
                p[i].category ? p[i].category : "", p[i].mean, p[i].deviation);
}

char *series_recipe_text(const series_recipe *r)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (!to) return NULL;
    print_parts(to, "input", r->input, r->inputs);
    print_parts(to, "target", r->target, r->targets);
    for (size_t i = 0; i < r->classes; i++) fprintf(to, "class\t%s\n", r->label[i]);
    fprintf(to, "ahead\t%lld\n", (long long)r->ahead);
    if (r->time) fprintf(to, "time\t%s\t%a\n", r->time, r->time_unit);
    if (fclose(to) != 0) return free(text), NULL;
    return text;
}

static bool parse_line(series_recipe *r, char *line)
{
    char *field[5] = {0};
    size_t n = 0;
    for (char *at = line; at && n < 5; n++) {
        field[n] = at;
        at = strchr(at, '\t');
        if (at) *at++ = '\0';
    }
    const bool input = strcmp(field[0], "input") == 0, target = strcmp(field[0], "target") == 0;
    if ((input || target) && n == 5) {
        series_part **list = input ? &r->input : &r->target;
        size_t *count = input ? &r->inputs : &r->targets;
        if (!add_part(list, count, field[1], field[2][0] == '=' ? field[2] + 1 : NULL)) return false;
        (*list)[*count - 1].mean = strtod(field[3], NULL);
        (*list)[*count - 1].deviation = strtod(field[4], NULL);
        return isfinite((*list)[*count - 1].mean) && (*list)[*count - 1].deviation > 0;
    }
    if (strcmp(field[0], "class") == 0 && n == 2) {
        char **more = realloc(r->label, (r->classes + 1) * sizeof *more);
        if (!more) return false;
        r->label = more;
        return (more[r->classes++] = strdup(field[1])) != NULL;
    }
    if (strcmp(field[0], "ahead") == 0 && n == 2) return (r->ahead = strtoll(field[1], NULL, 10)) >= 0;
    if (strcmp(field[0], "time") != 0 || n != 3 || r->time) return false;
    r->time_unit = strtod(field[2], NULL);
    return r->time_unit > 0 && (r->time = strdup(field[1])) != NULL;
}

bool series_recipe_parse(series_recipe *r, const char *text)
{
    char *copy = strdup(text), *at = copy;
    bool good = copy != NULL;
    *r = (series_recipe){.time_unit = 1};
    while (good && *at) {
        char *end = strchr(at, '\n');
        if (!end) break;
        *end = '\0';
        good = parse_line(r, at);
        at = end + 1;
    }
    free(copy);
    return good && r->inputs > 0 && r->targets > 0;
}
