/* mica train lm: trains a small language model on a text: the loop over steps, what
 * it tells and keeps on the way, and how it ends. The network, its step and its files
 * are the library's (mica_nn.h). */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "cli.h"
#include "train.h"

/* -------------------------------------------------------------------- run -- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int train_failed(void)
{
    fprintf(stderr, "mica train lm: %s\n", mica_last_error());
    return CLI_FAILED;
}

const char *train_path(const lm_run *r, const char *name, char path[TRAIN_PATH])
{
    snprintf(path, TRAIN_PATH, "%s/%s", r->o.out, name);
    return path;
}

static double tokens_per_second(const lm_run *r)
{
    const double elapsed = seconds_now() - r->began;
    const int64_t steps = mica_trainer_steps(r->trainer) - r->first;
    return elapsed > 0 && steps > 0 ? (double)(steps * r->o.batch * r->o.seq) / elapsed : NAN;
}

/* --------------------------------------------------------------- validate -- */

/* The mean loss over `windows` sequences of the validation part, evenly spread. */
static mica_status validate(lm_run *r, int64_t windows, double *loss)
{
    const int32_t *tokens = r->text.ids + r->text.n_train;
    const int64_t n = r->text.n - r->text.n_train, all = mica_batch_count(n, r->o.seq);
    mica_status status = MICA_OK;
    double total = 0;
    if (windows > all) windows = all;
    for (int64_t done = 0, size; done < windows && status == MICA_OK; done += size) {
        size = windows - done < r->o.batch ? windows - done : r->o.batch;
        const int64_t spread = windows < all ? (all - size) * done / (windows > size ? windows - size : 1) : done;
        double part = NAN;
        mica_array *data[2];
        mica_scope *s = mica_scope_begin(r->engine);
        status = mica_batch_windows(s, tokens, n, size, r->o.seq, spread < all - size ? spread : all - size, data);
        if (status == MICA_OK) status = mica_trainer_loss(r->trainer, s, data, 2, &part);
        mica_scope_end(s);
        total += part * (double)size;
    }
    *loss = total / (double)windows;
    return status;
}

/* ------------------------------------------------------------------ steps -- */

static train_report report_of(const lm_run *r, const char *state)
{
    return (train_report){.options = &r->o,
                          .shape = &r->shape,
                          .text = &r->text,
                          .history = &r->history,
                          .state = state,
                          .step = mica_trainer_steps(r->trainer),
                          .parameters = mica_params_elements(r->params),
                          .final_valid = NAN,
                          .tokens_per_second = tokens_per_second(r)};
}

static void write_log(const lm_run *r, const train_point *p)
{
    char path[TRAIN_PATH];
    FILE *to = fopen(train_path(r, "log.csv", path), "a");
    if (!to) return; /* the checkpoint that follows says why */
    if (p->step == 0) fprintf(to, "step,train_loss,valid_loss,learning_rate,tokens_per_second,seconds\n");
    fprintf(to, "%lld,%.5f,%.5f,%.6g,%.1f,%.1f\n", (long long)p->step, p->train, p->valid, r->last_rate,
            tokens_per_second(r), r->history.seconds);
    fclose(to);
}

static void show_step(const lm_run *r, int64_t step)
{
    const double rate = tokens_per_second(r);
    const double left = (double)((r->o.steps - step) * r->o.batch * r->o.seq) / rate;
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr,
            "\r\033[Kstep %lld of %lld, loss %.4f, best validation %.4f, lr %.2e, %.0f tokens/s, %.0f:%02.0f left",
            (long long)step, (long long)r->o.steps, r->last_loss, r->history.best, r->last_rate, rate, floor(left / 60),
            fmod(left, 60));
}

