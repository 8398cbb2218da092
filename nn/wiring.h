/* The structure of a wiring, shared by the files that make, measure and draw it. */
#ifndef MICA_NN_WIRING_H
#define MICA_NN_WIRING_H

#include "mica_liquid.h"

enum { WIRING_MOST = 1 << 14 }; /* neurons or inputs: their square stays far below 2^32 */

struct mica_wiring {
    mica_wiring_options o;
    int8_t *synapse, *sensory; /* (units, units) and (inputs, units), [source, destination] */
};

#endif
