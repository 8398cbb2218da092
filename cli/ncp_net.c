/* The networks of `mica train ncp`: liquid ones, and GRU and LSTM beside them, all with
 * as many outputs as the data has targets. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ncp.h"

static const struct {
    const char *name;
    int gates; /* 0: a liquid cell */
    mica_liquid_cell liquid;
    bool wired; /* by default */
} ncp_cells[] = {{"cfc", 0, MICA_LIQUID_CFC, true},
                 {"ltc", 0, MICA_LIQUID_LTC, true},
                 {"ctrnn", 0, MICA_LIQUID_CTRNN, false},
                 {"node", 0, MICA_LIQUID_NODE, false},
                 {"eltc", 0, MICA_LIQUID_ELTC, false},
                 {"ctgru", 0, MICA_LIQUID_CTGRU, false},
                 {"gru", 3, 0, false},
                 {"lstm", 4, 0, false}};
enum { NCP_CELL_COUNT = sizeof ncp_cells / sizeof ncp_cells[0] };

const char *ncp_cell_name(int cell) { return ncp_cells[cell].name; }
bool ncp_takes_time(const ncp_shape *shape) { return ncp_cells[shape->cell].gates == 0; }

static bool is_gated(const ncp_net *net) { return ncp_cells[net->shape.cell].gates > 0; }

/* "": the usual wiring of the cell; "none": no wiring. */
static mica_status open_wiring(ncp_net *net)
{
    ncp_shape *p = &net->shape;
    if (strcmp(p->wiring, "none") == 0) return MICA_OK;
    if (!p->wiring[0] && (!ncp_cells[p->cell].wired || p->units <= p->outputs + 2)) {
        snprintf(p->wiring, sizeof p->wiring, "none");
        return MICA_OK;
    }
    if (is_gated(net)) return mica_fail(MICA_ERR_ARGUMENT, "--cell %s has no --wiring", ncp_cells[p->cell].name);
    if (!p->wiring[0])
        snprintf(p->wiring, sizeof p->wiring, "autoncp:%lld,%lld", (long long)p->units, (long long)p->outputs);
    return mica_wiring_parse(p->wiring, p->inputs, &net->wiring);
}

mica_status ncp_net_open(const ncp_shape *shape, ncp_net *net)
{
    *net = (ncp_net){.shape = *shape};
    mica_status status = open_wiring(net);
    if (status != MICA_OK) return status;
    const ncp_shape *p = &net->shape;
    if (is_gated(net)) {
        if (!p->bidirectional && !p->mixed_memory) return MICA_OK;
        return mica_fail(MICA_ERR_ARGUMENT, "--cell %s has no --bidirectional and no --mixed-memory",
                         ncp_cells[p->cell].name);
    }
    mica_liquid *n = &net->liquid;
    mica_liquid_init(n, ncp_cells[p->cell].liquid);
    n->inputs = p->inputs, n->units = p->units, n->layers = p->layers, n->wiring = net->wiring;
    n->mixed_memory = p->mixed_memory, n->bidirectional = p->bidirectional;
    n->mode = (mica_cfc_mode)p->mode, n->convention = (mica_liquid_convention)p->convention;
    if (p->unfolds > 0) n->unfolds = p->unfolds;
    n->backbone_units = p->backbone_units, n->backbone_layers = p->backbone_layers, n->dropout = p->dropout;
    status = mica_liquid_check(n);
    if (status == MICA_OK && mica_liquid_outputs(n) != p->outputs) n->projection = p->outputs;
    return status;
}

void ncp_net_close(ncp_net *net)
{
    mica_wiring_free(net->wiring);
    net->wiring = NULL;
}

/* ------------------------------------------------------------- GRU, LSTM --- */

static mica_status gated_params(mica_scope *s, const ncp_net *net, uint64_t seed, mica_params *params)
{
    const ncp_shape *p = &net->shape;
    mica_status status = MICA_OK;
    for (int64_t i = 0; i < p->layers && status == MICA_OK; i++) {
        char name[32];
        mica_layer layer = mica_recurrent_layer(ncp_cells[p->cell].gates == 4 ? MICA_LAYER_LSTM : MICA_LAYER_GRU,
                                                i ? p->units : p->inputs, p->units);
        snprintf(name, sizeof name, "rnn.%lld", (long long)i);
        status = mica_layer_params(s, params, &layer, mica_seed_split(seed, (uint64_t)i), "%s", name);
    }
    const mica_layer fc = mica_linear_layer(p->units, p->outputs);
    if (status == MICA_OK) status = mica_layer_params(s, params, &fc, mica_seed_split(seed, 1000), "fc");
    return status;
}

/* State number i of several, stacked on the first axis; NULL: none yet. */
static mica_array *one_state(mica_scope *s, mica_array *all, int64_t i)
{
    return all ? mica_squeeze(s, mica_slice_axis(s, all, 0, i, i + 1, 1), 0) : NULL;
}

