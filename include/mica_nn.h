/* mica_nn: training neural networks, on mica.h.
 *
 * Terms. A *parameter set* is an ordered list of named arrays; files use the same
 * names, so they are stable. A *layer* is a function that builds a graph from inputs
 * and parameters; it has no state. A *forward pass* holds what the layers of a network
 * share while its graph is built: the scope, the parameters, the training flag. A
 * *trainer* owns the state of an optimiser and one compiled step: loss, gradients,
 * clipping and update are one plan, traced at the first step and replayed after that.
 * A *decoder* is the network that `mica train lm` trains: BitNet b1.58 2B4T at any size.
 *
 * Ownership and errors are those of mica.h: layers return NULL when they fail and
 * the scope keeps the error; other calls return a status.
 *
 *     mica_params *p;                            // names and initial values
 *     mica_params_new(&p);
 *     mica_layer net[] = {mica_linear_layer(4, 32), mica_activation_layer(MICA_ACTIVATION_TANH),
 *                         mica_linear_layer(32, 3)};
 *     mica_sequential_params(s, p, net, 3, 42, "net");       // net.0.weight, net.0.bias, net.2.weight, ...
 *     mica_trainer *t;
 *     mica_trainer_open(e, p, &options, &t);     // options.loss builds the loss
 *     mica_trainer_step(t, s, data, 2, rate, decay, &result);
 */
#ifndef MICA_NN_H
#define MICA_NN_H

#include "mica.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------ parameter sets ---- */

typedef struct mica_params mica_params;

MICA_API MICA_CHECK_RESULT mica_status mica_params_new(mica_params **out);
MICA_API void mica_params_free(mica_params *params);

/* Adds a reference to value. A name that exists already is an error. */
MICA_API MICA_CHECK_RESULT mica_status mica_params_add(mica_params *params, const char *name, mica_array *value);
/* A value of the network that is not trained: the forward pass replaces it
 * (mica_params_set), as batch norm does with its running statistics. */
MICA_API MICA_CHECK_RESULT mica_status mica_params_add_buffer(mica_params *params, const char *name, mica_array *value);
/* Mixed precision does not cast this parameter. */
MICA_API MICA_CHECK_RESULT mica_status mica_params_keep_precision(mica_params *params, size_t i);
/* Replaces a value by one of the same shape and dtype. */
MICA_API MICA_CHECK_RESULT mica_status mica_params_set(mica_params *params, size_t i, mica_array *value);

/* In the order in which they were added. */
MICA_API size_t mica_params_count(const mica_params *params);
MICA_API const char *mica_params_name(const mica_params *params, size_t i);
MICA_API mica_array *mica_params_at(const mica_params *params, size_t i);
MICA_API int64_t mica_params_elements(const mica_params *params);
MICA_API bool mica_params_is_trained(const mica_params *params, size_t i);
/* The index of a name; -1 if there is none. */
MICA_API int64_t mica_params_index(const mica_params *params, const char *name);
/* The value of a name, which is formatted as printf does; an absent name fails the scope. */
MICA_API mica_array *mica_params_get(mica_scope *s, const mica_params *params, const char *format, ...)
    MICA_PRINTF(3, 4);

typedef enum mica_init {
    MICA_INIT_ZEROS = 0,
    MICA_INIT_ONES = 1,
    MICA_INIT_UNIFORM = 2,          /* [-scale, scale)                                 */
    MICA_INIT_NORMAL = 3,           /* standard deviation scale                        */
    MICA_INIT_XAVIER_UNIFORM = 4,   /* variance 2 scale^2 / (in + out)                 */
    MICA_INIT_XAVIER_NORMAL = 5,
    MICA_INIT_KAIMING_UNIFORM = 6,  /* variance scale^2 / in; use sqrt(2) before a relu */
    MICA_INIT_KAIMING_NORMAL = 7,
    MICA_INIT_ORTHOGONAL = 8        /* scale times orthonormal rows, or columns if there
                                     * are fewer; computed in the call, not lazily     */
} mica_init;

/* Initial values. A matrix is (out, in). A convolution kernel is (out, in, size...): its
 * size multiplies both in and out. */
MICA_API mica_array *mica_init_array(mica_scope *s, mica_init how, double scale, mica_dtype dtype, int ndim,
                                     const int64_t *shape, uint64_t seed);

/* Makes a parameter in f32, evaluates it and adds it. The name is formatted as printf
 * does. Its seed is derived from seed and its index in the set. */
