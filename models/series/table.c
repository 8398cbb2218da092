/* Tables: named columns of numbers and texts, row-major, read from text or npy and written back. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/name_ends.h"
#include "series.h"

void mica_table_options_init(mica_table_options *options)
{
    if (options) *options = (mica_table_options){.struct_size = sizeof *options, .header = -1};
}

/* ---------------------------------------------------------------- building - */

mica_status mica__table_new(const char *path, mica_table **out)
{
    mica_table *t = calloc(1, sizeof *t);
    const size_t length = strlen(path) + 1;
    if (t) t->path = malloc(length);
    if (!t || !t->path || !mica__table_keep(t, "", 0)) {
        mica_table_free(t);
        return mica_fail(MICA_ERR_MEMORY, "out of memory: a table");
    }
    memcpy(t->path, path, length);
    t->lines = true;
    *out = t;
    return MICA_OK;
}

void mica_table_free(mica_table *table)
{
    if (!table) return;
    free(table->path);
    free(table->value);
    free(table->text);
    free(table->line);
    free(table->pool);
    free(table->name);
    free(table->kind);
    free(table);
}

uint32_t mica__table_keep(mica_table *t, const char *text, size_t length)
{
    const size_t used = t->pool_used ? t->pool_used : 1, need = used + length + 1;
    if (need < length || need > UINT32_MAX) {
        mica_fail(MICA_ERR_SIZE, "%s: more than 4 GB of text", t->path ? t->path : "");
        return 0;
    }
    if (need > t->pool_room) {
        const size_t room = need < 128 ? 256 : 2 * need;
        char *pool = realloc(t->pool, room);
        if (!pool) {
            mica_fail(MICA_ERR_MEMORY, "out of memory: %zu bytes of text", room);
            return 0;
        }
        if (!t->pool_room) pool[0] = '\0';
        t->pool = pool;
        t->pool_room = room;
    }
    memcpy(t->pool + used, text, length);
    t->pool[used + length] = '\0';
    t->pool_used = need;
    return (uint32_t)used;
}

static mica_status table_grow_room(mica_table *t)
{
    const int64_t room = t->room ? 2 * t->room : 256, limit = (int64_t)1 << 40;
    if (room > limit / t->columns)
        return mica_fail(MICA_ERR_SIZE, "%s: more than %lld rows", t->path, (long long)t->rows);
    const size_t cells = (size_t)(room * t->columns);
    double *value = realloc(t->value, cells * sizeof *value);
    if (value) t->value = value;
    uint32_t *text = value ? realloc(t->text, cells * sizeof *text) : NULL;
    if (text) t->text = text;
    int64_t *line = text ? realloc(t->line, (size_t)room * sizeof *line) : NULL;
    if (!line) return mica_fail(MICA_ERR_MEMORY, "out of memory: a table of %lld rows", (long long)room);
    t->line = line;
    t->room = room;
    return MICA_OK;
}

mica_status mica__table_grow(mica_table *t)
{
    const mica_status status = t->rows < t->room ? MICA_OK : table_grow_room(t);
    if (status == MICA_OK) memset(t->text + t->rows * t->columns, 0, (size_t)t->columns * sizeof *t->text);
    return status;
}

static mica_status table_name_columns(mica_table *t)
{
    char number[32];
    for (int64_t i = 0; i < t->columns; i++) {
        const int length = snprintf(number, sizeof number, "%lld", (long long)i + 1);
        if (!t->name[i] && !(t->name[i] = mica__table_keep(t, number, (size_t)length))) return MICA_ERR_MEMORY;
        for (int64_t k = 0; k < i; k++)
            if (strcmp(t->pool + t->name[i], t->pool + t->name[k]) == 0)
                return mica_fail(MICA_ERR_FORMAT, "%s, line 1, column %lld: '%.80s' is also the name of column %lld",
                                 t->path, (long long)i + 1, t->pool + t->name[i], (long long)k + 1);
    }
    return MICA_OK;
}

