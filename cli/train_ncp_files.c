/* mica train ncp: checkpoints, the model, and what a run tells. The model is its
 * parameters under the names of ncps, with the network and the recipe as metadata. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "train_ncp.h"

const char *ncp_path(const ncp_run *r, const char *name, char path[TRAIN_PATH])
{
    snprintf(path, TRAIN_PATH, "%s/%s", r->o.out, name);
    return path;
}

int ncp_failed(void)
{
    fprintf(stderr, "mica train ncp: %s\n", mica_last_error());
    return CLI_FAILED;
}

/* What must be the same for a run to go on as if it had not stopped. */
static void options_text(const ncp_run *r, char *text, size_t room)
{
    const ncp_options *o = &r->o;
    snprintf(
        text, room,
        "seq %lld stride %lld batch %lld epochs %lld optimiser %d lr %a schedule %d warmup %lld decay %a clip %a seed "
        "%lld split %d valid %a test %a windows %zu data %016llx",
        (long long)o->seq, (long long)o->stride, (long long)r->batch, (long long)o->epochs, o->optimiser, o->lr,
        o->schedule, (long long)o->warmup, o->decay, o->clip, (long long)o->seed, o->split, o->valid, o->test,
        r->data.part[NCP_TRAIN].n, (unsigned long long)ncp_data_hash(&r->data));
}

/* Network and recipe as settings; to be freed. */
static bool describe_model(const ncp_run *r, mica_setting settings[2], char *text[2])
{
    text[0] = ncp_shape_text(&r->net.shape);
    text[1] = series_recipe_text(&r->data.recipe);
    settings[0] = (mica_setting){"mica.ncp", text[0]};
    settings[1] = (mica_setting){"mica.recipe", text[1]};
    return text[0] && text[1];
}

static void forget_texts(char *text[2])
{
    free(text[0]);
    free(text[1]);
}

mica_status ncp_save_last(ncp_run *r)
{
    char path[TRAIN_PATH], options[1024], sum[64], *text[2];
    char *history = train_history_text(&r->history);
    mica_setting settings[5];
    options_text(r, options, sizeof options);
    snprintf(sum, sizeof sum, "%a %lld", r->sum, (long long)r->summed);
    mica_status status = MICA_OK;
    if (!describe_model(r, settings, text) || !history) status = mica_fail(MICA_ERR_MEMORY, "no memory");
    settings[2] = (mica_setting){"mica.options", options};
    settings[3] = (mica_setting){"mica.history", history};
    settings[4] = (mica_setting){"mica.sum", sum};
    if (status == MICA_OK) status = mica_trainer_save(r->trainer, ncp_path(r, "last.safetensors", path), settings, 5);
    forget_texts(text);
    free(history);
    return status;
}

mica_status ncp_save_best(ncp_run *r)
{
    char path[TRAIN_PATH], *text[2];
    mica_setting settings[2];
    mica_params *all = NULL;
    mica_scope *s = mica_scope_begin(r->engine);
    mica_status status = describe_model(r, settings, text) ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "no memory");
    if (status == MICA_OK && ncp_takes_time(&r->net.shape))
        status = mica_liquid_state_dict(s, &r->net.liquid, r->params, &all);
    if (status == MICA_OK)
        status = mica_params_save(all ? all : r->params, ncp_path(r, "best.safetensors", path), settings, 2);
    mica_params_free(all);
    mica_scope_end(s);
    forget_texts(text);
    return status;
}

mica_status ncp_load_best(ncp_run *r, mica_scope *s)
{
    char path[TRAIN_PATH];
    mica_file *file;
    mica_status status = mica_file_open(ncp_path(r, "best.safetensors", path), NULL, &file);
    if (status != MICA_OK) return status;
    status = mica_params_load(r->params, s, file);
    mica_file_close(file);
    return status;
}

static char *setting_copy(const mica_file *file, const char *key)
{
    const char *text;
    size_t length;
    return mica_file_string(file, key, &text, &length) ? strndup(text, length) : NULL;
}

static int resume_from(ncp_run *r, mica_scope *s, mica_file *file, const char *path)
{
    char now[1024], *shape = ncp_shape_text(&r->net.shape);
    char *then = setting_copy(file, "mica.options"), *history = setting_copy(file, "mica.history");
    char *sum = setting_copy(file, "mica.sum"), *net = setting_copy(file, "mica.ncp");
    long long summed = 0;
    int code = CLI_OK;
    options_text(r, now, sizeof now);
    if (!then || !history || !sum || !net || !shape || !train_history_parse(&r->history, history, strlen(history)) ||
        sscanf(sum, "%la %lld", &r->sum, &summed) != 2) {
        fprintf(stderr, "mica train ncp: '%s' is no checkpoint of this command\n", path);
        code = CLI_MODEL;
    } else if (strcmp(net, shape) != 0 || strcmp(then, now) != 0) {
        const bool other = strcmp(net, shape) != 0;
        fprintf(stderr, "mica train ncp: '%s' was made with %s (%s), not (%s)\n", path,
                other ? "another network" : "other options or data", other ? net : then, other ? shape : now);
        code = CLI_USAGE;
    } else if (mica_trainer_load(r->trainer, s, file) != MICA_OK) code = ncp_failed();
    r->summed = summed;
    r->spent = r->history.seconds;
    free(shape);
    free(then);
    free(history);
    free(sum);
    free(net);
    return code;
}

