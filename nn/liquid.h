/* What the files of the liquid networks share: a cell as a table of functions, the
 * layer that its graph is built for, and how parameters are named and begun. */
#ifndef MICA_NN_LIQUID_H
#define MICA_NN_LIQUID_H

#include "mica_liquid.h"

enum { LIQUID_NAME = 160, LIQUID_KEPT = 24, LIQUID_XS = 4 };

/* One layer in one direction, while its parameters or its graph are made. */
typedef struct liquid_layer {
    mica_scope *s;
    const mica_liquid *net;
    const mica_params *params;
    char prefix[64];           /* of the names: "", "layers.1.reverse."              */
    int64_t inputs;            /* of this layer                                      */
    const mica_wiring *wiring; /* for these inputs; NULL: none                       */
    mica_array *seed;
    bool reverse;
    int64_t batch;             /* rows of a step                                     */

    mica_array *span;              /* NULL: 1; one element for all; or (time, batch or 1, 1) */
    bool span_steps;               /* the last of these                              */
    mica_array *kept[LIQUID_KEPT]; /* what cell->weights left: weights as the step wants them */
    mica_array *x[LIQUID_XS];      /* what cell->project left: (time, batch, ...)    */
    size_t n_x;
} liquid_layer;

/* Parameters are declared by the same function for both uses: first values, and the
 * list of a state_dict, which has masks too and takes its values from another set. */
typedef struct liquid_builder {
    liquid_layer *layer;
    mica_params *out;
    mica_dtype dtype;
    uint64_t seed, count;
    const mica_params *values; /* NULL: first values                                 */
    mica_status status;
} liquid_builder;

typedef struct liquid_cell {
    const char *name;
    int64_t (*state_size)(const mica_liquid *net);
    int64_t (*outputs)(const mica_liquid *net);
    void (*declare)(liquid_builder *b);
    /* What depends on parameters (and a time span for all steps) alone, into kept[]. */
    void (*weights)(liquid_layer *l);
    /* What depends on x (time, batch, inputs) too, for all steps at once, into x[]. */
    void (*project)(liquid_layer *l, mica_array *x);
    /* The next state (batch, state); x: slices of what project left; span: (batch or
     * 1, 1), one element, or NULL. */
    mica_array *(*step)(const liquid_layer *l, mica_array *state, mica_array *const *x, mica_array *span);
    /* Outputs (..., outputs) of states (..., state). */
    mica_array *(*output)(const liquid_layer *l, mica_array *states);
} liquid_cell;

extern const liquid_cell mica__ltc_cell, mica__cfc_cell, mica__wired_cfc_cell, mica__ode_cell, mica__ctgru_cell;
const liquid_cell *mica__liquid_cell_of(const mica_liquid *net);

/* ------------------------------------------------------------ parameters ---- */

void mica__liquid_uniform(liquid_builder *b, const char *name, int ndim, const int64_t *shape, double low, double high);
void mica__liquid_constant(liquid_builder *b, const char *name, int ndim, const int64_t *shape, double value);
/* A matrix of a wiring, as numbers; of a mask only in a state_dict. */
void mica__liquid_matrix(liquid_builder *b, const char *name, int64_t rows, int64_t cols, const float *values,
                         bool mask);
/* name.weight (out, in), Xavier, and name.bias, uniform in 1 / sqrt(in). */
void mica__liquid_linear(liquid_builder *b, const char *name, int64_t out, int64_t in);
void mica__liquid_orthogonal(liquid_builder *b, const char *name, int64_t rows, int64_t cols);
void mica__liquid_xavier(liquid_builder *b, const char *name, int64_t rows, int64_t cols);

/* A parameter of the layer; the name as printf makes it. */
mica_array *mica__liquid_get(const liquid_layer *l, const char *format, ...) MICA_PRINTF(2, 3);

/* --------------------------------------------------------------- helpers ---- */

/* Neurons of a layer, and how many of them it shows: of its wiring, if it has one. */
int64_t mica__liquid_units(const mica_liquid *net);
int64_t mica__liquid_outputs(const mica_liquid *net);

/* A matrix of the layer's wiring (rows, units), -1, 0, 1, as i8: a copy, because the
 * graph may outlive the wiring. */
mica_array *mica__liquid_wires(const liquid_layer *l, bool sensory);

mica_array *mica__liquid_activate(mica_scope *s, mica_activation how, mica_array *x);
/* Columns first ... first + n of the last axis. */
mica_array *mica__liquid_columns(mica_scope *s, mica_array *x, int64_t first, int64_t n);
/* x w in the dtype of w where that is narrow (mixed precision), in that of x again. */
mica_array *mica__liquid_product(mica_scope *s, mica_array *x, mica_array *w);
/* w (out, in) for the products of a step, x w^T, in the order in which they are fastest:
 * as it is where rows are few, so that each number is a sum along memory, else turned,
 * once for all steps. */
mica_array *mica__liquid_step_weight(const liquid_layer *l, mica_array *w);
mica_array *mica__liquid_step_product(const liquid_layer *l, mica_array *x, mica_array *weight);
/* x times a number. */
mica_array *mica__liquid_scaled(mica_scope *s, mica_array *x, double a);

#endif