MICA_API MICA_CHECK_RESULT mica_status mica_params_make(mica_scope *s, mica_params *params, mica_init how, double scale,
                                                        int ndim, const int64_t *shape, uint64_t seed,
                                                        const char *format, ...) MICA_PRINTF(8, 9);
MICA_API MICA_CHECK_RESULT mica_status mica_params_make_buffer(mica_scope *s, mica_params *params, double value,
                                                               int ndim, const int64_t *shape, const char *format, ...)
    MICA_PRINTF(6, 7);

/* -------------------------------------------------------- forward pass ---- */

/* The data that layers of a network share while its graph is built. A trainer sets it
 * for the loss; a program that only runs a network uses mica_forward_init. */
typedef struct mica_forward {
    size_t struct_size;
    mica_scope *s;
    mica_params *params;            /* the values to use, with the names of the set    */
    bool training;                  /* enables dropout; batch norm uses its batch      */
    mica_array *seed;               /* of dropout: one integer as data, new in each
                                     * step; NULL: no dropout                          */
    uint32_t streams;               /* dropouts so far: each has a separate stream     */
    struct mica_watcher *watcher;   /* set by the trainer; else NULL                   */
} mica_forward;

/* Not training. */
MICA_API void mica_forward_init(mica_forward *f, mica_scope *s, mica_params *params);

/* The parameter of a name, which is formatted as printf does: mica_params_get of the pass. */
MICA_API mica_array *mica_param(mica_forward *f, const char *format, ...) MICA_PRINTF(2, 3);

/* Returns x. When a step gives a number that is not finite, the trainer builds the
 * loss again and names the first watched array that has such a number. */
MICA_API mica_array *mica_watch(mica_forward *f, mica_array *x, const char *format, ...) MICA_PRINTF(3, 4);

/* Dropout of probability p if the pass is training and has a seed, else x. */
MICA_API mica_array *mica_drop_some(mica_forward *f, mica_array *x, double p);

/* Builds the results of a network from data and f->params. */
typedef mica_status (*mica_network_fn)(mica_forward *f, mica_array *const *data, size_t n, mica_array **out,
                                       size_t n_out, void *user);

/* A network for inference, traced once for each combination of input shapes. It borrows
 * params and uses their values at the time of the run. */
typedef struct mica_network mica_network;
MICA_API MICA_CHECK_RESULT mica_status mica_network_open(mica_engine *engine, mica_params *params, mica_network_fn fn,
                                                         void *user, mica_network **out);
MICA_API void mica_network_close(mica_network *network);
/* out[] are ready when it returns. */
MICA_API MICA_CHECK_RESULT mica_status mica_network_run(mica_network *network, mica_scope *s, mica_array *const *data,
                                                        size_t n, mica_array **out, size_t n_out);

/* -------------------------------------------------------------- layers ---- */

/* x (..., in) times the transpose of w (out, in), plus bias (out), which may be NULL.
 * Computed in the dtype of w if that is f16 or bf16 (mixed precision), else in the
 * promoted dtype. */
MICA_API mica_array *mica_linear(mica_scope *s, mica_array *x, mica_array *w, mica_array *bias);

/* Values are pinned: append, never renumber. */
typedef enum mica_activation {
    MICA_ACTIVATION_NONE = 0,
    MICA_ACTIVATION_RELU = 1,
    MICA_ACTIVATION_RELU2 = 2,
    MICA_ACTIVATION_LEAKY_RELU = 3, /* slope 0.01                                      */
    MICA_ACTIVATION_ELU = 4,        /* alpha 1                                         */
    MICA_ACTIVATION_GELU = 5,
    MICA_ACTIVATION_GELU_TANH = 6,
    MICA_ACTIVATION_SILU = 7,
    MICA_ACTIVATION_TANH = 8,
    MICA_ACTIVATION_LECUN_TANH = 9,
    MICA_ACTIVATION_SIGMOID = 10,
    MICA_ACTIVATION_SOFTPLUS = 11
} mica_activation;

MICA_API mica_array *mica_activate(mica_scope *s, mica_activation activation, mica_array *x);
/* "relu", "lecun_tanh", ...; NULL or false: there is no such activation. */
MICA_API const char *mica_activation_name(mica_activation activation);
MICA_API bool mica_activation_named(const char *name, mica_activation *activation);

/* The codes -1, 0, 1 of a ternary matrix, in the dtype of w, and its scale (one
 * element): codes = clamp(round(w / scale)), scale = max(mean |w|, 1e-5). */
MICA_API mica_array *mica_ternary_codes(mica_scope *s, mica_array *w, mica_array **scale);

