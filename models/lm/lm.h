/* Shared by the files of language models. A model is data: a row of arch.def, sizes read by config.c, and tensors that
 * load.c finds through the table of nn/decoder.h. decoder.c builds the graph of one step from these, and session.c
 * runs it. */
#ifndef MICA_MODELS_LM_H
#define MICA_MODELS_LM_H

#include <mica_lm.h>
#include <pthread.h>
#include <stdatomic.h>

#include "nn/decoder.h"

#define LM_TRY(expr)                                    \
    do {                                                \
        const mica_status try_status_ = (expr);         \
        if (try_status_ != MICA_OK) return try_status_; \
    } while (0)

/* ---------------------------------------------------------------- config --- */

typedef enum lm_rope { LM_ROPE_HALVES, LM_ROPE_PAIRS } lm_rope; /* NEOX and NORM in ggml */

/* Naming scheme of tensors and metadata. */
typedef enum lm_names { LM_GGUF, LM_HF } lm_names;

/* One row of arch.def. */
typedef struct lm_arch {
    const char *name;
    lm_names names;
    const char *needs;          /* the tensor that selects this row among rows of one name; NULL: any */
    decoder_activation activation;
    lm_rope rope;
    unsigned parts;             /* decoder_part bits: which optional tensors its layers have        */
    bool ternary;               /* trained with 8-bit activations before every matrix               */
} lm_arch;

typedef enum lm_scaling { LM_SCALE_NONE, LM_SCALE_LINEAR, LM_SCALE_LLAMA3, LM_SCALE_YARN } lm_scaling;

typedef struct lm_config {
    const lm_arch *arch;
    char name[96];
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context;
    double eps;
    decoder_activation activation;
    bool tied;
    /* rope */
    int64_t rope_dims;
    double rope_base;
    lm_scaling scaling;
    double factor, original_context;
    double low_freq, high_freq;         /* llama3                                                  */
    double beta_fast, beta_slow;        /* yarn                                                    */
    double attn_factor;                 /* yarn: scale of the rotated values; 0: the paper's value */
    /* weights */
    bool scale_divides;                 /* linear_class "bitlinear": the weight scale divides  */
    bool online;                        /* float weights are made ternary at load              */
    int affine_bits, affine_group;      /* MLX quantisation; 0: not used                       */
} lm_config;

/* Reads and validates the sizes of the model in a file. */
mica_status mica__lm_read_config(const mica_file *file, const char *path, lm_config *c);

/* Divisors of the frequencies of the rotated pairs (dims / 2 values), and the factor of the rotated values. false: all
 * are 1. */
bool mica__lm_rope_factors(const lm_config *c, float *factors, double *magnitude);

/* --------------------------------------------------------------- weights --- */

/* y = x W^T, times scale, plus bias. */
typedef struct lm_linear {
    mica_quant w;
    mica_array *scale;          /* f32 (1), or NULL                                            */
    mica_array *bias;           /* f32 (rows), or NULL                                         */
    mica_act act;
} lm_linear;

/* By decoder_tensor: matrices and norm weights; a norm that the model does not have is NULL. */
typedef struct lm_layer {
    lm_linear matrix[DECODER_TENSORS];
    mica_array *vector[DECODER_TENSORS];
} lm_layer;

struct mica_lm {
    mica_engine *engine;
    mica_file *file;
    mica_scope *scope;          /* owns the weights                                            */
    pthread_mutex_t lock;       /* guards the tokenizer, which is made at first use            */
    mica_tokenizer *tokenizer;
    lm_config config;
    lm_layer *layers;
    lm_linear embed, head;
    mica_array *norm;           /* (hidden)                                                    */
    mica_array *rope_factors;   /* f32 (rope_dims / 2), or NULL                                */
    double rope_magnitude;
    int act;                    /* from the options                                            */
    uint64_t memory_limit, parameters, layer_parameters, weight_bytes, token_bytes;
    const char *format;
    mica_act layer_act;
    _Atomic uint64_t session_bytes;
    _Atomic int64_t compiled[3]; /* by mica_lm_kv: the cache length that kernels were compiled for    */
    atomic_int refs;            /* the handle, and one per session                             */
};

/* Finds, checks and loads every tensor; a tensor that is not used is refused. */
mica_status mica__lm_load(mica_lm *lm, const char *path);
void mica__lm_release(mica_lm *lm);
/* Does the engine run on a GPU? A GPU reads weights in the format of the file, and its kernels are compiled here. */
bool mica__lm_on_gpu(const mica_lm *lm);
/* Packs the weights for the kernels and reports progress. */
mica_status mica__lm_pack(mica_lm *lm, const mica_lm_options *options);
/* Compiles the GPU kernels that the first tokens need. */
mica_status mica__lm_compile(mica_lm *lm, const mica_lm_options *options);

/* The model built into the library; false: there is none. */
bool mica__lm_builtin(const void **data, size_t *size);

/* ------------------------------------------------------------------ step --- */

/* The result of a step. */
typedef enum lm_want {
    LM_WANT_NOTHING,            /* (batch, 1, hidden) of one row: a step needs some result     */
    LM_WANT_LOGITS,             /* (batch, vocab) of one row                                   */
    LM_WANT_LOSSES,             /* (batch, time) of every row                                  */
    LM_WANT_COUNT
} lm_want;

/* The input arrays of a step. */
typedef struct lm_step {
    mica_array *tokens;         /* i32 (batch, time)                                                       */
    mica_array *start, *length; /* i32 (1): the position of the first token; number of keys after the step */
    mica_array *row;            /* i32 (1): the row whose result is wanted                                 */
    mica_array *labels;         /* i32 (batch, time), LM_WANT_LOSSES only                                  */
} lm_step;

/* Keys and values of one layer: state (batch, kv_heads, context, head_dim); a cache of 8 bits also has scales (batch,
 * kv_heads, context, 1). */
typedef struct lm_cache {
    mica_array *k, *v, *k_scale, *v_scale;
} lm_cache;

/* Named intermediate arrays of a step, for mica_lm_session_trace. */
typedef struct lm_seen {
    const char *name;
    int layer;
    mica_array *value;
} lm_seen;

typedef struct lm_watch {
    lm_seen *seen;              /* growing array                                               */
    size_t n, cap;
} lm_watch;

/* Builds the graph of one step in s. watch NULL: no trace. Returns NULL if it failed; s has the error. */
mica_array *mica__lm_build_step(const mica_lm *lm, const lm_cache *cache, mica_scope *s, const lm_step *step,
                                lm_want want, lm_watch *watch);

#endif
