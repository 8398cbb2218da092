/* A run of `mica train` around mica_fit: see train_run.h. */
#include "train/train_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/process.h"
#include "core/progress.h"
#include "core/signals.h"

int train_failed(const train_run *r)
{
    cli_clear_line();
    return cli_fail(CLI_FAILED, "%s: %s", r->job->command, mica_last_error());
}

const char *train_path(const train_run *r, const char *name, char path[TRAIN_PATH])
{
    snprintf(path, TRAIN_PATH, "%s/%s", r->out, name);
    return path;
}

double train_items_per_second(const train_run *r)
{
    const mica_fit_state *state = train_state(r);
    const double elapsed = state->run_seconds;
    const int64_t steps = state->step - state->first_step;
    return elapsed > 0 && steps > 0 ? (double)(steps * r->items) / elapsed : NAN;
}

int train_check_folder(const train_run *r)
{
    char last[TRAIN_PATH];
    struct stat info;
    if (strlen(r->out) > TRAIN_PATH - 64) return cli_fail(CLI_USAGE, "%s: --out is too long", r->job->command);
    const bool there = stat(train_path(r, "last.safetensors", last), &info) == 0;
    if (there && !r->resume)
        return cli_fail(CLI_USAGE,
                        "%s: there is a checkpoint in '%s'; --resume continues from it, -o chooses another folder",
                        r->job->command, r->out);
    if (!there && r->resume)
        return cli_fail(CLI_USAGE, "%s: there is no checkpoint '%s' to continue from", r->job->command, last);
    return CLI_OK;
}

int train_make_folder(const train_run *r)
{
    struct stat info;
    if (mkdir(r->out, 0777) == 0 || (errno == EEXIST && stat(r->out, &info) == 0 && S_ISDIR(info.st_mode)))
        return CLI_OK;
    return cli_fail(CLI_FAILED, "%s: cannot make the folder '%s': %s", r->job->command, r->out, strerror(errno));
}

int train_print_plan(const train_run *r, mica_scope *s, mica_array *const *data, size_t n)
{
    const size_t outputs = mica_trainer_outputs(r->trainer), room = (size_t)16 << 20;
    mica_array **out = calloc(outputs, sizeof *out);
    char *text = malloc(room);
    mica_status status = out && text ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "no memory for the plan");
    if (status == MICA_OK) status = mica_trainer_graph(r->trainer, s, data, n, out);
    if (status == MICA_OK) status = mica_plan_text(s, out, outputs, MICA_DUMP_PLAN, text, room, NULL);
    if (status == MICA_OK) printf("%s", text);
    free(out);
    free(text);
    return status == MICA_OK ? CLI_OK : train_failed(r);
}

void train_close(train_run *r)
{
    mica_fit_close(r->fit);
    mica_trainer_close(r->trainer);
}

/* ------------------------------------------------------------------- loop -- */

const mica_fit_state *train_state(const train_run *r)
{
    static const mica_fit_state none = {.best_step = -1};
    return r->fit ? mica_fit_progress(r->fit) : &none;
}

const char *train_state_name(const train_run *r)
{
    static const char *const names[] = {
        [MICA_FIT_RUNNING] = "running",  [MICA_FIT_FINISHED] = "finished",   [MICA_FIT_PATIENCE] = "stopped early",
        [MICA_FIT_TIME] = "out of time", [MICA_FIT_STOPPED] = "interrupted", [MICA_FIT_NOT_FINITE] = "not finite"};
    return r->steps == 0 ? "evaluated" : names[train_state(r)->end];
}

static mica_status fit_batch(void *user, mica_scope *s, int64_t step, int64_t part, mica_array **data, size_t *n)
{
    train_run *r = user;
    return r->job->batch(r, s, step, part, data, n);
}

static mica_status fit_validate(void *user, double *loss)
{
    train_run *r = user;
    return r->job->validate(r, loss);
}

static mica_status fit_save_best(void *user, const mica_fit_state *state)
{
    char path[TRAIN_PATH];
    train_run *r = user;
    (void)state;
    return r->job->save_best(r, train_path(r, "best.safetensors", path));
}

static mica_status fit_saved(void *user, const mica_fit_state *state)
{
    train_run *r = user;
    (void)state;
    r->report_failed = !train_write_report(r);
    return r->report_failed ? mica_fail(MICA_ERR_FILE, "the report cannot be written") : MICA_OK;
}

static mica_status fit_after_step(void *user, const mica_fit_state *state)
{
    train_run *r = user;
    return r->job->after_step ? r->job->after_step(r, state->step) : MICA_OK;
}

/* Signals are ignored from here on, so that a second one does not cut the checkpoint. */
static bool fit_should_stop(void *user)
{
    (void)user;
    if (!cli_interrupted()) return false;
    cli_signals_ignore();
    return true;
}

