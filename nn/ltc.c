/* LTC: neurons whose time constants depend on their inputs.
 *
 * Each synapse has conductance a = w sigmoid(sigma (v - mu)) towards its potential erev. A step solves v' with
 * `unfolds` semi-implicit steps. The sums over input synapses do not depend on the state; they are computed for all
 * steps before the loop.
 *
 * Cost is proportional to the synapses: each destination has a list of its sources. If nearly all pairs have a
 * synapse, or few rows are computed at once, a dense block with a mask is faster because it needs no gather.
 * Sources and destinations at the edges of the block that have no synapse are left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "liquid.h"

/* ------------------------------------------------------------- synapses ---- */

/* Positions of the synapses in a matrix (sources, units). */
typedef struct synapse_map {
    const int8_t *matrix;
    int64_t sources, units;
    int64_t synapses;
    bool listed;               /* true: lists; false: a dense block                  */
    int64_t first, count;      /* range of destinations; block: those with synapses  */
    int64_t from, rows;        /* block: range of sources that have synapses         */
} synapse_map;

static void map_block(synapse_map *m)
{
    int64_t last = -1, last_from = -1;
    m->first = m->units;
    m->from = m->sources;
    for (int64_t i = 0; i < m->sources; i++)
        for (int64_t u = 0; u < m->units; u++) {
            if (!m->matrix[i * m->units + u]) continue;
            m->synapses++;
            if (u < m->first) m->first = u;
            if (u > last) last = u;
            if (i < m->from) m->from = i;
            last_from = i;
        }
    m->count = last < 0 ? 0 : last - m->first + 1;
    m->rows = last < 0 ? 0 : last_from - m->from + 1;
    if (8 * m->count >= 7 * m->units) m->first = 0, m->count = m->units; /* spread() would cost more */
}

/* Returns whether lists are faster than the block for n rows at once. With many rows the lanes of the list kernels are
 * rows, so one load reads a source for all lanes. With few rows the lanes are synapses, whose sources are gathered one
 * by one. At these thresholds both were measured to cost the same, forward and backward (docs/speed/LOG.md). */
static bool lists_are_faster(int64_t synapses, int64_t pairs, int64_t n)
{
    const int64_t tenths = n < 8 ? 3 : n < 16 ? 6 : n < 32 ? 7 : 9;
    return 10 * synapses < tenths * pairs;
}

static synapse_map map_synapses(const int8_t *matrix, int64_t sources, int64_t units, int64_t n)
{
    synapse_map m = {.matrix = matrix, .sources = sources, .units = units};
    map_block(&m);
    const bool countable = sources * units <= INT32_MAX; /* indices into the matrix are i32 */
    m.listed = countable && lists_are_faster(m.synapses, m.rows * m.count, n);
    if (m.listed) m.first = 0, m.count = units;
    return m;
}

/* Weights of an LTC's synapses in the layout of the sums: (rows, count) for a block, (synapses) for lists. */
typedef struct synapse_weights {
    mica_array *sigma, *mu, *conduct, *drive; /* drive: conduct times erev            */
    mica_array *source, *first;               /* i32; lists only (mica_synapses)      */
} synapse_weights;

/* Builds the lists in order of destination: the source of each synapse, its index in the matrix, and the start of each
 * list. */
static void list_synapses(const synapse_map *m, int32_t *source, int32_t *place, int32_t *first)
{
    int32_t k = 0;
    for (int64_t u = 0; u < m->units; u++) {
        first[u] = k;
        for (int64_t i = 0; i < m->sources; i++) {
            if (!m->matrix[i * m->units + u]) continue;
            source[k] = (int32_t)i;
            place[k++] = (int32_t)(i * m->units + u);
        }
    }
    first[m->units] = k;
}

