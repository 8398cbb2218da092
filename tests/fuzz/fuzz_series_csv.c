/* Tables and recipes from any bytes: reading ends, every cell can be read, an error message names
 * the file, and a table or recipe that was written is read back unchanged. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mica_series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held, const char *what)
{
    if (held) return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

static bool same_cell(const mica_table *a, const mica_table *b, int64_t row, int64_t column)
{
    const char *x = mica_table_text(a, row, column), *y = mica_table_text(b, row, column);
    const double u = mica_table_number(a, row, column), v = mica_table_number(b, row, column);
    if (x || y) return x && y && strcmp(x, y) == 0;
    return u == v || (isnan(u) && isnan(v));
}

/* The text that the table writes, through an in-memory file if the system has them. */
static void check_round_trip(const mica_table *t)
{
    char path[64];
    mica_table *back = NULL;
    mica_table_options o;
    mica_table_options_init(&o);
    o.header = 1;
    o.delimiter = ',';
    snprintf(path, sizeof path, "/tmp/mica-fuzz-csv-%d.csv", (int)getpid());
    if (mica_table_write(t, path) != MICA_OK) return;
    const mica_status status = mica_table_open(path, &o, &back);
    remove(path);
    must(status == MICA_OK, "what was written can be read");
    must(mica_table_rows(back) == mica_table_rows(t) && mica_table_columns(back) == mica_table_columns(t),
         "it has as many rows and columns");
    for (int64_t c = 0; c < mica_table_columns(t); c++)
        for (int64_t r = 0; r < mica_table_rows(t); r++) must(same_cell(t, back, r, c), "its cells are the same");
    mica_table_free(back);
}

static void check_series(mica_table *t)
{
    mica_series_options o;
    mica_series *d = NULL;
    mica_series_options_init(&o);
    o.seq = 2, o.valid = o.test = 0, o.targets = "-1";
    if (mica_series_open(&o, &t, NULL, 1, &d) != MICA_OK) {
        must(mica_last_error()[0] != '\0', "a refusal says why");
        return;
    }
    const mica_recipe *r = mica_series_recipe(d);
    const size_t n = mica_recipe_text(r, NULL, 0);
    char *text = malloc(n + 1), *again = malloc(n + 1);
    mica_recipe *back = NULL;
    if (!text || !again) abort();
    must(mica_recipe_text(r, text, n + 1) == n, "a recipe has one length");
    must(mica_recipe_parse(text, n, &back) == MICA_OK, "a recipe can be read");
    must(mica_recipe_text(back, again, n + 1) == n && strcmp(text, again) == 0, "a recipe comes back");
    must(mica_recipe_inputs(back) == mica_recipe_inputs(r), "and sees as much");
    mica_series *applied = NULL;
    must(mica_series_apply(back, &t, 1, 3, 1, &applied) == MICA_OK, "a recipe fits its own table");
    mica_series_free(applied);
    mica_recipe_free(back);
    mica_series_free(d);
    free(text);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int runs;
    mica_table *t = NULL;
    mica_recipe *r = NULL;
    if (mica_recipe_parse((const char *)data, size, &r) == MICA_OK)
        must(mica_recipe_inputs(r) > 0, "a recipe sees something");
    mica_recipe_free(r);
    if (mica_table_parse("fuzz", (const char *)data, size, NULL, &t) != MICA_OK) {
        must(strncmp(mica_last_error(), "fuzz, line ", 11) == 0 || strstr(mica_last_error(), "memory"),
             "an error message names file and line");
        return 0;
    }
    must(mica_table_rows(t) > 0 && mica_table_columns(t) > 0, "a table has a row and a column");
    for (int64_t c = 0; c < mica_table_columns(t); c++)
        must(mica_table_find(t, mica_table_name(t, c)) == c, "a name finds its column");
    for (int64_t row = 1; row < mica_table_rows(t); row++)
        must(mica_table_line(t, row) > mica_table_line(t, row - 1), "lines go on");
    if (runs++ % 16 == 0) check_round_trip(t);
    check_series(t);
    mica_table_free(t);
    return 0;
}
