/* What the commands for sequences share: a network by its options, how it is kept in a
 * file, and how it is run over rows. */
#ifndef MICA_CLI_NCP_H
#define MICA_CLI_NCP_H

#include <mica_liquid.h>

#include "series.h"

enum { NCP_WIRING = 128 };

/* What makes a network, and what a model file says of it. */
typedef struct ncp_shape {
    int cell;                      /* of ncp_cells                                   */
    char wiring[NCP_WIRING];       /* "": none                                       */
    int64_t inputs, outputs, units, layers, unfolds, backbone_units, backbone_layers;
    int mode, convention;
    bool mixed_memory, bidirectional;
    double dropout;
} ncp_shape;

/* The words of --cell, with | between. */
#define NCP_CELLS "cfc|ltc|ctrnn|node|eltc|ctgru|gru|lstm"
const char *ncp_cell_name(int cell);
/* LSTM and GRU have no time of their own. */
bool ncp_takes_time(const ncp_shape *shape);

typedef struct ncp_net {
    ncp_shape shape;
    mica_liquid liquid;
    mica_wiring *wiring;
} ncp_net;

/* MICA_ERR_ARGUMENT: there is no such network. */
mica_status ncp_net_open(const ncp_shape *shape, ncp_net *net);
void ncp_net_close(ncp_net *net);
mica_status ncp_net_params(mica_scope *s, const ncp_net *net, uint64_t seed, mica_params *params);

typedef struct ncp_states {
    mica_array *state, *memory;    /* NULL: zeros, or none                           */
} ncp_states;

/* Outputs (batch, time, outputs) of x (batch, time, inputs); span (batch, time) or NULL.
 * states (may be NULL): those before, then those after. */
mica_array *ncp_net_apply(mica_forward *f, const ncp_net *net, mica_array *x, mica_array *span, ncp_states *states);

/* As text for a model file, to be freed; and back. */
char *ncp_shape_text(const ncp_shape *shape);
bool ncp_shape_parse(ncp_shape *shape, const char *text);

#endif