/* A column whose texts are all dates becomes seconds. */
static void table_find_kind(mica_table *t, int64_t column)
{
    int64_t texts = 0, numbers = 0, dates = 0;
    double seconds;
    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t at = r * t->columns + column;
        if (t->text[at]) texts++, dates += mica__cell_date(t->pool + t->text[at], &seconds);
        else numbers += !isnan(t->value[at]);
        if (dates < texts) break;
    }
    if (texts == 0) return;
    t->kind[column] = dates < texts || numbers ? MICA_COLUMN_TEXTS : MICA_COLUMN_DATES;
    for (int64_t r = 0; r < t->rows && t->kind[column] == MICA_COLUMN_DATES; r++) {
        const int64_t at = r * t->columns + column;
        if (t->text[at]) (void)mica__cell_date(t->pool + t->text[at], &t->value[at]);
    }
}

mica_status mica__table_finish(mica_table *t)
{
    const mica_status status = table_name_columns(t);
    for (int64_t i = 0; i < t->columns && status == MICA_OK; i++) table_find_kind(t, i);
    return status;
}

/* --------------------------------------------------------------------- npy - */

/* (rows), (rows, columns) or (series, rows, columns). */
static mica_status npy_columns(mica_table *t, const mica_tensor_info *info, int64_t *columns)
{
    *columns = info->ndim == 1 ? 1 : info->shape[info->ndim - 1];
    if (info->ndim < 1 || info->ndim > 3)
        return mica_fail(MICA_ERR_FORMAT,
                         "%s: an array of %d axes is not a table: (rows), (rows, columns) or (series, rows, columns)",
                         t->path, info->ndim);
    for (int i = 0; i < info->ndim; i++)
        if (info->shape[i] < 1) return mica_fail(MICA_ERR_FORMAT, "%s: the array has no elements", t->path);
    t->columns = *columns;
    t->each = info->ndim == 3 ? info->shape[1] : 0;
    t->name = calloc((size_t)t->columns, sizeof *t->name);
    t->kind = calloc((size_t)t->columns, sizeof *t->kind);
    if (!t->name || !t->kind) return mica_fail(MICA_ERR_MEMORY, "out of memory: %lld columns", (long long)t->columns);
    return MICA_OK;
}

static mica_status npy_rows(mica_table *t, const mica_tensor_info *info, const double *data, int64_t columns)
{
    int64_t rows = info->shape[0];
    if (info->ndim == 3) rows *= info->shape[1];
    for (int64_t r = 0; r < rows; r++) {
        const mica_status status = mica__table_grow(t);
        if (status != MICA_OK) return status;
        double *to = t->value + r * t->columns;
        for (int64_t c = 0; c < columns; c++) {
            to[c] = data[r * columns + c];
            if (isinf(to[c]))
                return mica_fail(MICA_ERR_FORMAT, "%s, row %lld, column %lld: %g is not finite", t->path,
                                 (long long)r + 1, (long long)c + 1, to[c]);
        }
        t->line[t->rows++] = r + 1;
    }
    return MICA_OK;
}

static mica_status npy_read(mica_table *t, mica_engine *engine, mica_file *file)
{
    mica_tensor_info info = {.struct_size = sizeof info};
    int64_t columns = 0;
    if (strcmp(mica_file_kind(file), "npy") != 0 || !mica_file_tensor(file, 0, &info))
        return mica_fail(MICA_ERR_FORMAT, "%s: not an npy file", t->path);
    if (info.dtype < 0)
        return mica_fail(MICA_ERR_FORMAT, "%s: an array of %s is not a table of numbers", t->path, info.format);
    mica_status status = npy_columns(t, &info, &columns);
    if (status != MICA_OK) return status;
    mica_scope *s = mica_scope_begin(engine);
    if (!s) return MICA_ERR_MEMORY;
    mica_array *data = mica_contiguous(s, mica_cast(s, mica_file_array(s, file, info.name), MICA_F64));
    status = mica_eval(s, &data, 1);
    if (status == MICA_OK) status = npy_rows(t, &info, mica_data_f64(data), columns);
    mica_scope_end(s);
    return status;
}

