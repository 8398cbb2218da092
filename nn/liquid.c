/* Liquid networks: their description, their named parameters, and functions that cells share. */
#include "forward.h"
#include "liquid.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "liquid_layers.h"

/* ----------------------------------------------------------- description --- */

void mica_liquid_init(mica_liquid *net, mica_liquid_cell cell)
{
    if (!net) return;
    *net = (mica_liquid){.struct_size = sizeof *net,
                         .cell = cell,
                         .layers = 1,
                         .unfolds = cell == MICA_LIQUID_ELTC ? 4 : 6,
                         .solver = cell == MICA_LIQUID_CTRNN  ? MICA_SOLVER_EULER
                                   : cell == MICA_LIQUID_NODE ? MICA_SOLVER_RK4
                                                              : MICA_SOLVER_HEUN,
                         .tau = 1,
                         .input_mapping = MICA_MAPPING_AFFINE,
                         .output_mapping = MICA_MAPPING_AFFINE,
                         .implicit_constraints = true,
                         .epsilon = 1e-8,
                         .activation = cell == MICA_LIQUID_ELTC ? MICA_ACTIVATION_TANH : MICA_ACTIVATION_LECUN_TANH,
                         .backbone_units = 128,
                         .backbone_layers = 1};
}

const liquid_cell *mica__liquid_cell_of(const mica_liquid *net)
{
    switch (net->cell) {
    case MICA_LIQUID_LTC: return &mica__ltc_cell;
    case MICA_LIQUID_CFC: return net->wiring ? &mica__wired_cfc_cell : &mica__cfc_cell;
    case MICA_LIQUID_CTRNN:
    case MICA_LIQUID_NODE:
    case MICA_LIQUID_ELTC: return &mica__ode_cell;
    case MICA_LIQUID_CTGRU: return &mica__ctgru_cell;
    }
    return NULL;
}

static mica_status check_sizes_of(const mica_liquid *n)
{
    const bool cfc = n->cell == MICA_LIQUID_CFC;
    const struct {
        const char *what;
        int64_t value, least, most;
        bool asked;
    } rule[] = {{"inputs", n->inputs, 1, 1 << 20, true},
                {"units", n->units, 1, 1 << 14, !n->wiring},
                {"layers", n->layers, 1, 64, true},
                {"outputs of the projection", n->projection, 0, 1 << 20, true},
                {"steps of the solver", n->unfolds, 1, 1000, !cfc && n->cell != MICA_LIQUID_CTGRU},
                {"units of the backbone", n->backbone_units, 1, 1 << 16, cfc && n->backbone_layers > 0},
                {"layers of the backbone", n->backbone_layers, 0, 8, cfc && !n->wiring},
                {"kind of mapping", (int64_t)n->input_mapping, 0, MICA_MAPPING_AFFINE, true},
                {"kind of mapping", (int64_t)n->output_mapping, 0, MICA_MAPPING_AFFINE, true},
                {"convention", (int64_t)n->convention, 0, MICA_LIQUID_KERAS, true},
                {"mode", (int64_t)n->mode, 0, MICA_CFC_NO_GATE, cfc},
                {"activation", (int64_t)n->activation, 0, MICA_ACTIVATION_SOFTPLUS, true},
                {"solver", (int64_t)n->solver, 0, MICA_SOLVER_RK4, true}};
    for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++)
        if (rule[i].asked && (rule[i].value < rule[i].least || rule[i].value > rule[i].most))
            return mica_fail(MICA_ERR_ARGUMENT, "liquid: %s %lld is out of range (%lld to %lld)", rule[i].what,
                             (long long)rule[i].value, (long long)rule[i].least, (long long)rule[i].most);
    return MICA_OK;
}

