/* How a network falls into layers and directions, and the LSTM of a mixed memory. */
#ifndef MICA_NN_LIQUID_LAYERS_H
#define MICA_NN_LIQUID_LAYERS_H

#include "liquid.h"

/* inputs: of the layer as a whole; l->inputs: of its cell. */
typedef mica_status (*liquid_visit)(liquid_layer *l, int64_t inputs, int64_t index, void *user);

/* Each layer and in it each direction, from the first on, with its wiring. */
mica_status mica__liquid_each(mica_scope *s, const mica_liquid *net, const mica_params *params, liquid_visit visit,
                              void *user);

/* Keras' mixed memory: the cell sees the LSTM's result instead of x. */
/* The caller's network, read by the rule of mica.h ("structs") and checked. */
mica_status mica__liquid_read(const mica_liquid *given, mica_liquid *net);
bool mica__liquid_feeds_memory(const mica_liquid *net);
void mica__liquid_memory_declare(liquid_builder *b, int64_t inputs, int64_t state);

#endif