/* The 8-bit codes of each row of x, in the dtype of x, and the scale of each row
 * (..., 1), so that x is about codes * scale: codes = clamp(round(x * 127 / a)),
 * scale = a / 127, a = max(|x|, 1e-5). */
MICA_API mica_array *mica_int8_codes(mica_scope *s, mica_array *x, mica_array **scale);

/* BitLinear: x (..., in) and w (out, in) are rounded as above and multiplied; sums
 * of codes are exact integers (in < 2^17), so the result is that of the packed model.
 * Gradients ignore the rounding (straight-through estimator): the gradient with respect
 * to x uses the rounded w, and that with respect to w the rounded x. */
MICA_API mica_array *mica_bit_linear(mica_scope *s, mica_array *x, mica_array *w);

/* Each element is 0 with probability p, else x / (1 - p). seed is an array of one
 * integer; it is data, so a traced step can pass a new one each time. stream
 * distinguishes layers with the same seed. */
MICA_API mica_array *mica_dropout(mica_scope *s, mica_array *x, double p, mica_array *seed, uint32_t stream);

typedef struct mica_batch_norm_options {
    size_t struct_size;
    double eps, momentum;           /* 1e-5; 0.1: weight of the batch in the running values */
    bool training;                  /* normalise by the batch, else by running values   */
} mica_batch_norm_options;

MICA_API void mica_batch_norm_options_init(mica_batch_norm_options *options);

/* x (batch, channels, ...), normalised for each channel; weight and bias (channels) may
 * be NULL. Training: *mean and *var (channels), the running statistics, are replaced by
 * the updated ones; the running variance uses the divisor n - 1, as in PyTorch. */
MICA_API mica_array *mica_batch_norm(mica_scope *s, mica_array *x, mica_array *weight, mica_array *bias,
                                     mica_array **mean, mica_array **var, const mica_batch_norm_options *options);

typedef struct mica_heads_options {
    size_t struct_size;
    int64_t heads, kv_heads;        /* kv_heads 0: equal to heads                      */
    bool causal;
    double rope_base;               /* pairs first half with second (NEOX); 0: no rope  */
} mica_heads_options;

/* One head. */
MICA_API void mica_heads_options_init(mica_heads_options *options);

/* Attention of projected rows: q (batch, time, heads dims), k and v (batch, keys,
 * kv_heads dims), mask as in mica_attention. The result has the shape of q. */
MICA_API mica_array *mica_multi_head(mica_scope *s, mica_array *q, mica_array *k, mica_array *v, mica_array *mask,
                                     const mica_heads_options *options);

/* The weights of one direction of one layer, in the order of PyTorch: the rows of gates
 * i, f, g, o of an LSTM, or r, z, n of a GRU. Biases may be NULL. */
typedef struct mica_recurrent_weights {
    size_t struct_size;             /* sizeof(mica_recurrent_weights)                  */
    mica_array *w_in;               /* (gates units, in)                               */
    mica_array *w_state;            /* (gates units, units)                            */
    mica_array *b_in, *b_state;     /* (gates units)                                   */
} mica_recurrent_weights;

/* x (time, batch, in) gives *y (time, batch, units). *h and *c (batch, units): on entry
 * the initial state, or NULL for zeros; on return the final state. reverse: from the last
 * step to the first. A sequence is one plan: one product with x covers all steps. */
MICA_API mica_status mica_lstm(mica_scope *s, mica_array *x, const mica_recurrent_weights *w, bool reverse,
                               mica_array **h, mica_array **c, mica_array **y);
MICA_API mica_status mica_gru(mica_scope *s, mica_array *x, const mica_recurrent_weights *w, bool reverse,
                              mica_array **h, mica_array **y);

/* ------------------------------------------------- layers with parameters - */

