/* How a network learns: options that every `mica train` has, in one table. */
#ifndef MICA_CLI_TRAIN_LEARNING_H
#define MICA_CLI_TRAIN_LEARNING_H

#include <mica_nn.h>

#include "core/args.h"

typedef struct train_learning {
    int optimiser, compute;
    bool nesterov;
    int64_t accumulate;     /* batches of a step                                    */
    double clip, clip_value, momentum;
} train_learning;

#define TRAIN_AT(base, field) ((base) + offsetof(train_learning, field))
/* Lines of a table of cli_arg; base: where in the options the struct is. Which of the
 * words is chosen at first, the command says. */
#define TRAIN_LEARNING_ARGS(base)                                                                                   \
    {                                                                                                               \
        "--optimizer",         "--optimiser",  CLI_CHOICE, TRAIN_AT(base, optimiser), 0, 0,                         \
        "adam|adamw|sgd|lion", "how it learns"},                                                                    \
        {"--momentum", NULL, CLI_NUMBER, TRAIN_AT(base, momentum), 0, 0.999, "X", "of sgd (0)"},                    \
        {"--nesterov", NULL, CLI_FLAG, TRAIN_AT(base, nesterov), 0, 0, NULL, "sgd: look ahead along the momentum"}, \
        {"--clip", NULL, CLI_NUMBER, TRAIN_AT(base, clip),                                                          \
         0,        1e6,  "X",        "norm that all gradients are cut to (1); 0: not"},                             \
        {"--clip-value",                                                                                            \
         NULL,                                                                                                      \
         CLI_NUMBER,                                                                                                \
         TRAIN_AT(base, clip_value),                                                                                \
         0,                                                                                                         \
         1e6,                                                                                                       \
         "X",                                                                                                       \
         "then each of their elements; 0: not"},                                                                    \
        {"--accumulate", NULL, CLI_INT, TRAIN_AT(base, accumulate), 1, 65536, "N", "batches of a step (1)"},        \
        {"--compute", NULL, CLI_CHOICE,     TRAIN_AT(base, compute),                                                \
         0,           0,    "f32|f16|bf16", "dtype of products; parameters stay f32, and f16 has a loss scale"}

/* Into the options of a trainer. */
void train_learning_apply(const train_learning *l, mica_trainer_options *t);
/* For what must be the same when a run goes on. */
void train_learning_text(const train_learning *l, char *text, size_t room);

#endif
