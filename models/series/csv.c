/* Tables from text: cells between delimiters, quoted if they contain one. The parser reads the bytes once. A row is
 * added to the table when its line ends, so that an error message can name line and column. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"

/* ------------------------------------------------------------------ cells -- */

bool mica__cell_missing(const char *text, size_t length)
{
    static const char *const words[] = {"", "?", "-", "NA", "N/A", "na", "nan", "NaN", "NAN", "null", "NULL"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0) return true;
    return false;
}

bool mica__cell_number(const char *text, size_t length, double *value)
{
    return mica_number_parse(text, length, value) && isfinite(*value);
}

/* Days since 1970-01-01 of a Gregorian date. */
static int64_t csv_days(int year, int month, int day)
{
    const int64_t y = month > 2 ? year : year - 1, era = y / 400, of_era = y - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool csv_is_day(int year, int month, int day)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1];
}

bool mica__cell_date(const char *text, double *seconds)
{
    int year, month, day, hour = 0, minute = 0, used = 0, more = 0;
    double second = 0;
    if (strlen(text) > 40 || text[0] < '0' || text[0] > '9') return false;
    const bool year_first = strspn(text, "0123456789") == 4;
    if (year_first ? sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &used) != 3 &&
                         sscanf(text, "%4d/%2d/%2d%n", &year, &month, &day, &used) != 3
                   : sscanf(text, "%2d/%2d/%4d%n", &month, &day, &year, &used) != 3)
        return false;
    if (!csv_is_day(year, month, day)) return false;
    const char *rest = text + used;
    if (*rest == ' ' || *rest == 'T') {
        if (sscanf(rest + 1, "%2d:%2d%n", &hour, &minute, &more) != 2) return false;
        rest += 1 + more;
        if (*rest == ':') {
            const size_t length = strspn(++rest, "0123456789.");
            if (!mica_number_parse(rest, length, &second)) return false;
            rest += length;
        }
        if (*rest == 'Z') rest++;
    }
    if (*rest || hour < 0 || hour > 24 || minute < 0 || minute > 59 || !(second >= 0 && second < 61)) return false;
    *seconds = (double)csv_days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    return true;
}

/* ----------------------------------------------------------------- parser -- */

typedef struct csv_parser {
    mica_table *table;
    const char *at, *end;
    char delimiter;
    int64_t line;        /* current line                                     */
    int64_t row_line;    /* line where its row began                         */
    int64_t first_line;  /* line of the first row, which sets the cell count */
    char *cell;          /* the bytes of the cell, without quotes            */
    size_t used, room;
    uint32_t *cells;     /* cells of the row: offsets in the pool       */
    bool *quoted;
    int64_t n, cells_room;
    int header;
    bool named;          /* the first row contained the names           */
} csv_parser;

static mica_status csv_fail(const csv_parser *p, const char *what)
{
    return mica_fail(MICA_ERR_FORMAT, "%s, line %lld, column %lld: %s", p->table->path, (long long)p->line,
                     (long long)p->n + 1, what);
}

static mica_status csv_put(csv_parser *p, char byte)
{
    if (p->used == p->room) {
        const size_t room = p->room ? 2 * p->room : 64;
        char *cell = realloc(p->cell, room);
        if (!cell) return mica_fail(MICA_ERR_MEMORY, "out of memory: a cell of %zu bytes", room);
        p->cell = cell;
        p->room = room;
    }
    p->cell[p->used++] = byte;
    return MICA_OK;
}

/* A line may end in \n, \r\n or \r. */
static bool csv_at_line_end(const csv_parser *p) { return p->at == p->end || *p->at == '\n' || *p->at == '\r'; }

static void csv_pass_line_end(csv_parser *p)
{
    if (p->at == p->end) return;
    if (*p->at == '\r' && p->at + 1 < p->end && p->at[1] == '\n') p->at++;
    p->at++;
    p->line++;
}

static mica_status csv_quoted_cell(csv_parser *p)
{
    const int64_t began = p->line;
    mica_status status = MICA_OK;
    for (p->at++; status == MICA_OK; p->at++) {
        if (p->at == p->end) {
            p->line = began;
            return csv_fail(p, "a quote is opened and not closed");
        }
        if (*p->at == '\0') return csv_fail(p, "there is a zero byte; this is not text");
        if (*p->at == '"') {
            if (p->at + 1 == p->end || p->at[1] != '"') break;
            p->at++;
        }
        if (*p->at == '\n') p->line++;
        status = csv_put(p, *p->at);
    }
    if (status != MICA_OK) return status;
    p->at++;
    while (p->at < p->end && *p->at == ' ' && p->delimiter != ' ') p->at++;
    if (!csv_at_line_end(p) && *p->at != p->delimiter) return csv_fail(p, "a closing quote is followed by more text");
    return MICA_OK;
}