typedef enum mica_layer_kind {
    MICA_LAYER_LINEAR = 0,          /* weight (out, in), bias (out)                    */
    MICA_LAYER_BIT_LINEAR = 1,      /* weight (out, in)                                */
    MICA_LAYER_EMBEDDING = 2,       /* weight (in, out): a row per id, ids below in    */
    MICA_LAYER_CONV1D = 3,          /* weight (out, in / groups, kernel...), bias (out) */
    MICA_LAYER_CONV2D = 4,
    MICA_LAYER_LAYER_NORM = 5,      /* weight (out), bias (out)                        */
    MICA_LAYER_RMS_NORM = 6,        /* weight (out)                                    */
    MICA_LAYER_BATCH_NORM = 7,      /* weight, bias, running_mean, running_var (out)   */
    MICA_LAYER_DROPOUT = 8,
    MICA_LAYER_ATTENTION = 9,       /* q_proj, k_proj, v_proj, out_proj .weight and .bias */
    MICA_LAYER_LSTM = 10,           /* weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0,
                                     * ..._l0_reverse, ..._l1, ...                     */
    MICA_LAYER_GRU = 11,
    MICA_LAYER_ACTIVATION = 12,
    MICA_LAYER_FLATTEN = 13,        /* flattens all axes after the first               */
    MICA_LAYER_MAX_POOL1D = 14,
    MICA_LAYER_MAX_POOL2D = 15,
    MICA_LAYER_AVG_POOL1D = 16,
    MICA_LAYER_AVG_POOL2D = 17
} mica_layer_kind;

/* The description of a layer. The functions below fill it in; then set fields by name. */
typedef struct mica_layer {
    size_t struct_size;
    mica_layer_kind kind;
    const char *name;               /* name in a sequence; NULL: its number            */
    int64_t in, out;                /* features, channels or units                     */
    bool no_bias;
    mica_init init;                 /* init of matrices and convolution kernels        */
    double gain;                    /* their scale                                     */
    double eps, momentum;           /* norms                                           */
    double p;                       /* dropout                                         */
    mica_activation activation;
    int64_t kernel[2];
    mica_conv_options conv;
    mica_pool_options pool;
    mica_heads_options heads;
    int64_t layers;                 /* LSTM, GRU: stacked layers                       */
    bool bidirectional;             /* their y is (batch, time, 2 units)               */
    bool last_step;                 /* return the last step only: (batch, units)       */
} mica_layer;

/* PyTorch's defaults: uniform values in +-1 / sqrt(in). */
MICA_API mica_layer mica_linear_layer(int64_t in, int64_t out);
/* Without a bias. */
MICA_API mica_layer mica_bit_linear_layer(int64_t in, int64_t out);
/* Normal values. */
MICA_API mica_layer mica_embedding_layer(int64_t rows, int64_t cols);
MICA_API mica_layer mica_conv1d_layer(int64_t in, int64_t out, int64_t kernel);
MICA_API mica_layer mica_conv2d_layer(int64_t in, int64_t out, int64_t kernel);
/* MICA_LAYER_LAYER_NORM, RMS_NORM or BATCH_NORM. */
MICA_API mica_layer mica_norm_layer(mica_layer_kind kind, int64_t size);
MICA_API mica_layer mica_dropout_layer(double p);
/* Self-attention of x (batch, time, size). */
MICA_API mica_layer mica_attention_layer(int64_t size, int64_t heads, bool causal);
/* MICA_LAYER_LSTM or GRU of x (batch, time, in). */
MICA_API mica_layer mica_recurrent_layer(mica_layer_kind kind, int64_t in, int64_t units);
MICA_API mica_layer mica_activation_layer(mica_activation activation);
MICA_API mica_layer mica_flatten_layer(void);
/* One of the four pools; the stride is the kernel size. */
MICA_API mica_layer mica_pool_layer(mica_layer_kind kind, int64_t kernel);

/* Adds the parameters of a layer, evaluated, as "name.weight" and so on. The name is
 * formatted as printf does. */
MICA_API MICA_CHECK_RESULT mica_status mica_layer_params(mica_scope *s, mica_params *params, const mica_layer *layer,
                                                         uint64_t seed, const char *format, ...) MICA_PRINTF(5, 6);
/* Its result, watched under that name. */
MICA_API mica_array *mica_layer_apply(mica_forward *f, const mica_layer *layer, mica_array *x, const char *format, ...)
    MICA_PRINTF(4, 5);

/* Layers in sequence, with parameters "prefix.0.weight", or the layer's name instead of the
 * number; prefix NULL: no prefix. A layer without parameters has a number too. */
MICA_API MICA_CHECK_RESULT mica_status mica_sequential_params(mica_scope *s, mica_params *params,
                                                              const mica_layer *layers, size_t n, uint64_t seed,
                                                              const char *prefix);
MICA_API mica_array *mica_sequential(mica_forward *f, const mica_layer *layers, size_t n, mica_array *x,
                                     const char *prefix);

/* Linear layers of these sizes with an activation and, if p > 0, dropout between them.
 * Returns the number of layers; the first `room` of them are written to out. */
MICA_API size_t mica_mlp(const int64_t *sizes, size_t n_sizes, mica_activation activation, double p, mica_layer *out,
                         size_t room);

