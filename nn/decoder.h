/* The decoder-only transformer, defined once for training and inference: which tensors
 * a layer has, and the graph of a layer. Training (decoder_net.c) and inference
 * (models/lm/decoder.c) differ in how they multiply by a weight and in how they attend:
 * training reads whole sequences and f32 weights, inference a KV cache and packed
 * weights. They pass these parts as functions. */
#ifndef MICA_NN_DECODER_H
#define MICA_NN_DECODER_H

#include "mica.h"

/* The tensors of a layer, in the order in which they are created and loaded. */
typedef enum decoder_tensor {
    DECODER_ATTN_NORM,
    DECODER_Q,
    DECODER_K,
    DECODER_V,
    DECODER_Q_NORM,
    DECODER_K_NORM,
    DECODER_ATTN_SUB_NORM,
    DECODER_O,
    DECODER_FFN_NORM,
    DECODER_GATE,
    DECODER_UP,
    DECODER_FFN_SUB_NORM,
    DECODER_DOWN,
    DECODER_TENSORS
} decoder_tensor;

/* Optional parts of an architecture; bits. */
typedef enum decoder_part {
    DECODER_SUB_NORMS = 1, /* BitNet: a norm before the output projections of attention and feed-forward */
    DECODER_QK_NORMS = 2   /* Qwen3: a norm of each query and key head                                   */
} decoder_part;

typedef enum decoder_activation { DECODER_SILU, DECODER_RELU2 } decoder_activation;

/* The size of an axis of a tensor. */
typedef enum decoder_size {
    DECODER_SIZE_NONE,     /* the tensor is a vector: it has no second axis */
    DECODER_SIZE_DIM,      /* width of the residual stream                  */
    DECODER_SIZE_Q,        /* heads * head_dim                              */
    DECODER_SIZE_KV,       /* kv_heads * head_dim                           */
    DECODER_SIZE_HEAD,     /* head_dim                                      */
    DECODER_SIZE_FFN       /* width of the feed-forward network             */
} decoder_size;

typedef struct decoder_tensor_info {
    const char *trace;     /* name of its result in mica_lm_session_trace              */
    const char *gguf;      /* name in GGUF files, after "blk.N."                       */
    const char *hf;        /* name in Hugging Face files, after "model.layers.N."      */
    const char *hf_other;  /* another name that some files use; NULL: there is none    */
    unsigned part;         /* the decoder_part it belongs to; 0: every decoder has it  */
    decoder_size rows;     /* of a vector: its size                                    */
    decoder_size cols;     /* DECODER_SIZE_NONE for a vector                           */
} decoder_tensor_info;

extern const decoder_tensor_info mica__decoder_tensors[DECODER_TENSORS];

static inline bool decoder_is_matrix(decoder_tensor t) { return mica__decoder_tensors[t].cols != DECODER_SIZE_NONE; }

typedef struct decoder_sizes {
    int64_t dim, heads, kv_heads, head_dim, ffn;
} decoder_sizes;

int64_t mica__decoder_size(const decoder_sizes *sizes, decoder_size which);

/* The arguments of mica__decoder_layers. */
typedef struct decoder_graph {
    mica_scope *s;
    void *user;            /* passed to the functions */
    int64_t layers;
    decoder_activation activation;
    double norm_eps;
    /* The weight of a norm; NULL: this model does not have it. */
    mica_array *(*norm_weight)(void *user, int64_t layer, decoder_tensor t);
    /* x times the transpose of a matrix, with its scale and bias. */
    mica_array *(*linear)(void *user, int64_t layer, decoder_tensor t, mica_array *x);
    /* Attention over the projected queries, keys and values (..., heads * head_dim), which
     * includes head norms and rope. Returns the heads concatenated, in the layout of q. */
    mica_array *(*attend)(void *user, int64_t layer, mica_array *q, mica_array *k, mica_array *v);
    /* (optional; default: x itself) Applied to what a residual connection adds: dropout. */
    mica_array *(*residual)(void *user, mica_array *x);
    /* (optional; default: nothing) Records the result of a tensor for diagnosis; returns x. */
    mica_array *(*watch)(void *user, int64_t layer, decoder_tensor t, mica_array *x);
    /* (optional; default: nothing) Records the output of a layer; returns x. */
    mica_array *(*watch_layer)(void *user, int64_t layer, mica_array *x);
} decoder_graph;

/* All layers applied to the residual stream h (..., dim). NULL: the scope has the error. */
mica_array *mica__decoder_layers(const decoder_graph *g, mica_array *h);

#endif
