/* What a trainer is, for the files that run it and that save it. */
#ifndef MICA_NN_TRAINER_H
#define MICA_NN_TRAINER_H

#include "mica_nn.h"

struct mica_trainer {
    mica_engine *engine;
    mica_params *params;
    mica_trainer_options options;
    mica_function *step, *loss;
    size_t n;            /* parameters                                             */
    mica_array **moment; /* n first moments, n second ones                         */
    mica_array **in, **out;
    size_t room;         /* of in: 1 + data + 3 n                                  */
    int64_t steps;
};

#endif
