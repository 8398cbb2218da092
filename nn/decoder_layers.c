/* The table of a decoder's tensors and the graph of its layers; see decoder.h. */
#include "decoder.h"

const decoder_tensor_info mica__decoder_tensors[DECODER_TENSORS] = {
    /* clang-format off */
    [DECODER_ATTN_NORM]     = {.trace = "attn_norm",     .gguf = "attn_norm",     .hf = "input_layernorm",
                               .rows = DECODER_SIZE_DIM},
    [DECODER_Q]             = {.trace = "q",             .gguf = "attn_q",        .hf = "self_attn.q_proj",
                               .rows = DECODER_SIZE_Q, .cols = DECODER_SIZE_DIM},
    [DECODER_K]             = {.trace = "k",             .gguf = "attn_k",        .hf = "self_attn.k_proj",
                               .rows = DECODER_SIZE_KV, .cols = DECODER_SIZE_DIM},
    [DECODER_V]             = {.trace = "v",             .gguf = "attn_v",        .hf = "self_attn.v_proj",
                               .rows = DECODER_SIZE_KV, .cols = DECODER_SIZE_DIM},
    [DECODER_Q_NORM]        = {                          .gguf = "attn_q_norm",   .hf = "self_attn.q_norm",
                               .rows = DECODER_SIZE_HEAD, .part = DECODER_QK_NORMS},
    [DECODER_K_NORM]        = {                          .gguf = "attn_k_norm",   .hf = "self_attn.k_norm",
                               .rows = DECODER_SIZE_HEAD, .part = DECODER_QK_NORMS},
    [DECODER_ATTN_SUB_NORM] = {.trace = "attn_sub_norm", .gguf = "attn_sub_norm", .hf = "self_attn.attn_sub_norm",
                               .rows = DECODER_SIZE_Q, .part = DECODER_SUB_NORMS,
                               .hf_other = "self_attn.inner_attn_ln"},
    [DECODER_O]             = {.trace = "attn_out",      .gguf = "attn_output",   .hf = "self_attn.o_proj",
                               .rows = DECODER_SIZE_DIM, .cols = DECODER_SIZE_Q},
    [DECODER_FFN_NORM]      = {.trace = "ffn_norm",      .gguf = "ffn_norm",      .hf = "post_attention_layernorm",
                               .rows = DECODER_SIZE_DIM},
    [DECODER_GATE]          = {.trace = "gate",          .gguf = "ffn_gate",      .hf = "mlp.gate_proj",
                               .rows = DECODER_SIZE_FFN, .cols = DECODER_SIZE_DIM},
    [DECODER_UP]            = {.trace = "up",            .gguf = "ffn_up",        .hf = "mlp.up_proj",
                               .rows = DECODER_SIZE_FFN, .cols = DECODER_SIZE_DIM},
    [DECODER_FFN_SUB_NORM]  = {.trace = "ffn_sub_norm",  .gguf = "ffn_sub_norm",  .hf = "mlp.ffn_sub_norm",
                               .rows = DECODER_SIZE_FFN, .part = DECODER_SUB_NORMS,
                               .hf_other = "mlp.ffn_layernorm"},
    [DECODER_DOWN]          = {.trace = "down",          .gguf = "ffn_down",      .hf = "mlp.down_proj",
                               .rows = DECODER_SIZE_DIM, .cols = DECODER_SIZE_FFN},
    /* clang-format on */
};

int64_t mica__decoder_size(const decoder_sizes *sizes, decoder_size which)
{
    switch (which) {
    case DECODER_SIZE_DIM: return sizes->dim;
    case DECODER_SIZE_Q: return sizes->heads * sizes->head_dim;
    case DECODER_SIZE_KV: return sizes->kv_heads * sizes->head_dim;
    case DECODER_SIZE_HEAD: return sizes->head_dim;
    case DECODER_SIZE_FFN: return sizes->ffn;
    case DECODER_SIZE_NONE: break;
    }
    return 0;
}

static mica_array *watch(const decoder_graph *g, int64_t layer, decoder_tensor t, mica_array *x)
{
    return g->watch ? g->watch(g->user, layer, t, x) : x;
}

static mica_array *linear(const decoder_graph *g, int64_t layer, decoder_tensor t, mica_array *x)
{
    return watch(g, layer, t, g->linear(g->user, layer, t, x));
}

/* A norm that this model does not have passes x through. */
static mica_array *norm(const decoder_graph *g, int64_t layer, decoder_tensor t, mica_array *x)
{
    mica_array *weight = g->norm_weight(g->user, layer, t);
    return weight ? watch(g, layer, t, mica_rms_norm(g->s, x, weight, g->norm_eps)) : x;
}

static mica_array *add_residual(const decoder_graph *g, mica_array *h, mica_array *x)
{
    return mica_add(g->s, h, g->residual ? g->residual(g->user, x) : x);
}

static mica_array *attention_block(const decoder_graph *g, int64_t layer, mica_array *h)
{
    mica_array *x = norm(g, layer, DECODER_ATTN_NORM, h);
    mica_array *q = linear(g, layer, DECODER_Q, x);
    mica_array *k = linear(g, layer, DECODER_K, x);
    mica_array *v = linear(g, layer, DECODER_V, x);
    mica_array *a = norm(g, layer, DECODER_ATTN_SUB_NORM, g->attend(g->user, layer, q, k, v));
    return add_residual(g, h, linear(g, layer, DECODER_O, a));
}

static mica_array *feed_forward_block(const decoder_graph *g, int64_t layer, mica_array *h)
{
    mica_array *x = norm(g, layer, DECODER_FFN_NORM, h);
    mica_array *gate = linear(g, layer, DECODER_GATE, x);
    mica_array *up = linear(g, layer, DECODER_UP, x);
    gate = g->activation == DECODER_RELU2 ? mica_relu2(g->s, gate) : mica_silu(g->s, gate);
    mica_array *m = norm(g, layer, DECODER_FFN_SUB_NORM, mica_mul(g->s, gate, up));
    return add_residual(g, h, linear(g, layer, DECODER_DOWN, m));
}

mica_array *mica__decoder_layers(const decoder_graph *g, mica_array *h)
{
    for (int64_t layer = 0; layer < g->layers; layer++) {
        h = feed_forward_block(g, layer, attention_block(g, layer, h));
        if (g->watch_layer) h = g->watch_layer(g->user, layer, h);
    }
    return h;
}
