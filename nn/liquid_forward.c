/* The forward pass of a liquid network. Any sequence layout is converted to (time, batch, ...). Each layer and
 * direction is one mica_scan whose carries are the state and the LSTM's memory. Results get the layout of the input.
 * The scan returns the states of all steps; outputs are computed from them afterwards, for all steps at once. */
#include <string.h>

#include "liquid.h"
#include "liquid_layers.h"

/* ---------------------------------------------------------- mixed memory ---- */

bool mica__liquid_feeds_memory(const mica_liquid *net)
{
    return net->mixed_memory && net->convention == MICA_LIQUID_KERAS;
}

void mica__liquid_memory_declare(liquid_builder *b, int64_t inputs, int64_t state)
{
    const int64_t bias = 4 * state;
    mica__liquid_xavier(b, "lstm.input_map.weight", 4 * state, inputs);
    mica__liquid_uniform(b, "lstm.input_map.bias", 1, &bias, -0.1, 0.1);
    mica__liquid_orthogonal(b, "lstm.recurrent_map.weight", 4 * state, state);
}

/* LSTM step: updates the memory from z (batch, 4 state); *told receives its output. */
static void memory_step(mica_scope *s, mica_array *z, int64_t state, mica_array **memory, mica_array **told)
{
    mica_array *part[4];
    for (int k = 0; k < 4; k++) part[k] = mica__liquid_columns(s, z, k * state, state);
    mica_array *forget = mica_sigmoid(s, mica_add(s, part[2], mica_scalar(s, 1)));
    mica_array *add = mica_mul(s, mica_tanh(s, part[0]), mica_sigmoid(s, part[1]));
    *memory = mica_add(s, mica_mul(s, *memory, forget), add);
    *told = mica_mul(s, mica_tanh(s, *memory), mica_sigmoid(s, part[3]));
}

/* ------------------------------------------------------------------ scan ---- */

typedef struct liquid_scan {
    liquid_layer *l;
    const liquid_cell *cell;
    int64_t state;
    mica_array *recurrent; /* (state, 4 state), of the LSTM                           */
    size_t n_x;            /* arrays of the cell; the LSTM's and then the span follow */
} liquid_scan;

/* The cell reads the output of the LSTM, so its projection is part of the step. */
static mica_array *step_from_memory(const liquid_scan *r, mica_array *state, mica_array *told, mica_array *span)
{
    mica_scope *s = r->l->s;
    liquid_layer l = *r->l;
    mica_array *x[LIQUID_XS] = {0};
    if (l.span_steps) l.span = mica_expand_dims(s, span, 0);
    r->cell->project(&l, mica_expand_dims(s, told, 0));
    for (size_t i = 0; i < l.n_x; i++) x[i] = mica_squeeze(s, l.x[i], 0);
    return r->cell->step(&l, state, x, span);
}

static mica_status scan_step(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                             mica_array **y_out, void *user)
{
    const liquid_scan *r = user;
    liquid_layer *l = r->l;
    const bool memory = l->net->mixed_memory, fed = mica__liquid_feeds_memory(l->net);
    mica_array *span = l->span_steps ? x[r->n_x + (memory ? 1 : 0)] : l->span, *state = carry[0];
    if (memory) {
        mica_array *told, *z = mica_add(s, mica__liquid_step_product(l, state, r->recurrent), x[r->n_x]);
        carry_out[1] = carry[1];
        memory_step(s, z, r->state, &carry_out[1], &told);
        y_out[1] = carry_out[1];
        state = fed ? step_from_memory(r, state, told, span) : r->cell->step(l, told, x, span);
    } else state = r->cell->step(l, state, x, span);
    carry_out[0] = y_out[0] = state;
    return mica_scope_status(s);
}

/* Runs the layer over x (time, batch, inputs). Returns the states of all steps; replaces the first carries by the
 * last. */
static mica_array *run_layer(liquid_layer *l, mica_array *x, mica_array *carry[2])
{
    mica_scope *s = l->s;
    const bool memory = l->net->mixed_memory;
    liquid_scan r = {.l = l, .cell = mica__liquid_cell_of(l->net)};
    mica_array *xs[LIQUID_XS + 2], *ys[2], *last[2];
    r.state = r.cell->state_size(l->net);
    l->batch = x ? mica_array_shape(x)[1] : 1;
    r.cell->weights(l);
    if (!mica__liquid_feeds_memory(l->net)) r.cell->project(l, x);
    size_t n = r.n_x = l->n_x;
    memcpy(xs, l->x, n * sizeof *xs);
    if (memory) {
        mica_array *w = mica__liquid_get(l, "lstm.input_map.weight");
        xs[n++] = mica_linear(s, x, w, mica__liquid_get(l, "lstm.input_map.bias"));
        r.recurrent = mica__liquid_step_weight(l, mica__liquid_get(l, "lstm.recurrent_map.weight"));
    }
    if (l->span_steps) xs[n++] = l->span;
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_y = memory ? 2 : 1;
    o.n_x = n;
    o.reverse = l->reverse;
    if (mica_scope_status(s) != MICA_OK) return NULL;
    if (mica_scan(s, scan_step, &r, &o, carry, xs, last, ys) != MICA_OK) return NULL;
    memcpy(carry, last, o.n_carry * sizeof *carry);
    return ys[0];
}

