/* The trainer's structure, shared by the files that run it, save it and diagnose a failed step. */
#ifndef MICA_NN_TRAINER_H
#define MICA_NN_TRAINER_H

#include "forward.h"

/* Three compiled functions from the same parts; see build_step. */
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
    size_t n;            /* number of parameters                                   */
    size_t n_trained;    /* number of trained ones; the others are buffers         */
    size_t *order;       /* indices of the trained parameters, then of the buffers */
    size_t slots;        /* state arrays per parameter of the optimiser            */
    mica_array **state;  /* n_trained arrays of the first slot, then of the second */
    mica_array **sum;    /* n_trained sums of gradients; NULL: none yet            */
    int64_t batches;     /* number of batches in these sums                        */
    double loss_sum;
    mica_array **in, **out;
    size_t room;         /* capacity of in                                         */
    int64_t steps;
    double scale;        /* loss scale; 1: no scaling                              */
    int64_t good;        /* steps since the scale changed                          */
};

/* Element i of the rates as a scalar array. */
mica_array *mica__rate_at(mica_scope *s, mica_array *rates, int64_t i);

/* Builds the loss with these values as parameters. *view (if not NULL): the set it was built with; the caller frees
 * it. */
mica_array *mica__trainer_loss_of(mica_trainer *t, mica_forward *f, mica_array *const *values, mica_array *const *data,
                                  size_t n_data, mica_params **view);

/* Replaces the state of the optimiser, between steps. */
void mica__trainer_take_state(mica_trainer *t, mica_array *const *state);

/* Writes where values stop being finite, as the end of an error message; "" if that cannot be determined. */
void mica__trainer_diagnose(mica_trainer *t, mica_array *const *data, size_t n, mica_array *seed, char *text,
                            size_t room);

#endif
