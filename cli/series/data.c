/* mica data: small data sets to try things with, and a look at the columns of one. */
#include <math.h>
#include <mica_series.h>
#include <stdlib.h>
#include <string.h>

#include "core/args.h"
#include "core/cli.h"
#include "series/tables.h"

typedef struct data_options {
    const char *out;
    int64_t rows, seed;
    double noise;
    int header;
    bool json;
} data_options;

#define AT(field) offsetof(data_options, field)
static const cli_arg data_args[] = {
    {"--out", "-o", CLI_TEXT, AT(out), 0, 0, "FILE", "where the data set goes (*.tsv: with tabs); needed to make one"},
    {"--rows", "-n", CLI_INT, AT(rows), 1, 1e8, "N", "its rows (4096)"},
    {"--noise", NULL, CLI_NUMBER, AT(noise), 0, 1e3, "X", "deviation of what is added to the inputs (0.02)"},
    {"--seed", NULL, CLI_INT, AT(seed), 0, 1e15, "N", "the same seed, the same data (1)"},
    {"--header", NULL, CLI_CHOICE, AT(header), 0, 0, "auto|no|yes", "info: does the first line have names?"},
    {"--json", NULL, CLI_FLAG, AT(json), 0, 0, NULL, "info: as JSON"},
};

static const cli_args data_command = {
    .command = "mica data",
    .usage = "sine|spiral|irregular -o FILE, or info FILE",
    .text = "Makes a small data set, as CSV:\n"
            "  sine       sin, cos; target: a sine of twice the speed (a number)\n"
            "  spiral     series, x, y; class: which way each spiral turns (left or right)\n"
            "  irregular  time, x at uneven times; speed: its derivative, for which the time matters\n"
            "or tells what the columns of a CSV, TSV or npy file are.",
    .args = data_args,
    .n_args = sizeof data_args / sizeof data_args[0],
    .least_places = 1,
    .most_places = 2,
};

static int data_failed(mica_status status)
{
    fprintf(stderr, "mica data: %s\n", mica_last_error());
    return status == MICA_ERR_MEMORY || status == MICA_ERR_FILE ? CLI_FAILED : CLI_USAGE;
}

static int make_data(mica_made_kind kind, const data_options *o)
{
    mica_table *t;
    if (!o->out) return fprintf(stderr, "mica data: -o FILE says where the data set goes\n"), CLI_USAGE;
    mica_status status = mica_table_make(kind, o->rows, o->noise, (uint64_t)o->seed, &t);
    if (status != MICA_OK) return data_failed(status);
    status = mica_table_write(t, o->out);
    mica_table_free(t);
    return status == MICA_OK ? CLI_OK : data_failed(status);
}

/* ------------------------------------------------------------------- info -- */

typedef struct column_facts {
    int64_t missing, texts;
    double least, most, mean;
} column_facts;

static column_facts look_at(const mica_table *t, int64_t column)
{
    column_facts f = {.least = NAN, .most = NAN};
    double sum = 0;
    int64_t n = 0;
    for (int64_t row = 0; row < mica_table_rows(t); row++) {
        const double v = mica_table_number(t, row, column);
        f.texts += mica_table_text(t, row, column) != NULL;
        f.missing += isnan(v) && !mica_table_text(t, row, column);
        if (isnan(v)) continue;
        if (!(f.least <= v)) f.least = v;
        if (!(f.most >= v)) f.most = v;
        sum += v;
        n++;
    }
    f.mean = n ? sum / (double)n : NAN;
    return f;
}

static void print_info(const mica_table *t, bool json)
{
    static const char *const kinds[] = {"numbers", "texts", "dates"};
    const int64_t rows = mica_table_rows(t), columns = mica_table_columns(t);
    if (json) printf("{\n  \"rows\": %lld,\n  \"columns\": [", (long long)rows);
    else
        printf("%lld rows\n%-6s %-24s %-8s %10s %14s %14s %14s\n", (long long)rows, "column", "name", "kind", "missing",
               "least", "mean", "most");
    for (int64_t i = 0; i < columns; i++) {
        const column_facts f = look_at(t, i);
        const char *name = mica_table_name(t, i), *kind = kinds[mica_table_kind(t, i)];
        if (!json) {
            printf("%-6lld %-24s %-8s %10lld %14.6g %14.6g %14.6g\n", (long long)i + 1, name, kind,
                   (long long)f.missing, f.least, f.mean, f.most);
            continue;
        }
        printf("%s\n    {\"name\": ", i ? "," : "");
        cli_print_json(stdout, name, strlen(name));
        printf(", \"kind\": \"%s\", \"missing\": %lld, \"least\": ", kind, (long long)f.missing);
        cli_print_json_number(stdout, f.least);
        printf(", \"mean\": ");
        cli_print_json_number(stdout, f.mean);
        printf(", \"most\": ");
        cli_print_json_number(stdout, f.most);
        printf("}");
    }
    if (json) printf("\n  ]\n}\n");
}

static int show_info(const char *path, const data_options *o)
{
    cli_tables t = {0};
    const int code = cli_tables_add("mica data", path, o->header - 1, MICA_PART_CUT, &t);
    if (code == CLI_OK) print_info(t.at[0], o->json);
    cli_tables_close(&t);
    return code;
}

int cli_data(int argc, char **argv)
{
    static const char *const kinds[] = {"sine", "spiral", "irregular"};
    data_options o = {.rows = 4096, .seed = 1, .noise = 0.02};
    const char *places[CLI_MAX_PLACES];
    size_t n;
    const int code = cli_parse(&data_command, argc, argv, &o, places, &n);
    if (code != CLI_OK) return code == CLI_HELP_SHOWN ? CLI_OK : code;
    if (strcmp(places[0], "info") == 0 && n == 2) return show_info(places[1], &o);
    for (int i = 0; i < 3 && n == 1; i++)
        if (strcmp(places[0], kinds[i]) == 0) return make_data((mica_made_kind)i, &o);
    fprintf(stderr, "mica data: usage: %s %s\n", data_command.command, data_command.usage);
    return CLI_USAGE;
}
