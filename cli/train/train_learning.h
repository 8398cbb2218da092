/* How a network is trained: the options that every `mica train` has, in one table. */
#ifndef MICA_CLI_TRAIN_LEARNING_H
#define MICA_CLI_TRAIN_LEARNING_H

#include <mica_nn.h>

#include "core/cli.h"

typedef struct train_learning {
    int optimiser, compute;
    bool nesterov;
    int64_t accumulate;     /* batches of a step                                    */
    double clip, clip_value, momentum;
} train_learning;

/* Rows for a group of options, with a train_learning at the offset of the group. The
 * defaults of the command choose the optimizer. */
extern const cli_option train_learning_rows[];

/* Into the options of a trainer. */
void train_learning_apply(const train_learning *l, mica_trainer_options *t);
/* For what must be the same when a run goes on. */
void train_learning_text(const train_learning *l, char *text, size_t room);

#endif
