/* mica predict: writes the predictions of a network trained by 'mica train ncp', row by
 * row, and scores them if the file has the target. */
#include <math.h>
#include <mica_series.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cli.h"
#include "core/json.h"
#include "series/tables.h"

typedef struct predict_options {
    const char *out, *device;
    int64_t seq, context, batch, threads;
    int header;
    bool json;
} predict_options;

typedef struct predict_run {
    predict_options o;
    const char *model_path, *data_path;
    cli_tables tables;
    mica_engine *engine;
    mica_series_model *model;
    mica_series *series;
    mica_series_score score;
    FILE *to;
    char delimiter; /* of the output */
} predict_run;

/* clang-format off */
#define AT(field) offsetof(predict_options, field)
static const cli_option predict_rows[] = {
    {"--out", "-o", CLI_PATH, AT(out), .value = "FILE", .unset = "stdout",
     .text = "the file for the predictions: CSV, or TSV if it ends in .tsv; - is stdout"},
    {"--seq", NULL, CLI_INT, AT(seq), 0, 1e6, "N", .unset = "as in training",
     .text = "rows per sequence; 0: a whole series"},
    {"--context", NULL, CLI_INT, AT(context), 0, 1e6, "N", .unset = "half of --seq",
     .text = "rows that the network sees before the first row it predicts"},
    {"--batch", NULL, CLI_INT, AT(batch), 1, 65536, "N", .initial = "64", .aliases = "--batch-size",
     .text = "batch size: sequences at once"},
    {"--header", NULL, CLI_CHOICE, AT(header), .value = "auto|no|yes",
     .text = "whether the first line has column names"},
    {"--device", NULL, CLI_TEXT, AT(device), .value = "cpu|metal|ref", .unset = "the fastest one available",
     .text = "the device that computes"},
    {"--threads", "-t", CLI_INT, AT(threads), 0, 256, "N", .initial = "0", .text = "CPU threads; 0: all fast cores"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print the score as JSON; needs -o FILE"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_predict(const cli_call *call);

const cli_command cli_predict_command = {
    .name = "mica predict",
    .summary = "predict with a network that 'mica train ncp' trained",
    .usage = "MODEL DATA [-o FILE] [options]",
    .text =
        "Writes one line of CSV for each row: the file and number of the row, the true value where it is known, and "
        "the prediction in the units of the file, or the class and the probability of each class.",
    .arguments =
        (const cli_argument[]){{"MODEL", "the folder that 'mica train ncp' wrote, or its best.safetensors"},
                               {"DATA", "CSV, TSV or npy files, separated by commas, or a folder of such files"},
                               {NULL, NULL}},
    .least_args = 2,
    .most_args = 2,
    .groups = (const cli_group[]){{"Options", predict_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(predict_options),
    .defaults = &(const predict_options){.seq = -1, .context = -1},
    .run = run_predict,
};

static int predict_failed(mica_status status) { return cli_file_failed("mica predict", status); }

/* ------------------------------------------------------------------- rows -- */

static void print_named(const predict_run *r, const char *before, const char *name, const char *after)
{
    char cell[512];
    snprintf(cell, sizeof cell, "%s%s%s", before, name, after);
    fputc(r->delimiter, r->to);
    mica_table_put_text(r->to, cell);
}

static void print_header(const predict_run *r)
{
    const mica_recipe *c = mica_series_model_recipe(r->model);
    if (r->tables.n > 1) fprintf(r->to, "file%c", r->delimiter);
    fputs("row", r->to);
    for (int64_t i = 0; i < mica_recipe_targets(c); i++) print_named(r, "", mica_recipe_target(c, i), "");
    for (int64_t i = 0; i < mica_recipe_targets(c); i++) print_named(r, "predicted ", mica_recipe_target(c, i), "");
    for (int64_t i = 0; i < mica_recipe_classes(c); i++) print_named(r, "p(", mica_recipe_class(c, i), ")");
    fputc('\n', r->to);
}

/* Prints the true value as in the file; nothing for row -1, past the end of a series. */
static void print_truth(const predict_run *r, const mica_table *t, int64_t row, const char *target)
{
    const int64_t column = mica_table_find(t, target);
    const char *text = mica_table_text(t, row, column);
    const double number = mica_table_number(t, row, column);
    fputc(r->delimiter, r->to);
    if (text) mica_table_put_text(r->to, text);
    else if (!isnan(number)) fprintf(r->to, "%.9g", number);
}

static mica_status print_row(void *user, const mica_series_row *row)
{
    predict_run *r = user;
    const mica_recipe *c = mica_series_model_recipe(r->model);
    const mica_table *t = r->tables.at[row->table];
    if (r->tables.n > 1) {
        mica_table_put_text(r->to, mica_table_path(t));
        fputc(r->delimiter, r->to);
    }
    fprintf(r->to, "%lld", (long long)row->row + 1);
    for (int64_t i = 0; i < mica_recipe_targets(c); i++)
        print_truth(r, t, row->inside ? row->row : -1, mica_recipe_target(c, i));
    if (row->best >= 0) print_named(r, "", mica_recipe_class(c, row->best), "");
    for (int64_t i = 0; i < row->n; i++) fprintf(r->to, "%c%.7g", r->delimiter, (double)row->values[i]);
    fputc('\n', r->to);
    return MICA_OK;
}

/* Formats all rows in memory first, so that an error leaves no partial file. */
static mica_status make_rows(predict_run *r, char **text)
{
    size_t length;
    *text = NULL;
    r->to = open_memstream(text, &length);
    if (!r->to) return mica_fail(MICA_ERR_MEMORY, "no memory for the predictions");
    print_header(r);
    r->score.struct_size = sizeof r->score;
    mica_status status =
        mica_series_run(r->engine, r->model, r->series, MICA_PART_TEST, r->o.batch, &r->score, print_row, r);
    if (fclose(r->to) != 0 && status == MICA_OK) status = mica_fail(MICA_ERR_MEMORY, "no memory for the predictions");
    return status;
}

static void print_text(FILE *to, const void *text) { fputs(text, to); }

static void print_score(const predict_run *r)
{
    const mica_series_score *s = &r->score;
    const struct {
        const char *name;
        double value;
    } figures[] = {{"rows", (double)s->rows}, {"scored", (double)s->scored},
                   {"loss", s->loss},         {"mse", s->mse},
                   {"mae", s->mae},           {"r2", s->r2},
                   {"accuracy", s->accuracy}, {"majority", s->majority}};
    cli_json j = {.to = stdout};
    if (r->o.json) cli_json_object(&j, NULL, CLI_JSON_LINES);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0] && r->o.json; i++)
        cli_json_number(&j, figures[i].name, figures[i].value);
    if (r->o.json) cli_json_end(&j);
    else if (!s->scored) printf("%lld rows predicted, no target to compare with; %s\n", (long long)s->rows, r->o.out);
    else if (isfinite(s->accuracy))
        printf("%lld rows predicted, accuracy %.2f %%; %s\n", (long long)s->rows, 100 * s->accuracy, r->o.out);
    else printf("%lld rows predicted, MSE %.6g, MAE %.6g; %s\n", (long long)s->rows, s->mse, s->mae, r->o.out);
}

/* ------------------------------------------------------------------ begin -- */

static int open_model(predict_run *r, mica_scope *s)
{
    char path[4096];
    struct stat info;
    const bool folder = stat(r->model_path, &info) == 0 && S_ISDIR(info.st_mode);
    snprintf(path, sizeof path, "%s%s", r->model_path, folder ? "/best.safetensors" : "");
    const mica_status status = mica_series_model_open(s, path, &r->model);
    return status == MICA_OK ? CLI_OK : predict_failed(status);
}

static int predict(predict_run *r)
{
    const mica_recipe *recipe = mica_series_model_recipe(r->model);
    int code = cli_tables_add("mica predict", r->data_path, r->o.header - 1, MICA_PART_TEST, &r->tables);
    if (code != CLI_OK) return code;
    if (r->o.seq < 0) r->o.seq = mica_recipe_seq(recipe);
    if (r->o.context < 0) r->o.context = r->o.seq / 2;
    mica_status status = mica_series_apply(recipe, r->tables.at, r->tables.n, r->o.seq, r->o.context, &r->series);
    if (status != MICA_OK) return predict_failed(status);
    char *text;
    status = make_rows(r, &text);
    if (status != MICA_OK) code = predict_failed(status);
    else if (!r->o.out) fputs(text, stdout);
    else if (!cli_write_whole("mica predict", r->o.out, print_text, text)) code = CLI_FAILED;
    else print_score(r);
    free(text);
    return code;
}

static int run_predict(const cli_call *call)
{
    predict_run r = {.o = *(const predict_options *)call->options};
    mica_engine_options e;
    if (r.o.out && strcmp(r.o.out, "-") == 0) r.o.out = NULL;
    if (r.o.json && !r.o.out) return cli_fail(CLI_USAGE, "mica predict: --json needs -o FILE");
    r.delimiter = mica_table_delimiter(r.o.out);
    r.model_path = call->args[0];
    r.data_path = call->args[1];
    mica_engine_options_init(&e);
    e.backend = r.o.device;
    e.threads = (int)r.o.threads;
    const mica_status status = mica_open(&e, &r.engine);
    if (status != MICA_OK) return cli_engine_failed("mica predict", status);
    mica_scope *s = mica_scope_begin(r.engine);
    int code = open_model(&r, s);
    if (code == CLI_OK) code = predict(&r);
    mica_scope_end(s);
    mica_series_model_free(r.model);
    mica_close(r.engine);
    mica_series_free(r.series);
    cli_tables_close(&r.tables);
    return code;
}
