/* The files of a run besides its checkpoints: run.json, log.csv and the chart of the losses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "train/train_run.h"

/* ------------------------------------------------------------------ files -- */

void train_json_begin(cli_json *j, const train_run *r)
{
    cli_json_object(j, NULL, CLI_JSON_LINES);
    cli_json_text(j, "mica", mica_version());
    cli_json_text(j, "commit", cli_commit());
    cli_json_text(j, "state", train_state_name(r));
    cli_json_number(j, "step", (double)mica_trainer_steps(r->trainer));
    cli_json_number(j, "steps", (double)r->steps);
    cli_json_number(j, "parameters", (double)mica_params_elements(r->params));
}

void train_json_end(cli_json *j, const train_run *r)
{
    const mica_fit_state *h = train_state(r);
    char rate[64];
    snprintf(rate, sizeof rate, "%s_per_second", r->job->items);
    cli_json_number(j, "seconds", h->seconds);
    cli_json_number(j, rate, train_items_per_second(r));
    cli_json_number(j, "best_step", h->best_step >= 0 ? (double)h->best_step : NAN);
    cli_json_number(j, "best_valid_loss", h->best_step >= 0 ? h->best : NAN);
    cli_json_array(j, "history", CLI_JSON_LINES);
    for (size_t i = 0; i < h->n_points; i++) {
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
    int64_t last; /* last step to keep */
} log_part;

static void print_log_part(FILE *to, const void *part)
{
    const log_part *p = part;
    char line[256];
    while (fgets(line, sizeof line, p->from))
        if (line[0] == 's' || strtoll(line, NULL, 10) <= p->last) fputs(line, to);
}

/* If a run ended after it wrote a log line and before the checkpoint, the log has lines of
 * steps that will run again. */
bool train_trim_log(const train_run *r)
{
    char path[TRAIN_PATH];
    const mica_fit_state *h = train_state(r);
    log_part part = {fopen(train_path(r, "log.csv", path), "r"), h->n_points ? h->points[h->n_points - 1].step : -1};
    if (!part.from) return true;
    const bool good = cli_write_whole(r->job->command, path, print_log_part, &part);
    fclose(part.from);
    return good;
}

bool train_write_report(const train_run *r)
{
    char path[TRAIN_PATH], caption[160];
    const mica_fit_state *h = train_state(r);
    const bool running = h->end == MICA_FIT_RUNNING; /* then the x axis has room for the remaining steps */
    const int64_t steps = running || !h->n_points ? r->steps : h->points[h->n_points - 1].step;
    r->job->caption(r, caption, sizeof caption);
    return cli_write_whole(r->job->command, train_path(r, "run.json", path), print_report, r) &&
           train_write_chart(r->job->command, train_path(r, "loss.svg", path), h, steps, caption);
}