static mica_status npy_open(mica_table *t)
{
    mica_engine *engine = NULL;
    mica_file *file = NULL;
    mica_engine_options o;
    mica_engine_options_init(&o);
    o.threads = 1;
    mica_status status = mica_file_open(t->path, NULL, &file);
    if (status == MICA_OK) status = mica_open(&o, &engine);
    t->lines = false;
    if (status == MICA_OK) status = npy_read(t, engine, file);
    mica_close(engine);
    mica_file_close(file);
    return status == MICA_OK ? mica__table_finish(t) : status;
}

/* ---------------------------------------------------------------- opening -- */

enum { TEXT_GIB = 16 };

static mica_status text_open(mica_table *t, const mica_table_options *o)
{
    char *text = NULL;
    size_t length;
    if (strcmp(t->path, "-") == 0) return mica_fail(MICA_ERR_FILE, "-: a table is not read from standard input");
    mica_status status = mica_text_read(t->path, (uint64_t)TEXT_GIB << 30, &text, &length);
    if (status == MICA_OK) status = mica__csv_read(t, text, length, o);
    mica_text_free(text);
    return status;
}

/* Reads the caller's options or the defaults; MICA_ERR_ARGUMENT if they are invalid. */
static mica_status table_options(const mica_table_options *given, mica_table_options *o)
{
    mica_table_options_init(o);
    const mica_status status = mica_struct_read("table: mica_table_options", o, sizeof *o, given);
    if (status != MICA_OK) return status;
    if (o->delimiter == '"' || o->delimiter == '\n' || o->delimiter == '\r')
        return mica_fail(MICA_ERR_ARGUMENT, "table: the delimiter cannot be a quote or an end of line");
    return MICA_OK;
}

mica_status mica_table_open(const char *path, const mica_table_options *options, mica_table **out)
{
    mica_table_options o;
    mica_table *t = NULL;
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "table: out is NULL");
    *out = NULL;
    if (!path) return mica_fail(MICA_ERR_ARGUMENT, "table: no path");
    mica_status status = table_options(options, &o);
    if (status == MICA_OK) status = mica__table_new(path, &t);
    if (status == MICA_OK) status = mica__name_ends(path, ".npy") ? npy_open(t) : text_open(t, &o);
    if (status == MICA_OK) *out = t;
    else mica_table_free(t);
    return status;
}

mica_status mica_table_parse(const char *name, const char *text, size_t length, const mica_table_options *options,
                             mica_table **out)
{
    mica_table_options o;
    mica_table *t = NULL;
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "table: out is NULL");
    *out = NULL;
    if (!text && length) return mica_fail(MICA_ERR_ARGUMENT, "table: no text");
    mica_status status = table_options(options, &o);
    if (status == MICA_OK) status = mica__table_new(name ? name : "table", &t);
    if (status == MICA_OK) status = mica__csv_read(t, text ? text : "", length, &o);
    if (status == MICA_OK) *out = t;
    else mica_table_free(t);
    return status;
}

/* ----------------------------------------------------------------- asking -- */

const char *mica_table_path(const mica_table *table) { return table ? table->path : NULL; }
int64_t mica_table_rows(const mica_table *table) { return table ? table->rows : 0; }
int64_t mica_table_columns(const mica_table *table) { return table ? table->columns : 0; }

static bool has_cell(const mica_table *t, int64_t row, int64_t column)
{
    return t && row >= 0 && row < t->rows && column >= 0 && column < t->columns;
}

const char *mica_table_name(const mica_table *table, int64_t column)
{
    return has_cell(table, 0, column) ? table->pool + table->name[column] : NULL;
}

mica_column_kind mica_table_kind(const mica_table *table, int64_t column)
{
    return has_cell(table, 0, column) ? table->kind[column] : MICA_COLUMN_NUMBERS;
}

double mica_table_number(const mica_table *table, int64_t row, int64_t column)
{
    return has_cell(table, row, column) ? table->value[row * table->columns + column] : NAN;
}