/* -------------------------------------------------------------- losses ---- */

/* Means over all elements; y and target have the same shape. */
MICA_API mica_array *mica_mse_loss(mica_scope *s, mica_array *y, mica_array *target);
MICA_API mica_array *mica_mae_loss(mica_scope *s, mica_array *y, mica_array *target);
/* d^2 / 2 up to |d| = delta, linear beyond. */
MICA_API mica_array *mica_huber_loss(mica_scope *s, mica_array *y, mica_array *target, double delta);
/* Of logits; target in [0, 1]. */
MICA_API mica_array *mica_bce_loss(mica_scope *s, mica_array *logits, mica_array *target);
/* The mean over rows of logits (..., classes); labels (...) are integers. smoothing: the
 * part of the target probability that is spread evenly over all classes. */
MICA_API mica_array *mica_cross_entropy_loss(mica_scope *s, mica_array *logits, mica_array *labels, double smoothing);

/* ----------------------------------------------------------- optimiser ---- */

typedef enum mica_optimiser_kind {
    MICA_SGD = 0,                   /* momentum, Nesterov                              */
    MICA_ADAM = 1,
    MICA_ADAMW = 2,
    MICA_LION = 3
} mica_optimiser_kind;

/* Weight decay: SGD and Adam add decay * p to the gradient; AdamW and Lion subtract
 * rate * decay * p from the parameter. */
typedef struct mica_optimiser {
    size_t struct_size;
    mica_optimiser_kind kind;
    double beta1, beta2, eps;       /* Adam, AdamW; Lion: beta1, beta2                 */
    double momentum;                /* SGD; 0: no momentum                             */
    bool nesterov;                  /* SGD                                             */
    double clip;                    /* limit of the norm of all gradients; 0: no limit */
    double clip_value;              /* limit of each element, after the norm; 0: none  */
    bool decay_all;                 /* else only arrays of two or more axes decay      */
} mica_optimiser;

/* SGD: momentum 0, clip 0. Adam: 0.9, 0.999, 1e-8, clip 0. AdamW: 0.9, 0.95, 1e-8,
 * clip 1, as in BitNet's training recipe. Lion: 0.9, 0.99, clip 0. */
MICA_API void mica_optimiser_init(mica_optimiser *options, mica_optimiser_kind kind);
/* "sgd", "adam", "adamw", "lion"; NULL or false: there is no such optimiser. */
MICA_API const char *mica_optimiser_name(mica_optimiser_kind kind);
MICA_API bool mica_optimiser_named(const char *name, mica_optimiser_kind *kind);
MICA_API MICA_CHECK_RESULT mica_status mica_optimiser_check(const mica_optimiser *options);

/* The number of state arrays per parameter, 0 to 2; they are zeros at first. */
MICA_API size_t mica_optimiser_slots(const mica_optimiser *options);

/* The values that change from step to step, as data for the compiled step: learning
 * rate, decay, and the bias corrections of the moments at step t = 1, 2, ... */
MICA_API void mica_optimiser_rates(const mica_optimiser *options, double rate, double decay, int64_t t, float rates[4]);

/* One step as a graph: reads n parameters p, their gradients g and state (n arrays of
 * the first slot, then n of the second); writes the new ones to p1 and state1. rates (4
 * or more): see above. *norm: the norm of all gradients before clipping; NULL: not wanted. */
MICA_API MICA_CHECK_RESULT mica_status mica_optimiser_step(mica_scope *s, const mica_optimiser *options,
                                                           mica_array *rates, size_t n, mica_array *const *p,
                                                           mica_array *const *g, mica_array *const *state,
                                                           mica_array **p1, mica_array **state1, mica_array **norm);

/* The norm of n arrays together; and these arrays clipped: scaled so that the norm
 * (length) is at most `norm`, then each element to [-value, value]; 0: no clipping. out
 * may be g. */
MICA_API mica_array *mica_global_norm(mica_scope *s, size_t n, mica_array *const *g);
MICA_API void mica_clip_gradients(mica_scope *s, mica_array *length, double norm, double value, size_t n,
                                  mica_array *const *g, mica_array **out);

typedef enum mica_schedule_kind {
    MICA_SCHEDULE_CONSTANT = 0,
    MICA_SCHEDULE_LINEAR = 1,       /* linear to floor                                 */
    MICA_SCHEDULE_COSINE = 2,
    MICA_SCHEDULE_TWO_STAGE = 3,    /* linear; from half of the steps peak2 and no decay */
    MICA_SCHEDULE_STEP = 4          /* multiplied by factor every `every` steps        */
} mica_schedule_kind;