static mica_status csv_plain_cell(csv_parser *p)
{
    mica_status status = MICA_OK;
    for (; status == MICA_OK && !csv_at_line_end(p) && *p->at != p->delimiter; p->at++) {
        if (*p->at == '\0') return csv_fail(p, "there is a zero byte; this is not text");
        status = csv_put(p, *p->at);
    }
    while (p->used && (p->cell[p->used - 1] == ' ' || p->cell[p->used - 1] == '\t')) p->used--;
    return status;
}

/* Strict UTF-8, as files and JSON require: no overlong forms, no surrogates, nothing above U+10FFFF. */
static bool csv_is_utf8(const char *text, size_t length)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < length;) {
        const uint8_t lead = (uint8_t)text[i++];
        const int more = lead < 0x80 ? 0 : lead < 0xC0 ? -1 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : lead < 0xF8 ? 3 : -1;
        if (more < 0 || (size_t)more > length - i) return false;
        uint32_t code = more ? lead & (0x3Fu >> more) : lead;
        for (int k = 0; k < more; k++, i++) {
            if (((uint8_t)text[i] & 0xC0) != 0x80) return false;
            code = code << 6 | ((uint8_t)text[i] & 0x3Fu);
        }
        if (code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    }
    return true;
}

static mica_status csv_cell_done(csv_parser *p, bool quoted)
{
    if (!csv_is_utf8(p->cell, p->used)) return csv_fail(p, "the text is not UTF-8");
    if (p->n == p->cells_room) {
        const int64_t room = p->cells_room ? 2 * p->cells_room : 32;
        uint32_t *cells = realloc(p->cells, (size_t)room * sizeof *cells);
        if (cells) p->cells = cells;
        bool *quotes = cells ? realloc(p->quoted, (size_t)room * sizeof *quotes) : NULL;
        if (!quotes) return mica_fail(MICA_ERR_MEMORY, "out of memory: a line of %lld cells", (long long)room);
        p->quoted = quotes;
        p->cells_room = room;
    }
    p->quoted[p->n] = quoted;
    p->cells[p->n] = mica__table_keep(p->table, p->cell ? p->cell : "", p->used);
    return p->cells[p->n++] ? MICA_OK : MICA_ERR_MEMORY;
}

/* Reads the cells of one line (or of several, if line ends are quoted). */
static mica_status csv_row(csv_parser *p)
{
    mica_status status = MICA_OK;
    p->n = 0;
    p->row_line = p->line;
    for (;;) {
        p->used = 0;
        while (p->at < p->end && *p->at == ' ') p->at++;
        const bool quoted = p->at < p->end && *p->at == '"';
        status = quoted ? csv_quoted_cell(p) : csv_plain_cell(p);
        if (status == MICA_OK) status = csv_cell_done(p, quoted);
        if (status != MICA_OK) return status;
        if (csv_at_line_end(p)) break;
        p->at++;
    }
    csv_pass_line_end(p);
    return MICA_OK;
}

/* ------------------------------------------------------------------- rows -- */

static mica_status csv_begin_columns(csv_parser *p)
{
    mica_table *t = p->table;
    enum { MOST = 10000 };
    if (p->n > MOST)
        return mica_fail(MICA_ERR_FORMAT, "%s, line %lld: %lld columns are more than %d", t->path,
                         (long long)p->row_line, (long long)p->n, MOST);
    t->columns = p->n;
    p->first_line = p->row_line;
    t->name = calloc((size_t)p->n, sizeof *t->name);
    t->kind = calloc((size_t)p->n, sizeof *t->kind);
    return t->name && t->kind ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "out of memory: %lld columns", (long long)p->n);
}

static bool csv_is_header(const csv_parser *p)
{
    bool named = false;
    double value;
    if (p->header >= 0) return p->header;
    for (int64_t i = 0; i < p->n; i++) {
        const char *text = p->table->pool + p->cells[i];
        if (mica__cell_number(text, strlen(text), &value) || mica__cell_date(text, &value)) return false;
        named |= !mica__cell_missing(text, strlen(text));
    }
    return named;
}

static mica_status csv_keep_row(csv_parser *p)
{
    mica_table *t = p->table;
    const mica_status status = mica__table_grow(t);
    if (status != MICA_OK) return status;
    size_t keep = p->cells[0]; /* only cells that are texts stay in the pool */
    for (int64_t i = 0; i < p->n; i++) {
        const char *text = t->pool + p->cells[i];
        const size_t length = strlen(text);
        double *value = &t->value[t->rows * t->columns + i];
        uint32_t *kept = &t->text[t->rows * t->columns + i];
        *value = NAN;
        *kept = 0;
        if (mica__cell_missing(text, length) || mica__cell_number(text, length, value)) continue;
        *kept = (uint32_t)keep;
        memmove(t->pool + keep, text, length + 1);
        keep += length + 1;
    }
    t->pool_used = keep;
    t->line[t->rows++] = p->row_line;
    return MICA_OK;
}

