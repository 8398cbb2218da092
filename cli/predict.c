/* mica predict: what a trained network says of the rows of a file. The state is carried
 * through the whole file, piece by piece, so that a prediction depends on all rows
 * before it and on none after it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "cli.h"
#include "ncp.h"

enum { PREDICT_ROWS = 256 };

typedef struct predict_options {
    const char *out;
    int64_t threads;
    bool json;
} predict_options;

typedef struct predict_run {
    predict_options o;
    const char *model, *data;
    ncp_net net;
    series_recipe recipe;
    series_table table;
    series_data rows;
    mica_engine *engine;
    mica_params *params;
    mica_network *network;
    float *y; /* (rows, outputs) */
    double loss, square, size, right; /* sums over rows with a target */
    int64_t scored;
} predict_run;

static const cli_arg predict_args[] = {
    {"--out", "-o", CLI_TEXT, offsetof(predict_options, out), 0, 0, "FILE", "where the predictions go (stdout)"},
    {"--threads", NULL, CLI_INT, offsetof(predict_options, threads), 0, 256, "N", "threads; 0: all fast cores"},
    {"--json", NULL, CLI_FLAG, offsetof(predict_options, json), 0, 0, NULL, "print the score as JSON (with -o)"},
};

static const cli_args predict_command = {
    .command = "mica predict",
    .usage = "MODEL DATA [-o FILE]",
    .text = "What a network that `mica train ncp` trained says of each row of a file, as CSV: predictions in the\n"
            "units of the training data, or the class and the share of each class; beside them the target where\n"
            "the file has it. MODEL is a folder of that command or a file of it.",
    .args = predict_args,
    .n_args = sizeof predict_args / sizeof predict_args[0],
    .least_places = 2,
    .most_places = 2,
};

static int predict_failed(void)
{
    fprintf(stderr, "mica predict: %s\n", mica_last_error());
    return CLI_FAILED;
}

/* ------------------------------------------------------------------ model -- */

static mica_status predict_outputs(mica_forward *f, mica_array *const *data, size_t n, mica_array **out, size_t n_out,
                                   void *user)
{
    const predict_run *r = user;
    /* data: x, span or not, then state and memory of the piece before, or nothing */
    size_t at = 1;
    mica_array *span = r->recipe.time ? data[at++] : NULL;
    ncp_states states = {at < n ? data[at] : NULL, at + 1 < n ? data[at + 1] : NULL};
    out[0] = ncp_net_apply(f, &r->net, data[0], span, &states);
    if (!out[0]) return mica_scope_status(f->s);
    out[1] = states.state;
    if (n_out > 2) out[2] = states.memory;
    return MICA_OK;
}

static bool has_memory(const predict_run *r)
{
    return r->net.shape.mixed_memory || strcmp(ncp_cell_name(r->net.shape.cell), "lstm") == 0;
}

static char *copied_setting(const mica_file *file, const char *key)
{
    const char *text;
    size_t length;
    return mica_file_string(file, key, &text, &length) ? strndup(text, length) : NULL;
}

static int load_model(predict_run *r, mica_scope *s, mica_file *file, const char *path)
{
    ncp_shape shape;
    char *net = copied_setting(file, "mica.ncp"), *recipe = copied_setting(file, "mica.recipe");
    const bool known = net && recipe && ncp_shape_parse(&shape, net) && series_recipe_parse(&r->recipe, recipe);
    free(net);
    free(recipe);
    if (!known) return fprintf(stderr, "mica predict: '%s' is no model of mica train ncp\n", path), CLI_MODEL;
    mica_status status = ncp_net_open(&shape, &r->net);
    if (status == MICA_OK) status = mica_params_new(&r->params);
    if (status == MICA_OK) status = ncp_net_params(s, &r->net, 0, r->params);
    if (status == MICA_OK) status = mica_params_load(r->params, s, file);
    if (status == MICA_OK) status = mica_network_open(r->engine, r->params, predict_outputs, r, &r->network);
    if (status == MICA_OK) return CLI_OK;
    return predict_failed(), CLI_MODEL;
}

static int open_model(predict_run *r, mica_scope *s)
{
    char path[4096];
    struct stat info;
    mica_file *file;
    const bool folder = stat(r->model, &info) == 0 && S_ISDIR(info.st_mode);
    snprintf(path, sizeof path, "%s%s", r->model, folder ? "/best.safetensors" : "");
    if (mica_file_open(path, NULL, &file) != MICA_OK) return predict_failed(), CLI_MODEL;
    const int code = load_model(r, s, file, path);
    mica_file_close(file);
    return code;
}

