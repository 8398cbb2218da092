/* The training loop of mica_fit: evaluation points, the best step, early stopping, limits, a run
 * that is stopped and resumed with the same bits, and refused options and files.
 *
 * runs: metal-unsanitized, check */
#include <math.h>
#include <string.h>

#include "nn_course.h"

enum { FIT_STEPS = 12 };

typedef struct fit_run {
    course c;
    mica_fit *fit;
    mica_fit_options o;
    int64_t batches, best_saved, stop_at; /* stop_at 0: never */
    double valid[FIT_STEPS + 2];          /* scripted validation losses, one for each call */
    int validations;
    bool measure;                         /* validate with the real loss instead           */
} fit_run;

static mica_status fit_batch(void *user, mica_scope *s, int64_t step, int64_t part, mica_array **data, size_t *n)
{
    fit_run *r = user;
    (void)s, (void)step, (void)part;
    data[0] = r->c.data[0], data[1] = r->c.data[1];
    *n = 2;
    r->batches++;
    return MICA_OK;
}

static mica_status fit_validate(void *user, double *loss)
{
    fit_run *r = user;
    if (r->measure) return mica_trainer_loss(r->c.trainer, r->c.s, r->c.data, 2, loss);
    *loss = r->valid[r->validations++];
    return MICA_OK;
}

static mica_status fit_save_best(void *user, const mica_fit_state *state)
{
    ((fit_run *)user)->best_saved = state->best_step;
    return MICA_OK;
}

static bool fit_should_stop(void *user)
{
    const fit_run *r = user;
    return r->stop_at > 0 && mica_fit_progress(r->fit)->step >= r->stop_at;
}

static void fit_begin(fit_run *r)
{
    *r = (fit_run){0};
    course_begin(&r->c);
    mica_layer *l = r->c.net;
    *l++ = mica_linear_layer(IN, 8);
    *l++ = mica_activation_layer(MICA_ACTIVATION_TANH);
    *l++ = mica_linear_layer(8, OUT);
    r->c.n = (size_t)(l - r->c.net);
    course_open(&r->c);
    mica_fit_options_init(&r->o);
    r->o.steps = FIT_STEPS;
    r->o.validate_every = 2;
    r->o.schedule = (mica_schedule){
        .struct_size = sizeof r->o.schedule, .kind = MICA_SCHEDULE_COSINE, .steps = FIT_STEPS, .peak = 0.01};
    r->o.user = r;
    r->o.batch = fit_batch;
}

static void fit_end(fit_run *r)
{
    mica_fit_close(r->fit);
    course_end(&r->c);
}

TEST(a_run_records_points_and_the_best_step)
{
    fit_run r;
    fit_begin(&r);
    const double losses[] = {9, 5, 4, 3, 6, 7, 8};
    memcpy(r.valid, losses, sizeof losses);
    r.o.validate = fit_validate;
    r.o.save_best = fit_save_best;
    r.o.accumulate = 3;
    CHECK_OK(mica_fit_open(r.c.trainer, &r.o, &r.fit));
    CHECK_OK(mica_fit_run(r.fit));
    const mica_fit_state *state = mica_fit_progress(r.fit);
    EXPECT_INT(state->end, MICA_FIT_FINISHED);
    EXPECT_INT(state->step, FIT_STEPS);
    EXPECT_INT(state->n_points, FIT_STEPS / 2 + 1);
    EXPECT_INT(state->best_step, 6);
    EXPECT_INT(r.best_saved, 6);
    EXPECT_CLOSE(state->best, 3, 0, 0);
    EXPECT_INT(r.batches, 3 * FIT_STEPS);
    EXPECT(isnan(state->points[0].train));
    EXPECT(state->points[6].train < state->points[1].train);
    EXPECT(state->seconds > 0);
    fit_end(&r);
}

TEST(a_run_without_improvement_stops_early)
{
    fit_run r;
    fit_begin(&r);
    const double losses[] = {9, 5, NAN, 6, 7};
    memcpy(r.valid, losses, sizeof losses);
    r.o.validate = fit_validate;
    r.o.patience = 2;
    CHECK_OK(mica_fit_open(r.c.trainer, &r.o, &r.fit));
    CHECK_OK(mica_fit_run(r.fit));
    EXPECT_INT(mica_fit_progress(r.fit)->end, MICA_FIT_PATIENCE);
    EXPECT_INT(mica_fit_progress(r.fit)->best_step, 2);
    EXPECT_INT(mica_fit_progress(r.fit)->step, 6);
    fit_end(&r);
}