static mica_status check_liquid(const mica_liquid *net)
{
    if (!mica__liquid_cell_of(net))
        return mica_fail(MICA_ERR_ARGUMENT, "liquid: cell %d is not a mica_liquid_cell", (int)net->cell);
    const mica_status status = check_sizes_of(net);
    if (status != MICA_OK) return status;
    const mica_wiring_options *w = mica_wiring_get(net->wiring);
    if (w && w->inputs != net->inputs)
        return mica_fail(MICA_ERR_ARGUMENT, "liquid: a wiring of %lld inputs in a network of %lld",
                         (long long)w->inputs, (long long)net->inputs);
    if (w && (net->cell == MICA_LIQUID_CTRNN || net->cell == MICA_LIQUID_NODE || net->cell == MICA_LIQUID_CTGRU))
        return mica_fail(MICA_ERR_ARGUMENT, "liquid: CT-RNN, NODE and CT-GRU have no wiring");
    if (net->mixed_memory && net->cell != MICA_LIQUID_LTC && net->cell != MICA_LIQUID_CFC)
        return mica_fail(MICA_ERR_ARGUMENT, "liquid: mixed memory needs the cell LTC or CfC");
    if (!(net->dropout >= 0 && net->dropout < 1))
        return mica_fail(MICA_ERR_ARGUMENT, "liquid: dropout %g is not in [0, 1)", net->dropout);
    if (!(net->tau > 0) || !(net->epsilon >= 0))
        return mica_fail(MICA_ERR_ARGUMENT, "liquid: tau %g must be above 0, epsilon %g at least 0", net->tau,
                         net->epsilon);
    return MICA_OK;
}

mica_status mica__liquid_read(const mica_liquid *given, mica_liquid *net)
{
    if (!given) return mica_fail(MICA_ERR_ARGUMENT, "liquid: no network");
    *net = (mica_liquid){.struct_size = sizeof *net};
    mica_status status = mica_struct_read("liquid: mica_liquid", net, sizeof *net, given);
    if (status != MICA_OK) return status;
    mica_liquid_init(net, net->cell); /* the defaults depend on the cell */
    status = mica_struct_read("liquid: mica_liquid", net, sizeof *net, given);
    return status == MICA_OK ? check_liquid(net) : status;
}

mica_status mica_liquid_check(const mica_liquid *net)
{
    mica_liquid full;
    return mica__liquid_read(net, &full);
}

int64_t mica_liquid_state_size(const mica_liquid *net)
{
    mica_liquid full;
    return mica__liquid_read(net, &full) == MICA_OK ? mica__liquid_cell_of(&full)->state_size(&full) : 0;
}

int64_t mica_liquid_outputs(const mica_liquid *net)
{
    mica_liquid full;
    if (mica__liquid_read(net, &full) != MICA_OK) return 0;
    if (full.projection > 0) return full.projection;
    return mica__liquid_cell_of(&full)->outputs(&full) * (full.bidirectional ? 2 : 1);
}

/* ------------------------------------------------------------ parameters --- */

static void full_name(const liquid_layer *l, const char *name, char full[LIQUID_NAME])
{
    snprintf(full, LIQUID_NAME, "%s%s", l->prefix, name);
}

/* Evaluates the initial value and adds it. A state_dict copies the value from b->values instead, except for masks. */
static void declare_param(liquid_builder *b, const char *name, mica_array *first, bool mask)
{
    char full[LIQUID_NAME];
    full_name(b->layer, name, full);
    if (b->status != MICA_OK) return;
    mica_array *value = first;
    if (b->values && !mask) {
        value = mica_params_get(b->layer->s, b->values, "%s", full);
        b->status = value ? MICA_OK : mica_scope_status(b->layer->s);
    } else b->status = mica_eval(b->layer->s, &value, 1);
    if (b->status == MICA_OK) b->status = mica_params_add(b->out, full, value);
    /* mixed precision does not cast LTC parameters: no matrix product would gain, and time constants are sensitive */
    if (b->status == MICA_OK && b->layer->net->cell == MICA_LIQUID_LTC && strstr(name, "rnn_cell."))
        b->status = mica_params_keep_precision(b->out, mica_params_count(b->out) - 1);
}

static uint64_t next_seed(liquid_builder *b) { return mica_seed_split(b->seed, b->count++); }