/* Validation, checkpoint, report; the best parameters are kept apart. */
static int mark_point(lm_run *r)
{
    char path[TRAIN_PATH];
    train_point p = {mica_trainer_steps(r->trainer), r->summed ? r->sum / (double)r->summed : NAN, NAN};
    mica_status status = validate(r, r->o.eval_windows, &p.valid);
    const int64_t best_before = r->history.best_step;
    r->sum = 0, r->summed = 0;
    r->history.seconds = r->spent + seconds_now() - r->began;
    if (status == MICA_OK && !train_history_add(&r->history, p)) status = mica_fail(MICA_ERR_MEMORY, "no memory");
    if (status == MICA_OK) write_log(r, &p);
    if (status == MICA_OK && r->history.best_step != best_before) status = train_save_best(r);
    if (status == MICA_OK) status = train_save_last(r);
    if (status != MICA_OK) return train_failed();
    const train_report report = report_of(r, "running");
    return train_write_json(train_path(r, "run.json", path), &report) &&
                   train_write_svg(train_path(r, "loss.svg", path), &report)
               ? CLI_OK
               : CLI_FAILED;
}

static mica_status one_step(lm_run *r, mica_train_result *result)
{
    const int64_t step = mica_trainer_steps(r->trainer);
    const uint64_t seed = mica_seed_split((uint64_t)r->o.seed, 1);
    double decay;
    mica_array *data[2];
    mica_scope *s = mica_scope_begin(r->engine);
    mica_schedule_at(&r->schedule, step, &r->last_rate, &decay);
    mica_status status = mica_batch_random(s, r->text.ids, r->text.n_train, r->o.batch, r->o.seq, seed, step, data);
    if (status == MICA_OK) status = mica_trainer_step(r->trainer, s, data, 2, r->last_rate, decay, result);
    mica_scope_end(s);
    return status;
}

/* A step that failed: NaN is told with what can be gone on from. */
static int step_failed(lm_run *r, mica_status status)
{
    if (status != MICA_ERR_STATE) return train_failed();
    fprintf(stderr, "mica train lm: %s; the last good checkpoint is %s/last.safetensors, of step %lld\n",
            mica_last_error(), r->o.out, (long long)(r->history.n ? r->history.points[r->history.n - 1].step : 0));
    return CLI_FAILED;
}

/* CLI_OK at the end, or when the minutes are over (*state says which). */
static int train_loop(lm_run *r, const char **state)
{
    int code = CLI_OK;
    if (r->history.n == 0 && (code = mark_point(r)) != CLI_OK) return code;
    for (int64_t step; (step = mica_trainer_steps(r->trainer)) < r->o.steps && code == CLI_OK;) {
        if (interrupted) return CLI_INTERRUPTED;
        if (r->o.minutes > 0 && seconds_now() - r->began > 60 * r->o.minutes) return *state = "out of time", CLI_OK;
        mica_train_result result;
        const mica_status status = one_step(r, &result);
        if (status != MICA_OK) return step_failed(r, status);
        r->sum += r->last_loss = result.loss;
        r->summed++;
        show_step(r, ++step);
        if (step % r->o.eval_every == 0 || step == r->o.steps) code = mark_point(r);
        if (code == CLI_OK && r->o.sample_every && step % r->o.sample_every == 0 && train_sample(r) != MICA_OK)
            code = train_failed();
    }
    return code;
}

/* -------------------------------------------------------------------- end -- */

static void print_result(const lm_run *r, const train_report *report)
{
    const double bits =
        report->final_valid / log(2) * (double)(r->text.n - r->text.n_train) / (double)r->text.valid_bytes;
    printf("%s: %s weights, %lld parameters, step %lld of %lld in %.0f s\n", report->state,
           r->shape.ternary ? "ternary" : "f32", (long long)report->parameters, (long long)report->step,
           (long long)r->o.steps, r->history.seconds);
    printf("validation loss %.4f nats a token, %.4f bits a byte", report->final_valid, bits);
    if (r->history.best_step >= 0) printf(" (best of step %lld)", (long long)r->history.best_step);
    printf("\n");
    if (report->model) printf("model %s, %lld bytes\n", report->model, (long long)report->model_bytes);
}