/* Returns the index of each synapse in the matrix. */
static mica_array *make_lists(mica_scope *s, const synapse_map *m, synapse_weights *w)
{
    const size_t n = (size_t)m->synapses, all = 2 * n + (size_t)m->units + 1;
    int32_t *list = malloc(all * sizeof *list);
    if (!list) {
        mica_scope_fail(s, MICA_ERR_MEMORY, "out of memory: %zu synapses", n);
        return NULL;
    }
    list_synapses(m, list, list + n, list + 2 * n);
    w->source = mica_from_data(s, MICA_I32, 1, &m->synapses, list);
    mica_array *place = mica_from_data(s, MICA_I32, 1, &m->synapses, list + n);
    w->first = mica_from_data(s, MICA_I32, 1, (const int64_t[]){m->units + 1}, list + 2 * n);
    free(list);
    return place;
}

/* Returns the elements of a parameter (sources, units) that the map uses. */
static mica_array *mapped(mica_scope *s, const synapse_map *m, mica_array *p, mica_array *place)
{
    if (m->listed) return mica_take(s, mica_reshape(s, p, 1, (const int64_t[]){-1}), place, 0);
    p = mica_slice_axis(s, p, 0, m->from, m->from + m->rows, 1);
    return mica_slice_axis(s, p, 1, m->first, m->first + m->count, 1);
}

static mica_array *positive(const liquid_layer *l, mica_array *x)
{
    return l->net->implicit_constraints ? mica_softplus(l->s, x) : x;
}

static synapse_weights make_synapse_weights(const liquid_layer *l, const synapse_map *m, const char *kind)
{
    mica_scope *s = l->s;
    synapse_weights w = {0};
    mica_array *place = m->listed ? make_lists(s, m, &w) : NULL;
    mica_array *all = mica__liquid_get(l, "rnn_cell.%sw", kind);
    w.sigma = mapped(s, m, mica__liquid_get(l, "rnn_cell.%ssigma", kind), place);
    w.mu = mapped(s, m, mica__liquid_get(l, "rnn_cell.%smu", kind), place);
    w.conduct = positive(l, mapped(s, m, all, place));
    if (!m->listed) {
        mica_array *mask = mica_abs(s, mapped(s, m, mica__liquid_wires(l, *kind != '\0'), NULL));
        w.conduct = mica_mul(s, w.conduct, mica_cast(s, mask, all ? mica_array_dtype(all) : MICA_F32));
    }
    w.drive = mica_mul(s, w.conduct, mapped(s, m, mica__liquid_get(l, "rnn_cell.%serev", kind), place));
    return w;
}

/* Sums over the synapses of x (..., sources) into num and den (..., count). */
static void sum_synapses(mica_scope *s, const synapse_map *m, const synapse_weights *w, mica_array *x, mica_array **num,
                         mica_array **den)
{
    if (!m->listed) x = mica__liquid_columns(s, x, m->from, m->rows);
    mica_array *both = mica_synapses(s, x, w->source, w->first, w->sigma, w->mu, w->drive, w->conduct);
    mica_array **const to[2] = {num, den};
    for (int i = 0; i < 2; i++) *to[i] = mica_squeeze(s, mica_slice_axis(s, both, -2, i, i + 1, 1), -2);
}

/* Pads (..., count) with zeros to all units. */
static mica_array *spread(mica_scope *s, const synapse_map *m, mica_array *x)
{
    if (m->count == m->units || !x) return x;
    const int ndim = mica_array_ndim(x);
    int64_t low[MICA_MAX_DIMS] = {0}, high[MICA_MAX_DIMS] = {0};
    low[ndim - 1] = m->first;
    high[ndim - 1] = m->units - m->first - m->count;
    return mica_pad(s, x, low, high, 0);
}

/* ------------------------------------------------------------------ cell --- */

enum { LTC_SIGMA, LTC_MU, LTC_CONDUCT, LTC_DRIVE, LTC_SOURCE, LTC_FIRST, LTC_CAPACITY, LTC_LEAK, LTC_REST };

