/* How a network is split into layers and directions, and the LSTM of mixed memory. */
#ifndef MICA_NN_LIQUID_LAYERS_H
#define MICA_NN_LIQUID_LAYERS_H

#include "liquid.h"

/* inputs: width of the layer's input; l->inputs: width of its cell's input. */
typedef mica_status (*liquid_visit)(liquid_layer *l, int64_t inputs, int64_t index, void *user);

/* Calls visit for each layer and each of its directions, first to last, with its wiring. */
mica_status mica__liquid_each(mica_scope *s, const mica_liquid *net, const mica_params *params, liquid_visit visit,
                              void *user);

/* Keras' mixed memory: the cell reads the LSTM's result instead of x. */
/* Reads the caller's network by the rule of mica.h ("structs") and validates it. */
mica_status mica__liquid_read(const mica_liquid *given, mica_liquid *net);
bool mica__liquid_feeds_memory(const mica_liquid *net);
void mica__liquid_memory_declare(liquid_builder *b, int64_t inputs, int64_t state);

#endif
