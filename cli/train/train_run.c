/* The loop of `mica train`: see train_run.h. */
#include "train/train_run.h"

#include <ctype.h>
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
    fprintf(stderr, "%s: %s\n", r->job->command, mica_last_error());
    return CLI_FAILED;
}

const char *train_path(const train_run *r, const char *name, char path[TRAIN_PATH])
{
    snprintf(path, TRAIN_PATH, "%s/%s", r->out, name);
    return path;
}

double train_items_per_second(const train_run *r)
{
    const double elapsed = cli_seconds() - r->began;
    const int64_t steps = mica_trainer_steps(r->trainer) - r->first;
    return elapsed > 0 && steps > 0 ? (double)(steps * r->items) / elapsed : NAN;
}

int train_make_folder(const train_run *r)
{
    char last[TRAIN_PATH];
    struct stat info;
    if (strlen(r->out) > TRAIN_PATH - 64) return fprintf(stderr, "%s: --out is too long\n", r->job->command), CLI_USAGE;
    const bool there = stat(train_path(r, "last.safetensors", last), &info) == 0;
    if (there && !r->resume) {
        fprintf(stderr, "%s: there is a checkpoint in '%s'; --resume continues from it, -o chooses another folder\n",
                r->job->command, r->out);
        return CLI_USAGE;
    }
    if (!there && r->resume) {
        fprintf(stderr, "%s: there is no checkpoint '%s' to continue from\n", r->job->command, last);
        return CLI_USAGE;
    }
    if (mkdir(r->out, 0777) == 0 || (errno == EEXIST && stat(r->out, &info) == 0 && S_ISDIR(info.st_mode)))
        return CLI_OK;
    fprintf(stderr, "%s: cannot make the folder '%s': %s\n", r->job->command, r->out, strerror(errno));
    return CLI_FAILED;
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
    mica_trainer_close(r->trainer);
    free(r->history.points);
}

/* ------------------------------------------------------------ checkpoints -- */

static mica_status save_last(train_run *r)
{
    char path[TRAIN_PATH], options[TRAIN_OPTIONS], loss[64];
    char *history = train_history_text(&r->history);
    if (!history) return mica_fail(MICA_ERR_MEMORY, "no memory for the history");
    r->job->options(r, options);
    snprintf(loss, sizeof loss, "%a %lld", r->sum, (long long)r->summed);
    const mica_setting settings[] = {{"mica.options", options}, {"mica.history", history}, {"mica.sum", loss}};
    const mica_status status = mica_trainer_save(r->trainer, train_path(r, "last.safetensors", path), settings, 3);
    free(history);
    return status;
}

/* Metadata as a text that ends, to be freed. */
static char *setting_of(const mica_file *file, const char *key)
{
    const char *text;
    size_t length;
    if (!mica_file_string(file, key, &text, &length)) return NULL;
    char *copy = malloc(length + 1);
    if (copy) memcpy(copy, text, length), copy[length] = '\0';
    return copy;
}

static void print_option(char *text, size_t room, const char *value, size_t n)
{
    char word[80];
    snprintf(word, sizeof word, "%.*s", (int)n, value);
    if (strncmp(word, "0x", 2) == 0) snprintf(text, room, "%g", strtod(word, NULL));
    else snprintf(text, room, "%s", word);
}

/* Where two texts of options, each a name and its value, begin to differ: "units 8, not 9". A
 * value that is a word has its name right before it. */
static void name_difference(const char *then, const char *now, char *text, size_t room)
{
    const char *name = then, *a = then, *b = now;
    char was[80], is[80];
    size_t n = strcspn(a, " "), m = strcspn(b, " ");
    while (n == m && memcmp(a, b, n) == 0 && a[n] && b[m]) {
        if (isalpha((unsigned char)a[0])) name = a;
        a += n + 1, b += m + 1;
        n = strcspn(a, " "), m = strcspn(b, " ");
    }
    print_option(was, sizeof was, a, n);
    print_option(is, sizeof is, b, m);
    snprintf(text, room, "%.*s %s, not %s", (int)strcspn(name, " "), name, was, is);
}

