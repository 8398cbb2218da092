/* mica_liquid: liquid networks, on mica_nn.h.
 *
 * Terms. A *wiring* is the set of synapses between neurons with their signs; it is
 * made once, from a seed, and never changes. A *liquid network* is a description:
 * the cell, its width, its wiring, the layout of its sequences. Its parameters are a
 * mica_params with the names of the reference package's state_dict. Its forward pass
 * is a function that builds a graph: a whole sequence is one plan.
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
    MICA_WIRING_FULL = 0,           /* from every neuron and input to every neuron       */
    MICA_WIRING_RANDOM = 1,         /* a random part of all synapses                   */
    MICA_WIRING_NCP = 2,            /* inputs, inter, command and motor neurons        */
    MICA_WIRING_AUTO_NCP = 3        /* the same, sizes from units, outputs and sparsity */
} mica_wiring_kind;

typedef struct mica_wiring_options {
    size_t struct_size;
    mica_wiring_kind kind;
    int64_t inputs;
    int64_t units, outputs;         /* NCP: set from the fields below; FULL, RANDOM: outputs 0 means all units */
    double sparsity;                /* random: [0, 1); auto NCP: [0.1, 1]              */
    bool self_connections;          /* full wiring only                                */
    uint64_t seed;                  /* NCP and auto NCP: below 2^32                    */
    int64_t inter, command, motor;  /* NCP: neurons of each kind                       */
    /* NCP: synapses out of each input; out of each inter neuron; random pairs of command neurons in total (a
     * pair that is drawn twice is one synapse); synapses into each motor neuron. A neuron that would have no
     * synapse gets additional ones. */
    int64_t sensory_fanout, inter_fanout, recurrent, motor_fanin;
} mica_wiring_options;

/* Defaults of the reference: seed 1111 (NCP: 22222), sparsity 0.5, with self-connections. */
MICA_API void mica_wiring_options_init(mica_wiring_options *options, mica_wiring_kind kind);
MICA_API MICA_CHECK_RESULT mica_status mica_wiring_new(const mica_wiring_options *options, mica_wiring **out);
/* Parses text: "full:UNITS[,OUTPUTS]", "random:UNITS,OUTPUTS,SPARSITY",
 * "autoncp:UNITS,OUTPUTS[,SPARSITY]", "ncp:INTER,COMMAND,MOTOR,SENSORY_FANOUT,
 * INTER_FANOUT,RECURRENT,MOTOR_FANIN"; each may end in "@SEED". */
MICA_API MICA_CHECK_RESULT mica_status mica_wiring_parse(const char *text, int64_t inputs, mica_wiring **out);
MICA_API void mica_wiring_free(mica_wiring *wiring);

/* The options it was made from, with units and outputs set. */
MICA_API const mica_wiring_options *mica_wiring_get(const mica_wiring *wiring);
/* -1, 0, 1 for each (source, destination): (units, units), and (inputs, units). */
MICA_API const int8_t *mica_wiring_synapses(const mica_wiring *wiring);
MICA_API const int8_t *mica_wiring_sensory(const mica_wiring *wiring);
/* The first neuron of a layer and the number of its neurons. An NCP has the layers inter,
 * command and motor (neuron numbers start with the motor neurons), other wirings one layer.
 * False: there is no such layer. */
MICA_API bool mica_wiring_layer(const mica_wiring *wiring, int64_t layer, int64_t *first, int64_t *count);

typedef struct mica_wiring_stats {
    size_t struct_size;
    int64_t synapses, sensory;      /* synapses between neurons; from inputs to neurons */
    int64_t excitatory, inhibitory; /* signs 1 and -1, of synapses + sensory           */
    double sparsity, sensory_sparsity; /* 1 - synapses / units^2; 1 - sensory / (inputs units) */
    double mean_degree;             /* synapses / units                                */
    int64_t max_in, max_out;        /* most synapses from neurons into, and out of, one neuron */
    int64_t components, largest;    /* strongly connected components; neurons of the largest */
    double mean_path;               /* mean distance from a neuron to each that it reaches, itself (0) included */
} mica_wiring_stats;

MICA_API MICA_CHECK_RESULT mica_status mica_wiring_measure(const mica_wiring *wiring, mica_wiring_stats *stats);

/* An SVG image: layers in columns, signs in two colours. Written as mica_doctor_text
 * does; 0: out of memory. */
MICA_API size_t mica_wiring_svg(const mica_wiring *wiring, char *buffer, size_t cap);

/* ------------------------------------------------------------ networks ---- */

typedef enum mica_liquid_cell {
    MICA_LIQUID_LTC = 0,            /* liquid time constants                           */
    MICA_LIQUID_CFC = 1,            /* closed-form LTC; with a wiring: one cell per layer of it     */
    MICA_LIQUID_CTRNN = 2,          /* s' = tanh(W [x, s] + b) - s / tau               */
    MICA_LIQUID_NODE = 3,           /* s' = tanh(W [x, s] + b)                         */
    MICA_LIQUID_ELTC = 4,           /* s' = f(W x + V s + b) - s, masked by a wiring   */
    MICA_LIQUID_CTGRU = 5           /* a GRU whose state decays on eight time scales   */
} mica_liquid_cell;

