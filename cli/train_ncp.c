/* mica train ncp: trains a network for sequences on time series: epochs, validation,
 * early end, checkpoints. The network and its step are the library's. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "cli.h"
#include "model.h"
#include "train_ncp.h"

static int64_t steps_of(const ncp_run *r) { return mica_trainer_steps(r->trainer); }
static int64_t epoch_of(const ncp_run *r) { return steps_of(r) / r->per_epoch; }

static double sequences_per_second(const ncp_run *r)
{
    const double elapsed = cli_seconds() - r->began;
    const int64_t steps = steps_of(r) - r->first;
    return elapsed > 0 && steps > 0 ? (double)(steps * r->batch) / elapsed : NAN;
}

/* ------------------------------------------------------------------ steps -- */

static mica_array *ncp_loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    const ncp_run *r = user;
    mica_array *y = ncp_net_apply(f, &r->net, data[0], n > 2 ? data[2] : NULL, NULL);
    if (!y) return NULL;
    return r->data.recipe.classes ? mica_cross_entropy_loss(f->s, y, data[1], 0) : mica_mse_loss(f->s, y, data[1]);
}

static mica_status ncp_outputs(mica_forward *f, mica_array *const *data, size_t n, mica_array **out, size_t n_out,
                               void *user)
{
    const ncp_run *r = user;
    (void)n_out;
    out[0] = ncp_net_apply(f, &r->net, data[0], n > 1 ? data[1] : NULL, NULL);
    return out[0] ? MICA_OK : mica_scope_status(f->s);
}

/* The windows in the order of an epoch, which follows from the seed and its number. */
static void order_windows(ncp_run *r, int64_t epoch)
{
    const size_t n = r->data.part[NCP_TRAIN].n;
    uint64_t stream = mica_seed_split(mica_seed_split((uint64_t)r->o.seed, 1), (uint64_t)epoch);
    if (r->ordered == epoch) return;
    for (size_t i = 0; i < n; i++) r->order[i] = i;
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)ncp_random_below(&stream, i), other = r->order[j];
        r->order[j] = r->order[i - 1];
        r->order[i - 1] = other;
    }
    r->ordered = epoch;
}

static void fill_batch(ncp_run *r, int64_t step)
{
    order_windows(r, step / r->per_epoch);
    const int64_t first = step % r->per_epoch * r->batch;
    for (int64_t i = 0; i < r->batch; i++)
        ncp_window_copy(&r->data, &r->data.part[NCP_TRAIN].list[r->order[first + i]], r->o.seq, (size_t)i, r->x, r->y,
                        r->label, r->span);
}

static mica_status one_step(ncp_run *r, mica_train_result *result)
{
    double decay;
    mica_array *data[3];
    mica_scope *s = mica_scope_begin(r->engine);
    mica_schedule_at(&r->schedule, steps_of(r), &r->last_rate, &decay);
    fill_batch(r, steps_of(r));
    const size_t n = ncp_batch_arrays(r, s, true, data);
    const mica_status status = mica_trainer_step(r->trainer, s, data, n, r->last_rate, decay, result);
    mica_scope_end(s);
    return status;
}

static void show_step(const ncp_run *r)
{
    static double shown;
    const double rate = sequences_per_second(r), now = cli_seconds();
    const double left = (double)((r->steps - steps_of(r)) * r->batch) / rate;
    if (!isatty(STDERR_FILENO) || now - shown < 0.1) return;
    shown = now;
    char bar[21];
    for (int i = 0; i < 20; i++) bar[i] = (double)steps_of(r) * 20 > (double)r->steps * i ? '#' : '.';
    bar[20] = '\0';
    fprintf(stderr,
            "\r\033[K[%s] epoch %lld of %lld, loss %.4f, best validation %.4f, %.0f sequences/s, %.0f:%02.0f left", bar,
            (long long)epoch_of(r) + 1, (long long)r->o.epochs, r->last_loss,
            r->history.best_step >= 0 ? r->history.best : NAN, rate, floor(left / 60), fmod(left, 60));
}

