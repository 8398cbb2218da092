/* mica train ncp: trains a recurrent network on measured sequences. This file defines an
 * epoch, a validation and the end of a run. The loop is shared (train_run.h); data,
 * network and scores are in the library (mica_series.h). */
#include "train/train_ncp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"
#include "lm/model.h"

static int ncp_failed(mica_status status) { return cli_file_failed("mica train ncp", status); }

/* ------------------------------------------------------------------ steps -- */

/* Shuffles the windows of an epoch; the order depends on the seed and the number of the epoch. */
static void order_epoch(ncp_run *r, int64_t epoch)
{
    if (r->ordered == epoch) return;
    mica_series_shuffle(mica_seed_split((uint64_t)r->o.seed, 2), epoch, r->windows, r->order);
    r->ordered = epoch;
}

static mica_status ncp_batch(train_run *run, mica_scope *s, int64_t step, int64_t part, mica_array *data[TRAIN_DATA],
                             size_t *n)
{
    ncp_run *r = run->user;
    const int64_t number = step % r->per_epoch * run->accumulate + part, at = number * r->batch, left = r->windows - at;
    *n = 0;
    if (number >= r->batches) return MICA_OK;
    order_epoch(r, step / r->per_epoch);
    return mica_series_batch(s, r->data, MICA_PART_TRAIN, r->order + at, left < r->batch ? left : r->batch, data, n);
}

/* The validation part, or the training part if there is none. */
static mica_part part_to_validate(const ncp_run *r)
{
    return mica_series_windows(r->data, MICA_PART_VALID) ? MICA_PART_VALID : MICA_PART_TRAIN;
}

static mica_status ncp_validate(train_run *run, double *loss)
{
    ncp_run *r = run->user;
    const mica_part part = part_to_validate(r);
    const int64_t all = mica_series_windows(r->data, part);
    mica_status status = MICA_OK;
    double total = 0;
    for (int64_t at = 0, n; at < all && status == MICA_OK; at += n) {
        double one = NAN;
        mica_array *data[3];
        size_t n_data = 0;
        n = all - at < r->batch ? all - at : r->batch;
        mica_scope *s = mica_scope_begin(run->engine);
        status = mica_series_batch(s, r->data, part, r->first + at, n, data, &n_data);
        if (status == MICA_OK) status = mica_trainer_loss(run->trainer, s, data, n_data, &one);
        mica_scope_end(s);
        total += one * (double)n;
    }
    *loss = total / (double)all;
    return status;
}

static mica_status ncp_save_best(train_run *run, const char *path)
{
    const ncp_run *r = run->user;
    mica_scope *s = mica_scope_begin(run->engine);
    const mica_status status = mica_series_model_save(s, r->model, path, NULL, 0);
    mica_scope_end(s);
    return status;
}

static const train_job ncp_job = {.command = "mica train ncp",
                                  .items = "samples",
                                  .batch = ncp_batch,
                                  .validate = ncp_validate,
                                  .options = ncp_options_text,
                                  .save_best = ncp_save_best,
                                  .print_json = ncp_print_json,
                                  .caption = ncp_caption};

/* -------------------------------------------------------------------- end -- */

static int finish_run(ncp_run *r)
{
    char path[TRAIN_PATH];
    train_run *run = &r->run;
    mica_scope *s = mica_scope_begin(run->engine);
    mica_status status = train_load_params(run, s, train_path(run, "best.safetensors", path));
    r->valid.struct_size = r->test.struct_size = sizeof r->valid;
    if (status == MICA_OK)
        status = mica_series_run(run->engine, r->model, r->data, part_to_validate(r), r->batch, &r->valid, NULL, NULL);
    if (status == MICA_OK)
        status = mica_series_run(run->engine, r->model, r->data, MICA_PART_TEST, r->batch, &r->test, NULL, NULL);
    mica_scope_end(s);
    if (status != MICA_OK) return ncp_failed(status);
    if (r->o.json) ncp_print_json(stdout, run);
    else ncp_print_result(r);
    return train_write_report(run) ? CLI_OK : CLI_FAILED;
}

/* ------------------------------------------------------------------ begin -- */

static void print_text(FILE *to, const void *text) { fputs(text, to); }

static bool draw_wiring(const ncp_run *r)
{
    mica_wiring *w;
    char path[TRAIN_PATH];
    if (!r->o.wiring) return true;
    if (mica_wiring_parse(r->o.wiring, mica_recipe_inputs(mica_series_recipe(r->data)), &w) != MICA_OK) return false;
    const size_t n = mica_wiring_svg(w, NULL, 0) + 1;
    char *text = malloc(n);
    if (text) (void)mica_wiring_svg(w, text, n);
    const bool good =
        text && cli_write_whole("mica train ncp", train_path(&r->run, "wiring.svg", path), print_text, text);
    free(text);
    mica_wiring_free(w);
    return good;
}

/* Without --inputs: collects the date columns that --time, --timespan and --group do not name. They are left out, and
 * the report lists them. */
static void note_dates(ncp_run *r, const mica_table *t)
{
    size_t used = 0;
    for (int64_t i = 0; i < mica_table_columns(t) && !r->o.inputs; i++) {
        const char *name = mica_table_name(t, i);
        const char *const named[] = {r->o.time, r->o.span, r->o.group};
        bool other = mica_table_kind(t, i) != MICA_COLUMN_DATES;
        for (int k = 0; k < 3; k++) other |= named[k] && mica_table_find(t, named[k]) == i;
        if (!other && used < sizeof r->left_out)
            used += (size_t)snprintf(r->left_out + used, sizeof r->left_out - used, "%s%s", used ? ", " : "", name);
    }
}

