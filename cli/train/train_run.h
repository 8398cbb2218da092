/* What all `mica train` subcommands add to the training loop of the library (mica_fit): a
 * folder, progress, Ctrl-C, run.json, log.csv and the chart of the losses. A train_job
 * supplies the batches, the validation and the report of one kind of training. */
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
    const char *items;      /* unit of the rate: "tokens"                           */
    /* Makes batch number `part` of a step; *n = 0: the step has no more batches. */
    mica_status (*batch)(train_run *r, mica_scope *s, int64_t step, int64_t part, mica_array *data[TRAIN_DATA],
                         size_t *n);
    mica_status (*validate)(train_run *r, double *loss);
    /* Writes the options that must be equal to resume a run. */
    void (*options)(const train_run *r, char text[TRAIN_OPTIONS]);
    mica_status (*save_best)(train_run *r, const char *path);
    void (*print_json)(FILE *to, const train_run *r);
    void (*caption)(const train_run *r, char *text, size_t room); /* of the chart        */
    /* May be NULL. */
    mica_status (*after_step)(train_run *r, int64_t step);
} train_job;

struct train_run {
    const train_job *job;
    void *user;
    const char *out;        /* the folder                                           */
    bool resume;
    int64_t steps, eval_every;
    int64_t patience;       /* stop after this many validations without a better one; 0: never */
    int64_t items;          /* per step, for the rate                               */
    int64_t accumulate;     /* maximum number of batches per step                   */
    double minutes;         /* 0: no limit                                          */
    mica_schedule schedule;
    mica_engine *engine;
    mica_params *params;
    mica_trainer *trainer;
    mica_fit *fit;          /* NULL before train_open_fit                           */
    char settings[TRAIN_OPTIONS], checkpoint[TRAIN_PATH];
    bool report_failed;     /* writing a report failed and its error message was printed */
};

const char *train_path(const train_run *r, const char *name, char path[TRAIN_PATH]);
/* Prints mica_last_error(); returns CLI_FAILED. */
int train_failed(const train_run *r);
double train_items_per_second(const train_run *r);

/* Checks --out before long work: a folder with a checkpoint needs --resume, and --resume needs a checkpoint.
 * CLI_OK, or an exit code after an error message. Creates nothing. */
int train_check_folder(const train_run *r);
/* Creates the folder, once everything else is known to be valid. */
int train_make_folder(const train_run *r);
/* The state of the loop; zeros before train_open_fit. */
const mica_fit_state *train_state(const train_run *r);
/* "running", "finished", "stopped early", ...; "evaluated": a run without steps. */
const char *train_state_name(const train_run *r);
/* Opens the loop; the trainer must be open. */
mica_status train_open_fit(train_run *r);
/* If r->resume is set, restores the last checkpoint. */
int train_resume(train_run *r, mica_scope *s);
/* Loads the parameters of a file. */
mica_status train_load_params(const train_run *r, mica_scope *s, const char *path);
/* Trains until the last step, the time limit or early stopping: returns CLI_OK;
 * train_state_name returns the reason. Ctrl-C: saves, prints the path, returns CLI_INTERRUPTED. */
int train_steps(train_run *r);
/* Prints the plan of a step on this data. */
int train_print_plan(const train_run *r, mica_scope *s, mica_array *const *data, size_t n);
void train_close(train_run *r);

/* ---------------------------------------------------------------- report --- */

/* begin writes version, commit, state and step; end writes figures and history and closes the object. */
void train_json_begin(cli_json *j, const train_run *r);
void train_json_end(cli_json *j, const train_run *r);
/* Writes run.json and loss.svg; false after an error message. */
bool train_write_report(const train_run *r);
/* Cuts log.csv after the last step of the history; false after an error message. */
bool train_trim_log(const train_run *r);
/* Draws training and validation loss over the steps; false after an error message. */
bool train_write_chart(const char *command, const char *path, const mica_fit_state *h, int64_t steps,
                       const char *caption);

#endif
