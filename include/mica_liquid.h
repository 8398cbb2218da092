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
 *     mica_liquid_data data = {.struct_size = sizeof data, .x = x};
 *     mica_liquid_result result = {.struct_size = sizeof result};
 *     mica_liquid_forward(s, &net, params, &data, &result);
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

/* ------------------------------------------------------------ networks ---- */

typedef enum mica_liquid_cell {
    MICA_LIQUID_LTC = 0,            /* liquid time constants                           */
    MICA_LIQUID_CFC = 1,            /* their closed form; with a wiring: one for each of its layers */
    MICA_LIQUID_CTRNN = 2,          /* s' = tanh(W [x, s] + b) - s / tau               */
    MICA_LIQUID_NODE = 3,           /* s' = tanh(W [x, s] + b)                         */
    MICA_LIQUID_ELTC = 4,           /* s' = f(W x + V s + b) - s, masked by a wiring   */
    MICA_LIQUID_CTGRU = 5           /* a GRU whose state decays on eight time scales   */
} mica_liquid_cell;

/* Packages do not agree on what a CfC is. Torch: tanh around both branches, the gate
 * sigmoid(a t + b), signs of a wiring left out, dropout from the second layer of the
 * backbone on; a mixed memory's LSTM and the cell take turns on one state. Keras and
 * MLX: no tanh, sigmoid(-a t + b), signs of a wiring kept, dropout after each layer;
 * the LSTM's result is what the cell gets to see. */
typedef enum mica_liquid_convention { MICA_LIQUID_TORCH = 0, MICA_LIQUID_KERAS = 1 } mica_liquid_convention;

typedef enum mica_liquid_mapping {
    MICA_MAPPING_NONE = 0,
    MICA_MAPPING_LINEAR = 1,        /* w x                                             */
    MICA_MAPPING_AFFINE = 2         /* w x + b                                         */
} mica_liquid_mapping;

typedef enum mica_cfc_mode { MICA_CFC_DEFAULT = 0, MICA_CFC_PURE = 1, MICA_CFC_NO_GATE = 2 } mica_cfc_mode;

typedef enum mica_liquid_solver { MICA_SOLVER_EULER = 0, MICA_SOLVER_HEUN = 1, MICA_SOLVER_RK4 = 2 } mica_liquid_solver;

typedef struct mica_liquid {
    size_t struct_size;
    mica_liquid_cell cell;
    int64_t inputs, units;          /* units: without a wiring                         */
    const mica_wiring *wiring;      /* borrowed; NULL: everything with everything      */
    mica_liquid_convention convention;

    bool time_major;                /* sequences are (time, batch, ...), else (batch, time, ...) */
    bool last_only;                 /* the output of the last step, not of all         */
    bool mixed_memory;              /* an LSTM beside the cell (LTC and CfC)           */
    bool bidirectional;             /* a second network from the end; outputs side by side */
    int64_t layers;                 /* one on top of the other                         */
    int64_t projection;             /* a linear layer on the outputs; 0: none          */

    int64_t unfolds;                /* steps of the solver in a step (not CfC, CT-GRU) */
    mica_liquid_solver solver;      /* CT-RNN, NODE, ELTC                              */
    double tau;                     /* CT-RNN                                          */

    mica_liquid_mapping input_mapping, output_mapping; /* LTC                          */
    bool implicit_constraints;      /* LTC: softplus keeps w, cm and gleak positive    */
    double epsilon;                 /* LTC                                             */

    mica_cfc_mode mode;             /* CfC                                             */
    mica_activation activation;     /* CfC: of the backbone, LECUN_TANH being the reference's 1.7159 tanh(0.666 x);
                                     * ELTC: f                                         */
    int64_t backbone_units, backbone_layers; /* CfC without a wiring                   */
    double dropout;                 /* CfC: of the backbone                            */
} mica_liquid;

