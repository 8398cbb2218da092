/* Tables from npy files of any bytes. The bytes are read as they are, and with an npy header before
 * them (a dict up to the end of the line, then the data). Reading ends, every cell is a number or
 * missing, and the series made of the table cover all its rows in order. */
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
    fprintf(stderr, "does not hold: %s (%s)\n", what, mica_last_error());
    abort();
}

static void check_windows(mica_table *t)
{
    mica_series_options o;
    mica_series *d = NULL, *all = NULL;
    mica_window w = {.struct_size = sizeof w};
    int64_t rows = 0;
    mica_series_options_init(&o);
    o.seq = 2, o.valid = o.test = 0, o.targets = "-1", o.task = MICA_TASK_REGRESSION;
    if (mica_series_open(&o, &t, NULL, 1, &d) != MICA_OK) {
        must(mica_last_error()[0] != '\0', "a refusal says why");
        return;
    }
    must(mica_series_apply(mica_series_recipe(d), &t, 1, 0, 0, &all) == MICA_OK, "a recipe fits its own table");
    for (int64_t i = 0; mica_series_window(all, MICA_PART_TEST, i, &w); i++) {
        must(w.row == rows && w.end == w.row + w.rows, "series follow each other");
        rows += w.rows;
    }
    must(rows == mica_table_rows(t), "series have all rows");
    mica_series_free(all);
    mica_series_free(d);
}

static void read_table(const uint8_t *head, size_t n_head, const uint8_t *data, size_t size)
{
    char path[64];
    mica_table *t = NULL;
    snprintf(path, sizeof path, "/tmp/mica-fuzz-%d.npy", (int)getpid());
    FILE *to = fopen(path, "wb");
    if (!to) abort();
    fwrite(head, 1, n_head, to);
    if (size) fwrite(data, 1, size, to);
    fclose(to);
    const mica_status status = mica_table_open(path, NULL, &t);
    remove(path);
    if (status != MICA_OK) {
        must(strncmp(mica_last_error(), path, strlen(path)) == 0 || strstr(mica_last_error(), "memory"),
             "an error message names the file");
        return;
    }
    must(mica_table_rows(t) > 0 && mica_table_columns(t) > 0, "a table has a row and a column");
    for (int64_t r = 0; r < mica_table_rows(t); r++)
        for (int64_t c = 0; c < mica_table_columns(t); c++) {
            must(!mica_table_text(t, r, c), "an array has no texts");
            must(!isinf(mica_table_number(t, r, c)), "a cell is finite or missing");
        }
    check_windows(t);
    mica_table_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    const size_t n = line ? (size_t)(line - data) + 1 : size;
    read_table((const uint8_t *)"", 0, data, size);
    if (n > 65535) return 0;
    const uint8_t head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)(n & 255), (uint8_t)(n >> 8)};
    read_table(head, sizeof head, data, size);
    return 0;
}