static void declare_matrix(liquid_builder *b, const char *name, const int8_t *matrix, int64_t rows, int64_t units,
                           bool mask)
{
    if (mask && !b->values) return;
    const size_t n = (size_t)(rows * units);
    float *values = malloc(n * sizeof *values);
    for (size_t i = 0; values && i < n; i++) values[i] = mask ? (float)abs(matrix[i]) : (float)matrix[i];
    if (values) mica__liquid_matrix(b, name, rows, units, values, mask);
    else if (b->status == MICA_OK) b->status = mica_fail(MICA_ERR_MEMORY, "out of memory: %zu synapses", n);
    free(values);
}

static void ltc_declare(liquid_builder *b)
{
    const mica_liquid *net = b->layer->net;
    const int64_t in = b->layer->inputs, units = mica__liquid_units(net), out = mica__liquid_outputs(net);
    const int64_t inner[2] = {units, units}, outer[2] = {in, units};
    const int8_t *synapse = mica_wiring_synapses(b->layer->wiring), *sensory = mica_wiring_sensory(b->layer->wiring);
    mica__liquid_uniform(b, "rnn_cell.gleak", 1, &units, 0.001, 1);
    mica__liquid_uniform(b, "rnn_cell.vleak", 1, &units, -0.2, 0.2);
    mica__liquid_uniform(b, "rnn_cell.cm", 1, &units, 0.4, 0.6);
    mica__liquid_uniform(b, "rnn_cell.sigma", 2, inner, 3, 8);
    mica__liquid_uniform(b, "rnn_cell.mu", 2, inner, 0.3, 0.8);
    mica__liquid_uniform(b, "rnn_cell.w", 2, inner, 0.001, 1);
    declare_matrix(b, "rnn_cell.erev", synapse, units, units, false);
    mica__liquid_uniform(b, "rnn_cell.sensory_sigma", 2, outer, 3, 8);
    mica__liquid_uniform(b, "rnn_cell.sensory_mu", 2, outer, 0.3, 0.8);
    mica__liquid_uniform(b, "rnn_cell.sensory_w", 2, outer, 0.001, 1);
    declare_matrix(b, "rnn_cell.sensory_erev", sensory, in, units, false);
    declare_matrix(b, "rnn_cell.sparsity_mask", synapse, units, units, true);
    declare_matrix(b, "rnn_cell.sensory_sparsity_mask", sensory, in, units, true);
    if (net->input_mapping != MICA_MAPPING_NONE) mica__liquid_constant(b, "rnn_cell.input_w", 1, &in, 1);
    if (net->input_mapping == MICA_MAPPING_AFFINE) mica__liquid_constant(b, "rnn_cell.input_b", 1, &in, 0);
    if (net->output_mapping != MICA_MAPPING_NONE) mica__liquid_constant(b, "rnn_cell.output_w", 1, &out, 1);
    if (net->output_mapping == MICA_MAPPING_AFFINE) mica__liquid_constant(b, "rnn_cell.output_b", 1, &out, 0);
}

/* cm divided by the length of one solver step. */
static mica_array *ltc_capacity(const liquid_layer *l, mica_array *cm, mica_array *span)
{
    cm = mica__liquid_scaled(l->s, cm, (double)l->net->unfolds);
    return span ? mica_div(l->s, cm, mica_cast(l->s, span, mica_array_dtype(cm))) : cm;
}

static synapse_map inner_map(const liquid_layer *l)
{
    const int64_t units = mica__liquid_units(l->net);
    return map_synapses(mica_wiring_synapses(l->wiring), units, units, l->batch);
}

static void ltc_weights(liquid_layer *l)
{
    mica_scope *s = l->s;
    const synapse_map m = inner_map(l);
    const synapse_weights w = make_synapse_weights(l, &m, "");
    l->kept[LTC_SIGMA] = w.sigma;
    l->kept[LTC_MU] = w.mu;
    l->kept[LTC_CONDUCT] = w.conduct;
    l->kept[LTC_DRIVE] = w.drive;
    l->kept[LTC_SOURCE] = w.source;
    l->kept[LTC_FIRST] = w.first;
    l->kept[LTC_CAPACITY] = positive(l, mica__liquid_get(l, "rnn_cell.cm"));
    l->kept[LTC_LEAK] = positive(l, mica__liquid_get(l, "rnn_cell.gleak"));
    l->kept[LTC_REST] = mica_mul(s, l->kept[LTC_LEAK], mica__liquid_get(l, "rnn_cell.vleak"));
    if (!l->span_steps) l->kept[LTC_CAPACITY] = ltc_capacity(l, l->kept[LTC_CAPACITY], l->span);
}