static void write_log(const ncp_run *r, const train_point *p, const ncp_score *v)
{
    char path[TRAIN_PATH];
    FILE *to = fopen(ncp_path(r, "log.csv", path), "a");
    if (!to) return; /* the checkpoint that follows says why */
    const bool classes = r->data.recipe.classes > 0;
    if (p->step == 0)
        fprintf(to, "step,epoch,train_loss,valid_loss,valid_%s,learning_rate,seconds\n", classes ? "accuracy" : "mse");
    fprintf(to, "%lld,%lld,%.6g,%.6g,%.6g,%.6g,%.1f\n", (long long)p->step, (long long)epoch_of(r), p->train, p->valid,
            classes ? v->accuracy : v->mse, r->last_rate, r->history.seconds);
    fclose(to);
}

/* After an epoch: validation, checkpoint, report; the best parameters are kept apart. */
static int mark_point(ncp_run *r)
{
    ncp_score score;
    mica_status status = ncp_evaluate(r, NCP_VALID, &score);
    const train_point p = {steps_of(r), r->summed ? r->sum / (double)r->summed : NAN, score.loss};
    const int64_t best_before = r->history.best_step;
    r->sum = 0, r->summed = 0;
    r->history.seconds = r->spent + cli_seconds() - r->began;
    if (status == MICA_OK && !train_history_add(&r->history, p)) status = mica_fail(MICA_ERR_MEMORY, "no memory");
    if (status == MICA_OK) write_log(r, &p, &score);
    if (status == MICA_OK && r->history.best_step != best_before) status = ncp_save_best(r);
    if (status == MICA_OK) status = ncp_save_last(r);
    if (status != MICA_OK) return ncp_failed();
    const ncp_report report = {r, "running", &score, NULL, sequences_per_second(r)};
    return ncp_write_report(&report) ? CLI_OK : CLI_FAILED;
}

static bool out_of_patience(const ncp_run *r)
{
    return r->o.patience > 0 && r->history.best_step >= 0 &&
           steps_of(r) - r->history.best_step >= r->o.patience * r->per_epoch;
}

static int step_failed(ncp_run *r, mica_status status)
{
    char path[TRAIN_PATH];
    if (status != MICA_ERR_STATE) return ncp_failed();
    fprintf(stderr, "mica train ncp: %s; the last good checkpoint is %s, of step %lld\n", mica_last_error(),
            ncp_path(r, "last.safetensors", path),
            (long long)(r->history.n ? r->history.points[r->history.n - 1].step : 0));
    return CLI_FAILED;
}

static int train_epochs(ncp_run *r, const char **state)
{
    int code = CLI_OK;
    if (r->history.n == 0 && (code = mark_point(r)) != CLI_OK) return code;
    while (steps_of(r) < r->steps && code == CLI_OK) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        if (r->o.minutes > 0 && cli_seconds() - r->began > 60 * r->o.minutes) return *state = "out of time", CLI_OK;
        mica_train_result result;
        const mica_status status = one_step(r, &result);
        if (status != MICA_OK) return step_failed(r, status);
        r->sum += r->last_loss = result.loss;
        r->summed++;
        show_step(r);
        if (steps_of(r) % r->per_epoch != 0) continue;
        code = mark_point(r);
        if (out_of_patience(r)) return *state = "stopped early", code;
    }
    return code;
}

/* -------------------------------------------------------------------- end -- */

static void print_score(const ncp_run *r, const char *part, const ncp_score *v)
{
    printf("%s, %lld rows: ", part, (long long)v->rows);
    if (r->data.recipe.classes) printf("accuracy %.4f, cross-entropy %.4f nats\n", v->accuracy, v->loss);
    else printf("MSE %.6g, MAE %.6g, R2 %.4f (MSE of scaled targets %.5f)\n", v->mse, v->mae, v->r2, v->loss);
}

static void print_result(const ncp_report *report, const ncp_score *valid, const ncp_score *test)
{
    const ncp_run *r = report->run;
    printf("%s: %s, wiring %s, %lld parameters, epoch %lld of %lld in %.1f s\n", report->state,
           ncp_cell_name(r->net.shape.cell), r->net.shape.wiring, (long long)mica_params_elements(r->params),
           (long long)epoch_of(r), (long long)r->o.epochs, r->history.seconds);
    if (r->data.left_out[0]) printf("columns left out: %s\n", r->data.left_out);
    if (r->data.filled) printf("missing values filled: %lld\n", (long long)r->data.filled);
    print_score(r, "validation", valid);
    print_score(r, "test", test);
    printf("model %s/best.safetensors, of step %lld\n", r->o.out, (long long)r->history.best_step);
}

