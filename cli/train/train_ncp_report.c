/* mica train ncp: its report in files and at the end of a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"
#include "lm/model.h"
#include "train/train_ncp.h"

/* A hash of the recipe, which has the means, deviations, categories and classes of the data. */
static uint64_t data_hash(const ncp_run *r)
{
    const mica_recipe *recipe = mica_series_recipe(r->data);
    const size_t length = mica_recipe_text(recipe, NULL, 0);
    char *text = malloc(length + 1);
    if (text) (void)mica_recipe_text(recipe, text, length + 1);
    const uint64_t hash = text ? cli_hash(text, length) : 0;
    free(text);
    return hash;
}

void ncp_options_text(const train_run *run, char text[TRAIN_OPTIONS])
{
    const ncp_run *r = run->user;
    const ncp_options *o = &r->o;
    char learning[256];
    train_learning_text(&o->learning, learning, sizeof learning);
    snprintf(text, TRAIN_OPTIONS,
             "cell %s wiring %s units %lld layers %lld both %d memory %d mode %d convention %d backbone %lld %lld "
             "activation %s dropout %.15g unfolds %lld solver %d seq %lld stride %lld epochs %lld batch %lld lr %.15g "
             "%s schedule %d warmup %lld decay %.15g seed %lld patience %lld windows %lld %lld data %016llx",
             ncp_cell_name(o), o->wiring ? o->wiring : "none", (long long)o->units, (long long)o->layers,
             o->bidirectional, o->mixed_memory, o->mode, o->convention, (long long)o->backbone_units,
             (long long)o->backbone_layers, o->activation ? o->activation : "own", o->dropout, (long long)o->unfolds,
             o->solver, (long long)o->seq, (long long)o->stride, (long long)o->epochs, (long long)o->batch, o->lr,
             learning, o->schedule, (long long)o->warmup, o->decay, (long long)o->seed, (long long)o->patience,
             (long long)mica_series_windows(r->data, MICA_PART_TRAIN),
             (long long)mica_series_windows(r->data, MICA_PART_VALID), (unsigned long long)data_hash(r));
}

static void json_score(cli_json *j, const char *part, const mica_series_score *s)
{
    const struct {
        const char *name;
        double value;
    } figures[] = {
        {"rows", (double)s->scored}, {"loss", s->loss},        {"mse", s->mse}, {"mae", s->mae}, {"r2", s->r2},
        {"accuracy", s->accuracy},   {"majority", s->majority}};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s_%s", part, figures[i].name);
        cli_json_number(j, key, s->rows ? figures[i].value : NAN);
    }
}

void ncp_print_json(FILE *to, const train_run *run)
{
    const ncp_run *r = run->user;
    const ncp_options *o = &r->o;
    const mica_recipe *c = mica_series_recipe(r->data);
    cli_json j = {.to = to};
    train_json_begin(&j, run);
    cli_json_number(&j, "epoch", (double)(mica_trainer_steps(run->trainer) / r->per_epoch));
    const struct {
        const char *key;
        const char *text;
    } texts[] = {{"data", o->data},     {"valid_data", o->valid_data}, {"test_data", o->test_data},
                 {"target", o->target}, {"group", o->group},           {"time", o->time},
                 {"timespan", o->span}, {"cell", ncp_cell_name(o)},    {"wiring", o->wiring}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) cli_json_text(&j, texts[i].key, texts[i].text);
    char options[TRAIN_OPTIONS];
    ncp_options_text(run, options);
    cli_json_text(&j, "options", options);
    cli_json_text(&j, "columns_left_out", r->left_out);
    cli_json_text(&j, "task", mica_recipe_classes(c) ? "classification" : "regression");
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"units", (double)o->units},
                   {"inputs", (double)mica_recipe_inputs(c)},
                   {"targets", (double)mica_recipe_targets(c)},
                   {"classes", (double)mica_recipe_classes(c)},
                   {"ahead", (double)mica_recipe_ahead(c)},
                   {"seq", (double)o->seq},
                   {"batch", (double)r->batch},
                   {"epochs", (double)o->epochs},
                   {"lr", o->lr},
                   {"decay", o->decay},
                   {"clip", o->learning.clip},
                   {"accumulate", (double)o->learning.accumulate},
                   {"seed", (double)o->seed},
                   {"train_windows", (double)mica_series_windows(r->data, MICA_PART_TRAIN)},
                   {"valid_windows", (double)mica_series_windows(r->data, MICA_PART_VALID)},
                   {"test_windows", (double)mica_series_windows(r->data, MICA_PART_TEST)},
                   {"missing_filled", (double)mica_series_filled(r->data)},
                   {"rows_left_over", (double)mica_series_left_over(r->data)}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        cli_json_number(&j, numbers[i].key, numbers[i].value);
    json_score(&j, "valid", &r->valid);
    json_score(&j, "test", &r->test);
    train_json_end(&j, run);
}

void ncp_caption(const train_run *run, char *text, size_t room)
{
    const ncp_run *r = run->user;
    snprintf(text, room, "%s (%s, %lld parameters)",
             mica_recipe_classes(mica_series_recipe(r->data)) ? "cross-entropy, nats per row" : "mean square, scaled",
             ncp_cell_name(&r->o), (long long)mica_params_elements(run->params));
}

static void print_score(const char *part, const mica_series_score *s)
{
    if (!s->rows) return;
    printf("%s: ", part);
    if (isfinite(s->accuracy))
        printf("accuracy %.2f %% of %lld rows (always the most common class: %.2f %%), cross-entropy %.4f\n",
               100 * s->accuracy, (long long)s->scored, 100 * s->majority, s->loss);
    else
        printf("MSE %.6g, MAE %.6g, R2 %.4f over %lld rows (as trained: MSE %.5f)\n", s->mse, s->mae, s->r2,
               (long long)s->scored, s->loss);
}

void ncp_print_result(const ncp_run *r)
{
    const train_run *run = &r->run;
    printf("%s: %s, %lld parameters, epoch %lld of %lld in %.0f s; best at epoch %lld\n", train_state_name(run),
           ncp_cell_name(&r->o), (long long)mica_params_elements(run->params),
           (long long)(mica_trainer_steps(run->trainer) / r->per_epoch), (long long)r->o.epochs,
           train_state(run)->seconds, (long long)(train_state(run)->best_step / r->per_epoch));
    if (r->left_out[0]) printf("columns left out: %s\n", r->left_out);
    if (mica_series_filled(r->data)) printf("missing values filled: %lld\n", (long long)mica_series_filled(r->data));
    print_score("validation", &r->valid);
    print_score("test", &r->test);
    printf("model %s/best.safetensors\n", run->out);
}
