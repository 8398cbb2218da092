/* Checkpoints of llama2.c (version 0): seven int32, then f32 tensors in a fixed order, each for all layers. There is
 * no magic number; a file is recognised if its size equals the size computed from the seven numbers. Rows of q and k
 * are in pairs, as in GGUF files of arch llama, so nothing is reordered. The tokenizer is a separate file. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "source.h"

typedef struct llama2c_shape {
    int64_t dim, hidden, layers, heads, kv_heads, vocab, context;
    bool tied;
} llama2c_shape;

static bool read_llama2c(const void *data, size_t size, llama2c_shape *s, uint64_t *floats)
{
    int32_t v[7];
    if (size < sizeof v) return false;
    memcpy(v, data, sizeof v);
    *s = (llama2c_shape){v[0], v[1], v[2], v[3], v[4], v[5] < 0 ? -(int64_t)v[5] : v[5], v[6], v[5] > 0};
    for (int i = 0; i < 7; i++)
        if ((i == 5 ? s->vocab : v[i]) <= 0 || v[i] > 1 << 24 || v[i] == INT_MIN) return false;
    if (s->dim % s->heads || s->kv_heads > s->heads || s->heads % s->kv_heads || s->layers > 1000) return false;
    /* In double nothing overflows, because each number is below 2^24; a total up to 1e12 is exact. */
    const double dim = (double)s->dim, kv = dim / (double)s->heads * (double)s->kv_heads, ffn = (double)s->hidden;
    const double layer = 2 * dim * dim + 2 * kv * dim + 3 * dim * ffn + 2 * dim;
    const double vocab = (double)s->vocab * dim * (s->tied ? 1 : 2);
    const double all = vocab + (double)s->layers * layer + dim + (double)s->context * (dim / (double)s->heads);
    if (all > 1e12) return false;
    *floats = (uint64_t)all;
    return true;
}

bool mica__llama2c_looks_like(const void *data, size_t size)
{
    llama2c_shape s;
    uint64_t floats;
    return read_llama2c(data, size, &s, &floats) && size == 28 + 4 * floats;
}

/* Adds one tensor per layer, or one for the model (layers 0), at the cursor. */
static mica_status add_run(mica__source *source, const char *format, int64_t layers, int64_t rows, int64_t cols,
                           const uint8_t **at)
{
    for (int64_t i = 0; i < (layers ? layers : 1); i++) {
        char name[SOURCE_NAME];
        mica__source_tensor *t;
        if (layers) snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)i, format);
        else snprintf(name, sizeof name, "%s.weight", format);
        const mica_status status = mica__source_add(source, name, &t);
        if (status != MICA_OK) return status;
        t->from = "";
        t->ndim = rows ? 2 : 1;
        t->rows = rows ? rows : 1;
        t->cols = cols;
        t->shape[0] = rows ? rows : cols;
        t->shape[1] = rows ? cols : 0;
        t->format = "F32";
        t->dtype = MICA_F32;
        t->data = *at;
        t->nbytes = (uint64_t)(4 * t->rows * cols);
        *at += t->nbytes;
    }
    return MICA_OK;
}

mica_status mica__llama2c_tensors(mica__source *source, const char *path)
{
    llama2c_shape s;
    uint64_t floats;
    if (!read_llama2c(source->map, source->map_size, &s, &floats))
        return mica_fail(MICA_ERR_FORMAT, "%s: not a checkpoint of llama2.c", path);
    const int64_t kv = s.dim / s.heads * s.kv_heads, frequencies = s.context * (s.dim / s.heads);
    const uint8_t *at = (const uint8_t *)source->map + 28;
    const struct {
        const char *name;
        int64_t layers, rows, cols;
    } runs[] = {{"token_embd", 0, s.vocab, s.dim},
                {"attn_norm", s.layers, 0, s.dim},
                {"attn_q", s.layers, s.dim, s.dim},
                {"attn_k", s.layers, kv, s.dim},
                {"attn_v", s.layers, kv, s.dim},
                {"attn_output", s.layers, s.dim, s.dim},
                {"ffn_norm", s.layers, 0, s.dim},
                {"ffn_gate", s.layers, s.hidden, s.dim},
                {"ffn_down", s.layers, s.dim, s.hidden},
                {"ffn_up", s.layers, s.hidden, s.dim},
                {"output_norm", 0, 0, s.dim}};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        const mica_status status = add_run(source, runs[i].name, runs[i].layers, runs[i].rows, runs[i].cols, &at);
        if (status != MICA_OK) return status;
    }
    at += 4 * frequencies;
    return s.tied ? MICA_OK : add_run(source, "output", 0, s.vocab, s.dim, &at);
}

mica_status mica__llama2c_meta(const mica__source *source, const char *path, mica_writer *w)
{
    llama2c_shape s;
    uint64_t floats;
    if (!read_llama2c(source->map, source->map_size, &s, &floats))
        return mica_fail(MICA_ERR_FORMAT, "%s: not a checkpoint of llama2.c", path);
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"llama.vocab_size", s.vocab},           {"llama.context_length", s.context},
                   {"llama.embedding_length", s.dim},       {"llama.block_count", s.layers},
                   {"llama.feed_forward_length", s.hidden}, {"llama.rope.dimension_count", s.dim / s.heads},
                   {"llama.attention.head_count", s.heads}, {"llama.attention.head_count_kv", s.kv_heads}};
    mica_writer_string(w, "general.architecture", "llama", 5);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        mica_writer_i64(w, numbers[i].key, MICA_U32, numbers[i].value);
    mica_writer_f64(w, "llama.attention.layer_norm_rms_epsilon", MICA_F32, 1e-5);
    return mica_writer_f64(w, "llama.rope.freq_base", MICA_F32, 10000);
}
