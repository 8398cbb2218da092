/* CT-GRU: a GRU with several time scales. The state of a unit is spread over eight traces, each of which decays at its
 * own rate. Reads and writes are weighted by how near a trace's scale is to the scale computed from the inputs.
 *
 * Scales are those of the reference: ln tau_k = k / 2 ln 10. A trace keeps exp(-span / ln tau_k) of itself; the first
 * trace keeps nothing. */
#include <math.h>

#include "liquid.h"

enum { CTGRU_TRACES = 8 };
enum { CTGRU_TAU_STATE, CTGRU_TAU_INPUT, CTGRU_TAU_BIAS, CTGRU_DETECT_STATE, CTGRU_SCALES, CTGRU_RATES };

static int64_t ctgru_state_size(const mica_liquid *net) { return CTGRU_TRACES * net->units; }
static int64_t ctgru_outputs(const mica_liquid *net) { return net->units; }

static void ctgru_declare(liquid_builder *b)
{
    const int64_t units = b->layer->net->units, in = b->layer->inputs + units;
    mica__liquid_linear(b, "rnn_cell.tau_r", CTGRU_TRACES * units, in);
    mica__liquid_linear(b, "rnn_cell.tau_s", CTGRU_TRACES * units, in);
    mica__liquid_linear(b, "rnn_cell.detect", units, in);
}

/* Columns first ... first + n of the named matrices, concatenated, as (in, out). */
static mica_array *ctgru_part(const liquid_layer *l, const char *a, const char *b, int64_t first, int64_t n)
{
    mica_array *w[2] = {mica__liquid_get(l, "rnn_cell.%s.weight", a),
                        b ? mica__liquid_get(l, "rnn_cell.%s.weight", b) : NULL};
    mica_array *both = b ? mica_concat(l->s, w, 2, 0) : w[0];
    return mica_contiguous(l->s, mica_transpose(l->s, mica__liquid_columns(l->s, both, first, n)));
}

static void ctgru_weights(liquid_layer *l)
{
    const int64_t in = l->inputs, units = l->net->units;
    double scale[CTGRU_TRACES], rate[CTGRU_TRACES];
    for (int k = 0; k < CTGRU_TRACES; k++) scale[k] = k / 2.0 * log(10), rate[k] = k ? 1 / scale[k] : 1e30;
    mica_array *bias[2] = {mica__liquid_get(l, "rnn_cell.tau_r.bias"), mica__liquid_get(l, "rnn_cell.tau_s.bias")};
    const mica_dtype dtype = bias[0] ? mica_array_dtype(bias[0]) : MICA_F32;
    const int64_t traces = CTGRU_TRACES;
    l->kept[CTGRU_TAU_INPUT] = ctgru_part(l, "tau_r", "tau_s", 0, in);
    l->kept[CTGRU_TAU_STATE] = ctgru_part(l, "tau_r", "tau_s", in, units);
    l->kept[CTGRU_TAU_BIAS] = mica_concat(l->s, bias, 2, 0);
    l->kept[CTGRU_DETECT_STATE] = ctgru_part(l, "detect", NULL, in, units);
    l->kept[CTGRU_SCALES] = mica_cast(l->s, mica_from_data(l->s, MICA_F64, 1, &traces, scale), dtype);
    l->kept[CTGRU_RATES] = mica_cast(l->s, mica_from_data(l->s, MICA_F64, 1, &traces, rate), dtype);
}

static void ctgru_project(liquid_layer *l, mica_array *x)
{
    mica_scope *s = l->s;
    l->x[0] = mica_add(s, mica__liquid_product(s, x, l->kept[CTGRU_TAU_INPUT]), l->kept[CTGRU_TAU_BIAS]);
    l->x[1] = mica_add(s, mica__liquid_product(s, x, ctgru_part(l, "detect", NULL, 0, l->inputs)),
                       mica__liquid_get(l, "rnn_cell.detect.bias"));
    l->n_x = 2;
}

/* Weights of the traces, which sum to 1: larger for scales near the requested one. */
static mica_array *ctgru_shares(const liquid_layer *l, mica_array *asked, const int64_t shape[3])
{
    asked = mica_reshape(l->s, asked, 3, shape);
    mica_array *far = mica_square(l->s, mica_sub(l->s, asked, l->kept[CTGRU_SCALES]));
    return mica_softmax(l->s, mica_neg(l->s, far), -1);
}

static mica_array *ctgru_step(const liquid_layer *l, mica_array *state, mica_array *const *x, mica_array *span)
{
    if (!state) return NULL;
    mica_scope *s = l->s;
    const int64_t units = l->net->units, wide = CTGRU_TRACES * units, batch = mica_array_shape(state)[0];
    const int64_t shape[3] = {batch, units, CTGRU_TRACES};
    const int last = -1;
    mica_array *trace = mica_reshape(s, state, 3, shape);
    mica_array *asked = mica__liquid_product(s, mica_sum(s, trace, &last, 1, false), l->kept[CTGRU_TAU_STATE]);
    asked = mica_add(s, asked, x[0]);
    mica_array *read = ctgru_shares(l, mica__liquid_columns(s, asked, 0, wide), shape);
    mica_array *seen = mica_sum(s, mica_mul(s, read, trace), &last, 1, false);
    mica_array *signal = mica_tanh(s, mica_add(s, mica__liquid_product(s, seen, l->kept[CTGRU_DETECT_STATE]), x[1]));
    mica_array *write = ctgru_shares(l, mica__liquid_columns(s, asked, wide, wide), shape);
    mica_array *change = mica_mul(s, write, mica_sub(s, mica_expand_dims(s, signal, -1), trace));
    mica_array *rate = l->kept[CTGRU_RATES];
    if (span) rate = mica_mul(s, mica_expand_dims(s, mica_cast(s, span, mica_array_dtype(state)), -1), rate);
    trace = mica_mul(s, mica_add(s, trace, change), mica_exp(s, mica_neg(s, rate)));
    return mica_reshape(s, trace, 2, (const int64_t[]){batch, wide});
}

/* The sum of the traces. */
static mica_array *ctgru_output(const liquid_layer *l, mica_array *states)
{
    if (!states) return NULL;
    const int ndim = mica_array_ndim(states), last = -1;
    int64_t shape[MICA_MAX_DIMS];
    for (int d = 0; d + 1 < ndim; d++) shape[d] = mica_array_shape(states)[d];
    shape[ndim - 1] = l->net->units;
    shape[ndim] = CTGRU_TRACES;
    return mica_sum(l->s, mica_reshape(l->s, states, ndim + 1, shape), &last, 1, false);
}

const liquid_cell mica__ctgru_cell = {.name = "ctgru",
                                      .state_size = ctgru_state_size,
                                      .outputs = ctgru_outputs,
                                      .declare = ctgru_declare,
                                      .weights = ctgru_weights,
                                      .project = ctgru_project,
                                      .step = ctgru_step,
                                      .output = ctgru_output};