const char *mica_table_text(const mica_table *table, int64_t row, int64_t column)
{
    const uint32_t at = has_cell(table, row, column) ? table->text[row * table->columns + column] : 0;
    return at ? table->pool + at : NULL;
}

int64_t mica_table_line(const mica_table *table, int64_t row)
{
    return has_cell(table, row, 0) ? table->line[row] : -1;
}

int64_t mica_table_find(const mica_table *table, const char *name)
{
    double number;
    if (!table || !name) return -1;
    for (int64_t i = 0; i < table->columns; i++)
        if (strcmp(table->pool + table->name[i], name) == 0) return i;
    if (!mica__cell_number(name, strlen(name), &number) || number != floor(number)) return -1;
    if (number < 0) number += (double)table->columns + 1;
    return number >= 1 && number <= (double)table->columns ? (int64_t)number - 1 : -1;
}

const char *mica__table_place(const mica_table *t, int64_t row, int64_t column, char *at)
{
    snprintf(at, MICA__PLACE, "%.300s, %s %lld, column %lld ('%.80s')", t->path, t->lines ? "line" : "row",
             (long long)mica_table_line(t, row), (long long)column + 1, mica_table_name(t, column));
    return at;
}

/* ---------------------------------------------------------------- writing -- */

char mica_table_delimiter(const char *path) { return path && mica__name_ends(path, ".tsv") ? '\t' : ','; }

void mica_table_put_text(FILE *to, const char *text)
{
    if (!to || !text) return;
    const size_t length = strlen(text);
    const bool as_is = length && !strpbrk(text, ",;\"\t\r\n") && text[0] != ' ' && text[length - 1] != ' ';
    if (as_is) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"') fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

static void print_table(FILE *to, const mica_table *t, char delimiter)
{
    for (int64_t c = 0; c < t->columns; c++) {
        if (c) fputc(delimiter, to);
        mica_table_put_text(to, mica_table_name(t, c));
    }
    fputc('\n', to);
    for (int64_t r = 0; r < t->rows; r++) {
        for (int64_t c = 0; c < t->columns; c++) {
            char shortest[MICA_NUMBER_TEXT];
            const char *text = mica_table_text(t, r, c);
            const double number = mica_table_number(t, r, c);
            if (c) fputc(delimiter, to);
            if (text) mica_table_put_text(to, text);
            else if (!isnan(number)) fputs(mica_number_print(number, shortest, sizeof shortest), to);
            else if (t->columns == 1) fputc('?', to); /* an empty line would not be read as a row */
        }
        fputc('\n', to);
    }
}

/* An existing path that is not a regular file (/dev/null) is written directly, not replaced. */
static bool is_device(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

mica_status mica_table_write(const mica_table *table, const char *path)
{
    if (!table || !path) return mica_fail(MICA_ERR_ARGUMENT, "table: nothing to write, or no path");
    if (mica__name_ends(path, ".npy"))
        return mica_fail(MICA_ERR_ARGUMENT, "%s: a table is written as text, not as npy", path);
    const size_t n = strlen(path) + MICA_TEMPORARY_SUFFIX;
    const bool direct = is_device(path);
    char *beside = malloc(n);
    if (!beside) return mica_fail(MICA_ERR_MEMORY, "out of memory: a path");
    int fd = -1;
    const bool made = !direct && mica_temporary_create(path, beside, n, &fd) == MICA_OK;
    FILE *to = direct ? fopen(path, "w") : made ? fdopen(fd, "w") : NULL;
    if (!to && made) (void)close(fd);
    bool good = to != NULL;
    if (to) {
        print_table(to, table, mica_table_delimiter(path));
        good = !ferror(to);
        if (fclose(to) != 0) good = false;
        if (good && !direct) good = rename(beside, path) == 0;
    }
    const int why = errno;
    if (!good && made) (void)remove(beside);
    if (made) mica_temporary_done(beside);
    free(beside);
    return good ? MICA_OK : mica_fail(MICA_ERR_FILE, "%s: cannot be written: %s", path, strerror(why));
}