typedef struct mica_schedule {
    size_t struct_size;
    mica_schedule_kind kind;
    int64_t steps, warmup;
    double peak, peak2;             /* highest rate; peak2: of the second stage        */
    double floor;                   /* the rate at the end; STEP: the lowest rate      */
    double decay;                   /* weight decay (of the first stage)               */
    int64_t every;                  /* STEP                                            */
    double factor;
} mica_schedule;

/* Learning rate and weight decay of step 0, 1, ... steps - 1. In every schedule the first
 * `warmup` steps rise linearly to the peak. */
MICA_API void mica_schedule_at(const mica_schedule *schedule, int64_t step, double *rate, double *decay);

/* ------------------------------------------------------------- trainer ---- */

typedef struct mica_trainer mica_trainer;

/* Builds the loss (one element) of some data from f->params. */
typedef mica_array *(*mica_train_loss_fn)(mica_forward *f, mica_array *const *data, size_t n, void *user);

typedef struct mica_trainer_options {
    size_t struct_size;
    mica_optimiser optimiser;
    mica_train_loss_fn loss;
    void *user;
    uint64_t seed;                  /* f->seed is derived from it and the step number   */
    mica_dtype compute;             /* F16 or BF16: the loss gets trained parameters of two or
                                     * more axes in this dtype; the set itself does not change  */
    double loss_scale;              /* the initial one; 0: 65536 if compute is F16, else none */
    int64_t scale_every;            /* doubled after this many good steps; default 2000 */
} mica_trainer_options;

/* AdamW, f32, seed 0. */
MICA_API void mica_trainer_options_init(mica_trainer_options *options);

/* Borrows params, which must outlive it, and changes their values at each step. */
MICA_API MICA_CHECK_RESULT mica_status mica_trainer_open(mica_engine *engine, mica_params *params,
                                                         const mica_trainer_options *options, mica_trainer **out);
MICA_API void mica_trainer_close(mica_trainer *trainer);

typedef struct mica_train_result {
    size_t struct_size;             /* sizeof(mica_train_result)                       */
    double loss, norm;              /* before the step; norm of the gradients          */
    double loss_scale;              /* loss scale of the step; 1: none                 */
    int overflows;                  /* times that the step halved the loss scale       */
} mica_train_result;

/* One step on data arrays of s. A loss or norm that is not finite is MICA_ERR_STATE; the
 * error message names the step and the first parameter, data, watched array or gradient
 * that is not finite; the parameters do not change. With a loss scale, gradients that
 * overflow halve it and the same data is tried again. */
MICA_API MICA_CHECK_RESULT mica_status mica_trainer_step(mica_trainer *trainer, mica_scope *s, mica_array *const *data,
                                                         size_t n, double rate, double decay,
                                                         mica_train_result *result);
/* Accumulates the gradients of data for the next mica_trainer_step, which then uses the
 * mean gradient over all these data and its own; its loss is that mean too. */
MICA_API MICA_CHECK_RESULT mica_status mica_trainer_accumulate(mica_trainer *trainer, mica_scope *s,
                                                               mica_array *const *data, size_t n,
                                                               mica_train_result *result);
/* The loss without training: no gradients, no dropout. */
MICA_API MICA_CHECK_RESULT mica_status mica_trainer_loss(mica_trainer *trainer, mica_scope *s, mica_array *const *data,
                                                         size_t n, double *loss);

/* Steps made so far. */
MICA_API int64_t mica_trainer_steps(const mica_trainer *trainer);

/* The graph of a step, for mica_plan_text and mica_plan_query: loss, norm, new
 * parameters and state; out has room for mica_trainer_outputs(). */
MICA_API size_t mica_trainer_outputs(const mica_trainer *trainer);
MICA_API MICA_CHECK_RESULT mica_status mica_trainer_graph(mica_trainer *trainer, mica_scope *s, mica_array *const *data,
                                                          size_t n, mica_array **out);

/* A metadata entry of a file. */
typedef struct mica_setting {
    const char *key, *text;
} mica_setting;

/* Parameters as safetensors, under their names, with settings as metadata. The file
 * appears whole or not at all. */
MICA_API MICA_CHECK_RESULT mica_status mica_params_save(const mica_params *params, const char *path,
                                                        const mica_setting *settings, size_t n);
/* Reads all parameters of the set from a file. A parameter that is absent or has another
 * shape or dtype is an error, and the set does not change. */
