/* Shared by the files of `mica train ncp`. */
#ifndef MICA_CLI_TRAIN_NCP_H
#define MICA_CLI_TRAIN_NCP_H

#include <mica_series.h>

#include "series/tables.h"
#include "train/train_learning.h"
#include "train/train_run.h"

typedef struct ncp_options {
    const char *data, *valid_data, *test_data, *target, *inputs, *drop, *group, *time, *span, *wiring, *activation,
        *device, *out;
    int header, cell, mode, convention, solver, task, missing, split, schedule;
    bool mixed_memory, bidirectional, raw, resume, json, plan;
    int64_t units, layers, unfolds, backbone_units, backbone_layers, seq, stride, ahead, batch, epochs, warmup,
        patience;
    int64_t seed, threads;
    double dropout, lr, decay, valid, test, minutes;
    train_learning learning;
} ncp_options;

typedef struct ncp_run {
    train_run run;
    ncp_options o;
    mica_series *data;
    mica_series_model *model;
    int64_t windows, batch, batches, per_epoch; /* batches and steps per epoch         */
    int64_t *order, ordered; /* shuffled windows of epoch `ordered`; -1: no epoch   */
    int64_t *first;          /* windows in order, for validation                    */
    char left_out[256];      /* names of date columns that are not used             */
    mica_series_score valid, test; /* of the best parameters; rows 0: not yet       */
} ncp_run;

/* Runs the command. */
int train_ncp_run(const cli_call *call);
/* Checks the options against each other: CLI_OK, or CLI_USAGE after an error message. */
int ncp_check(const ncp_options *o);
const char *ncp_cell_name(const ncp_options *o);
void ncp_net_of(const ncp_options *o, mica_series_net *net);
void ncp_series_of(const ncp_options *o, mica_series_options *series);
/* The options that must be equal to resume a run, and a hash of the data. */
void ncp_options_text(const train_run *run, char text[TRAIN_OPTIONS]);
void ncp_print_json(FILE *to, const train_run *run);
void ncp_caption(const train_run *run, char *text, size_t room);
void ncp_print_result(const ncp_run *r);

#endif