static mica_status fit_log(void *user, const mica_fit_state *state);
static mica_status fit_show(void *user, const mica_fit_state *state);

mica_status train_open_fit(train_run *r)
{
    mica_fit_options o;
    r->job->options(r, r->settings);
    train_path(r, "last.safetensors", r->checkpoint);
    mica_fit_options_init(&o);
    o.steps = r->steps, o.validate_every = r->eval_every;
    o.patience = r->patience, o.accumulate = r->accumulate, o.time_limit = 60 * r->minutes;
    o.schedule = r->schedule, o.checkpoint = r->checkpoint, o.settings = r->settings, o.user = r;
    o.batch = fit_batch, o.validate = fit_validate, o.save_best = fit_save_best;
    o.step = fit_show, o.point = fit_log, o.saved = fit_saved, o.after_step = fit_after_step;
    o.should_stop = fit_should_stop;
    return mica_fit_open(r->trainer, &o, &r->fit);
}

int train_resume(train_run *r, mica_scope *s)
{
    if (!r->resume) return CLI_OK;
    const mica_status status = mica_fit_resume(r->fit, s, r->checkpoint);
    if (status == MICA_OK) return train_trim_log(r) ? CLI_OK : CLI_FAILED;
    train_failed(r);
    return status == MICA_ERR_ARGUMENT ? CLI_USAGE : cli_file_code(status);
}

mica_status train_load_params(const train_run *r, mica_scope *s, const char *path)
{
    mica_file *file;
    mica_status status = mica_file_open(path, NULL, &file);
    if (status != MICA_OK) return status;
    status = mica_params_load(r->params, s, file);
    mica_file_close(file);
    return status;
}

/* ------------------------------------------------------------------ steps -- */

/* Appends a line to log.csv. */
static mica_status fit_log(void *user, const mica_fit_state *state)
{
    char path[TRAIN_PATH];
    const train_run *r = user;
    const mica_fit_point *p = &state->points[state->n_points - 1];
    FILE *to = fopen(train_path(r, "log.csv", path), p->step == 0 ? "w" : "a");
    if (!to) return MICA_OK; /* the checkpoint that follows fails and reports the reason */
    if (p->step == 0) fprintf(to, "step,train_loss,valid_loss,learning_rate,%s_per_second,seconds\n", r->job->items);
    fprintf(to, "%lld,%.5f,%.5f,%.6g,%.1f,%.1f\n", (long long)p->step, p->train, p->valid, state->rate,
            train_items_per_second(r), state->seconds);
    fclose(to);
    return MICA_OK;
}

/* Shows a progress bar and figures, usually within 80 columns, at most ten times per second. */
static mica_status fit_show(void *user, const mica_fit_state *state)
{
    enum { WIDTH = 10 };
    static double shown;
    const train_run *r = user;
    const double now = cli_seconds(), rate = train_items_per_second(r);
    const double left = (double)((state->steps - state->step) * r->items) / rate;
    char bar[WIDTH + 1];
    if (now - shown < 0.1 && state->step < state->steps) return MICA_OK;
    shown = now;
    for (int i = 0; i < WIDTH; i++) bar[i] = state->step * WIDTH >= state->steps * (i + 1) ? '#' : '.';
    bar[WIDTH] = '\0';
    cli_show_line("[%s] %lld/%lld, loss %.4g, best %.4g, %.0f %s/s, %.0f:%02.0f left", bar, (long long)state->step,
                  (long long)state->steps, state->loss, state->best, rate, r->job->items, floor(left / 60),
                  floor(fmod(left, 60)));
    return MICA_OK;
}

/* Prints why a run failed; for NaN the message names the checkpoint to continue from. */
static int run_failed(train_run *r)
{
    const mica_fit_state *state = train_state(r);
    if (r->report_failed) return CLI_FAILED;
    if (state->end != MICA_FIT_NOT_FINITE) return train_failed(r);
    cli_clear_line();
    fprintf(stderr, "%s: %s; the last good checkpoint is %s, of step %lld\n", r->job->command, mica_last_error(),
            r->checkpoint, (long long)(state->n_points ? state->points[state->n_points - 1].step : 0));
    (void)train_write_report(r);
    return CLI_FAILED;
}

int train_steps(train_run *r)
{
    cli_signals_watch();
    const mica_status status = mica_fit_run(r->fit);
    cli_signals_release();
    if (status != MICA_OK) return run_failed(r);
    cli_clear_line();
    if (train_state(r)->end != MICA_FIT_STOPPED) return CLI_OK;
    fprintf(stderr, "%s: interrupted at step %lld; saved %s, --resume continues from there\n", r->job->command,
            (long long)train_state(r)->step, r->checkpoint);
    (void)train_write_report(r);
    return CLI_INTERRUPTED;
}
