/* What a run leaves besides its checkpoints: its history, run.json and the picture of
 * its losses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "train/train_run.h"

/* --------------------------------------------------------------- history --- */

bool train_history_add(train_history *h, train_point p)
{
    if (h->n == h->room) {
        const size_t room = h->room ? 2 * h->room : 64;
        train_point *points = realloc(h->points, room * sizeof *points);
        if (!points) return false;
        h->points = points;
        h->room = room;
    }
    if (isfinite(p.valid) && (h->best_step < 0 || p.valid < h->best)) h->best = p.valid, h->best_step = p.step;
    h->points[h->n++] = p;
    return true;
}

/* One line for the time, one a point; numbers in a form that comes back as it was. */
char *train_history_text(const train_history *h)
{
    enum { LINE = 96 };
    char *text = malloc((h->n + 2) * LINE);
    if (!text) return NULL;
    size_t at = (size_t)snprintf(text, LINE, "%a\n", h->seconds);
    for (size_t i = 0; i < h->n; i++)
        at += (size_t)snprintf(text + at, LINE, "%lld %a %a\n", (long long)h->points[i].step, h->points[i].train,
                               h->points[i].valid);
    return text;
}

bool train_history_parse(train_history *h, const char *text, size_t length)
{
    char *copy = malloc(length + 1), *at = copy, *end;
    if (!copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *h = (train_history){.best_step = -1, .seconds = strtod(copy, &end)};
    bool good = end != copy;
    for (at = end; good; at = end) {
        train_point p = {.step = strtoll(at, &end, 10)};
        if (end == at) break;
        p.train = strtod(end, &at);
        p.valid = strtod(at, &end);
        good = end != at && train_history_add(h, p);
    }
    free(copy);
    return good;
}

/* ------------------------------------------------------------------ files -- */

void train_json_begin(cli_json *j, const train_run *r)
{
    cli_json_object(j, NULL, CLI_JSON_LINES);
    cli_json_text(j, "mica", mica_version());
    cli_json_text(j, "commit", cli_commit());
    cli_json_text(j, "state", r->state);
    cli_json_number(j, "step", (double)mica_trainer_steps(r->trainer));
    cli_json_number(j, "steps", (double)r->steps);
    cli_json_number(j, "parameters", (double)mica_params_elements(r->params));
}

void train_json_end(cli_json *j, const train_run *r)
{
    const train_history *h = &r->history;
    char rate[64];
    snprintf(rate, sizeof rate, "%s_per_second", r->job->items);
    cli_json_number(j, "seconds", h->seconds);
    cli_json_number(j, rate, train_items_per_second(r));
    cli_json_number(j, "best_step", h->best_step >= 0 ? (double)h->best_step : NAN);
    cli_json_number(j, "best_valid_loss", h->best_step >= 0 ? h->best : NAN);
    cli_json_array(j, "history", CLI_JSON_LINES);
    for (size_t i = 0; i < h->n; i++) {
        cli_json_array(j, NULL, CLI_JSON_INLINE);
        cli_json_int(j, NULL, h->points[i].step);
        cli_json_number(j, NULL, h->points[i].train);
        cli_json_number(j, NULL, h->points[i].valid);
        cli_json_end(j);
    }
    cli_json_end(j);
    cli_json_end(j);
}

static void print_report(FILE *to, const void *run)
{
    const train_run *r = run;
    r->job->print_json(to, r);
}

/* ------------------------------------------------------------------- log -- */

typedef struct log_part {
    FILE *from;
    int64_t last; /* step */
} log_part;

static void print_log_part(FILE *to, const void *part)
{
    const log_part *p = part;
    char line[256];
    while (fgets(line, sizeof line, p->from))
        if (line[0] == 's' || strtoll(line, NULL, 10) <= p->last) fputs(line, to);
}

/* A run that ended between its log and its checkpoint has lines of steps that are made
 * again. */
bool train_trim_log(const train_run *r)
{
    char path[TRAIN_PATH];
    const train_history *h = &r->history;
    log_part part = {fopen(train_path(r, "log.csv", path), "r"), h->n ? h->points[h->n - 1].step : -1};
    if (!part.from) return true;
    const bool good = cli_write_whole(r->job->command, path, print_log_part, &part);
    fclose(part.from);
    return good;
}

bool train_write_report(const train_run *r)
{
    char path[TRAIN_PATH], caption[160];
    const bool running = strcmp(r->state, "running") == 0; /* then there is room for what is to come */
    const int64_t steps = running || !r->history.n ? r->steps : r->history.points[r->history.n - 1].step;
    r->job->caption(r, caption, sizeof caption);
    return cli_write_whole(r->job->command, train_path(r, "run.json", path), print_report, r) &&
           train_write_chart(r->job->command, train_path(r, "loss.svg", path), &r->history, steps, caption);
}
