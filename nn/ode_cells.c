/* Cells defined by a differential equation: CT-RNN, NODE and ELTC. It is solved with `unfolds` Euler, Heun or
 * Runge-Kutta steps. The cells differ in the derivative f(W x + V s + b) and in the leak of the state. W x + b is the
 * same for all solver steps and is computed for the whole sequence at once. */
#include "liquid.h"

enum { ODE_STATE, ODE_INPUT, ODE_BIAS };

static void ode_declare(liquid_builder *b)
{
    const int64_t units = mica__liquid_units(b->layer->net);
    mica__liquid_linear(b, "rnn_cell.input", units, b->layer->inputs);
    mica__liquid_xavier(b, "rnn_cell.recurrent.weight", units, units);
}

/* A weight (in, out), multiplied with the mask of the wiring. */
static mica_array *ode_matrix(const liquid_layer *l, const char *name, bool sensory)
{
    mica_array *w = mica_transpose(l->s, mica__liquid_get(l, "rnn_cell.%s.weight", name));
    if (!l->wiring || !w) return w;
    mica_array *mask = mica_cast(l->s, mica_abs(l->s, mica__liquid_wires(l, sensory)), mica_array_dtype(w));
    return mica_mul(l->s, w, mask);
}

static void ode_weights(liquid_layer *l)
{
    l->kept[ODE_INPUT] = ode_matrix(l, "input", true);
    l->kept[ODE_STATE] = mica_contiguous(l->s, ode_matrix(l, "recurrent", false));
    l->kept[ODE_BIAS] = mica__liquid_get(l, "rnn_cell.input.bias");
}

static void ode_project(liquid_layer *l, mica_array *x)
{
    l->x[0] = mica_add(l->s, mica__liquid_product(l->s, x, l->kept[ODE_INPUT]), l->kept[ODE_BIAS]);
    l->n_x = 1;
}

static mica_array *ode_slope(const liquid_layer *l, mica_array *state, mica_array *drive)
{
    mica_scope *s = l->s;
    mica_array *z = mica_add(s, mica__liquid_product(s, state, l->kept[ODE_STATE]), drive);
    switch (l->net->cell) {
    case MICA_LIQUID_CTRNN: return mica_sub(s, mica_tanh(s, z), mica__liquid_scaled(s, state, 1 / l->net->tau));
    case MICA_LIQUID_ELTC: return mica_sub(s, mica__liquid_activate(s, l->net->activation, z), state);
    default: return mica_tanh(s, z);
    }
}

/* Returns state + share * step * slope. */
static mica_array *ode_move(mica_scope *s, mica_array *state, mica_array *slope, mica_array *step, double share)
{
    return mica_add(s, state, mica_mul(s, slope, mica__liquid_scaled(s, step, share)));
}

static mica_array *ode_advance(const liquid_layer *l, mica_array *y, mica_array *drive, mica_array *step)
{
    mica_scope *s = l->s;
    mica_array *a = ode_slope(l, y, drive);
    if (l->net->solver == MICA_SOLVER_EULER) return ode_move(s, y, a, step, 1);
    if (l->net->solver == MICA_SOLVER_HEUN) {
        mica_array *b = ode_slope(l, ode_move(s, y, a, step, 1), drive);
        return ode_move(s, y, mica_add(s, a, b), step, 0.5);
    }
    mica_array *b = ode_slope(l, ode_move(s, y, a, step, 0.5), drive);
    mica_array *c = ode_slope(l, ode_move(s, y, b, step, 0.5), drive);
    mica_array *d = ode_slope(l, ode_move(s, y, c, step, 1), drive);
    mica_array *middle = mica__liquid_scaled(s, mica_add(s, b, c), 2);
    return ode_move(s, y, mica_add(s, mica_add(s, a, d), middle), step, 1.0 / 6);
}

static mica_array *ode_step(const liquid_layer *l, mica_array *state, mica_array *const *x, mica_array *span)
{
    mica_array *step = mica_scalar(l->s, 1);
    if (span && state) step = mica_cast(l->s, span, mica_array_dtype(state));
    step = mica__liquid_scaled(l->s, step, 1 / (double)l->net->unfolds);
    for (int64_t i = 0; i < l->net->unfolds; i++) state = ode_advance(l, state, x[0], step);
    return state;
}

static mica_array *ode_output(const liquid_layer *l, mica_array *states)
{
    return mica__liquid_columns(l->s, states, 0, mica__liquid_outputs(l->net));
}

const liquid_cell mica__ode_cell = {.name = "ode",
                                    .state_size = mica__liquid_units,
                                    .outputs = mica__liquid_outputs,
                                    .declare = ode_declare,
                                    .weights = ode_weights,
                                    .project = ode_project,
                                    .step = ode_step,
                                    .output = ode_output};