static mica_status csv_wrong_cell_count(const csv_parser *p)
{
    const mica_table *t = p->table;
    if (p->n > t->columns)
        return mica_fail(MICA_ERR_FORMAT,
                         "%s, line %lld, column %lld: a cell too many: the line has %lld cells, line %lld has %lld",
                         t->path, (long long)p->row_line, (long long)t->columns + 1, (long long)p->n,
                         (long long)p->first_line, (long long)t->columns);
    const char *name = t->name[p->n] ? t->pool + t->name[p->n] : "";
    return mica_fail(MICA_ERR_FORMAT,
                     "%s, line %lld, column %lld%s%.80s%s is missing: the line has %lld cells, line %lld has %lld",
                     t->path, (long long)p->row_line, (long long)p->n + 1, *name ? " ('" : "", name, *name ? "')" : "",
                     (long long)p->n, (long long)p->first_line, (long long)t->columns);
}

/* One name fewer than cells: R writes tables this way, with row names in the first column. */
static mica_status csv_add_row_names(csv_parser *p)
{
    mica_table *t = p->table;
    const size_t n = (size_t)t->columns + 1;
    uint32_t *name = realloc(t->name, n * sizeof *name);
    if (name) t->name = name;
    mica_column_kind *kind = name ? realloc(t->kind, n * sizeof *kind) : NULL;
    if (!kind) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu columns", n);
    memmove(name + 1, name, (n - 1) * sizeof *name);
    name[0] = 0;
    kind[n - 1] = MICA_COLUMN_NUMBERS;
    t->kind = kind;
    t->columns++;
    return MICA_OK;
}

static mica_status csv_add_parsed_row(csv_parser *p)
{
    mica_table *t = p->table;
    if (t->columns == 0) {
        const mica_status status = csv_begin_columns(p);
        if (status != MICA_OK) return status;
        if (csv_is_header(p)) {
            for (int64_t i = 0; i < p->n; i++)
                if (t->pool[p->cells[i]]) t->name[i] = p->cells[i];
            p->named = true;
            return MICA_OK;
        }
    }
    if (p->named && t->rows == 0 && p->n == t->columns + 1) {
        const mica_status status = csv_add_row_names(p);
        if (status != MICA_OK) return status;
    }
    return p->n == t->columns ? csv_keep_row(p) : csv_wrong_cell_count(p);
}

static char csv_find_delimiter(const mica_table *t, const char *text, const char *end)
{
    static const char choices[] = {',', ';', '\t'};
    int64_t count[3] = {0};
    bool quoted = false;
    if (mica_table_delimiter(t->path) == '\t') return '\t';
    while (text < end && (*text == '\n' || *text == '\r')) text++;
    for (; text < end && (quoted || (*text != '\n' && *text != '\r')); text++) {
        quoted ^= *text == '"';
        for (int i = 0; i < 3 && !quoted; i++) count[i] += *text == choices[i];
    }
    int best = 0;
    for (int i = 1; i < 3; i++)
        if (count[i] > count[best]) best = i;
    return choices[best];
}

mica_status mica__csv_read(mica_table *t, const char *text, size_t length, const mica_table_options *options)
{
    static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 byte order mark */
    if (length >= 3 && memcmp(text, mark, 3) == 0) text += 3, length -= 3;
    if (length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return mica_fail(MICA_ERR_FORMAT, "%s, line 1, column 1: the text is UTF-16, not UTF-8", t->path);
    const char *end = length ? text + length : text;
    csv_parser p = {.table = t, .at = text, .end = end, .line = 1, .header = options->header};
    p.delimiter = options->delimiter ? options->delimiter : csv_find_delimiter(t, text, end);
    mica_status status = MICA_OK;
    while (p.at < p.end && status == MICA_OK) {
        const size_t before = t->pool_used;
        status = csv_row(&p);
        const bool blank = status == MICA_OK && p.n == 1 && !p.quoted[0] && !t->pool[p.cells[0]];
        if (blank) t->pool_used = before;
        else if (status == MICA_OK) status = csv_add_parsed_row(&p);
    }
    free(p.cell);
    free(p.cells);
    free(p.quoted);
    if (status == MICA_OK && t->rows == 0)
        status = mica_fail(MICA_ERR_FORMAT, "%s, line %lld: the file ends without a row", t->path, (long long)p.line);
    return status == MICA_OK ? mica__table_finish(t) : status;
}
