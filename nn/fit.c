/* The training loop: steps with accumulated batches, validation, checkpoints, early
 * stopping, time limit, and resuming where a run stopped. What is trained on which data
 * is decided by the functions in mica_fit_options. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fit.h"
#include "trainer.h"

/* A batch and the scope that owns its arrays. */
typedef struct fit_batch {
    mica_scope *s;
    mica_array *data[MICA_FIT_ARRAYS];
    size_t n; /* 0: the step has no more batches */
} fit_batch;

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void mica_fit_options_init(mica_fit_options *options)
{
    if (options)
        *options =
            (mica_fit_options){.struct_size = sizeof *options, .steps = 1000, .validate_every = 100, .accumulate = 1};
}

static mica_status check_options(const mica_trainer *trainer, const mica_fit_options *o)
{
    if (!trainer) return mica_fail(MICA_ERR_ARGUMENT, "fit_open: trainer is NULL");
    if (!o->batch) return mica_fail(MICA_ERR_ARGUMENT, "fit_open: options.batch is NULL");
    const struct {
        const char *name;
        int64_t value, least;
    } counts[] = {{"steps", o->steps, 0},
                  {"validate_every", o->validate_every, 1},
                  {"accumulate", o->accumulate, 1},
                  {"patience", o->patience, 0}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].value < counts[i].least)
            return mica_fail(MICA_ERR_ARGUMENT, "fit_open: options.%s is %" PRId64 ", below %" PRId64, counts[i].name,
                             counts[i].value, counts[i].least);
    if (!(o->time_limit >= 0))
        return mica_fail(MICA_ERR_ARGUMENT, "fit_open: options.time_limit is %g seconds, below 0", o->time_limit);
    return MICA_OK;
}

mica_status mica_fit_open(mica_trainer *trainer, const mica_fit_options *options, mica_fit **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "fit_open: out is NULL");
    *out = NULL;
    mica_fit_options full;
    mica_fit_options_init(&full);
    if (!options) return mica_fail(MICA_ERR_ARGUMENT, "fit_open: options is NULL");
    mica_status status = mica_struct_read("fit_open: mica_fit_options", &full, sizeof full, options);
    if (status == MICA_OK) status = check_options(trainer, &full);
    if (status != MICA_OK) return status;
    mica_fit *f = calloc(1, sizeof *f);
    if (!f) return mica_fail(MICA_ERR_MEMORY, "fit_open: out of memory: %zu bytes", sizeof *f);
    *f = (mica_fit){.trainer = trainer,
                    .options = full,
                    .state = {.struct_size = sizeof f->state,
                              .step = mica_trainer_steps(trainer),
                              .first_step = mica_trainer_steps(trainer),
                              .steps = full.steps,
                              .loss = NAN,
                              .best = NAN,
                              .best_step = -1}};
    *out = f;
    return MICA_OK;
}

void mica_fit_close(mica_fit *fit)
{
    if (!fit) return;
    free(fit->points);
    free(fit);
}

const mica_fit_state *mica_fit_progress(const mica_fit *fit) { return fit ? &fit->state : NULL; }

/* ------------------------------------------------------------------ steps -- */

static void update_clock(mica_fit *f)
{
    f->state.run_seconds = seconds_now() - f->started;
    f->state.seconds = f->seconds_before + f->state.run_seconds;
}

static mica_status open_batch(mica_fit *f, int64_t step, int64_t part, fit_batch *b)
{
    *b = (fit_batch){0};
    if (part == f->options.accumulate) return MICA_OK;
    b->s = mica_scope_begin(f->trainer->engine);
    if (!b->s) return mica_fail(MICA_ERR_MEMORY, "fit: out of memory for a scope");
    return f->options.batch(f->options.user, b->s, step, part, b->data, &b->n);
}

/* The gradients of all batches but the last are accumulated; the last makes the step.
 * A batch is known to be the last once options.batch has been called for the next. */
static mica_status run_batches(mica_fit *f, int64_t step, double decay, mica_train_result *result)
{
    fit_batch now, next = {0};
    mica_status status = open_batch(f, step, 0, &now);
    if (status == MICA_OK && now.n == 0)
        status = mica_fail(MICA_ERR_ARGUMENT, "fit: options.batch returned no data for step %" PRId64, step);
    for (int64_t part = 1; status == MICA_OK; part++) {
        status = open_batch(f, step, part, &next);
        if (status == MICA_OK && next.n) status = mica_trainer_accumulate(f->trainer, now.s, now.data, now.n, result);
        else if (status == MICA_OK)
            status = mica_trainer_step(f->trainer, now.s, now.data, now.n, f->state.rate, decay, result);
        mica_scope_end(now.s);
        now = next;
        if (next.n == 0) break;
        next = (fit_batch){0};
    }
    mica_scope_end(now.s);
    return status;
}

