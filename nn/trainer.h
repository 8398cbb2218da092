/* What a trainer is, for the files that run it, that save it and that say why a step
 * failed. */
#ifndef MICA_NN_TRAINER_H
#define MICA_NN_TRAINER_H

#include "forward.h"

/* Three functions of the same parts, see build_step. */
typedef enum trainer_part { PART_STEP, PART_ADD, PART_LAST, N_PARTS } trainer_part;

typedef struct trainer_function {
    mica_trainer *trainer;
    trainer_part part;
    mica_function *call;
} trainer_function;

struct mica_trainer {
    mica_engine *engine;
    mica_params *params;
    mica_trainer_options options;
    trainer_function parts[N_PARTS];
    mica_function *loss;
    size_t n;            /* parameters, of which                                   */
    size_t n_trained;    /* are trained, the others are buffers                    */
    size_t *order;       /* indices of those that are trained, then of the buffers */
    size_t slots;        /* of the optimiser                                       */
    mica_array **state;  /* of the first slot n_trained arrays, then of the second */
    mica_array **sum;    /* n_trained sums of gradients; NULL: none yet            */
    int64_t batches;     /* in these sums                                          */
    double loss_sum;
    mica_array **in, **out;
    size_t room;         /* of in                                                  */
    int64_t steps;
    double scale;        /* of the loss; 1: none                                   */
    int64_t good;        /* steps since it was changed                             */
};

/* Number i of what a step is told, without axes. */
mica_array *mica__rate_at(mica_scope *s, mica_array *rates, int64_t i);

/* The loss with these values in the place of the parameters; *view (if not NULL): the
 * set it was built with, to be freed. */
mica_array *mica__trainer_loss_of(mica_trainer *t, mica_forward *f, mica_array *const *values, mica_array *const *data,
                                  size_t n_data, mica_params **view);

/* Another state of the optimiser, between steps. */
void mica__trainer_take_state(mica_trainer *t, mica_array *const *state);

/* Where numbers begin to be not finite, as the end of a sentence; "" if that cannot
 * be found out. */
void mica__trainer_diagnose(mica_trainer *t, mica_array *const *data, size_t n, mica_array *seed, char *text,
                            size_t room);

#endif
