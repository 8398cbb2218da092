/* mica predict: what a network that was trained on sequences says of other ones, row
 * by row, and how good that is where the file has the target. */
#include <math.h>
#include <mica_series.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "cli.h"
#include "tables.h"

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
    char delimiter; /* of what is written */
} predict_run;

#define AT(field) offsetof(predict_options, field)
static const cli_arg predict_args[] = {
    {"--out", "-o", CLI_TEXT, AT(out), 0, 0, "FILE",
     "where the predictions go (*.tsv: with tabs); - or nothing: stdout"},
    {"--seq", NULL, CLI_INT, AT(seq), 0, 1e6, "N", "rows of a sequence (as trained); 0: a series is one"},
    {"--context", NULL, CLI_INT, AT(context), 0, 1e6, "N",
     "rows that a sequence sees before the first it predicts (half)"},
    {"--batch", NULL, CLI_INT, AT(batch), 1, 65536, "N", "sequences at once (64)"},
    {"--header", NULL, CLI_CHOICE, AT(header), 0, 0, "auto|no|yes", "does the first line have names?"},
    {"--device", NULL, CLI_TEXT, AT(device), 0, 0, "cpu|metal|ref", "the best there is if not given"},
    {"--threads", NULL, CLI_INT, AT(threads), 0, 256, "N", "threads; 0: all fast cores"},
    {"--json", NULL, CLI_FLAG, AT(json), 0, 0, NULL, "print the score as JSON; with -o FILE"},
};

static const cli_args predict_command = {
    .command = "mica predict",
    .usage = "MODEL DATA [-o FILE]",
    .text = "What a network of `mica train ncp` says for each row, as CSV: the file and number of the row, the true\n"
            "value where it is known, and the prediction in the units of the file, or the class and the probability\n"
            "of each. MODEL is a folder of that command or its best.safetensors; DATA is as in its --data.",
    .args = predict_args,
    .n_args = sizeof predict_args / sizeof predict_args[0],
    .least_places = 2,
    .most_places = 2,
};

static int predict_failed(mica_status status)
{
    fprintf(stderr, "mica predict: %s\n", mica_last_error());
    return status == MICA_ERR_ARGUMENT || status == MICA_ERR_FORMAT ? CLI_USAGE : CLI_FAILED;
}

/* ------------------------------------------------------------------- rows -- */

static void print_named(const predict_run *r, const char *before, const char *name, const char *behind)
{
    char cell[512];
    snprintf(cell, sizeof cell, "%s%s%s", before, name, behind);
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

/* The true value as the file has it; row -1: nothing, behind the end of a series. */
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

/* All rows as text first: a file of half of them would be worse than none. */
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
    cli_json j = {stdout, false};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0] && r->o.json; i++)
        cli_json_number(&j, figures[i].name, figures[i].value);
    if (r->o.json) printf("\n}\n");
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
    if (status == MICA_OK) return CLI_OK;
    fprintf(stderr, "mica predict: %s\n", mica_last_error());
    return cli_file_code(status);
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

int cli_predict(int argc, char **argv)
{
    predict_run r = {.o = {.seq = -1, .context = -1, .batch = 64}};
    const char *places[CLI_MAX_PLACES];
    size_t n;
    mica_engine_options e;
    int code = cli_parse(&predict_command, argc, argv, &r.o, places, &n);
    if (code != CLI_OK) return code == CLI_HELP_SHOWN ? CLI_OK : code;
    if (r.o.out && strcmp(r.o.out, "-") == 0) r.o.out = NULL;
    if (r.o.json && !r.o.out) return fprintf(stderr, "mica predict: --json goes with -o FILE\n"), CLI_USAGE;
    r.delimiter = mica_table_delimiter(r.o.out);
    r.model_path = places[0];
    r.data_path = places[1];
    mica_engine_options_init(&e);
    e.backend = r.o.device;
    e.threads = (int)r.o.threads;
    const mica_status status = mica_open(&e, &r.engine);
    if (status != MICA_OK) return predict_failed(status);
    mica_scope *s = mica_scope_begin(r.engine);
    code = open_model(&r, s);
    if (code == CLI_OK) code = predict(&r);
    mica_scope_end(s);
    mica_series_model_free(r.model);
    mica_close(r.engine);
    mica_series_free(r.series);
    cli_tables_close(&r.tables);
    return code;
}