MICA_API MICA_CHECK_RESULT mica_status mica_params_load(mica_params *params, mica_scope *s, mica_file *file);

/* Save and load also the optimiser's state, the number of steps, the seed and the loss
 * scale (metadata "mica.steps" and so on): training continues as if it had not been
 * interrupted, bit for bit. A file of another optimiser is refused. Accumulated gradients
 * that no step has used cannot be saved: MICA_ERR_STATE. */
MICA_API MICA_CHECK_RESULT mica_status mica_trainer_save(const mica_trainer *trainer, const char *path,
                                                         const mica_setting *settings, size_t n);
MICA_API MICA_CHECK_RESULT mica_status mica_trainer_load(mica_trainer *trainer, mica_scope *s, mica_file *file);

/* ----------------------------------------------------------------- fit ---- */

/* The training loop: steps, validation, the best parameters, early stopping, a time
 * limit, checkpoints and resuming. The functions of mica_fit_options decide what is
 * trained on; each may fail, which ends the run with its status. */
typedef struct mica_fit mica_fit;

/* Most arrays of a batch. */
#define MICA_FIT_ARRAYS 4

/* Losses at one step; NaN: not measured. */
typedef struct mica_fit_point {
    int64_t step;
    double train;                   /* mean training loss since the point before       */
    double valid;                   /* validation loss                                 */
} mica_fit_point;

/* Why a run ended. */
typedef enum mica_fit_end {
    MICA_FIT_RUNNING = 0,
    MICA_FIT_FINISHED = 1,          /* all steps are done                              */
    MICA_FIT_PATIENCE = 2,          /* early stopping: the loss no longer improves     */
    MICA_FIT_TIME = 3,              /* the time limit is reached                       */
    MICA_FIT_STOPPED = 4,           /* should_stop returned true                       */
    MICA_FIT_NOT_FINITE = 5         /* a loss or a gradient is NaN or infinite: a step failed with MICA_ERR_STATE */
} mica_fit_end;

typedef struct mica_fit_state {
    size_t struct_size;
    mica_fit_end end;
    int64_t step, steps;            /* steps done, and to do in all                    */
    int64_t first_step;             /* the step that this run started with             */
    double loss, rate;              /* of the last step: training loss, learning rate  */
    double best;                    /* the lowest loss of a point, and its step; NaN   */
    int64_t best_step;              /* and -1: there is none yet                       */
    double run_seconds;             /* of this run                                     */
    double seconds;                 /* also of the runs it was resumed from            */
    const mica_fit_point *points;   /* n_points; valid until the next point is added   */
    size_t n_points;
} mica_fit_state;

typedef struct mica_fit_options {
    size_t struct_size;
    int64_t steps;                  /* optimiser steps in all (1000)                   */
    int64_t validate_every;         /* steps between two points (100)                  */
    int64_t patience;               /* points without a lower loss before it stops; 0: never stops */
    int64_t accumulate;             /* most batches of one step (1)                    */
    double time_limit;              /* seconds of this run; 0: no limit                */
    mica_schedule schedule;         /* learning rate and weight decay                  */
    const char *checkpoint;         /* file that is written at each point; NULL: none  */
    const char *settings;           /* names and values, "units 8 seed 1": a checkpoint is resumed
                                     * only if it was written with the same text; NULL: ""         */
    void *user;                     /* passed to the functions                         */
    /* Makes batch number `part` of a step in s: at most MICA_FIT_ARRAYS arrays.
     * *n = 0: the step has no more batches. */
    mica_status (*batch)(void *user, mica_scope *s, int64_t step, int64_t part, mica_array **data, size_t *n);
    /* (optional; default: the mean training loss decides what is best) The validation loss. */
    mica_status (*validate)(void *user, double *loss);
    /* (optional) Called when a point is the best so far, before the checkpoint is written. */
    mica_status (*save_best)(void *user, const mica_fit_state *state);
    /* (optional) Called after each step, before its point. */
    mica_status (*step)(void *user, const mica_fit_state *state);
    /* (optional) Called for each point, before anything is saved. */
    mica_status (*point)(void *user, const mica_fit_state *state);
    /* (optional) Called for each point, after everything is saved. */
    mica_status (*saved)(void *user, const mica_fit_state *state);
    /* (optional) Called after each step, after its point. */
    mica_status (*after_step)(void *user, const mica_fit_state *state);
    /* (optional) Called before each step; true ends the run and writes the checkpoint. */
    bool (*should_stop)(void *user);
} mica_fit_options;