/* The whole validation part with the best parameters, and the model file. A run
 * without steps evaluates what it was given and writes nothing. */
static int finish_run(lm_run *r, const char *state)
{
    char model[TRAIN_PATH], path[TRAIN_PATH];
    struct stat info;
    mica_scope *s = mica_scope_begin(r->engine);
    train_report report = report_of(r, state);
    mica_status status = r->o.steps > 0 ? train_load_best(r, s) : MICA_OK;
    if (status == MICA_OK) status = validate(r, INT64_MAX, &report.final_valid);
    if (status == MICA_OK && r->o.steps > 0 && r->shape.ternary) {
        status = train_write_model(r, s, train_path(r, "model.gguf", model));
        if (status == MICA_OK && stat(model, &info) == 0) report.model = model, report.model_bytes = info.st_size;
    }
    mica_scope_end(s);
    if (status != MICA_OK) return train_failed();
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
    if (r->o.json) train_print_json(stdout, &report);
    else print_result(r, &report);
    if (r->o.steps == 0) return CLI_OK;
    return train_write_json(train_path(r, "run.json", path), &report) &&
                   train_write_svg(train_path(r, "loss.svg", path), &report)
               ? CLI_OK
               : CLI_FAILED;
}

static int interrupted_run(lm_run *r)
{
    char path[TRAIN_PATH];
    r->history.seconds = r->spent + seconds_now() - r->began;
    if (train_save_last(r) != MICA_OK) return train_failed();
    fprintf(stderr, "%smica train lm: interrupted at step %lld; saved %s, --resume goes on from there\n",
            isatty(STDERR_FILENO) ? "\r\033[K" : "", (long long)mica_trainer_steps(r->trainer),
            train_path(r, "last.safetensors", path));
    return CLI_INTERRUPTED;
}

/* ------------------------------------------------------------------ begin -- */

static int print_plan(lm_run *r)
{
    const size_t n = mica_trainer_outputs(r->trainer), room = (size_t)16 << 20;
    mica_array **out = calloc(n, sizeof *out), *data[2];
    char *text = malloc(room);
    mica_scope *s = mica_scope_begin(r->engine);
    mica_status status = out && text ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "no memory for the plan");
    if (status == MICA_OK)
        status = mica_batch_random(s, r->text.ids, r->text.n_train, r->o.batch, r->o.seq, 1, 0, data);
    if (status == MICA_OK) status = mica_trainer_graph(r->trainer, s, data, 2, out);
    if (status == MICA_OK) status = mica_plan_text(s, out, n, MICA_DUMP_PLAN, text, room, NULL);
    if (status == MICA_OK) printf("%s", text);
    mica_scope_end(s);
    free(out);
    free(text);
    return status == MICA_OK ? CLI_OK : train_failed();
}

static mica_status open_network(lm_run *r, mica_scope *s)
{
    const train_options *o = &r->o;
    mica_decoder_shape_init(&r->shape);
    r->shape.vocab = r->text.vocab, r->shape.dim = o->dim, r->shape.layers = o->layers, r->shape.heads = o->heads;
    r->shape.kv_heads = o->kv_heads, r->shape.ffn = o->ffn, r->shape.context = o->seq;
    r->shape.ternary = !o->f32, r->shape.dropout = o->dropout;
    r->schedule = (mica_schedule){.struct_size = sizeof r->schedule,
                                  .kind = o->f32 ? MICA_SCHEDULE_COSINE : MICA_SCHEDULE_TWO_STAGE,
                                  .steps = o->steps,
                                  .warmup = o->warmup,
                                  .peak = o->lr,
                                  .peak2 = o->lr2,
                                  .decay = o->decay};
    mica_trainer_options t;
    mica_trainer_options_init(&t);
    t.loss = mica_decoder_loss;
    t.user = &r->shape;
    t.seed = mica_seed_split((uint64_t)o->seed, 1);
    mica_status status = mica_decoder_params(s, &r->shape, mica_seed_split((uint64_t)o->seed, 0), &r->params);
    if (status == MICA_OK) status = mica_trainer_open(r->engine, r->params, &t, &r->trainer);
    return status;
}