void mica__liquid_uniform(liquid_builder *b, const char *name, int ndim, const int64_t *shape, double low, double high)
{
    mica_array *value = NULL;
    if (!b->values) value = mica_random_uniform(b->layer->s, b->dtype, ndim, shape, low, high, next_seed(b));
    declare_param(b, name, value, false);
}

void mica__liquid_constant(liquid_builder *b, const char *name, int ndim, const int64_t *shape, double value)
{
    declare_param(b, name, b->values ? NULL : mica_full(b->layer->s, b->dtype, ndim, shape, value), false);
}

void mica__liquid_matrix(liquid_builder *b, const char *name, int64_t rows, int64_t cols, const float *values,
                         bool mask)
{
    mica_array *value = NULL;
    if (b->status == MICA_OK && (mask || !b->values)) {
        value = mica_from_data(b->layer->s, MICA_F32, 2, (const int64_t[]){rows, cols}, values);
        value = mica_cast(b->layer->s, value, b->dtype);
    }
    declare_param(b, name, value, mask);
}

void mica__liquid_xavier(liquid_builder *b, const char *name, int64_t rows, int64_t cols)
{
    const double width = sqrt(6 / (double)(rows + cols));
    mica__liquid_uniform(b, name, 2, (const int64_t[]){rows, cols}, -width, width);
}

void mica__liquid_orthogonal(liquid_builder *b, const char *name, int64_t rows, int64_t cols)
{
    mica_array *value = NULL;
    if (!b->values)
        value = mica_init_array(b->layer->s, MICA_INIT_ORTHOGONAL, 1, b->dtype, 2, (const int64_t[]){rows, cols},
                                next_seed(b));
    declare_param(b, name, value, false);
}

void mica__liquid_linear(liquid_builder *b, const char *name, int64_t out, int64_t in)
{
    char full[LIQUID_NAME];
    const double width = 1 / sqrt((double)in);
    snprintf(full, sizeof full, "%s.weight", name);
    mica__liquid_xavier(b, full, out, in);
    snprintf(full, sizeof full, "%s.bias", name);
    mica__liquid_uniform(b, full, 1, &out, -width, width);
}

mica_array *mica__liquid_get(const liquid_layer *l, const char *format, ...)
{
    char name[LIQUID_NAME];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return mica_params_get(l->s, l->params, "%s%s", l->prefix, name);
}

/* --------------------------------------------------------------- helpers --- */

mica_array *mica__liquid_scaled(mica_scope *s, mica_array *x, double a)
{
    return a == 1 ? x : mica_mul(s, x, mica_scalar(s, a));
}

int64_t mica__liquid_units(const mica_liquid *net)
{
    return net->wiring ? mica_wiring_get(net->wiring)->units : net->units;
}

int64_t mica__liquid_outputs(const mica_liquid *net)
{
    return net->wiring ? mica_wiring_get(net->wiring)->outputs : net->units;
}

/* The reference's LeCun tanh uses 0.666, which differs from 2/3 in the fourth digit. */
mica_array *mica__liquid_activate(mica_scope *s, mica_activation how, mica_array *x)
{
    if (how != MICA_ACTIVATION_LECUN_TANH) return mica_activate(s, how, x);
    return mica__liquid_scaled(s, mica_tanh(s, mica__liquid_scaled(s, x, 0.666)), 1.7159);
}

mica_array *mica__liquid_columns(mica_scope *s, mica_array *x, int64_t first, int64_t n)
{
    if (x && first == 0 && n == mica_array_shape(x)[mica_array_ndim(x) - 1]) return x;
    return mica_slice_axis(s, x, -1, first, first + n, 1);
}

mica_array *mica__liquid_product(mica_scope *s, mica_array *x, mica_array *w)
{
    mica_array *y = mica_matmul(s, mica__as_weight(s, x, w), w);
    return x && y ? mica_cast(s, y, mica_array_dtype(x)) : y;
}

enum { FEW_ROWS = 2 };

mica_array *mica__liquid_step_weight(const liquid_layer *l, mica_array *w)
{
    return mica_contiguous(l->s, l->batch <= FEW_ROWS ? w : mica_transpose(l->s, w));
}

