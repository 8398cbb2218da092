/* The training options that all `mica train` subcommands share. */
#ifndef MICA_CLI_TRAIN_LEARNING_H
#define MICA_CLI_TRAIN_LEARNING_H

#include <mica_nn.h>

#include "core/cli.h"

typedef struct train_learning {
    int optimiser, compute;
    bool nesterov;
    int64_t accumulate;     /* batches per step                                     */
    double clip, clip_value, momentum;
} train_learning;

/* Rows for a group of options, with a train_learning at the offset of the group. The
 * defaults of the command choose the optimizer. */
extern const cli_option train_learning_rows[];

/* Copies these options to the options of a trainer. */
void train_learning_apply(const train_learning *l, mica_trainer_options *t);
/* These options as text, for the check of --resume. */
void train_learning_text(const train_learning *l, char *text, size_t room);

#endif