static int open_data(ncp_run *r)
{
    const ncp_options *o = &r->o;
    const struct {
        const char *paths;
        mica_part part;
    } sources[] = {{o->data, MICA_PART_CUT}, {o->valid_data, MICA_PART_VALID}, {o->test_data, MICA_PART_TEST}};
    cli_tables tables = {0};
    mica_series_options series;
    int code = CLI_OK;
    for (int i = 0; i < 3 && code == CLI_OK; i++)
        code = cli_tables_add("mica train ncp", sources[i].paths, o->header - 1, sources[i].part, &tables);
    if (code == CLI_OK) {
        note_dates(r, tables.at[0]);
        ncp_series_of(o, &series);
        const mica_status status = mica_series_open(&series, tables.at, tables.parts, tables.n, &r->data);
        if (status != MICA_OK) code = ncp_failed(status);
    }
    cli_tables_close(&tables);
    return code;
}

static mica_status count_steps(ncp_run *r)
{
    const int64_t windows = r->windows = mica_series_windows(r->data, MICA_PART_TRAIN);
    const int64_t valid = mica_series_windows(r->data, part_to_validate(r));
    r->batch = r->o.batch < windows ? r->o.batch : windows;
    r->batches = (windows + r->batch - 1) / r->batch;
    r->per_epoch = (r->batches + r->run.accumulate - 1) / r->run.accumulate;
    r->ordered = -1;
    r->order = malloc((size_t)windows * sizeof *r->order);
    r->first = malloc((size_t)valid * sizeof *r->first);
    if (!r->order || !r->first) return mica_fail(MICA_ERR_MEMORY, "no memory for %lld windows", (long long)windows);
    for (int64_t i = 0; i < valid; i++) r->first[i] = i;
    r->run.steps = r->o.epochs * r->per_epoch;
    r->run.eval_every = r->per_epoch;
    r->run.items = r->batch * r->run.accumulate;
    return MICA_OK;
}

static mica_status open_network(ncp_run *r, mica_scope *s)
{
    static const mica_schedule_kind schedules[] = {MICA_SCHEDULE_COSINE, MICA_SCHEDULE_CONSTANT, MICA_SCHEDULE_LINEAR};
    const ncp_options *o = &r->o;
    const uint64_t seed = (uint64_t)o->seed;
    mica_series_net net;
    mica_trainer_options t;
    ncp_net_of(o, &net);
    mica_status status =
        mica_series_model_new(s, &net, mica_series_recipe(r->data), mica_seed_split(seed, 0), &r->model);
    if (status != MICA_OK) return status;
    r->run.params = mica_series_model_params(r->model);
    r->run.schedule = (mica_schedule){.struct_size = sizeof r->run.schedule,
                                      .kind = schedules[o->schedule],
                                      .steps = r->run.steps,
                                      .warmup = o->warmup,
                                      .peak = o->lr,
                                      .decay = o->decay};
    mica_trainer_options_init(&t);
    train_learning_apply(&o->learning, &t);
    t.loss = mica_series_loss;
    t.user = r->model;
    t.seed = mica_seed_split(seed, 1);
    return mica_trainer_open(r->run.engine, r->run.params, &t, &r->run.trainer);
}

static int print_plan(ncp_run *r, mica_scope *s)
{
    mica_array *data[TRAIN_DATA];
    size_t n = 0;
    const mica_status status = ncp_batch(&r->run, s, 0, 0, data, &n);
    return status == MICA_OK ? train_print_plan(&r->run, s, data, n) : ncp_failed(status);
}

static int run_training(ncp_run *r, mica_scope *s)
{
    mica_status status = count_steps(r);
    if (status == MICA_OK) status = open_network(r, s);
    if (status != MICA_OK) return ncp_failed(status);
    if (r->o.plan) return print_plan(r, s);
    if (train_open_fit(&r->run) != MICA_OK) return train_failed(&r->run);
    int code = train_resume(&r->run, s);
    if (code == CLI_OK) code = train_make_folder(&r->run);
    if (code == CLI_OK && !draw_wiring(r)) code = CLI_FAILED;
    if (code == CLI_OK) code = train_steps(&r->run);
    return code == CLI_OK ? finish_run(r) : code;
}

static int open_and_train(ncp_run *r)
{
    mica_engine_options e;
    int code = r->o.plan ? CLI_OK : train_check_folder(&r->run);
    if (code == CLI_OK) code = open_data(r);
    if (code != CLI_OK) return code;
    mica_engine_options_init(&e);
    e.backend = r->o.device;
    e.threads = (int)r->o.threads;
    const mica_status status = mica_open(&e, &r->run.engine);
    if (status != MICA_OK) return cli_engine_failed("mica train ncp", status);
    mica_scope *s = mica_scope_begin(r->run.engine);
    code = run_training(r, s);
    mica_scope_end(s);
    return code;
}

int train_ncp_run(const cli_call *call)
{
    ncp_run r = {.o = *(const ncp_options *)call->options};
    int code = ncp_check(&r.o);
    if (code != CLI_OK) return code;
    r.run = (train_run){.job = &ncp_job,
                        .user = &r,
                        .out = r.o.out,
                        .resume = r.o.resume,
                        .patience = r.o.patience,
                        .accumulate = r.o.learning.accumulate,
                        .minutes = r.o.minutes};
    code = open_and_train(&r);
    train_close(&r.run);
    mica_series_model_free(r.model);
    mica_close(r.run.engine);
    mica_series_free(r.data);
    free(r.order);
    free(r.first);
    return code;
}