TEST(a_time_limit_ends_a_run)
{
    fit_run r;
    fit_begin(&r);
    r.o.time_limit = 1e-9;
    CHECK_OK(mica_fit_open(r.c.trainer, &r.o, &r.fit));
    CHECK_OK(mica_fit_run(r.fit));
    EXPECT_INT(mica_fit_progress(r.fit)->end, MICA_FIT_TIME);
    EXPECT_INT(mica_fit_progress(r.fit)->step, 0);
    fit_end(&r);
}

/* One file for two runs, named after this process. */
static const char *shared_path(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/mica-nn-fit-shared-%d", (int)getpid());
    return path;
}

static void fit_real(fit_run *r, const char *checkpoint)
{
    fit_begin(r);
    r->measure = true;
    r->o.validate = fit_validate;
    r->o.should_stop = fit_should_stop;
    r->o.settings = "units 8 seed 1";
    r->o.checkpoint = checkpoint;
    CHECK_OK(mica_fit_open(r->c.trainer, &r->o, &r->fit));
}

TEST(a_stopped_run_resumes_with_the_same_bits)
{
    fit_run whole, part, rest;
    fit_real(&whole, NULL);
    CHECK_OK(mica_fit_run(whole.fit));
    fit_real(&part, shared_path());
    part.stop_at = 5; /* between two points */
    CHECK_OK(mica_fit_run(part.fit));
    EXPECT_INT(mica_fit_progress(part.fit)->end, MICA_FIT_STOPPED);
    fit_real(&rest, shared_path());
    CHECK_OK(mica_fit_resume(rest.fit, rest.c.s, shared_path()));
    EXPECT_INT(mica_fit_progress(rest.fit)->first_step, 5);
    CHECK_OK(mica_fit_run(rest.fit));
    const mica_fit_state *a = mica_fit_progress(whole.fit), *b = mica_fit_progress(rest.fit);
    EXPECT_INT(b->end, MICA_FIT_FINISHED);
    CHECK_INT(b->n_points, a->n_points);
    for (size_t i = 0; i < a->n_points; i++) {
        EXPECT_INT(b->points[i].step, a->points[i].step);
        EXPECT_CLOSE_OR_NAN(b->points[i].train, a->points[i].train, 0, 0);
        EXPECT_CLOSE(b->points[i].valid, a->points[i].valid, 0, 0);
    }
    EXPECT(b->seconds >= mica_fit_progress(part.fit)->seconds);
    (void)remove(shared_path());
    fit_end(&whole), fit_end(&part), fit_end(&rest);
}

TEST(a_checkpoint_of_other_settings_is_refused)
{
    fit_run a, b;
    fit_real(&a, shared_path());
    CHECK_OK(mica_fit_run(a.fit));
    fit_begin(&b);
    b.o.settings = "units 9 seed 1";
    CHECK_OK(mica_fit_open(b.c.trainer, &b.o, &b.fit));
    EXPECT_INT(mica_fit_resume(b.fit, b.c.s, shared_path()), MICA_ERR_ARGUMENT);
    EXPECT(strstr(mica_last_error(), "units 8, not 9") != NULL);
    EXPECT_INT(mica_trainer_steps(b.c.trainer), 0);
    CHECK_OK(mica_params_save(a.c.params, shared_path(), NULL, 0));
    EXPECT_INT(mica_fit_resume(b.fit, b.c.s, shared_path()), MICA_ERR_FORMAT);
    (void)remove(shared_path());
    fit_end(&a), fit_end(&b);
}

TEST(options_out_of_range_are_refused)
{
    fit_run r;
    fit_begin(&r);
    const mica_fit_options good = r.o;
    r.o.validate_every = 0;
    EXPECT_INT(mica_fit_open(r.c.trainer, &r.o, &r.fit), MICA_ERR_ARGUMENT);
    EXPECT(strstr(mica_last_error(), "validate_every is 0, below 1") != NULL);
    r.o = good, r.o.time_limit = NAN;
    EXPECT_INT(mica_fit_open(r.c.trainer, &r.o, &r.fit), MICA_ERR_ARGUMENT);
    r.o = good, r.o.batch = NULL;
    EXPECT_INT(mica_fit_open(r.c.trainer, &r.o, &r.fit), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_fit_open(NULL, &good, &r.fit), MICA_ERR_ARGUMENT);
    EXPECT(r.fit == NULL);
    fit_end(&r);
}
