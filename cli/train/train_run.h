/* What every `mica train` adds to the training loop of the library (mica_fit): its folder,
 * progress, Ctrl-C, run.json, log.csv and the chart of the losses. A train_job says what
 * is trained on which data. */
#ifndef MICA_CLI_TRAIN_RUN_H
#define MICA_CLI_TRAIN_RUN_H

#include <mica_nn.h>
#include <stdio.h>

#include "core/cli.h"
#include "core/json.h"

enum { TRAIN_PATH = 4096, TRAIN_OPTIONS = 4096, TRAIN_DATA = MICA_FIT_ARRAYS };

/* ------------------------------------------------------------------- run --- */

typedef struct train_run train_run;

typedef struct train_job {
    const char *command;    /* "mica train lm", for error messages                  */
    const char *items;      /* what the rate is counted in: "tokens"                */
    /* Batch number `part` of a step; *n = 0: the step has no more. */
    mica_status (*batch)(train_run *r, mica_scope *s, int64_t step, int64_t part, mica_array *data[TRAIN_DATA],
                         size_t *n);
    mica_status (*validate)(train_run *r, double *loss);
    /* What must be the same for a run to go on as if it had not stopped. */
    void (*options)(const train_run *r, char text[TRAIN_OPTIONS]);
    mica_status (*save_best)(train_run *r, const char *path);
    void (*print_json)(FILE *to, const train_run *r);
    void (*caption)(const train_run *r, char *text, size_t room); /* of the picture      */
    /* May be NULL. */
    mica_status (*after_step)(train_run *r, int64_t step);
} train_job;

struct train_run {
    const train_job *job;
    void *user;
    const char *out;        /* the folder                                           */
    bool resume;
    int64_t steps, eval_every;
    int64_t patience;       /* validations without a better one until it stops; 0: never */
    int64_t items;          /* of a step, for the rate                              */
    int64_t accumulate;     /* batches of a step, at most                           */
    double minutes;         /* 0: no limit                                          */
    mica_schedule schedule;
    mica_engine *engine;
    mica_params *params;
    mica_trainer *trainer;
    mica_fit *fit;          /* NULL before train_open_fit                           */
    char settings[TRAIN_OPTIONS], checkpoint[TRAIN_PATH];
    bool report_failed;     /* the message of a report that cannot be written is printed */
};

const char *train_path(const train_run *r, const char *name, char path[TRAIN_PATH]);
/* Says the last failure; CLI_FAILED. */
int train_failed(const train_run *r);
double train_items_per_second(const train_run *r);

/* A folder with a checkpoint is gone on from, or left alone. CLI_OK, or an exit code
 * after an error message. */
int train_make_folder(const train_run *r);
/* What the loop has done so far; zeros before train_open_fit. */
const mica_fit_state *train_state(const train_run *r);
/* "running", "finished", "stopped early", ...; "evaluated": a run without steps. */
const char *train_state_name(const train_run *r);
/* The loop, once the trainer is open. */
mica_status train_open_fit(train_run *r);
/* With resume: everything from the last checkpoint. */
int train_resume(train_run *r, mica_scope *s);
/* The parameters of a file. */
mica_status train_load_params(const train_run *r, mica_scope *s, const char *path);
/* Steps until the end, the minutes are over, or nothing gets better: CLI_OK, and
 * train_state_name says which. Ctrl-C: saves, says where, CLI_INTERRUPTED. */
int train_steps(train_run *r);
/* The plan of a step on these data. */
int train_print_plan(const train_run *r, mica_scope *s, mica_array *const *data, size_t n);
void train_close(train_run *r);

/* ---------------------------------------------------------------- report --- */

/* Version, commit, state and step; and at the end figures, history and the brace. */
void train_json_begin(cli_json *j, const train_run *r);
void train_json_end(cli_json *j, const train_run *r);
/* run.json and loss.svg; false after an error message. */
bool train_write_report(const train_run *r);
/* log.csv up to the last step of the history; false after an error message. */
bool train_trim_log(const train_run *r);
/* Both losses over the steps; false after an error message. */
bool train_write_chart(const char *command, const char *path, const mica_fit_state *h, int64_t steps,
                       const char *caption);

#endif