static mica_status run_step(mica_fit *f)
{
    double decay;
    mica_train_result result = {.struct_size = sizeof result};
    mica_schedule_at(&f->options.schedule, f->state.step, &f->state.rate, &decay);
    const mica_status status = run_batches(f, f->state.step, decay, &result);
    if (status != MICA_OK) return status;
    f->state.step = mica_trainer_steps(f->trainer);
    f->state.loss = result.loss;
    f->loss_sum += result.loss;
    f->loss_count++;
    update_clock(f);
    return MICA_OK;
}

/* ----------------------------------------------------------------- points -- */

/* Validates, records the point, saves the best parameters and the checkpoint. Without a
 * validation function the mean training loss decides which parameters are best. */
static mica_status record_point(mica_fit *f)
{
    const mica_fit_options *o = &f->options;
    mica_fit_point p = {f->state.step, f->loss_count ? f->loss_sum / (double)f->loss_count : NAN, NAN};
    mica_status status = o->validate ? o->validate(o->user, &p.valid) : MICA_OK;
    const int64_t best_before = f->state.best_step;
    f->loss_sum = 0, f->loss_count = 0;
    update_clock(f);
    if (status == MICA_OK) status = mica__fit_add_point(f, p);
    if (status == MICA_OK && o->point) status = o->point(o->user, &f->state);
    if (status == MICA_OK && o->save_best && f->state.best_step != best_before)
        status = o->save_best(o->user, &f->state);
    if (status == MICA_OK && o->checkpoint) status = mica__fit_save(f);
    if (status == MICA_OK && o->saved) status = o->saved(o->user, &f->state);
    return status;
}

static bool is_out_of_patience(const mica_fit *f)
{
    int64_t since = 0;
    for (size_t i = f->state.n_points; i > 0 && f->points[i - 1].step > f->state.best_step; i--) since++;
    return f->options.patience > 0 && since >= f->options.patience;
}

/* Why the loop ends before the next step; MICA_FIT_RUNNING: it does not. */
static mica_fit_end end_reason(const mica_fit *f)
{
    const mica_fit_options *o = &f->options;
    if (f->state.step >= o->steps) return MICA_FIT_FINISHED;
    if (o->should_stop && o->should_stop(o->user)) return MICA_FIT_STOPPED;
    if (is_out_of_patience(f)) return MICA_FIT_PATIENCE;
    if (o->time_limit > 0 && seconds_now() - f->started > o->time_limit) return MICA_FIT_TIME;
    return MICA_FIT_RUNNING;
}

static mica_status run_until_end(mica_fit *f)
{
    const mica_fit_options *o = &f->options;
    mica_status status = f->state.n_points == 0 ? record_point(f) : MICA_OK;
    while (status == MICA_OK && (f->state.end = end_reason(f)) == MICA_FIT_RUNNING) {
        status = run_step(f);
        if (status == MICA_ERR_STATE) f->state.end = MICA_FIT_NOT_FINITE;
        if (status != MICA_OK) return status;
        const int64_t step = f->state.step;
        if (o->step) status = o->step(o->user, &f->state);
        if (status == MICA_OK && (step % o->validate_every == 0 || step == o->steps)) status = record_point(f);
        if (status == MICA_OK && o->after_step) status = o->after_step(o->user, &f->state);
    }
    return status;
}

mica_status mica_fit_run(mica_fit *fit)
{
    if (!fit) return mica_fail(MICA_ERR_ARGUMENT, "fit_run: fit is NULL");
    fit->state.end = MICA_FIT_RUNNING;
    fit->state.first_step = fit->state.step = mica_trainer_steps(fit->trainer);
    fit->started = seconds_now();
    mica_status status = run_until_end(fit);
    update_clock(fit);
    fit->seconds_before = fit->state.seconds;
    if (status == MICA_OK && fit->state.end == MICA_FIT_STOPPED && fit->options.checkpoint)
        status = mica__fit_save(fit);
    return status;
}