/* ------------------------------------------------------------------- rows -- */

/* A piece of rows as a batch of one sequence. */
static mica_status predict_piece(predict_run *r, int64_t first, int64_t n, mica_array *state[2])
{
    const int64_t in = (int64_t)r->recipe.inputs, width = r->net.shape.outputs;
    mica_scope *s = mica_scope_begin(r->engine);
    mica_array *data[4], *out[3] = {0};
    const size_t n_states = has_memory(r) ? 2 : 1;
    size_t count = 0;
    data[count++] = mica_from_data(s, MICA_F32, 3, (const int64_t[]){1, n, in}, r->rows.x + first * in);
    if (r->recipe.time) data[count++] = mica_from_data(s, MICA_F32, 2, (const int64_t[]){1, n}, r->rows.span + first);
    for (size_t k = 0; k < n_states && state[0]; k++) data[count++] = state[k];
    mica_status status = mica_network_run(r->network, s, data, count, out, 1 + n_states);
    if (status == MICA_OK) status = mica_copy_out(out[0], r->y + first * width, (size_t)(n * width) * sizeof(float));
    for (size_t k = 0; k < n_states; k++) {
        mica_drop(state[k]);
        state[k] = status == MICA_OK ? mica_keep(out[1 + k]) : NULL;
    }
    mica_scope_end(s);
    return status;
}

/* From the end backwards there is nothing to carry: such networks see all rows at once. */
static mica_status predict_rows(predict_run *r)
{
    mica_array *state[2] = {NULL, NULL};
    mica_status status = MICA_OK;
    const int64_t rows = r->rows.rows, most = r->net.shape.bidirectional ? rows : PREDICT_ROWS;
    for (int64_t at = 0; at < rows && status == MICA_OK; at += most)
        status = predict_piece(r, at, rows - at < most ? rows - at : most, state);
    mica_drop(state[0]);
    mica_drop(state[1]);
    return status;
}

static size_t best_class(const float *y, size_t n)
{
    size_t best = 0;
    for (size_t k = 1; k < n; k++)
        if (y[k] > y[best]) best = k;
    return best;
}

static void score_rows(predict_run *r)
{
    const series_recipe *c = &r->recipe;
    const size_t width = (size_t)r->net.shape.outputs;
    for (int64_t row = 0; row < r->rows.rows - c->ahead; row++) {
        const float *y = r->y + (size_t)row * width;
        if (r->rows.label) r->right += best_class(y, width) == (size_t)r->rows.label[row];
        for (size_t k = 0; r->rows.y && k < width; k++) {
            const double error = (double)(y[k] - r->rows.y[(size_t)row * width + k]) * c->target[k].deviation;
            r->square += error * error / (double)width;
            r->size += fabs(error) / (double)width;
        }
        r->scored += r->rows.label || r->rows.y;
    }
}

static void print_csv_text(FILE *to, const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++) fprintf(to, "%s%c", *text == '"' ? "\"" : "", *text);
    fputc('"', to);
}

static void print_header(FILE *to, const predict_run *r)
{
    const series_recipe *c = &r->recipe;
    fprintf(to, "row");
    for (size_t k = 0; k < c->targets; k++) {
        fputc(',', to);
        print_csv_text(to, c->target[k].name);
        if (c->ahead) fprintf(to, "+%lld", (long long)c->ahead);
    }
    for (size_t k = 0; k < c->classes; k++) {
        fprintf(to, ",p(");
        print_csv_text(to, c->label[k]);
        fputc(')', to);
    }
    for (size_t k = 0; (r->rows.y || r->rows.label) && k < c->targets; k++) {
        fprintf(to, ",target ");
        print_csv_text(to, c->target[k].name);
    }
    fputc('\n', to);
}

