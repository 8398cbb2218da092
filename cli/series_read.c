/* Files of time series: CSV and TSV by what separates most of the first line, npy
 * through the library. Lines and columns are remembered for sentences. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <mica.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "model.h"
#include "series.h"

/* ----------------------------------------------------------------- cells --- */

bool series_missing(const char *cell)
{
    static const char *const words[] = {"", "NA", "N/A", "na", "NaN", "nan", "NAN", "null", "NULL", "?", "-"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(cell, words[i]) == 0) return true;
    return false;
}

bool series_number(const char *cell, double *value)
{
    char *end;
    *value = strtod(cell, &end);
    return end != cell && *end == '\0' && isfinite(*value);
}

/* Days since 1970 of a date of the Gregorian calendar. */
static double days_of(int year, int month, int day)
{
    const int y = month <= 2 ? year - 1 : year, era = y / 400, of_era = y - era * 400;
    const int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097.0 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

bool series_date(const char *cell, double *seconds)
{
    int year, month, day, hour = 0, minute = 0, used = 0;
    double second = 0;
    if (sscanf(cell, "%4d-%2d-%2d%n", &year, &month, &day, &used) != 3 || used < 8 || year < 1) return false;
    if (month < 1 || month > 12 || day < 1 || day > 31) return false;
    const char *rest = cell + used;
    if (*rest && sscanf(rest, "%*1[ T]%2d:%2d:%lf", &hour, &minute, &second) < 2) return false;
    *seconds = 86400 * days_of(year, month, day) + 3600.0 * hour + 60.0 * minute + second;
    return true;
}

/* -------------------------------------------------------------------- CSV -- */

static char separator_of(const char *line)
{
    size_t n[3] = {0};
    static const char marks[3] = {',', '\t', ';'};
    for (; *line && *line != '\n'; line++)
        for (int k = 0; k < 3; k++) n[k] += *line == marks[k];
    return n[1] > n[0] && n[1] >= n[2] ? '\t' : n[2] > n[0] ? ';' : ',';
}

/* Cuts the next field out of a line, in place; *at is moved behind it. */
static char *next_field(char **at, char mark, bool *last)
{
    char *from = *at, *to = from, *field = from;
    while (*from == ' ' && mark != ' ') from++;
    if (*from == '"') {
        for (from++; *from; from++) {
            if (*from == '"' && from[1] != '"') break;
            if (*from == '"') from++;
            *to++ = *from;
        }
        while (*from && *from != mark) from++;
    } else {
        while (*from && *from != mark) *to++ = *from++;
        while (to > field && (to[-1] == ' ' || to[-1] == '\r')) to--;
    }
    *last = *from == '\0';
    *at = *last ? from : from + 1;
    *to = '\0';
    return field;
}

static int64_t count_fields(const char *line, char mark)
{
    int64_t n = 1;
    bool quoted = false;
    for (; *line && (*line != '\n' || quoted); line++) {
        if (*line == '"') quoted = !quoted;
        else if (*line == mark && !quoted) n++;
    }
    return n;
}

/* The line's end becomes one; NULL at the end of the text. Lines without anything are
 * passed over. */
static char *next_line(char **at, int64_t *number)
{
    for (;;) {
        char *line = *at;
        if (!*line) return NULL;
        char *end = strchr(line, '\n');
        *at = end ? end + 1 : line + strlen(line);
        if (end) *end = '\0';
        ++*number;
        if (line[strspn(line, " \t\r")] != '\0') return line;
    }
}

/* A line of names: none of them is a number, or missing. */
static bool is_header(char *const *field, int64_t n)
{
    double value;
    for (int64_t i = 0; i < n; i++)
        if (series_missing(field[i]) || series_number(field[i], &value) || series_date(field[i], &value)) return false;
    return true;
}

static int set_names(series_table *t, char *const *field, int64_t n, int64_t columns, const char *path)
{
    if (t->name) {
        if (columns == t->columns) return CLI_OK;
        fprintf(stderr, "%s: '%s' has %lld columns, and '%s' %lld\n", t->command, path, (long long)columns,
                t->file[0].path, (long long)t->columns);
        return CLI_USAGE;
    }
    t->columns = columns;
    t->name = calloc((size_t)columns, sizeof *t->name);
    for (int64_t i = 0; t->name && i < columns; i++) {
        char made[32];
        snprintf(made, sizeof made, "c%lld", (long long)i);
        /* with one name too few the first column is the number of the row */
        const char *name = !field ? made : n == columns ? field[i] : i == 0 ? "row" : field[i - 1];
        t->name[i] = strdup(name);
        if (!t->name[i]) return fprintf(stderr, "%s: no memory\n", t->command), CLI_FAILED;
        for (char *c = t->name[i]; *c; c++)
            if (*c == '\t' || *c == '\n') *c = ' '; /* names are fields of lines in a model file */
    }
    return t->name ? CLI_OK : CLI_FAILED;
}

static bool grow_cells(series_file *f, int64_t columns, int64_t *room)
{
    if (f->rows < *room) return true;
    *room = *room ? 2 * *room : 1024;
    char **cell = realloc(f->cell, (size_t)(*room * columns) * sizeof *cell);
    if (cell) f->cell = cell;
    int64_t *line = realloc(f->line, (size_t)*room * sizeof *line);
    if (line) f->line = line;
    return cell && line;
}

static int read_rows(series_table *t, series_file *f, char *at, int64_t line, char mark, char **first)
{
    int64_t room = 0;
    char *text = NULL;
    for (bool given = first != NULL;; given = false) {
        if (!grow_cells(f, t->columns, &room)) return fprintf(stderr, "%s: no memory\n", t->command), CLI_FAILED;
        char **row = f->cell + f->rows * t->columns;
        if (given) memcpy(row, first, (size_t)t->columns * sizeof *row);
        else {
            if (!(text = next_line(&at, &line))) return CLI_OK;
            const int64_t n = count_fields(text, mark);
            if (n != t->columns) {
                fprintf(stderr, "%s: %s:%lld: %lld columns, not %lld\n", t->command, f->path, (long long)line,
                        (long long)n, (long long)t->columns);
                return CLI_USAGE;
            }
            bool last = false;
            for (int64_t i = 0; i < n; i++) row[i] = last ? text + strlen(text) : next_field(&text, mark, &last);
        }
        f->line[f->rows++] = line;
    }
}

static int read_text(series_table *t, series_file *f)
{
    enum { MOST = 4096 };
    char *field[MOST], *at = f->text, *line;
    int64_t number = 0;
    if (strncmp(at, "\xef\xbb\xbf", 3) == 0) at += 3;
    if (!(line = next_line(&at, &number)))
        return fprintf(stderr, "%s: '%s' is empty\n", t->command, f->path), CLI_USAGE;
    const char mark = separator_of(line);
    const int64_t n = count_fields(line, mark);
    if (n > MOST - 1) {
        fprintf(stderr, "%s: %s:1: %lld columns are too many\n", t->command, f->path, (long long)n);
        return CLI_USAGE;
    }
    bool last = false;
    for (int64_t i = 0; i < n; i++) field[i] = last ? line + strlen(line) : next_field(&line, mark, &last);
    const bool header = is_header(field, n);
    int64_t columns = n;
    if (header) { /* the first row tells whether a name is missing */
        char *peek = at + strspn(at, "\r\n");
        if (*peek && count_fields(peek, mark) == n + 1) columns = n + 1;
    }
    const int code = set_names(t, header ? field : NULL, n, columns, f->path);
    return code == CLI_OK ? read_rows(t, f, at, number, mark, header ? NULL : field) : code;
}

/* -------------------------------------------------------------------- npy -- */

static int read_npy(series_table *t, series_file *f)
{
    mica_file *file = NULL;
    mica_engine *engine = NULL;
    mica_scope *s = NULL;
    mica_tensor_info info = {.struct_size = sizeof info};
    mica_status status = mica_file_open(f->path, NULL, &file);
    if (status == MICA_OK) status = mica_open(NULL, &engine);
    if (status == MICA_OK && !(s = mica_scope_begin(engine))) status = mica_fail(MICA_ERR_MEMORY, "no memory");
    if (status == MICA_OK && (!mica_file_tensor(file, 0, &info) || info.ndim < 1 || info.ndim > 2 || info.dtype < 0))
        status = mica_fail(MICA_ERR_FORMAT, "'%s' is no table of numbers", f->path);
    int code = CLI_OK;
    if (status == MICA_OK) {
        mica_array *x = mica_cast(s, mica_file_array(s, file, info.name), MICA_F64);
        f->rows = info.shape[0];
        const int64_t columns = info.ndim == 2 ? info.shape[1] : 1;
        const size_t bytes = (size_t)(f->rows * columns) * sizeof(double);
        f->value = malloc(bytes + 1);
        status = f->value ? mica_eval(s, &x, 1) : mica_fail(MICA_ERR_MEMORY, "no memory");
        if (status == MICA_OK) status = mica_copy_out(x, f->value, bytes);
        code = set_names(t, NULL, 0, columns, f->path);
    }
    if (status != MICA_OK) {
        fprintf(stderr, "%s: %s\n", t->command, mica_last_error());
        code = CLI_USAGE;
    }
    mica_scope_end(s);
    mica_close(engine);
    mica_file_close(file);
    return code;
}

/* ------------------------------------------------------------------ table -- */

static bool ends_with(const char *path, const char *tail)
{
    const size_t n = strlen(path), k = strlen(tail);
    return n > k && strcmp(path + n - k, tail) == 0;
}

static int read_one(series_table *t, const char *path)
{
    series_file *file = realloc(t->file, (t->files + 1) * sizeof *file);
    if (!file) return fprintf(stderr, "%s: no memory\n", t->command), CLI_FAILED;
    t->file = file;
    series_file *f = &file[t->files];
    *f = (series_file){.path = strdup(path)};
    if (!f->path) return fprintf(stderr, "%s: no memory\n", t->command), CLI_FAILED;
    t->files++;
    int code = CLI_OK;
    if (ends_with(path, ".npy")) code = read_npy(t, f);
    else {
        size_t length;
        f->text = cli_read_file(t->command, path, &length);
        if (!f->text) return CLI_USAGE;
        f->text[length] = '\0'; /* it has room for one more */
        if (memchr(f->text, '\0', length)) {
            fprintf(stderr, "%s: '%s' is no text\n", t->command, path);
            return CLI_USAGE;
        }
        code = read_text(t, f);
    }
    if (code == CLI_OK && f->rows < 1) {
        fprintf(stderr, "%s: '%s' has no rows\n", t->command, path);
        code = CLI_USAGE;
    }
    return code;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int read_folder(series_table *t, const char *path)
{
    static const char *const tails[] = {".csv", ".tsv", ".txt", ".data", ".npy"};
    DIR *folder = opendir(path);
    char **names = NULL;
    size_t n = 0;
    int code = CLI_OK;
    for (struct dirent *e; folder && (e = readdir(folder));) {
        bool known = false;
        for (size_t k = 0; k < sizeof tails / sizeof tails[0]; k++) known = known || ends_with(e->d_name, tails[k]);
        if (!known || e->d_name[0] == '.') continue;
        char **more = realloc(names, (n + 1) * sizeof *names);
        if (more) names = more, names[n] = strdup(e->d_name);
        if (!more || !names[n++]) code = CLI_FAILED;
    }
    if (folder) closedir(folder);
    if (n > 0) qsort(names, n, sizeof *names, compare_names);
    else {
        fprintf(stderr, "%s: there are no .csv, .tsv, .txt, .data or .npy files in '%s'\n", t->command, path);
        code = CLI_USAGE;
    }
    for (size_t i = 0; i < n; i++) {
        char full[4096];
        snprintf(full, sizeof full, "%s/%s", path, names[i]);
        if (code == CLI_OK) code = read_one(t, full);
        free(names[i]);
    }
    free(names);
    return code;
}

int series_open(series_table *t, const char *command, const char *path)
{
    struct stat info;
    *t = (series_table){.command = command};
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return read_folder(t, path);
    return read_one(t, path);
}

void series_close(series_table *t)
{
    for (size_t i = 0; i < t->files; i++) {
        free(t->file[i].path);
        free(t->file[i].text);
        free(t->file[i].cell);
        free(t->file[i].line);
        free(t->file[i].value);
    }
    for (int64_t i = 0; t->name && i < t->columns; i++) free(t->name[i]);
    free(t->name);
    free(t->file);
    *t = (series_table){0};
}

int64_t series_column(const series_table *t, const char *name)
{
    char *end;
    for (int64_t i = 0; i < t->columns; i++)
        if (strcmp(t->name[i], name) == 0) return i;
    const long long number = strtoll(name, &end, 10);
    if (end == name || *end) return -1;
    const int64_t i = number < 0 ? t->columns + number : number;
    return i >= 0 && i < t->columns ? i : -1;
}

const char *series_text(const series_table *t, size_t file, int64_t row, int64_t column)
{
    return t->file[file].cell ? t->file[file].cell[row * t->columns + column] : NULL;
}

bool series_value(const series_table *t, size_t file, int64_t row, int64_t column, double *value)
{
    const series_file *f = &t->file[file];
    if (f->value) {
        *value = f->value[row * t->columns + column];
        if (!isfinite(*value)) *value = NAN;
        return true;
    }
    const char *cell = f->cell[row * t->columns + column];
    *value = NAN;
    if (series_missing(cell) || series_number(cell, value) || series_date(cell, value)) return true;
    fprintf(stderr, "%s: %s:%lld: column '%s': '%.40s' is no number\n", t->command, f->path, (long long)f->line[row],
            t->name[column], cell);
    return false;
}