static int finish_run(ncp_run *r, const char *state)
{
    ncp_score valid, test;
    mica_scope *s = mica_scope_begin(r->engine);
    mica_status status = ncp_load_best(r, s);
    if (status == MICA_OK) status = ncp_evaluate(r, NCP_VALID, &valid);
    if (status == MICA_OK) status = ncp_evaluate(r, NCP_TEST, &test);
    mica_scope_end(s);
    if (status != MICA_OK) return ncp_failed();
    const ncp_report report = {r, state, &valid, &test, sequences_per_second(r)};
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
    if (!ncp_write_report(&report)) return CLI_FAILED;
    if (r->o.json) ncp_print_json(stdout, &report);
    else print_result(&report, &valid, &test);
    return CLI_OK;
}

static int interrupted_run(ncp_run *r)
{
    char path[TRAIN_PATH];
    r->history.seconds = r->spent + cli_seconds() - r->began;
    if (ncp_save_last(r) != MICA_OK) return ncp_failed();
    fprintf(stderr, "%smica train ncp: interrupted at step %lld; saved %s, --resume goes on from there\n",
            isatty(STDERR_FILENO) ? "\r\033[K" : "", (long long)steps_of(r), ncp_path(r, "last.safetensors", path));
    return CLI_INTERRUPTED;
}

/* ------------------------------------------------------------------ begin -- */

static int print_plan(ncp_run *r)
{
    const size_t n = mica_trainer_outputs(r->trainer), room = (size_t)16 << 20;
    mica_array **out = calloc(n, sizeof *out), *data[3];
    char *text = malloc(room);
    mica_scope *s = mica_scope_begin(r->engine);
    mica_status status = out && text ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "no memory for the plan");
    fill_batch(r, 0);
    if (status == MICA_OK) status = mica_trainer_graph(r->trainer, s, data, ncp_batch_arrays(r, s, true, data), out);
    if (status == MICA_OK) status = mica_plan_text(s, out, n, MICA_DUMP_PLAN, text, room, NULL);
    if (status == MICA_OK) printf("%s", text);
    mica_scope_end(s);
    free(out);
    free(text);
    return status == MICA_OK ? CLI_OK : ncp_failed();
}

static ncp_shape shape_of(const ncp_run *r)
{
    const ncp_options *o = &r->o;
    const series_recipe *c = &r->data.recipe;
    ncp_shape p = {.cell = o->cell,
                   .inputs = (int64_t)c->inputs,
                   .outputs = (int64_t)(c->classes ? c->classes : c->targets),
                   .units = o->units,
                   .layers = o->layers,
                   .unfolds = o->unfolds,
                   .backbone_units = o->backbone_units,
                   .backbone_layers = o->backbone_layers,
                   .mode = o->mode,
                   .convention = o->convention,
                   .mixed_memory = o->mixed_memory,
                   .bidirectional = o->bidirectional,
                   .dropout = o->dropout};
    if (o->wiring) snprintf(p.wiring, sizeof p.wiring, "%s", o->wiring);
    return p;
}

static bool room_for_batches(ncp_run *r)
{
    const series_recipe *c = &r->data.recipe;
    const size_t n = r->data.part[NCP_TRAIN].n, rows = (size_t)(r->batch * r->o.seq);
    r->order = malloc(n * sizeof *r->order);
    r->x = malloc(rows * c->inputs * sizeof *r->x);
    r->y = malloc(rows * c->targets * sizeof *r->y);
    r->span = malloc(rows * sizeof *r->span);
    r->label = malloc(rows * sizeof *r->label);
    r->ordered = -1;
    return r->order && r->x && r->y && r->span && r->label;
}