/* ------------------------------------------------------------- sequences ---- */

typedef struct liquid_pass {
    const mica_liquid_data *data;
    mica_dtype dtype;
    int64_t time, batch, networks; /* layers times directions                        */
    bool unbatched;
    mica_array *span;
    bool span_steps;
    mica_array *x;                 /* input of the layer that is being built         */
    mica_array *out[2];            /* outputs of its directions                      */
    mica_array **state, **memory;  /* by network                                     */
} liquid_pass;

/* Swaps (batch, time, ...) and (time, batch, ...). */
static mica_array *swap_first(mica_scope *s, mica_array *x) { return mica_permute(s, x, (const int[]){1, 0, 2}); }

static mica_status take_sequence(liquid_pass *p, mica_scope *s, const mica_liquid *net)
{
    mica_array *x = p->data->x;
    const int ndim = x ? mica_array_ndim(x) : 0;
    if (ndim != 2 && ndim != 3)
        return mica_fail(MICA_ERR_SHAPE, "liquid_forward: x has %d axes, not 3, or 2 without a batch", ndim);
    const int64_t *shape = mica_array_shape(x);
    if (shape[ndim - 1] != net->inputs)
        return mica_fail(MICA_ERR_SHAPE, "liquid_forward: x has %lld inputs, not %lld", (long long)shape[ndim - 1],
                         (long long)net->inputs);
    p->unbatched = ndim == 2;
    p->time = ndim == 2 || net->time_major ? shape[0] : shape[1];
    p->batch = ndim == 2 ? 1 : net->time_major ? shape[1] : shape[0];
    if (p->time < 1 || p->batch < 1)
        return mica_fail(MICA_ERR_SHAPE, "liquid_forward: %lld steps of %lld sequences", (long long)p->time,
                         (long long)p->batch);
    if (p->unbatched) x = mica_expand_dims(s, x, 1);
    else if (!net->time_major) x = swap_first(s, x);
    p->x = mica_cast(s, x, p->dtype);
    return MICA_OK;
}

/* Reads the spans: one element for all steps, or (time, batch or 1, 1). */
static mica_status take_timespans(liquid_pass *p, mica_scope *s, const mica_liquid *net)
{
    mica_array *t = p->data->timespans;
    if (!t) return MICA_OK;
    const int ndim = mica_array_ndim(t);
    const int64_t *shape = mica_array_shape(t);
    if (mica_array_size(t) == 1) {
        p->span = mica_reshape(s, t, 0, NULL);
        return MICA_OK;
    }
    p->span_steps = true;
    if (ndim == 1 && shape[0] == p->time) {
        p->span = mica_reshape(s, t, 3, (const int64_t[]){p->time, 1, 1});
        return MICA_OK;
    }
    const int64_t full[2] = {net->time_major ? p->time : p->batch, net->time_major ? p->batch : p->time};
    if (ndim != 2 || (shape[0] != full[0] && shape[0] != 1) || (shape[1] != full[1] && shape[1] != 1))
        return mica_fail(MICA_ERR_SHAPE,
                         "liquid_forward: timespans (%lld, %lld) of %d axes for %lld steps and a batch of %lld",
                         (long long)(ndim > 0 ? shape[0] : 1), (long long)(ndim > 1 ? shape[1] : 1), ndim,
                         (long long)p->time, (long long)p->batch);
    t = mica_broadcast_to(s, t, 2, full);
    if (!net->time_major) t = mica_transpose(s, t);
    p->span = mica_expand_dims(s, t, -1);
    return MICA_OK;
}

/* The initial state (batch, width) of network `index`; zeros if `given` is NULL. */
static mica_array *first_state(const liquid_pass *p, mica_scope *s, mica_array *given, int64_t index, int64_t width)
{
    const int64_t one[2] = {p->batch, width}, all[3] = {p->networks, p->batch, width};
    if (!given) return mica_zeros(s, p->dtype, 2, one);
    if (mica_array_size(given) != p->networks * p->batch * width)
        return mica_scope_fail(s, MICA_ERR_SHAPE,
                               "liquid_forward: the first state has %lld elements, not %lld rows of %lld (batch %lld)",
                               (long long)mica_array_size(given), (long long)(p->networks * p->batch), (long long)width,
                               (long long)p->batch);
    mica_array *x = mica_slice_axis(s, mica_reshape(s, given, 3, all), 0, index, index + 1, 1);
    return mica_cast(s, mica_squeeze(s, x, 0), p->dtype);
}