mica_array *mica__liquid_step_product(const liquid_layer *l, mica_array *x, mica_array *weight)
{
    return mica__liquid_product(l->s, x, l->batch <= FEW_ROWS ? mica_transpose(l->s, weight) : weight);
}

mica_array *mica__liquid_wires(const liquid_layer *l, bool sensory)
{
    const int64_t units = mica_wiring_get(l->wiring)->units, rows = sensory ? l->inputs : units;
    return mica_from_data(l->s, MICA_I8, 2, (const int64_t[]){rows, units},
                          sensory ? mica_wiring_sensory(l->wiring) : mica_wiring_synapses(l->wiring));
}

/* ---------------------------------------------------------------- layers --- */

static bool needs_wiring(const mica_liquid *net) { return net->wiring || net->cell == MICA_LIQUID_LTC; }

/* Returns the same wiring for other inputs, or the default wiring of an LTC. */
static mica_status wiring_for(const mica_liquid *net, int64_t inputs, mica_wiring **out)
{
    mica_wiring_options o;
    *out = NULL;
    if (!needs_wiring(net)) return MICA_OK;
    if (net->wiring) o = *mica_wiring_get(net->wiring);
    else {
        mica_wiring_options_init(&o, MICA_WIRING_FULL);
        o.units = net->units;
    }
    o.inputs = inputs;
    return mica_wiring_new(&o, out);
}

mica_status mica__liquid_each(mica_scope *s, const mica_liquid *net, const mica_params *params, liquid_visit visit,
                              void *user)
{
    mica_status status = mica_liquid_check(net);
    const int64_t directions = net && net->bidirectional ? 2 : 1;
    if (!s && status == MICA_OK) status = mica_fail(MICA_ERR_ARGUMENT, "liquid: scope is NULL");
    int64_t inputs = net ? net->inputs : 0;
    for (int64_t i = 0; status == MICA_OK && i < net->layers * directions; i++) {
        const int64_t level = i / directions;
        liquid_layer l = {.s = s, .net = net, .params = params, .reverse = i % directions == 1};
        char number[32] = "";
        mica_wiring *wiring;
        if (level > 0) inputs = mica__liquid_cell_of(net)->outputs(net) * directions;
        if (net->layers > 1) snprintf(number, sizeof number, "layers.%d.", (int)level);
        snprintf(l.prefix, sizeof l.prefix, "%s%s", number, l.reverse ? "reverse." : "");
        l.inputs = mica__liquid_feeds_memory(net) ? mica__liquid_cell_of(net)->state_size(net) : inputs;
        status = wiring_for(net, l.inputs, &wiring);
        if (status != MICA_OK) break;
        l.wiring = wiring;
        status = visit(&l, inputs, i, user);
        mica_wiring_free(wiring);
    }
    return status;
}

static mica_status declare_liquid(liquid_layer *l, int64_t inputs, int64_t index, void *user)
{
    liquid_builder *b = user;
    const mica_liquid *net = l->net;
    const int64_t state = mica__liquid_cell_of(net)->state_size(net);
    (void)index;
    b->layer = l;
    mica__liquid_cell_of(net)->declare(b);
    if (net->mixed_memory) mica__liquid_memory_declare(b, inputs, state);
    return b->status;
}

static mica_status declare_all(liquid_builder *b, mica_scope *s, const mica_liquid *given)
{
    mica_liquid all, *net = &all;
    mica_status status = mica__liquid_read(given, net);
    if (status == MICA_OK) status = mica__liquid_each(s, net, NULL, declare_liquid, b);
    if (status != MICA_OK || net->projection == 0) return status;
    liquid_layer top = {.s = s, .net = net};
    b->layer = &top;
    mica__liquid_linear(b, "fc", net->projection,
                        mica__liquid_cell_of(net)->outputs(net) * (net->bidirectional ? 2 : 1));
    return b->status;
}

mica_status mica_liquid_params(mica_scope *s, const mica_liquid *net, mica_dtype dtype, uint64_t seed,
                               mica_params *params)
{
    liquid_builder b = {.out = params, .dtype = dtype, .seed = seed};
    if (!params) return mica_fail(MICA_ERR_ARGUMENT, "liquid_params: params is NULL");
    return declare_all(&b, s, net);
}