static mica_status open_trainer(ncp_run *r, mica_scope *s)
{
    static const mica_optimiser_kind kinds[] = {MICA_ADAM, MICA_ADAMW, MICA_LION, MICA_SGD};
    static const mica_schedule_kind schedules[] = {MICA_SCHEDULE_CONSTANT, MICA_SCHEDULE_COSINE, MICA_SCHEDULE_LINEAR};
    const ncp_options *o = &r->o;
    mica_trainer_options t;
    mica_trainer_options_init(&t);
    mica_optimiser_init(&t.optimiser, kinds[o->optimiser]);
    t.optimiser.clip = o->clip;
    t.loss = ncp_loss;
    t.user = r;
    t.seed = mica_seed_split((uint64_t)o->seed, 2);
    r->schedule = (mica_schedule){.struct_size = sizeof r->schedule,
                                  .kind = schedules[o->schedule],
                                  .steps = r->steps,
                                  .warmup = o->warmup,
                                  .peak = o->lr,
                                  .decay = o->decay};
    mica_status status = mica_params_new(&r->params);
    if (status == MICA_OK) status = ncp_net_params(s, &r->net, mica_seed_split((uint64_t)o->seed, 0), r->params);
    if (status == MICA_OK) status = mica_trainer_open(r->engine, r->params, &t, &r->trainer);
    if (status == MICA_OK) status = mica_network_open(r->engine, r->params, ncp_outputs, r, &r->network);
    return status;
}

/* A folder with a checkpoint is hours of somebody's work: it is gone on from, or left alone. */
static int make_folder(const ncp_run *r)
{
    char last[TRAIN_PATH];
    struct stat info;
    if (stat(ncp_path(r, "last.safetensors", last), &info) == 0 && !r->o.resume) {
        fprintf(stderr,
                "mica train ncp: there is a checkpoint in '%s'; --resume goes on from it, --out leaves it alone\n",
                r->o.out);
        return CLI_USAGE;
    }
    if (mkdir(r->o.out, 0777) == 0 || (errno == EEXIST && stat(r->o.out, &info) == 0 && S_ISDIR(info.st_mode)))
        return CLI_OK;
    fprintf(stderr, "mica train ncp: cannot make the folder '%s': %s\n", r->o.out, strerror(errno));
    return CLI_USAGE;
}

static int run_training(ncp_run *r, mica_scope *s)
{
    if (!room_for_batches(r)) return fprintf(stderr, "mica train ncp: no memory\n"), CLI_FAILED;
    if (open_trainer(r, s) != MICA_OK) return ncp_failed();
    if (r->o.plan) return print_plan(r);
    int code = make_folder(r);
    if (code == CLI_OK && r->o.resume) code = ncp_resume(r, s);
    if (code != CLI_OK) return code;
    const char *state = "finished";
    (void)cli_interrupted();
    r->began = cli_seconds();
    r->first = steps_of(r);
    code = train_epochs(r, &state);
    cli_forget_interrupt();
    if (code == CLI_INTERRUPTED) return interrupted_run(r);
    return code == CLI_OK ? finish_run(r, state) : code;
}

static int open_and_train(ncp_run *r)
{
    const ncp_options *o = &r->o;
    const series_wish wish = {o->target, o->inputs, o->time, o->task, o->ahead};
    const ncp_split split = {o->split, o->valid, o->test, o->seq, o->stride, o->seed};
    const int code = ncp_data_open(&r->data, "mica train ncp", o->data, o->test_data, &wish, &split);
    if (code != CLI_OK) return code;
    const ncp_shape shape = shape_of(r);
    const int64_t windows = (int64_t)r->data.part[NCP_TRAIN].n;
    r->batch = o->batch < windows ? o->batch : windows;
    r->per_epoch = windows / r->batch;
    r->steps = r->per_epoch * o->epochs;
    if (ncp_net_open(&shape, &r->net) != MICA_OK) return ncp_failed(), CLI_USAGE;
    mica_engine_options e;
    mica_engine_options_init(&e);
    e.threads = (int)o->threads;
    if (mica_open(&e, &r->engine) != MICA_OK) return ncp_failed();
    mica_scope *s = mica_scope_begin(r->engine);
    const int end = run_training(r, s);
    mica_scope_end(s);
    return end;
}

int cli_train_ncp(int argc, char **argv)
{
    ncp_run r = {.history = {.best_step = -1}};
    int code = ncp_parse(argc, argv, &r.o);
    if (code != CLI_OK) return code == CLI_HELP_SHOWN ? CLI_OK : code;
    code = open_and_train(&r);
    mica_network_close(r.network);
    mica_trainer_close(r.trainer);
    mica_params_free(r.params);
    mica_close(r.engine);
    ncp_net_close(&r.net);
    ncp_data_close(&r.data);
    free(r.history.points);
    free(r.order);
    free(r.x);
    free(r.y);
    free(r.span);
    free(r.label);
    return code;
}