int ncp_resume(ncp_run *r, mica_scope *s)
{
    char path[TRAIN_PATH];
    mica_file *file;
    const mica_status status = mica_file_open(ncp_path(r, "last.safetensors", path), NULL, &file);
    if (status != MICA_OK) return ncp_failed(), status == MICA_ERR_FORMAT ? CLI_MODEL : CLI_USAGE;
    const int code = resume_from(r, s, file, path);
    mica_file_close(file);
    return code;
}

/* ---------------------------------------------------------------- report --- */

static void json_score(cli_json *j, const ncp_run *r, const char *part, const ncp_score *score)
{
    char key[32];
    const bool classes = r->data.recipe.classes > 0;
    const struct {
        const char *name;
        double value;
    } of[] = {{"loss", score ? score->loss : NAN},
              {classes ? "accuracy" : "mse", !score    ? NAN
                                             : classes ? score->accuracy
                                                       : score->mse},
              {"mae", score ? score->mae : NAN},
              {"r2", score ? score->r2 : NAN}};
    for (size_t i = 0; i < (classes ? 2 : 4); i++) {
        snprintf(key, sizeof key, "%s_%s", part, of[i].name);
        cli_json_number(j, key, of[i].value);
    }
}

static void json_network(cli_json *j, const ncp_run *r)
{
    const ncp_options *o = &r->o;
    const ncp_shape *p = &r->net.shape;
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"inputs", (double)p->inputs},
                   {"outputs", (double)p->outputs},
                   {"units", (double)(ncp_takes_time(p) ? mica_liquid_state_size(&r->net.liquid) : p->units)},
                   {"layers", (double)p->layers},
                   {"parameters", (double)mica_params_elements(r->params)},
                   {"seq", (double)o->seq},
                   {"batch", (double)r->batch},
                   {"epochs", (double)o->epochs},
                   {"lr", o->lr},
                   {"decay", o->decay},
                   {"seed", (double)o->seed},
                   {"rows", (double)r->data.rows},
                   {"filled", (double)r->data.filled},
                   {"train_sequences", (double)r->data.part[NCP_TRAIN].n},
                   {"valid_sequences", (double)r->data.part[NCP_VALID].n},
                   {"test_sequences", (double)r->data.part[NCP_TEST].n}};
    cli_json_text(j, "data", o->data);
    cli_json_text(j, "target", o->target);
    cli_json_text(j, "task", r->data.recipe.classes ? "classification" : "regression");
    cli_json_text(j, "left_out", r->data.left_out);
    cli_json_text(j, "cell", ncp_cell_name(p->cell));
    cli_json_text(j, "wiring", p->wiring);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        cli_json_number(j, numbers[i].key, numbers[i].value);
}

void ncp_print_json(FILE *to, const ncp_report *report)
{
    const ncp_run *r = report->run;
    const train_history *h = &r->history;
    cli_json j = {to, false};
    cli_json_text(&j, "mica", mica_version());
    cli_json_text(&j, "commit", cli_commit());
    cli_json_text(&j, "state", report->state);
    json_network(&j, r);
    cli_json_number(&j, "step", (double)mica_trainer_steps(r->trainer));
    cli_json_number(&j, "seconds", h->seconds);
    cli_json_number(&j, "sequences_per_second", report->rate);
    cli_json_number(&j, "best_step", h->best_step >= 0 ? (double)h->best_step : NAN);
    cli_json_number(&j, "best_valid_loss", h->best_step >= 0 ? h->best : NAN);
    json_score(&j, r, "valid", report->valid);
    json_score(&j, r, "test", report->test);
    cli_json_key(&j, "history");
    fprintf(to, "[");
    for (size_t i = 0; i < h->n; i++) {
        fprintf(to, "%s\n    [%lld, ", i ? "," : "", (long long)h->points[i].step);
        cli_print_json_number(to, h->points[i].train);
        fprintf(to, ", ");
        cli_print_json_number(to, h->points[i].valid);
        fprintf(to, "]");
    }
    fprintf(to, "\n  ]\n}\n");
}

static void print_report(FILE *to, const void *report) { ncp_print_json(to, report); }

static void print_wiring(FILE *to, const void *text) { fputs(text, to); }

static bool write_wiring(const ncp_run *r)
{
    char path[TRAIN_PATH];
    if (!r->net.wiring) return true;
    const size_t n = mica_wiring_svg(r->net.wiring, NULL, 0) + 1;
    char *text = malloc(n);
    bool good = text && mica_wiring_svg(r->net.wiring, text, n) > 0;
    if (good) good = cli_write_whole("mica train ncp", ncp_path(r, "wiring.svg", path), print_wiring, text);
    free(text);
    return good;
}

bool ncp_write_report(const ncp_report *report)
{
    char path[TRAIN_PATH], caption[256];
    const ncp_run *r = report->run;
    snprintf(caption, sizeof caption, "%s (%s %s, %lld parameters)",
             r->data.recipe.classes ? "nats a row" : "mean square of scaled targets", ncp_cell_name(r->net.shape.cell),
             r->net.shape.wiring, (long long)mica_params_elements(r->params));
    return cli_write_whole("mica train ncp", ncp_path(r, "run.json", path), print_report, report) &&
           train_write_chart("mica train ncp", ncp_path(r, "loss.svg", path), &r->history, r->steps, caption) &&
           write_wiring(r);
}
