/* Shared by the files of the liquid networks: a cell as a table of functions, the layer whose graph is built, and how
 * parameters are named and initialised. */
#ifndef MICA_NN_LIQUID_H
#define MICA_NN_LIQUID_H

#include "mica_liquid.h"

enum { LIQUID_NAME = 160, LIQUID_KEPT = 24, LIQUID_XS = 4 };

/* One layer in one direction, while its parameters or its graph are built. */
typedef struct liquid_layer {
    mica_scope *s;
    const mica_liquid *net;
    const mica_params *params;
    char prefix[64];           /* of parameter names: "", "layers.1.reverse."        */
    int64_t inputs;            /* input width of this layer                          */
    const mica_wiring *wiring; /* for these inputs; NULL: no wiring                  */
    mica_array *seed;
    bool reverse;
    int64_t batch;             /* rows of a step                                     */

    mica_array *span;              /* NULL: 1; one element for all; or (time, batch or 1, 1) */
    bool span_steps;               /* span differs by step: (time, ...)              */
    mica_array *kept[LIQUID_KEPT]; /* set by cell->weights: weights in the layout of the step */
    mica_array *x[LIQUID_XS];      /* set by cell->project: (time, batch, ...)       */
    size_t n_x;
} liquid_layer;

/* One function declares the parameters for both uses: initial values, and a state_dict, which also has masks and
 * copies its values from another set. */
typedef struct liquid_builder {
    liquid_layer *layer;
    mica_params *out;
    mica_dtype dtype;
    uint64_t seed, count;
    const mica_params *values; /* NULL: initial values                               */
    mica_status status;
} liquid_builder;

typedef struct liquid_cell {
    const char *name;
    int64_t (*state_size)(const mica_liquid *net);
    int64_t (*outputs)(const mica_liquid *net);
    void (*declare)(liquid_builder *b);
    /* Computes what depends only on parameters (and on a span shared by all steps) into kept[]. */
    void (*weights)(liquid_layer *l);
    /* Computes what also depends on x (time, batch, inputs), for all steps at once, into x[]. */
    void (*project)(liquid_layer *l, mica_array *x);
    /* Returns the next state (batch, state). x: slices of the results of project; span: (batch or 1, 1), one element,
     * or NULL. */
    mica_array *(*step)(const liquid_layer *l, mica_array *state, mica_array *const *x, mica_array *span);
    /* Returns the outputs (..., outputs) of states (..., state). */
    mica_array *(*output)(const liquid_layer *l, mica_array *states);
} liquid_cell;

extern const liquid_cell mica__ltc_cell, mica__cfc_cell, mica__wired_cfc_cell, mica__ode_cell, mica__ctgru_cell;
const liquid_cell *mica__liquid_cell_of(const mica_liquid *net);

/* ------------------------------------------------------------ parameters ---- */

void mica__liquid_uniform(liquid_builder *b, const char *name, int ndim, const int64_t *shape, double low, double high);
void mica__liquid_constant(liquid_builder *b, const char *name, int ndim, const int64_t *shape, double value);
/* Declares a matrix of a wiring with these values; a mask is added to a state_dict only. */
void mica__liquid_matrix(liquid_builder *b, const char *name, int64_t rows, int64_t cols, const float *values,
                         bool mask);
/* Declares name.weight (out, in), Xavier, and name.bias, uniform within 1 / sqrt(in). */
void mica__liquid_linear(liquid_builder *b, const char *name, int64_t out, int64_t in);
void mica__liquid_orthogonal(liquid_builder *b, const char *name, int64_t rows, int64_t cols);
void mica__liquid_xavier(liquid_builder *b, const char *name, int64_t rows, int64_t cols);

/* Returns a parameter of the layer; the name is a printf format. */
mica_array *mica__liquid_get(const liquid_layer *l, const char *format, ...) MICA_PRINTF(2, 3);

/* --------------------------------------------------------------- helpers ---- */

/* Number of neurons of a layer, and number of its outputs; of its wiring if it has one. */
int64_t mica__liquid_units(const mica_liquid *net);
int64_t mica__liquid_outputs(const mica_liquid *net);

/* A matrix of the layer's wiring (rows, units) with values -1, 0, 1, as i8. It is a copy because the graph may outlive
 * the wiring. */
mica_array *mica__liquid_wires(const liquid_layer *l, bool sensory);

mica_array *mica__liquid_activate(mica_scope *s, mica_activation how, mica_array *x);
/* Columns first ... first + n of the last axis. */
mica_array *mica__liquid_columns(mica_scope *s, mica_array *x, int64_t first, int64_t n);
/* x w, multiplied in the dtype of w if that is narrow (mixed precision); the result has the dtype of x. */
mica_array *mica__liquid_product(mica_scope *s, mica_array *x, mica_array *w);
/* Returns w (out, in) in the fastest layout for the step's products x w^T: unchanged if there are few rows, so that
 * each dot product reads contiguous memory; else transposed once for all steps. */
mica_array *mica__liquid_step_weight(const liquid_layer *l, mica_array *w);
mica_array *mica__liquid_step_product(const liquid_layer *l, mica_array *x, mica_array *weight);
/* x times a number. */
mica_array *mica__liquid_scaled(mica_scope *s, mica_array *x, double a);

#endif