static mica_status pass_layer(liquid_layer *l, int64_t inputs, int64_t index, void *user)
{
    liquid_pass *p = user;
    mica_scope *s = l->s;
    const liquid_cell *cell = mica__liquid_cell_of(l->net);
    const int64_t width = cell->state_size(l->net);
    (void)inputs;
    l->seed = p->data->seed;
    l->span = p->span;
    l->span_steps = p->span_steps;
    mica_array *carry[2] = {first_state(p, s, p->data->state, index, width), NULL};
    if (l->net->mixed_memory) carry[1] = first_state(p, s, p->data->memory, index, width);
    mica_array *states = run_layer(l, p->x, carry);
    if (!states) return mica_scope_status(s);
    p->state[index] = carry[0];
    p->memory[index] = carry[1];
    const bool both = l->net->bidirectional, top = index >= p->networks - (both ? 2 : 1);
    /* the last step; the reverse direction ends at the first */
    if (top && l->net->last_only) p->out[l->reverse] = cell->output(l, carry[0]);
    else p->out[l->reverse] = cell->output(l, states);
    if (!both) p->x = p->out[0];
    else if (l->reverse) p->x = mica_concat(s, p->out, 2, -1);
    return mica_scope_status(s);
}

/* Stacks the states of several networks; without a batch its axis is removed. */
static mica_array *stack_states(const liquid_pass *p, mica_scope *s, mica_array **each)
{
    mica_array *all = p->networks == 1 ? each[0] : mica_stack(s, each, (size_t)p->networks, 0);
    return p->unbatched ? mica_squeeze(s, all, -2) : all;
}

static mica_status forward(mica_scope *s, const mica_liquid *net, const mica_params *params, liquid_pass *p,
                           mica_liquid_result *result)
{
    mica_array *state[128], *memory[128]; /* 64 layers, two directions: mica_liquid_check */
    p->state = state;
    p->memory = memory;
    p->networks = net->layers * (net->bidirectional ? 2 : 1);
    mica_status status = take_sequence(p, s, net);
    if (status == MICA_OK) status = take_timespans(p, s, net);
    if (status == MICA_OK) status = mica__liquid_each(s, net, params, pass_layer, p);
    if (status != MICA_OK) return status;
    mica_array *y = p->x;
    if (net->projection > 0)
        y = mica_linear(s, y, mica_params_get(s, params, "fc.weight"), mica_params_get(s, params, "fc.bias"));
    if (p->unbatched) y = mica_squeeze(s, y, -2);
    else if (!net->last_only && !net->time_major) y = swap_first(s, y);
    *result =
        (mica_liquid_result){.struct_size = sizeof(mica_liquid_result), .y = y, .state = stack_states(p, s, state)};
    if (net->mixed_memory) result->memory = stack_states(p, s, memory);
    return mica_scope_status(s);
}

/* Dtype of states: that of most parameters, but f32 if mixed precision left some in f32. */
static mica_dtype widest_dtype(const mica_params *params)
{
    mica_dtype widest = mica_array_dtype(mica_params_at(params, 0));
    for (size_t i = 1; i < mica_params_count(params); i++) {
        const mica_dtype dtype = mica_array_dtype(mica_params_at(params, i));
        if (mica_dtype_size(dtype) > mica_dtype_size(widest)) widest = dtype;
    }
    return widest;
}

mica_status mica_liquid_forward(mica_scope *s, const mica_liquid *given, const mica_params *params,
                                const mica_liquid_data *given_data, mica_liquid_result *result)
{
    static const char name[] = "liquid_forward: mica_liquid_result";
    mica_liquid all, *net = &all;
    mica_liquid_data data = {.struct_size = sizeof data};
    mica_liquid_result full = {.struct_size = sizeof full};
    mica_status status = result ? mica_struct_write(name, result, &full, sizeof full) : MICA_OK;
    if (status == MICA_OK) status = mica__liquid_read(given, net);
    if (status == MICA_OK)
        status = mica_struct_read("liquid_forward: mica_liquid_data", &data, sizeof data, given_data);
    if (status == MICA_OK && (!s || !given_data || !result || mica_params_count(params) == 0))
        status = mica_fail(MICA_ERR_ARGUMENT, "liquid_forward: scope, parameters, data or result is NULL");
    /* a NULL in the data could not be made: the scope has the error */
    if (status == MICA_OK && mica_scope_status(s) != MICA_OK)
        return mica_fail(mica_scope_status(s), "%s", mica_scope_error(s));
    if (status == MICA_OK) {
        liquid_pass p = {.data = &data, .dtype = widest_dtype(params)};
        status = forward(s, net, params, &p, &full);
        if (status == MICA_OK) status = mica_struct_write(name, result, &full, sizeof full);
    }
    if (status != MICA_OK && s && mica_scope_status(s) == MICA_OK) mica_scope_fail(s, status, "%s", mica_last_error());
    return status;
}