static void print_row(FILE *to, const predict_run *r, int64_t row)
{
    const series_recipe *c = &r->recipe;
    const size_t width = (size_t)r->net.shape.outputs;
    const float *y = r->y + (size_t)row * width;
    const bool target = row < r->rows.rows - c->ahead;
    fprintf(to, "%lld", (long long)row);
    if (c->classes) {
        double sum = 0, most = (double)y[best_class(y, width)];
        fputc(',', to);
        print_csv_text(to, c->label[best_class(y, width)]);
        for (size_t k = 0; k < width; k++) sum += exp((double)y[k] - most);
        for (size_t k = 0; k < width; k++) fprintf(to, ",%.6g", exp((double)y[k] - most) / sum);
        if (r->rows.label) fputc(',', to);
        if (r->rows.label && target) print_csv_text(to, c->label[r->rows.label[row]]);
    } else {
        for (size_t k = 0; k < width; k++)
            fprintf(to, ",%.7g", (double)y[k] * c->target[k].deviation + c->target[k].mean);
        for (size_t k = 0; r->rows.y && k < width; k++) {
            fputc(',', to);
            if (!target) continue;
            fprintf(to, "%.7g",
                    (double)r->rows.y[(size_t)row * width + k] * c->target[k].deviation + c->target[k].mean);
        }
    }
    fputc('\n', to);
}

static void print_rows(FILE *to, const void *run)
{
    const predict_run *r = run;
    print_header(to, r);
    for (int64_t row = 0; row < r->rows.rows; row++) print_row(to, r, row);
}

static void print_summary(const predict_run *r)
{
    const double n = (double)(r->scored ? r->scored : 1);
    const bool classes = r->recipe.classes > 0;
    if (r->o.json) {
        cli_json j = {stdout, false};
        cli_json_number(&j, "rows", (double)r->rows.rows);
        cli_json_number(&j, "scored", (double)r->scored);
        cli_json_number(&j, "filled", (double)r->rows.filled);
        if (classes) cli_json_number(&j, "accuracy", r->scored ? r->right / n : NAN);
        else {
            cli_json_number(&j, "mse", r->scored ? r->square / n : NAN);
            cli_json_number(&j, "mae", r->scored ? r->size / n : NAN);
        }
        printf("\n}\n");
        return;
    }
    printf("%lld rows", (long long)r->rows.rows);
    if (r->scored && classes) printf(", accuracy %.4f", r->right / n);
    else if (r->scored) printf(", MSE %.6g, MAE %.6g", r->square / n, r->size / n);
    if (r->rows.filled) printf(", %lld missing values filled", (long long)r->rows.filled);
    printf("; %s\n", r->o.out);
}

static int predict_file(predict_run *r)
{
    int code = series_open(&r->table, "mica predict", r->data);
    if (code == CLI_OK && r->table.files != 1) {
        fprintf(stderr, "mica predict: '%s' has %zu files; predictions are of one\n", r->data, r->table.files);
        code = CLI_USAGE;
    }
    if (code == CLI_OK) code = series_numbers(&r->recipe, &r->table, 0, false, &r->rows);
    if (code != CLI_OK) return code;
    r->y = malloc((size_t)(r->rows.rows * r->net.shape.outputs) * sizeof *r->y);
    if (!r->y) return fprintf(stderr, "mica predict: no memory\n"), CLI_FAILED;
    if (predict_rows(r) != MICA_OK) return predict_failed();
    score_rows(r);
    if (!r->o.out) return print_rows(stdout, r), CLI_OK;
    if (!cli_write_whole("mica predict", r->o.out, print_rows, r)) return CLI_FAILED;
    print_summary(r);
    return CLI_OK;
}

int cli_predict(int argc, char **argv)
{
    predict_run r = {0};
    const char *places[CLI_MAX_PLACES];
    size_t n;
    int code = cli_parse(&predict_command, argc, argv, &r.o, places, &n);
    if (code != CLI_OK) return code == CLI_HELP_SHOWN ? CLI_OK : code;
    if (r.o.json && !r.o.out) return fprintf(stderr, "mica predict: --json goes with -o FILE\n"), CLI_USAGE;
    r.model = places[0];
    r.data = places[1];
    mica_engine_options e;
    mica_engine_options_init(&e);
    e.threads = (int)r.o.threads;
    if (mica_open(&e, &r.engine) != MICA_OK) return predict_failed();
    mica_scope *s = mica_scope_begin(r.engine);
    code = open_model(&r, s);
    if (code == CLI_OK) code = predict_file(&r);
    mica_scope_end(s);
    mica_network_close(r.network);
    mica_params_free(r.params);
    mica_close(r.engine);
    ncp_net_close(&r.net);
    series_recipe_free(&r.recipe);
    series_data_free(&r.rows);
    series_close(&r.table);
    free(r.y);
    return code;
}
