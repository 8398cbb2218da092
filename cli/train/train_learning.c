/* See train_learning.h. */
#include "train/train_learning.h"

#include <stdio.h>

/* clang-format off */
#define AT(field) offsetof(train_learning, field)
const cli_option train_learning_rows[] = {
    {"--optimizer", NULL, CLI_CHOICE, AT(optimiser), .value = "adam|adamw|sgd|lion", .aliases = "--optimiser",
     .text = "the optimizer"},
    {"--momentum", NULL, CLI_NUMBER, AT(momentum), 0, 0.999, "X", .initial = "0", .text = "momentum of sgd"},
    {"--nesterov", NULL, CLI_FLAG, AT(nesterov), .text = "sgd: Nesterov momentum"},
    {"--clip", NULL, CLI_NUMBER, AT(clip), 0, 1e6, "X", .initial = "1",
     .text = "gradient clipping: scale all gradients so that their global norm is at most X; 0: off"},
    {"--clip-value", NULL, CLI_NUMBER, AT(clip_value), 0, 1e6, "X", .initial = "0",
     .text = "then clip each element of a gradient to -X to X; 0: off"},
    {"--accumulate", NULL, CLI_INT, AT(accumulate), 1, 65536, "N", .initial = "1",
     .aliases = "--grad-accumulation-steps", .text = "gradient accumulation: batches per step"},
    {"--compute", NULL, CLI_CHOICE, AT(compute), .value = "f32|f16|bf16",
     .text = "number format of matrix products; parameters stay f32, and f16 uses a loss scale"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static const mica_optimiser_kind kinds[] = {MICA_ADAM, MICA_ADAMW, MICA_SGD, MICA_LION};
static const mica_dtype dtypes[] = {MICA_F32, MICA_F16, MICA_BF16};

void train_learning_apply(const train_learning *l, mica_trainer_options *t)
{
    mica_optimiser_init(&t->optimiser, kinds[l->optimiser]);
    t->optimiser.clip = l->clip, t->optimiser.clip_value = l->clip_value;
    t->optimiser.momentum = l->momentum, t->optimiser.nesterov = l->nesterov;
    t->compute = dtypes[l->compute];
}

void train_learning_text(const train_learning *l, char *text, size_t room)
{
    snprintf(text, room, "optimizer %s momentum %.15g nesterov %d clip %.15g %.15g accumulate %lld compute %s",
             mica_optimiser_name(kinds[l->optimiser]), l->momentum, l->nesterov, l->clip, l->clip_value,
             (long long)l->accumulate, mica_dtype_name(dtypes[l->compute]));
}
