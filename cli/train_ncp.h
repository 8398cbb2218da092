/* What the files of `mica train ncp` share. */
#ifndef MICA_CLI_TRAIN_NCP_H
#define MICA_CLI_TRAIN_NCP_H

#include "ncp.h"
#include "ncp_data.h"
#include "train.h"

typedef struct ncp_options {
    const char *data, *test_data, *target, *inputs, *time, *wiring, *out;
    int cell, mode, convention, task, split, optimiser, schedule;
    bool mixed_memory, bidirectional, resume, json, plan;
    int64_t units, layers, unfolds, backbone_units, backbone_layers, seq, stride, batch, epochs, warmup, patience, seed,
        threads, ahead;
    double dropout, lr, decay, clip, valid, test, minutes;
} ncp_options;

/* What a network does on a part of the data. */
typedef struct ncp_score {
    double loss;             /* as trained: mean square of scaled targets, or nats    */
    double mse, mae, r2;     /* regression, in the units of the file                  */
    double accuracy;         /* classes                                               */
    int64_t rows;
} ncp_score;

typedef struct ncp_run {
    ncp_options o;
    ncp_data data;
    ncp_net net;
    mica_engine *engine;
    mica_params *params;
    mica_trainer *trainer;
    mica_network *network;
    mica_schedule schedule;
    train_history history;
    int64_t batch, per_epoch, steps;
    size_t *order;           /* of the training windows in this epoch                 */
    int64_t ordered;         /* which epoch that is; -1: none                         */
    float *x, *y, *span;     /* a batch                                               */
    int32_t *label;
    double sum, last_loss, last_rate, began, spent;
    int64_t summed, first;
} ncp_run;

/* CLI_OK; CLI_HELP_SHOWN; CLI_USAGE after a sentence. */
int ncp_parse(int argc, char **argv, ncp_options *o);

mica_status ncp_evaluate(ncp_run *r, int part, ncp_score *score);
/* Arrays of the batch in r: x, then targets unless they are not wanted, then spans. */
size_t ncp_batch_arrays(ncp_run *r, mica_scope *s, bool targets, mica_array *data[3]);

const char *ncp_path(const ncp_run *r, const char *name, char path[TRAIN_PATH]);
mica_status ncp_save_last(ncp_run *r);
mica_status ncp_save_best(ncp_run *r);
mica_status ncp_load_best(ncp_run *r, mica_scope *s);
int ncp_resume(ncp_run *r, mica_scope *s);

typedef struct ncp_report {
    const ncp_run *run;
    const char *state;
    const ncp_score *valid, *test; /* NULL: not yet                                   */
    double rate;                   /* sequences a second                              */
} ncp_report;

void ncp_print_json(FILE *to, const ncp_report *report);
/* run.json and loss.svg. */
bool ncp_write_report(const ncp_report *report);
int ncp_failed(void);

#endif