static mica_array *gated_apply(mica_forward *f, const ncp_net *net, mica_array *x, ncp_states *states)
{
    enum { MOST = 64 };
    mica_scope *s = f->s;
    mica_array *h[MOST], *c[MOST];
    const int64_t layers = net->shape.layers < MOST ? net->shape.layers : MOST;
    x = mica_permute(s, x, (const int[]){1, 0, 2});
    for (int64_t i = 0; i < layers; i++) {
        const mica_recurrent_weights w = {.w_in = mica_param(f, "rnn.%d.weight_ih_l0", (int)i),
                                          .w_state = mica_param(f, "rnn.%d.weight_hh_l0", (int)i),
                                          .b_in = mica_param(f, "rnn.%d.bias_ih_l0", (int)i),
                                          .b_state = mica_param(f, "rnn.%d.bias_hh_l0", (int)i)};
        h[i] = states ? one_state(s, states->state, i) : NULL;
        c[i] = states ? one_state(s, states->memory, i) : NULL;
        const mica_status status = ncp_cells[net->shape.cell].gates == 4 ? mica_lstm(s, x, &w, false, &h[i], &c[i], &x)
                                                                         : mica_gru(s, x, &w, false, &h[i], &x);
        if (status != MICA_OK) return NULL;
        x = mica_watch(f, x, "rnn.%d", (int)i);
    }
    if (states) {
        states->state = mica_stack(s, h, (size_t)layers, 0);
        states->memory = ncp_cells[net->shape.cell].gates == 4 ? mica_stack(s, c, (size_t)layers, 0) : NULL;
    }
    x = mica_linear(s, x, mica_param(f, "fc.weight"), mica_param(f, "fc.bias"));
    return mica_permute(s, x, (const int[]){1, 0, 2});
}

/* -------------------------------------------------------------------- any -- */

mica_status ncp_net_params(mica_scope *s, const ncp_net *net, uint64_t seed, mica_params *params)
{
    if (is_gated(net)) return gated_params(s, net, seed, params);
    return mica_liquid_params(s, &net->liquid, MICA_F32, seed, params);
}

mica_array *ncp_net_apply(mica_forward *f, const ncp_net *net, mica_array *x, mica_array *span, ncp_states *states)
{
    if (is_gated(net)) return gated_apply(f, net, x, states);
    mica_liquid_data data = {.x = x, .timespans = span, .seed = f->training ? f->seed : NULL};
    mica_liquid_result r;
    if (states) data.state = states->state, data.memory = states->memory;
    if (mica_liquid_forward(f->s, &net->liquid, f->params, &data, &r) != MICA_OK) return NULL;
    if (states) *states = (ncp_states){r.state, r.memory};
    mica_watch(f, r.state, "the state of the %s", ncp_cells[net->shape.cell].name);
    return mica_watch(f, r.y, "the outputs of the %s", ncp_cells[net->shape.cell].name);
}

/* ------------------------------------------------------------------- text -- */

char *ncp_shape_text(const ncp_shape *p)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (!to) return NULL;
    fprintf(to,
            "cell %s wiring %s inputs %lld outputs %lld units %lld layers %lld unfolds %lld backbone %lld %lld mode %d "
            "convention %d memory %d both %d dropout %a",
            ncp_cells[p->cell].name, p->wiring[0] ? p->wiring : "none", (long long)p->inputs, (long long)p->outputs,
            (long long)p->units, (long long)p->layers, (long long)p->unfolds, (long long)p->backbone_units,
            (long long)p->backbone_layers, p->mode, p->convention, p->mixed_memory, p->bidirectional, p->dropout);
    if (fclose(to) != 0) return free(text), NULL;
    return text;
}

bool ncp_shape_parse(ncp_shape *p, const char *text)
{
    char cell[16];
    long long n[7];
    int memory, both;
    *p = (ncp_shape){.cell = -1};
    if (sscanf(text,
               "cell %15s wiring %127s inputs %lld outputs %lld units %lld layers %lld unfolds %lld backbone %lld %lld "
               "mode %d convention %d memory %d both %d dropout %la",
               cell, p->wiring, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &p->mode, &p->convention, &memory,
               &both, &p->dropout) != 14)
        return false;
    for (int i = 0; i < NCP_CELL_COUNT; i++)
        if (strcmp(cell, ncp_cells[i].name) == 0) p->cell = i;
    p->inputs = n[0], p->outputs = n[1], p->units = n[2], p->layers = n[3], p->unfolds = n[4];
    p->backbone_units = n[5], p->backbone_layers = n[6];
    p->mixed_memory = memory != 0, p->bidirectional = both != 0;
    return p->cell >= 0;
}