/* Sizes that no network or no format can have are found before any work. */
static int check_sizes(const train_options *o)
{
    mica_decoder_shape shape;
    mica_decoder_shape_init(&shape);
    shape.vocab = o->vocab, shape.dim = o->dim, shape.layers = o->layers, shape.heads = o->heads;
    shape.kv_heads = o->kv_heads, shape.ffn = o->ffn, shape.context = o->seq;
    mica_status status = mica_decoder_shape_check(&shape);
    const int64_t cols[] = {o->dim, o->ffn};
    for (int i = 0; i < 2 && status == MICA_OK && !o->f32; i++)
        if (mica_quant_nbytes(train_ternary_type(o), 1, cols[i]) == 0)
            status = mica_fail(MICA_ERR_ARGUMENT, "--%s %lld does not fit the blocks of --type %s: %s",
                               i ? "ffn" : "dim", (long long)cols[i], train_ternary_type(o), mica_last_error());
    if (status == MICA_OK) return CLI_OK;
    train_failed();
    return CLI_USAGE;
}

/* A folder with a checkpoint is hours of somebody's work: it is gone on from, or left alone. */
static int make_folder(const lm_run *r)
{
    const char *path = r->o.out;
    char last[TRAIN_PATH];
    struct stat info;
    const bool there = stat(train_path(r, "last.safetensors", last), &info) == 0;
    if (there && !r->o.resume) {
        fprintf(stderr,
                "mica train lm: there is a checkpoint in '%s'; --resume goes on from it, --out leaves it alone\n",
                path);
        return CLI_USAGE;
    }
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))) return CLI_OK;
    fprintf(stderr, "mica train lm: cannot make the folder '%s': %s\n", path, strerror(errno));
    return CLI_USAGE;
}

static int run_training(lm_run *r, mica_scope *s)
{
    if (open_network(r, s) != MICA_OK) return train_failed();
    if (r->o.plan) return print_plan(r);
    int code = train_load_start(r, s);
    if (code != CLI_OK) return code;
    const char *state = r->o.steps ? "finished" : "evaluated";
    struct sigaction act = {.sa_handler = on_interrupt}, old;
    sigaction(SIGINT, &act, &old);
    r->began = seconds_now();
    r->first = mica_trainer_steps(r->trainer);
    if (r->o.steps > 0) code = train_loop(r, &state);
    sigaction(SIGINT, &old, NULL);
    if (code == CLI_INTERRUPTED) return interrupted_run(r);
    return code == CLI_OK ? finish_run(r, state) : code;
}

static int open_and_train(lm_run *r)
{
    mica_engine_options e;
    int code = check_sizes(&r->o);
    if (code == CLI_OK && r->o.steps > 0 && !r->o.plan) code = make_folder(r);
    if (code == CLI_OK) code = train_text_open(&r->o, &r->text);
    if (code != CLI_OK) return code;
    mica_engine_options_init(&e);
    e.backend = r->o.device;
    e.threads = (int)r->o.threads;
    if (mica_open(&e, &r->engine) != MICA_OK) return train_failed();
    mica_scope *s = mica_scope_begin(r->engine);
    code = run_training(r, s);
    mica_scope_end(s);
    return code;
}

int cli_train_lm(int argc, char **argv)
{
    lm_run r = {.history = {.best_step = -1}};
    int code = train_parse(argc, argv, &r.o);
    if (code != CLI_OK) return code == CLI_HELP_SHOWN ? CLI_OK : code;
    code = open_and_train(&r);
    mica_network_close(r.logits);
    mica_trainer_close(r.trainer);
    mica_params_free(r.params);
    mica_close(r.engine);
    train_text_close(&r.text);
    free(r.history.points);
    return code;
}