/* Packages define CfC differently. Torch: tanh around both branches, the gate is
 * sigmoid(a t + b), signs of a wiring are ignored, dropout from the second layer of the
 * backbone on; with mixed memory the LSTM and the cell alternate on one state. Keras and
 * MLX: no tanh, sigmoid(-a t + b), signs of a wiring are used, dropout after each layer;
 * the output of the LSTM is the input of the cell. */
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
    int64_t inputs, units;          /* units: used without a wiring                    */
    const mica_wiring *wiring;      /* borrowed; NULL: fully connected                 */
    mica_liquid_convention convention;

    bool time_major;                /* sequences are (time, batch, ...), else (batch, time, ...) */
    bool last_only;                 /* return the last step only                       */
    bool mixed_memory;              /* add an LSTM to the cell (LTC and CfC)           */
    bool bidirectional;             /* a second network runs backwards; outputs are concatenated */
    int64_t layers;                 /* stacked layers                                  */
    int64_t projection;             /* width of a linear layer on the outputs; 0: none */

    int64_t unfolds;                /* solver steps per time step (not CfC, CT-GRU)    */
    mica_liquid_solver solver;      /* CT-RNN, NODE, ELTC                              */
    double tau;                     /* CT-RNN                                          */

    mica_liquid_mapping input_mapping, output_mapping; /* LTC                          */
    bool implicit_constraints;      /* LTC: softplus keeps w, cm and gleak positive    */
    double epsilon;                 /* LTC                                             */

    mica_cfc_mode mode;             /* CfC                                             */
    mica_activation activation;     /* CfC: of the backbone (LECUN_TANH is the reference's 1.7159 tanh(0.666 x));
                                     * ELTC: f                                         */
    int64_t backbone_units, backbone_layers; /* CfC without a wiring                   */
    double dropout;                 /* CfC: of the backbone                            */
} mica_liquid;

/* The defaults of the reference. */
MICA_API void mica_liquid_init(mica_liquid *net, mica_liquid_cell cell);
/* MICA_ERR_ARGUMENT, with the reason, if the network is not valid. */
MICA_API MICA_CHECK_RESULT mica_status mica_liquid_check(const mica_liquid *net);
/* Width of the outputs, and of the state of one layer in one direction. */
MICA_API int64_t mica_liquid_outputs(const mica_liquid *net);
MICA_API int64_t mica_liquid_state_size(const mica_liquid *net);

/* Adds initial parameters, evaluated, with the names of the reference ("rnn_cell.w",
 * "lstm.input_map.weight", "fc.weight"). The prefix of several layers is "layers.0.",
 * that of the second direction "reverse.". */
MICA_API MICA_CHECK_RESULT mica_status mica_liquid_params(mica_scope *s, const mica_liquid *net, mica_dtype dtype,
                                                          uint64_t seed, mica_params *params);

typedef struct mica_liquid_data {
    size_t struct_size;             /* sizeof(mica_liquid_data)                        */
    mica_array *x;                  /* (batch, time, inputs), (time, batch, inputs), or (time, inputs) */
    mica_array *timespans;          /* time since the previous step; NULL: 1. One element, (time), or
                                     * (batch, time), (time, batch) in the order of x; an axis of
                                     * size 1 is broadcast over steps or samples       */
    mica_array *state, *memory;     /* initial values; NULL: zeros. (batch, state); without batch if x has
                                     * none; several layers or directions: that axis is the first         */
    mica_array *seed;               /* of dropout, see mica_dropout; NULL: no dropout  */
} mica_liquid_data;

typedef struct mica_liquid_result {
    size_t struct_size;             /* sizeof(mica_liquid_result)                      */
    mica_array *y;                  /* outputs, axes as x; without time if last_only   */
    mica_array *state, *memory;     /* after the last step; memory: NULL without mixed memory */
} mica_liquid_result;

/* Lists the sizes (units, backbone units, batch) that are not powers of two: kernels compute whole
 * vectors and tiles, so part of the last one is wasted. One line per size, with the powers of two on
 * both sides; an empty text if there are none. Written as mica_doctor_text does. */
MICA_API MICA_UNSTABLE size_t mica_liquid_advice(const mica_liquid *net, int64_t batch, char *buffer, size_t cap);

/* Usual sizes on a chip and the rates it should reach at least: the table of ncps for MLX, as its
 * authors publish it. It was not measured with mica. */
typedef struct mica_liquid_preset {
    const char *device;             /* "M1", "M1 Pro", "M1 Max", "M1 Ultra"            */
    int64_t batch[2], units[2], backbone[2];
    int64_t memory_mb;
    double tflops, gb_per_second;
} mica_liquid_preset;

/* Selected by "ultra", "max" or "pro" in the name of the chip, in any case; otherwise, and for NULL, the first
 * preset. ->device names its chip. */
MICA_API MICA_UNSTABLE const mica_liquid_preset *mica_liquid_preset_for(const char *chip);

/* Builds the whole sequence as one graph. The scope keeps a failure too. */
MICA_API mica_status mica_liquid_forward(mica_scope *s, const mica_liquid *net, const mica_params *params,
                                         const mica_liquid_data *data, mica_liquid_result *result);

/* LTC without implicit constraints: after a step of the optimiser, values of w,
 * sensory_w, cm and gleak below 0 become 0. Other networks do not change. */
MICA_API MICA_CHECK_RESULT mica_status mica_liquid_constrain(mica_scope *s, const mica_liquid *net,
                                                             mica_params *params);

/* The reference's state_dict: the parameters and the masks of a wiring, in its order.
 * The caller frees *out; mica_params_save writes it. */
MICA_API MICA_CHECK_RESULT mica_status mica_liquid_state_dict(mica_scope *s, const mica_liquid *net,
                                                              const mica_params *params, mica_params **out);
/* Reads such a file; a file with the masks of another wiring is refused. */
MICA_API MICA_CHECK_RESULT mica_status mica_liquid_load(mica_scope *s, const mica_liquid *net, mica_params *params,
                                                        mica_file *file);

#ifdef __cplusplus
}
#endif

#endif
