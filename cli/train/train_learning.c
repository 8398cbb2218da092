/* See train_learning.h. */
#include "train/train_learning.h"

#include <stdio.h>

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
    snprintf(text, room, "optimizer %s momentum %a nesterov %d clip %a %a accumulate %lld compute %s",
             mica_optimiser_name(kinds[l->optimiser]), l->momentum, l->nesterov, l->clip, l->clip_value,
             (long long)l->accumulate, mica_dtype_name(dtypes[l->compute]));
}