/* The defaults of the reference. */
MICA_API void mica_liquid_init(mica_liquid *net, mica_liquid_cell cell);
/* MICA_ERR_ARGUMENT and why, if there is no such network. */
MICA_API MICA_CHECK_RESULT mica_status mica_liquid_check(const mica_liquid *net);
/* Width of the outputs, and of the state of one layer in one direction. */
MICA_API int64_t mica_liquid_outputs(const mica_liquid *net);
MICA_API int64_t mica_liquid_state_size(const mica_liquid *net);

/* Adds initial parameters, evaluated, under the names of the reference ("rnn_cell.w",
 * "lstm.input_map.weight", "fc.weight"); of several layers with "layers.0." before
 * them, of the second direction with "reverse.". */
MICA_API MICA_CHECK_RESULT mica_status mica_liquid_params(mica_scope *s, const mica_liquid *net, mica_dtype dtype,
                                                          uint64_t seed, mica_params *params);

typedef struct mica_liquid_data {
    size_t struct_size;             /* sizeof(mica_liquid_data)                        */
    mica_array *x;                  /* (batch, time, inputs), (time, batch, inputs), or (time, inputs) */
    mica_array *timespans;          /* time since the step before: NULL: 1; one element, or (time), or
                                     * (batch, time), (time, batch) as x; there 1 for an axis: the
                                     * same for all steps, or for all samples           */
    mica_array *state, *memory;     /* what to begin with; NULL: zeros. (batch, state), without batch as
                                     * x; before it an axis of layers and directions if there are several */
    mica_array *seed;               /* of dropout, see mica_dropout; NULL: none        */
} mica_liquid_data;

typedef struct mica_liquid_result {
    size_t struct_size;             /* sizeof(mica_liquid_result)                      */
    mica_array *y;                  /* outputs, as x, or without time if last_only     */
    mica_array *state, *memory;     /* after the last step; memory: mixed memory, else NULL */
} mica_liquid_result;

/* What sizes the network has that are no powers of two: kernels compute whole vectors and
 * tiles, so that the rest of the last one is lost. A line for each, with the powers on
 * both sides; none: an empty text. Written as mica_doctor_text writes. */
MICA_API MICA_UNSTABLE size_t mica_liquid_advice(const mica_liquid *net, int64_t batch, char *buffer, size_t cap);

/* Usual sizes on a chip, and what it should reach at least: the table of the ncps for MLX, as its
 * authors give it. Nobody has measured it here. */
typedef struct mica_liquid_preset {
    const char *device;             /* "M1", "M1 Pro", "M1 Max", "M1 Ultra"            */
    int64_t batch[2], units[2], backbone[2];
    int64_t memory_mb;
    double tflops, gb_per_second;
} mica_liquid_preset;

/* By "ultra", "max" or "pro" in the name of a chip, any case; else, and for NULL, the first: ->device says
 * whose it is. */
MICA_API MICA_UNSTABLE const mica_liquid_preset *mica_liquid_preset_for(const char *chip);

/* The whole sequence as one graph. A failure is also the scope's. */
MICA_API mica_status mica_liquid_forward(mica_scope *s, const mica_liquid *net, const mica_params *params,
                                         const mica_liquid_data *data, mica_liquid_result *result);

/* LTC without implicit constraints: after a step of the optimiser, values of w,
 * sensory_w, cm and gleak below 0 become 0. Of other networks nothing changes. */
MICA_API MICA_CHECK_RESULT mica_status mica_liquid_constrain(mica_scope *s, const mica_liquid *net,
                                                             mica_params *params);

/* As the reference's state_dict: the parameters, and the masks of a wiring among them,
 * in its order. *out is to be freed; mica_params_save writes it. */
MICA_API MICA_CHECK_RESULT mica_status mica_liquid_state_dict(mica_scope *s, const mica_liquid *net,
                                                              const mica_params *params, mica_params **out);
/* Reads such a file; one whose masks are those of another wiring is refused. */
MICA_API MICA_CHECK_RESULT mica_status mica_liquid_load(mica_scope *s, const mica_liquid *net, mica_params *params,
                                                        mica_file *file);

#ifdef __cplusplus
}
#endif

#endif
