/* Checkpoints of a training loop: the trainer's state, the points so far, and the
 * settings that a resumed run must share. Metadata of the file:
 *
 *   mica.options   options.settings
 *   mica.history   seconds of training, then a line "step train valid" for each point
 *   mica.sum       sum and count of the training losses since the last point
 *
 * Numbers are printed and parsed by mica_number_*, so that the locale of the program
 * does not matter and values return bit for bit. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"

enum { LINE_ROOM = 128 };

mica_status mica__fit_add_point(mica_fit *f, mica_fit_point p)
{
    mica_fit_state *state = &f->state;
    if (state->n_points == f->room) {
        const size_t room = f->room ? 2 * f->room : 64;
        mica_fit_point *points = realloc(f->points, room * sizeof *points);
        if (!points) return mica_fail(MICA_ERR_MEMORY, "fit: out of memory for %zu points", room);
        f->points = points;
        f->room = room;
    }
    const double loss = f->options.validate ? p.valid : p.train;
    if (isfinite(loss) && (state->best_step < 0 || loss < state->best)) state->best = loss, state->best_step = p.step;
    f->points[state->n_points++] = p;
    state->points = f->points;
    return MICA_OK;
}

/* ------------------------------------------------------------------- save -- */

static char *history_text(const mica_fit *f)
{
    char train[MICA_NUMBER_TEXT], valid[MICA_NUMBER_TEXT];
    const size_t size = (f->state.n_points + 2) * LINE_ROOM;
    char *text = malloc(size);
    if (!text) return NULL;
    size_t at = (size_t)snprintf(text, size, "%s\n", mica_number_print(f->state.seconds, train, sizeof train));
    for (size_t i = 0; i < f->state.n_points; i++)
        at += (size_t)snprintf(text + at, size - at, "%" PRId64 " %s %s\n", f->points[i].step,
                               mica_number_print(f->points[i].train, train, sizeof train),
                               mica_number_print(f->points[i].valid, valid, sizeof valid));
    return text;
}

mica_status mica__fit_save(mica_fit *f)
{
    char sum[LINE_ROOM], number[MICA_NUMBER_TEXT];
    char *history = history_text(f);
    if (!history)
        return mica_fail(MICA_ERR_MEMORY, "fit: out of memory for the history of %zu points", f->state.n_points);
    snprintf(sum, sizeof sum, "%s %" PRId64, mica_number_print(f->loss_sum, number, sizeof number), f->loss_count);
    const mica_setting settings[] = {
        {"mica.options", f->options.settings ? f->options.settings : ""}, {"mica.history", history}, {"mica.sum", sum}};
    const mica_status status = mica_trainer_save(f->trainer, f->options.checkpoint, settings, 3);
    free(history);
    return status;
}

/* ----------------------------------------------------------------- resume -- */

/* A text that is read word by word. */
typedef struct word_reader {
    const char *at, *end;
} word_reader;

static bool has_word(word_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n')) r->at++;
    return r->at < r->end;
}

static bool next_word(word_reader *r, const char **word, size_t *length)
{
    (void)has_word(r);
    *word = r->at;
    while (r->at < r->end && *r->at != ' ' && *r->at != '\n') r->at++;
    *length = (size_t)(r->at - *word);
    return *length > 0;
}

static bool next_number(word_reader *r, double *out)
{
    const char *word;
    size_t length;
    return next_word(r, &word, &length) && mica_number_parse(word, length, out);
}

static bool next_count(word_reader *r, int64_t *out)
{
    double value;
    if (!next_number(r, &value) || !(value >= 0 && value <= 9007199254740992.0)) return false;
    *out = (int64_t)value;
    return true;
}

static mica_status read_history(mica_fit *f, const char *text, size_t length, const char *path)
{
    word_reader r = {text, text + length};
    bool good = next_number(&r, &f->seconds_before);
    while (good && has_word(&r)) {
        mica_fit_point p;
        good = next_count(&r, &p.step) && next_number(&r, &p.train) && next_number(&r, &p.valid);
        const mica_status status = good ? mica__fit_add_point(f, p) : MICA_OK;
        if (status != MICA_OK) return status;
    }
    return good ? MICA_OK : mica_fail(MICA_ERR_FORMAT, "fit_resume: '%s': the history is malformed", path);
}

/* Describes the first difference between two settings (names followed by values): "units 8, not 9". A word that starts
 * with a letter is a name, unless it is the word that differs. */
static void describe_difference(const char *then, size_t n_then, const char *now, char *text, size_t room)
{
    word_reader a = {then, then + n_then}, b = {now, now + strlen(now)};
    const char *name = "", *was, *is;
    size_t n_name = 0, n_was, n_is;
    for (;;) {
        const bool more = next_word(&a, &was, &n_was), other = next_word(&b, &is, &n_is);
        if (!more || !other || n_was != n_is || memcmp(was, is, n_was) != 0) break;
        if (isalpha((unsigned char)was[0])) name = was, n_name = n_was;
    }
    snprintf(text, room, "%.*s %.*s, not %.*s", (int)n_name, name, (int)n_was, was, (int)n_is, is);
}

static mica_status fail_other_settings(const char *path, const char *then, size_t n_then, const char *now)
{
    char difference[240];
    describe_difference(then, n_then, now, difference, sizeof difference);
    return mica_fail(MICA_ERR_ARGUMENT, "fit_resume: '%s' was written with other settings: %s", path, difference);
}

static mica_status read_metadata(mica_fit *f, const mica_file *file, const char *path)
{
    const char *options, *history, *sum, *mine = f->options.settings ? f->options.settings : "";
    size_t n_options, n_history, n_sum;
    if (!mica_file_string(file, "mica.options", &options, &n_options) ||
        !mica_file_string(file, "mica.history", &history, &n_history) ||
        !mica_file_string(file, "mica.sum", &sum, &n_sum))
        return mica_fail(MICA_ERR_FORMAT, "fit_resume: '%s' is not a checkpoint of a training loop", path);
    if (strlen(mine) != n_options || memcmp(mine, options, n_options) != 0)
        return fail_other_settings(path, options, n_options, mine);
    f->state.n_points = 0, f->state.best = NAN, f->state.best_step = -1;
    const mica_status status = read_history(f, history, n_history, path);
    if (status != MICA_OK) return status;
    word_reader r = {sum, sum + n_sum};
    if (!next_number(&r, &f->loss_sum) || !next_count(&r, &f->loss_count))
        return mica_fail(MICA_ERR_FORMAT, "fit_resume: '%s': the sum of losses is malformed", path);
    return MICA_OK;
}

mica_status mica_fit_resume(mica_fit *fit, mica_scope *s, const char *path)
{
    if (!fit || !path) return mica_fail(MICA_ERR_ARGUMENT, "fit_resume: %s is NULL", fit ? "path" : "fit");
    mica_file *file;
    mica_status status = mica_file_open(path, NULL, &file);
    if (status != MICA_OK) return status;
    status = read_metadata(fit, file, path);
    if (status == MICA_OK) status = mica_trainer_load(fit->trainer, s, file);
    mica_file_close(file);
    fit->state.step = fit->state.first_step = mica_trainer_steps(fit->trainer);
    fit->state.seconds = fit->seconds_before;
    return status;
}