/* The parts of v = x[0] / x[1] that do not depend on the state: leak, capacity (denominator) and sensory synapses.
 * x[2]: the capacity, if time spans differ between steps. */
static void ltc_project(liquid_layer *l, mica_array *x)
{
    mica_scope *s = l->s;
    const mica_liquid *net = l->net;
    if (net->input_mapping != MICA_MAPPING_NONE) x = mica_mul(s, x, mica__liquid_get(l, "rnn_cell.input_w"));
    if (net->input_mapping == MICA_MAPPING_AFFINE) x = mica_add(s, x, mica__liquid_get(l, "rnn_cell.input_b"));
    const synapse_map m = map_synapses(mica_wiring_sensory(l->wiring), l->inputs, mica__liquid_units(net),
                                       mica_array_size(x) / l->inputs);
    const synapse_weights w = make_synapse_weights(l, &m, "sensory_");
    mica_array *num, *den, *capacity = l->kept[LTC_CAPACITY];
    sum_synapses(s, &m, &w, x, &num, &den);
    if (l->span_steps) capacity = ltc_capacity(l, capacity, l->span);
    mica_array *fixed = mica_add(s, mica_add(s, l->kept[LTC_LEAK], capacity), mica_scalar(s, net->epsilon));
    l->x[0] = mica_add(s, spread(s, &m, num), l->kept[LTC_REST]);
    l->x[1] = mica_add(s, spread(s, &m, den), fixed);
    l->n_x = 2;
    if (!l->span_steps || !l->x[0]) return;
    l->x[l->n_x++] = mica_broadcast_to(s, capacity, mica_array_ndim(l->x[0]), mica_array_shape(l->x[0]));
}

static mica_array *ltc_step(const liquid_layer *l, mica_array *state, mica_array *const *x, mica_array *span)
{
    (void)span;
    mica_scope *s = l->s;
    const synapse_map m = inner_map(l);
    const synapse_weights w = {.sigma = l->kept[LTC_SIGMA],
                               .mu = l->kept[LTC_MU],
                               .conduct = l->kept[LTC_CONDUCT],
                               .drive = l->kept[LTC_DRIVE],
                               .source = l->kept[LTC_SOURCE],
                               .first = l->kept[LTC_FIRST]};
    mica_array *v = state, *capacity = l->span_steps ? x[2] : l->kept[LTC_CAPACITY];
    for (int64_t i = 0; i < l->net->unfolds; i++) {
        mica_array *num, *den;
        sum_synapses(s, &m, &w, v, &num, &den);
        num = mica_add(s, mica_add(s, mica_mul(s, capacity, v), x[0]), spread(s, &m, num));
        v = mica_div(s, num, mica_add(s, x[1], spread(s, &m, den)));
    }
    return v;
}

static mica_array *ltc_output(const liquid_layer *l, mica_array *states)
{
    mica_scope *s = l->s;
    const mica_liquid *net = l->net;
    mica_array *y = mica__liquid_columns(s, states, 0, mica__liquid_outputs(net));
    if (net->output_mapping != MICA_MAPPING_NONE) y = mica_mul(s, y, mica__liquid_get(l, "rnn_cell.output_w"));
    if (net->output_mapping == MICA_MAPPING_AFFINE) y = mica_add(s, y, mica__liquid_get(l, "rnn_cell.output_b"));
    return y;
}

const liquid_cell mica__ltc_cell = {.name = "ltc",
                                    .state_size = mica__liquid_units,
                                    .outputs = mica__liquid_outputs,
                                    .declare = ltc_declare,
                                    .weights = ltc_weights,
                                    .project = ltc_project,
                                    .step = ltc_step,
                                    .output = ltc_output};