static int resume_from(train_run *r, mica_scope *s, mica_file *file, const char *path)
{
    char now[TRAIN_OPTIONS];
    r->job->options(r, now);
    char *then = setting_of(file, "mica.options"), *history = setting_of(file, "mica.history");
    char *sum = setting_of(file, "mica.sum");
    long long summed = 0;
    int code = CLI_OK;
    if (!then || !history || !sum || !train_history_parse(&r->history, history, strlen(history)) ||
        sscanf(sum, "%la %lld", &r->sum, &summed) != 2) {
        fprintf(stderr, "%s: '%s' is not a checkpoint of this command\n", r->job->command, path);
        code = CLI_FILE;
    } else if (strcmp(then, now) != 0) {
        char difference[240];
        name_difference(then, now, difference, sizeof difference);
        fprintf(stderr, "%s: '%s' was made with other options: %s\n", r->job->command, path, difference);
        code = CLI_USAGE;
    } else if (mica_trainer_load(r->trainer, s, file) != MICA_OK) code = train_failed(r);
    r->summed = summed;
    r->spent = r->history.seconds;
    free(then);
    free(history);
    free(sum);
    return code;
}

int train_resume(train_run *r, mica_scope *s)
{
    char path[TRAIN_PATH];
    mica_file *file;
    if (!r->resume) return CLI_OK;
    const mica_status status = mica_file_open(train_path(r, "last.safetensors", path), NULL, &file);
    if (status != MICA_OK) return train_failed(r), cli_file_code(status);
    const int code = resume_from(r, s, file, path);
    mica_file_close(file);
    return code == CLI_OK && !train_trim_log(r) ? CLI_FAILED : code;
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

static void write_log(const train_run *r, const train_point *p)
{
    char path[TRAIN_PATH];
    FILE *to = fopen(train_path(r, "log.csv", path), p->step == 0 ? "w" : "a");
    if (!to) return; /* the checkpoint that follows says why */
    if (p->step == 0) fprintf(to, "step,train_loss,valid_loss,learning_rate,%s_per_second,seconds\n", r->job->items);
    fprintf(to, "%lld,%.5f,%.5f,%.6g,%.1f,%.1f\n", (long long)p->step, p->train, p->valid, r->last_rate,
            train_items_per_second(r), r->history.seconds);
    fclose(to);
}

/* A bar of what is done, and the figures, in 80 columns as a rule; at most ten times a
 * second. */
static void show_step(const train_run *r, int64_t step)
{
    enum { WIDTH = 10 };
    static double shown;
    const double now = cli_seconds(), rate = train_items_per_second(r);
    const double left = (double)((r->steps - step) * r->items) / rate;
    char bar[WIDTH + 1];
    if (now - shown < 0.1 && step < r->steps) return;
    shown = now;
    for (int i = 0; i < WIDTH; i++) bar[i] = step * WIDTH >= r->steps * (i + 1) ? '#' : '.';
    bar[WIDTH] = '\0';
    cli_show_line("[%s] %lld/%lld, loss %.4g, best %.4g, %.0f %s/s, %.0f:%02.0f left", bar, (long long)step,
                  (long long)r->steps, r->last_loss, r->history.best, rate, r->job->items, floor(left / 60),
                  floor(fmod(left, 60)));
}

/* Validation, checkpoint, report; the best parameters are kept apart. */
static int mark_point(train_run *r)
{
    char path[TRAIN_PATH];
    train_point p = {mica_trainer_steps(r->trainer), r->summed ? r->sum / (double)r->summed : NAN, NAN};
    mica_status status = r->job->validate(r, &p.valid);
    const int64_t best_before = r->history.best_step;
    r->sum = 0, r->summed = 0;
    r->history.seconds = r->spent + cli_seconds() - r->began;
    if (status == MICA_OK && !train_history_add(&r->history, p)) status = mica_fail(MICA_ERR_MEMORY, "no memory");
    if (status == MICA_OK) write_log(r, &p);
    if (status == MICA_OK && r->history.best_step != best_before)
        status = r->job->save_best(r, train_path(r, "best.safetensors", path));
    if (status == MICA_OK) status = save_last(r);
    if (status != MICA_OK) return train_failed(r);
    return train_write_report(r) ? CLI_OK : CLI_FAILED;
}

/* A batch of a step, in a scope of its own. */
typedef struct step_batch {
    mica_scope *s;
    mica_array *data[TRAIN_DATA];
    size_t n;
} step_batch;

static mica_status open_batch(train_run *r, int64_t step, int64_t part, step_batch *b)
{
    *b = (step_batch){0};
    if (part == r->accumulate) return MICA_OK;
    b->s = mica_scope_begin(r->engine);
    return r->job->batch(r, b->s, step, part, b->data, &b->n);
}

/* Gradients of all batches but the last are added up; that makes the step. */
static mica_status run_batches(train_run *r, int64_t step, double decay, mica_train_result *result)
{
    step_batch now, next = {0};
    mica_status status = open_batch(r, step, 0, &now);
    for (int64_t part = 1; status == MICA_OK; part++) {
        status = open_batch(r, step, part, &next);
        if (status == MICA_OK && next.n) status = mica_trainer_accumulate(r->trainer, now.s, now.data, now.n, result);
        else if (status == MICA_OK)
            status = mica_trainer_step(r->trainer, now.s, now.data, now.n, r->last_rate, decay, result);
        mica_scope_end(now.s);
        now = next;
        if (next.n == 0) break;
        next = (step_batch){0};
    }
    mica_scope_end(now.s);
    return status;
}

static mica_status one_step(train_run *r, int64_t step)
{
    double decay;
    mica_train_result result = {.struct_size = sizeof result};
    mica_schedule_at(&r->schedule, step, &r->last_rate, &decay);
    const mica_status status = run_batches(r, step, decay, &result);
    if (status != MICA_OK) return status;
    r->sum += r->last_loss = result.loss;
    r->summed++;
    return MICA_OK;
}

/* A step that failed; for NaN the message names the checkpoint to continue from. */
static int step_failed(train_run *r, mica_status status)
{
    if (status != MICA_ERR_STATE) return train_failed(r);
    cli_clear_line();
    fprintf(stderr, "%s: %s; the last good checkpoint is %s/last.safetensors, of step %lld\n", r->job->command,
            mica_last_error(), r->out, (long long)(r->history.n ? r->history.points[r->history.n - 1].step : 0));
    r->state = "not finite";
    (void)train_write_report(r);
    return CLI_FAILED;
}

/* Nothing has been better for so many validations. */
static bool out_of_patience(const train_run *r)
{
    int64_t since = 0;
    for (size_t i = r->history.n; i > 0 && r->history.points[i - 1].step > r->history.best_step; i--) since++;
    return r->patience > 0 && since >= r->patience;
}

static int step_loop(train_run *r)
{
    int code = CLI_OK;
    if (r->history.n == 0 && (code = mark_point(r)) != CLI_OK) return code;
    for (int64_t step; (step = mica_trainer_steps(r->trainer)) < r->steps && code == CLI_OK;) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        if (out_of_patience(r)) return r->state = "stopped early", CLI_OK;
        if (r->minutes > 0 && cli_seconds() - r->began > 60 * r->minutes) return r->state = "out of time", CLI_OK;
        const mica_status status = one_step(r, step);
        if (status != MICA_OK) return step_failed(r, status);
        show_step(r, ++step);
        if (step % r->eval_every == 0 || step == r->steps) code = mark_point(r);
        if (code == CLI_OK && r->job->after_step && r->job->after_step(r, step) != MICA_OK) code = train_failed(r);
    }
    r->state = "finished";
    return code;
}

static int save_interrupted(train_run *r)
{
    char path[TRAIN_PATH];
    cli_signals_ignore();
    r->history.seconds = r->spent + cli_seconds() - r->began;
    if (save_last(r) != MICA_OK) return train_failed(r);
    cli_clear_line();
    fprintf(stderr, "%s: interrupted at step %lld; saved %s, --resume continues from there\n", r->job->command,
            (long long)mica_trainer_steps(r->trainer), train_path(r, "last.safetensors", path));
    r->state = "interrupted";
    (void)train_write_report(r);
    return CLI_INTERRUPTED;
}

int train_steps(train_run *r)
{
    cli_signals_watch();
    r->state = "running";
    r->began = cli_seconds();
    r->first = mica_trainer_steps(r->trainer);
    int code = step_loop(r);
    cli_signals_release();
    if (code == CLI_INTERRUPTED) code = save_interrupted(r);
    if (code == CLI_OK) cli_clear_line();
    return code;
}