MICA_API void mica_fit_options_init(mica_fit_options *options);

/* Borrows the trainer. options.batch is needed; texts must outlive the fit. */
MICA_API MICA_CHECK_RESULT mica_status mica_fit_open(mica_trainer *trainer, const mica_fit_options *options,
                                                     mica_fit **out);
MICA_API void mica_fit_close(mica_fit *fit);
/* Loads a checkpoint: the run continues as if it had not stopped, bit for bit. */
MICA_API MICA_CHECK_RESULT mica_status mica_fit_resume(mica_fit *fit, mica_scope *s, const char *path);
/* Trains until the run ends; mica_fit_progress returns the reason. MICA_OK: it ended as planned or
 * was stopped. A second call continues. */
MICA_API MICA_CHECK_RESULT mica_status mica_fit_run(mica_fit *fit);
MICA_API const mica_fit_state *mica_fit_progress(const mica_fit *fit);

/* ---------------------------------------------------------------- data ---- */

/* Writes ids (batch, time) to out[0] and the id that follows each to out[1], from n
 * tokens of a text. The windows start at random positions that depend on seed and step
 * only, so the batch of a step is reproducible. */
MICA_API MICA_CHECK_RESULT mica_status mica_batch_random(mica_scope *s, const int32_t *tokens, int64_t n, int64_t batch,
                                                         int64_t time, uint64_t seed, int64_t step, mica_array *out[2]);
/* The same for windows first, first + 1, ..., which follow each other without overlap. */
MICA_API MICA_CHECK_RESULT mica_status mica_batch_windows(mica_scope *s, const int32_t *tokens, int64_t n,
                                                          int64_t batch, int64_t time, int64_t first,
                                                          mica_array *out[2]);
/* The number of windows of a text. */
MICA_API int64_t mica_batch_count(int64_t n, int64_t time);

/* ------------------------------------------------------------- decoder ---- */

typedef struct mica_decoder_shape {
    size_t struct_size;
    int64_t vocab, dim, layers, heads, kv_heads, ffn;
    int64_t context;                /* written to the model file; the graph accepts any length */
    double rope_base, norm_eps;
    bool ternary;                   /* BitLinear layers; else linear layers            */
    double dropout;                 /* of embeddings and of each residual branch       */
} mica_decoder_shape;

/* Small defaults: see `mica train lm --help`. */
MICA_API void mica_decoder_shape_init(mica_decoder_shape *shape);
/* MICA_ERR_ARGUMENT, with the reason, if the shape is not valid. */
MICA_API MICA_CHECK_RESULT mica_status mica_decoder_shape_check(const mica_decoder_shape *shape);

/* Initial parameters, evaluated, with the names of GGUF files. */
MICA_API MICA_CHECK_RESULT mica_status mica_decoder_params(mica_scope *s, const mica_decoder_shape *shape,
                                                           uint64_t seed, mica_params **out);
/* True if this parameter belongs to a BitLinear, which rounds it to three values. */
MICA_API bool mica_decoder_is_ternary(const char *name);

/* (batch time, vocab) from ids (batch, time). */
MICA_API mica_array *mica_decoder_logits(mica_forward *f, const mica_decoder_shape *shape, mica_array *ids);
/* A mica_train_loss_fn; user is the mica_decoder_shape. data: ids (batch, time) and
 * labels (batch, time). */
MICA_API mica_array *mica_decoder_loss(mica_forward *f, mica_array *const *data, size_t n, void *user);

typedef struct mica_decoder_export {
    size_t struct_size;
    const char *name;               /* general.name; NULL: none                        */
    const char *ternary;            /* format of BitLinear's matrices: "I2_S", "TQ2_0", "TQ1_0" */
    const char *embedding;          /* format of the embedding: "F16", "Q8_0", "F32"   */
    mica_status (*more)(mica_writer *w, void *user); /* adds metadata (a vocabulary); may be NULL */
    void *user;
} mica_decoder_export;

MICA_API void mica_decoder_export_init(mica_decoder_export *options);

/* Writes the packed model as a GGUF file of the architecture bitnet-b1.58. Matrices are
 * rounded as BitLinear rounds them; this quantises a network that was trained without
 * BitLinear (ternary false). */
MICA_API MICA_CHECK_RESULT mica_status mica_decoder_write(mica_scope *s, const mica_decoder_shape *shape,
                                                          const mica_params *params, const char *path,
                                                          const mica_decoder_export *options);

#ifdef __cplusplus
}
#endif

#endif
