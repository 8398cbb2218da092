/* mica data: generates small data sets, and describes the columns of a data file. */
#include <math.h>
#include <mica_series.h>
#include <string.h>

#include "core/cli.h"
#include "core/json.h"
#include "series/tables.h"

/* ------------------------------------------------------------------- make -- */

typedef struct make_options {
    const char *out;
    int64_t rows, seed;
    double noise;
} make_options;

/* clang-format off */
static const cli_option make_rows[] = {
    {"--out", "-o", CLI_PATH, offsetof(make_options, out), .value = "FILE", .required = true,
     .text = "the file to write: CSV, or TSV if it ends in .tsv"},
    {"--rows", "-n", CLI_INT, offsetof(make_options, rows), 1, 1e8, "N", .initial = "4096", .text = "number of rows"},
    {"--noise", NULL, CLI_NUMBER, offsetof(make_options, noise), 0, 1e3, "X", .initial = "0.02",
     .text = "standard deviation of the noise that is added to the inputs"},
    {"--seed", NULL, CLI_INT, offsetof(make_options, seed), 0, 1e15, "N", .initial = "1",
     .text = "seed: the same seed gives the same data"},
    {.name = NULL},
};
/* clang-format on */

static int make_data(const cli_call *call, mica_made_kind kind)
{
    const make_options *o = call->options;
    mica_table *t;
    mica_status status = mica_table_make(kind, o->rows, o->noise, (uint64_t)o->seed, &t);
    if (status == MICA_OK) {
        status = mica_table_write(t, o->out);
        mica_table_free(t);
    }
    if (status == MICA_OK) return CLI_OK;
    fprintf(stderr, "%s: %s\n", call->command->name, mica_last_error());
    if (status == MICA_ERR_MEMORY) return CLI_MEMORY;
    return status == MICA_ERR_FILE ? CLI_FAILED : CLI_USAGE;
}

static int make_sine(const cli_call *call) { return make_data(call, MICA_MADE_SINE); }
static int make_spiral(const cli_call *call) { return make_data(call, MICA_MADE_SPIRAL); }
static int make_irregular(const cli_call *call) { return make_data(call, MICA_MADE_IRREGULAR); }

static const cli_group make_groups[] = {{"Options", make_rows, 0}, {NULL, NULL, 0}};

static const cli_command sine_command = {
    .name = "mica data sine",
    .summary = "generate a data set: columns sin, cos; target: a sine of twice the frequency",
    .usage = "-o FILE [options]",
    .groups = make_groups,
    .options_size = sizeof(make_options),
    .run = make_sine,
};
static const cli_command spiral_command = {
    .name = "mica data spiral",
    .summary = "generate a data set: columns series, x, y; class: the direction in which a spiral turns",
    .usage = "-o FILE [options]",
    .groups = make_groups,
    .options_size = sizeof(make_options),
    .run = make_spiral,
};
static const cli_command irregular_command = {
    .name = "mica data irregular",
    .summary = "generate a data set: columns time, x at irregular times; speed: the derivative of x",
    .usage = "-o FILE [options]",
    .groups = make_groups,
    .options_size = sizeof(make_options),
    .run = make_irregular,
};

/* ------------------------------------------------------------------- info -- */

typedef struct info_options {
    int header;
    bool json;
} info_options;

static const cli_option info_rows[] = {
    {"--header", NULL, CLI_CHOICE, offsetof(info_options, header), .value = "auto|no|yes",
     .text = "whether the first line has column names"},
    {"--json", NULL, CLI_FLAG, offsetof(info_options, json), .text = "print JSON"},
    {.name = NULL},
};

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

static void print_column(const mica_table *t, int64_t column, cli_json *j)
{
    static const char *const kinds[] = {"numbers", "texts", "dates"};
    const column_facts f = look_at(t, column);
    const char *name = mica_table_name(t, column), *kind = kinds[mica_table_kind(t, column)];
    if (!j) {
        printf("%-6lld %-24s %-8s %10lld %14.6g %14.6g %14.6g\n", (long long)column + 1, name, kind,
               (long long)f.missing, f.least, f.mean, f.most);
        return;
    }
    cli_json_object(j, NULL, CLI_JSON_INLINE);
    cli_json_text(j, "name", name);
    cli_json_text(j, "kind", kind);
    cli_json_int(j, "missing", f.missing);
    cli_json_number(j, "least", f.least);
    cli_json_number(j, "mean", f.mean);
    cli_json_number(j, "most", f.most);
    cli_json_end(j);
}

static void print_info(const mica_table *t, bool json)
{
    const int64_t rows = mica_table_rows(t), columns = mica_table_columns(t);
    cli_json j = {.to = stdout};
    if (json) {
        cli_json_object(&j, NULL, CLI_JSON_LINES);
        cli_json_int(&j, "rows", rows);
        cli_json_array(&j, "columns", CLI_JSON_LINES);
    } else
        printf("%lld rows\n%-6s %-24s %-8s %10s %14s %14s %14s\n", (long long)rows, "column", "name", "kind", "missing",
               "least", "mean", "most");
    for (int64_t i = 0; i < columns; i++) print_column(t, i, json ? &j : NULL);
    if (json) cli_json_end(&j), cli_json_end(&j);
}

static int run_info(const cli_call *call)
{
    const info_options *o = call->options;
    cli_tables t = {0};
    const int code = cli_tables_add(call->command->name, call->args[0], o->header - 1, MICA_PART_CUT, &t);
    if (code == CLI_OK) print_info(t.at[0], o->json);
    cli_tables_close(&t);
    return code;
}

static const cli_command info_command = {
    .name = "mica data info",
    .summary = "describe the columns of a CSV, TSV or npy file",
    .usage = "FILE [options]",
    .arguments = (const cli_argument[]){{"FILE", "a CSV, TSV or npy file"}, {NULL, NULL}},
    .least_args = 1,
    .most_args = 1,
    .groups = (const cli_group[]){{"Options", info_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(info_options),
    .run = run_info,
};

const cli_command cli_data_command = {
    .name = "mica data",
    .summary = "generate small time series to train on, or describe a data file",
    .usage = "sine|spiral|irregular -o FILE, or info FILE",
    .subcommands =
        (const cli_command *const[]){&sine_command, &spiral_command, &irregular_command, &info_command, NULL},
};