mica_status mica_liquid_state_dict(mica_scope *s, const mica_liquid *net, const mica_params *params, mica_params **out)
{
    if (!out || !params) return mica_fail(MICA_ERR_ARGUMENT, "liquid_state_dict: params or out is NULL");
    mica_status status = mica_params_new(out);
    if (status != MICA_OK) return status;
    liquid_builder b = {.out = *out, .dtype = MICA_F32, .values = params};
    if (mica_params_count(params) > 0) b.dtype = mica_array_dtype(mica_params_at(params, 0));
    status = declare_all(&b, s, net);
    if (status == MICA_OK) return MICA_OK;
    mica_params_free(*out);
    *out = NULL;
    return status;
}

/* The mask in the file must equal that of the wiring; otherwise the file belongs to another wiring. */
static mica_status check_mask(mica_scope *s, mica_file *file, const char *name, mica_array *mine)
{
    mica_tensor_info info = {.struct_size = sizeof info};
    double wrong = 0;
    if (!mica_file_find(file, name, &info)) return MICA_OK; /* the file was written without masks */
    mica_array *theirs = mica_file_array(s, file, name);
    if (theirs && mica_array_size(theirs) != mica_array_size(mine))
        return mica_fail(MICA_ERR_SHAPE, "liquid_load: '%s' has %lld elements, not %lld", name,
                         (long long)mica_array_size(theirs), (long long)mica_array_size(mine));
    mica_array *differ = mica_not_equal(s, mica_flatten(s, theirs), mica_flatten(s, mine));
    mica_array *count = mica_sum(s, mica_cast(s, differ, MICA_I64), NULL, 0, false);
    mica_status status = mica_eval(s, &count, 1);
    if (status == MICA_OK) status = mica_item(count, &wrong);
    if (status == MICA_OK && wrong > 0)
        return mica_fail(MICA_ERR_FORMAT,
                         "liquid_load: '%s' differs in %.0f synapses: the file belongs to another wiring", name, wrong);
    return status;
}

mica_status mica_liquid_load(mica_scope *s, const mica_liquid *net, mica_params *params, mica_file *file)
{
    mica_params *all;
    mica_status status = mica_liquid_state_dict(s, net, params, &all);
    if (status != MICA_OK) return status;
    if (!file) status = mica_fail(MICA_ERR_ARGUMENT, "liquid_load: file is NULL");
    for (size_t i = 0; i < mica_params_count(all) && status == MICA_OK; i++) {
        const char *name = mica_params_name(all, i);
        if (mica_params_index(params, name) < 0) status = check_mask(s, file, name, mica_params_at(all, i));
    }
    mica_params_free(all);
    return status == MICA_OK ? mica_params_load(params, s, file) : status;
}

mica_status mica_liquid_constrain(mica_scope *s, const mica_liquid *net, mica_params *params)
{
    static const char *const names[] = {"rnn_cell.w", "rnn_cell.sensory_w", "rnn_cell.cm", "rnn_cell.gleak"};
    mica_liquid full;
    mica_status status = mica__liquid_read(net, &full);
    if (status == MICA_OK && !params) status = mica_fail(MICA_ERR_ARGUMENT, "liquid_constrain: params is NULL");
    if (status != MICA_OK || full.cell != MICA_LIQUID_LTC || full.implicit_constraints) return status;
    for (size_t i = 0; i < mica_params_count(params) && status == MICA_OK; i++) {
        const char *name = mica_params_name(params, i);
        const size_t length = strlen(name);
        for (size_t k = 0; k < sizeof names / sizeof names[0] && status == MICA_OK; k++) {
            const size_t tail = strlen(names[k]);
            if (length < tail || strcmp(name + length - tail, names[k]) != 0) continue;
            mica_array *value = mica_relu(s, mica_params_at(params, i));
            status = mica_eval(s, &value, 1);
            if (status == MICA_OK) status = mica_params_set(params, i, value);
        }
    }
    return status;
}
