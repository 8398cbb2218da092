/* mica_liquid: liquid networks, on mica_nn.h.
 *
 * The nouns. A *wiring* says which neuron acts on which, and with which sign; it is
 * made once, from a seed, and never changes. A *liquid network* is a description:
 * which cell, how wide, how it is wired, what its sequences look like. Its parameters
 * are a mica_params under the names of the reference package's state_dict, and its
 * forward pass is a function that builds a graph: a whole sequence is one plan.
 *
 * The same seed gives the synapses and signs of the reference (ncps 1.0.1).
 *
 *     mica_wiring *w;
 *     mica_wiring_parse("autoncp:32,4", inputs, &w);
 *     mica_liquid net;
 *     mica_liquid_init(&net, MICA_LIQUID_CFC);
 *     net.inputs = inputs, net.wiring = w;
 *     mica_liquid_params(s, &net, MICA_F32, seed, params);
 *     mica_liquid_forward(s, &net, params, &(mica_liquid_data){.x = x}, &result);
 */
#ifndef MICA_LIQUID_H
#define MICA_LIQUID_H

#include "mica_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- wirings ---- */

typedef struct mica_wiring mica_wiring;

typedef enum mica_wiring_kind {
    MICA_WIRING_FULL = 0,           /* every neuron and every input acts on every neuron */
    MICA_WIRING_RANDOM = 1,         /* a share of all synapses, drawn                  */
    MICA_WIRING_NCP = 2,            /* inputs, inter, command and motor neurons        */
    MICA_WIRING_AUTO_NCP = 3        /* the same, sizes from units, outputs and sparsity */
} mica_wiring_kind;

typedef struct mica_wiring_options {
    size_t struct_size;
    mica_wiring_kind kind;
    int64_t inputs;
    int64_t units, outputs;         /* NCP: follow from what is below; outputs 0: all units */
    double sparsity;                /* random: [0, 1); auto NCP: [0.1, 1]              */
    bool self_connections;          /* full                                            */
    uint64_t seed;                  /* NCP and auto NCP: below 2^32                    */
    int64_t inter, command, motor;  /* NCP: neurons of each kind                       */
    int64_t sensory_fanout, inter_fanout, recurrent, motor_fanin; /* NCP: synapses     */
} mica_wiring_options;

/* Defaults of the reference: seed 1111, of NCPs 22222; sparsity 0.5; self-connections. */
MICA_API void mica_wiring_options_init(mica_wiring_options *options, mica_wiring_kind kind);
MICA_API MICA_CHECK_RESULT mica_status mica_wiring_new(const mica_wiring_options *options, mica_wiring **out);
/* From text: "full:UNITS[,OUTPUTS]", "random:UNITS,OUTPUTS,SPARSITY",
 * "autoncp:UNITS,OUTPUTS[,SPARSITY]", "ncp:INTER,COMMAND,MOTOR,SENSORY_FANOUT,
 * INTER_FANOUT,RECURRENT,MOTOR_FANIN"; each may end in "@SEED". */
MICA_API MICA_CHECK_RESULT mica_status mica_wiring_parse(const char *text, int64_t inputs, mica_wiring **out);
MICA_API void mica_wiring_free(mica_wiring *wiring);

/* What it was made from, units and outputs filled in. */
MICA_API const mica_wiring_options *mica_wiring_get(const mica_wiring *wiring);
/* -1, 0, 1 for each (source, destination): (units, units), and (inputs, units). */
MICA_API const int8_t *mica_wiring_synapses(const mica_wiring *wiring);
MICA_API const int8_t *mica_wiring_sensory(const mica_wiring *wiring);
/* The first neuron of a layer and how many there are: of an NCP inter, command, motor
 * (which are numbered from the motor neurons on), else one layer. false: no such layer. */
MICA_API bool mica_wiring_layer(const mica_wiring *wiring, int64_t layer, int64_t *first, int64_t *count);

typedef struct mica_wiring_stats {
    size_t struct_size;
    int64_t synapses, sensory;      /* between neurons; from inputs                    */
    int64_t excitatory, inhibitory; /* of both                                         */
    double sparsity, sensory_sparsity; /* 1 - synapses / possible ones                 */
    double mean_degree;             /* synapses between neurons, a neuron              */
    int64_t max_in, max_out;
    int64_t components, largest;    /* strongly connected ones; neurons of the largest */
    double mean_path;               /* steps from a neuron to each it reaches, itself included */
} mica_wiring_stats;

MICA_API MICA_CHECK_RESULT mica_status mica_wiring_measure(const mica_wiring *wiring, mica_wiring_stats *stats);

/* A picture: layers in columns, signs in two colours. Written as mica_doctor_text
 * writes; 0: no memory. */
MICA_API size_t mica_wiring_svg(const mica_wiring *wiring, char *buffer, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
