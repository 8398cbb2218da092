/* Describes a model file: size, shape and tokenizer, from the metadata of GGUF or of a Hugging Face folder, with
 * warnings about known problems. */
#include <mica_convert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct facts_key {
    const char *gguf, *hf; /* the key after "ARCH." and "config." */
    size_t field;
} facts_key;

#define FIELD(name) offsetof(mica_facts, name)
static const facts_key integer_keys[] = {
    {"block_count", "num_hidden_layers", FIELD(layers)},
    {"embedding_length", "hidden_size", FIELD(hidden)},
    {"feed_forward_length", "intermediate_size", FIELD(ffn)},
    {"attention.head_count", "num_attention_heads", FIELD(heads)},
    {"attention.head_count_kv", "num_key_value_heads", FIELD(kv_heads)},
    {"attention.key_length", "head_dim", FIELD(head_dim)},
    {"vocab_size", "vocab_size", FIELD(vocab)},
    {"context_length", "max_position_embeddings", FIELD(context)},
};
static const facts_key real_keys[] = {
    {"rope.freq_base", "rope_theta", FIELD(rope_theta)},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", FIELD(norm_eps)},
};
#undef FIELD

static void warn(mica_facts *f, const char *sentence)
{
    if (f->n_warnings < MICA_FACTS_WARNINGS)
        snprintf(f->warnings[f->n_warnings++], sizeof f->warnings[0], "%s", sentence);
}

static void copy_text(const mica_file *file, const char *key, char *out, size_t cap)
{
    const char *text;
    size_t n;
    if (mica_file_string(file, key, &text, &n)) snprintf(out, cap, "%.*s", (int)(n < cap ? n : cap), text);
}

/* --------------------------------------------------------------- tensors --- */

static bool find_scale(const mica_file *file, const char *name)
{
    char scale[160];
    return snprintf(scale, sizeof scale, "%s_scale", name) < (int)sizeof scale && mica_file_find(file, scale, NULL);
}

static void count_tensor(const mica_file *file, const mica_tensor_info *t, mica_facts *f)
{
    uint64_t n = 1;
    for (int d = 0; d < t->ndim; d++) n *= (uint64_t)t->shape[d]; /* cannot overflow: the byte size was checked */
    const bool packed = t->dtype == MICA_U8 && t->ndim == 2 && find_scale(file, t->name);
    if (packed) n *= 4;
    const char *format = packed ? "HF_TERNARY" : t->format;
    int i = 0;
    while (i < f->n_formats && strcmp(f->formats[i].format, format) != 0) i++;
    if (i == MICA_FACTS_FORMATS) i--; /* no known file has more formats; the last entry collects the rest */
    else if (i == f->n_formats) f->formats[f->n_formats++] = (mica_facts_format){.format = format};
    f->formats[i].tensors++;
    f->formats[i].parameters += n;
    f->formats[i].bytes += t->nbytes;
    f->parameters += n;
    f->bytes += t->nbytes;
}

static int by_bytes(const void *a, const void *b)
{
    const mica_facts_format *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->format, y->format);
}

/* -------------------------------------------------------------- metadata --- */

static void shape_facts(const mica_file *file, bool gguf, mica_facts *f)
{
    char key[160];
    for (size_t i = 0; i < sizeof integer_keys / sizeof integer_keys[0]; i++) {
        const facts_key *k = &integer_keys[i];
        snprintf(key, sizeof key, "%s.%s", gguf ? f->arch : "config", gguf ? k->gguf : k->hf);
        (void)mica_file_i64(file, key, (int64_t *)(void *)((char *)f + k->field));
    }
    for (size_t i = 0; i < sizeof real_keys / sizeof real_keys[0]; i++) {
        const facts_key *k = &real_keys[i];
        snprintf(key, sizeof key, "%s.%s", gguf ? f->arch : "config", gguf ? k->gguf : k->hf);
        (void)mica_file_f64(file, key, (double *)(void *)((char *)f + k->field));
    }
    if (f->head_dim < 0 && f->heads > 0 && f->hidden > 0) f->head_dim = f->hidden / f->heads;
    if (f->kv_heads < 0) f->kv_heads = f->heads;
}

static void tokenizer_facts(const mica_file *file, bool gguf, mica_facts *f)
{
    const char *text;
    size_t n;
    if (!gguf) {
        copy_text(file, "tokenizer_config.tokenizer_class", f->tokenizer, sizeof f->tokenizer);
        (void)mica_file_i64(file, "config.bos_token_id", &f->bos);
        (void)mica_file_i64(file, "config.eos_token_id", &f->eos);
        f->chat_template = mica_file_string(file, "tokenizer_config.chat_template", &text, &n);
        return;
    }
    copy_text(file, "tokenizer.ggml.model", f->tokenizer, sizeof f->tokenizer);
    copy_text(file, "tokenizer.ggml.pre", f->pre, sizeof f->pre);
    f->tokens = (int64_t)mica_file_items(file, "tokenizer.ggml.tokens");
    f->merges = (int64_t)mica_file_items(file, "tokenizer.ggml.merges");
    (void)mica_file_i64(file, "tokenizer.ggml.bos_token_id", &f->bos);
    (void)mica_file_i64(file, "tokenizer.ggml.eos_token_id", &f->eos);
    f->chat_template = mica_file_string(file, "tokenizer.chat_template", &text, &n);
    if (f->vocab < 0 && f->tokens) f->vocab = f->tokens;
}

/* -------------------------------------------------------------- warnings --- */

static bool contains(const char *text, size_t n, const char *part)
{
    const size_t k = strlen(part);
    for (size_t i = 0; i + k <= n; i++)
        if (memcmp(text + i, part, k) == 0) return true;
    return false;
}

static void gguf_warnings(const mica_file *file, mica_facts *f)
{
    const bool bitnet = strcmp(f->arch, "bitnet-b1.58") == 0 || strcmp(f->arch, "bitnet-25") == 0;
    const char *text;
    size_t n;
    int64_t eot;
    char sentence[256];
    if (!*f->arch) warn(f, "general.architecture is missing: not a model that can be run");
    int64_t parts = 1;
    if (mica_file_i64(file, "split.count", &parts) && parts > 1)
        warn(f, "this is one part of a model that was split (gguf-split): join the parts first");
    if (!*f->tokenizer) warn(f, "there is no tokenizer in the file: it can be run on token ids only");
    else if (strcmp(f->tokenizer, "gpt2") == 0 && !*f->pre)
        warn(f, bitnet ? "tokenizer.ggml.pre is missing, as in the official files: llama-bpe is used"
                       : "tokenizer.ggml.pre is missing: how text is split is unknown; name a pre-tokenizer to run it");
    if (bitnet && mica_file_string(file, "tokenizer.chat_template", &text, &n) && contains(text, n, "BITNETAssistant"))
        warn(f, "the chat template is the wrong one of the official converter (Human: / BITNETAssistant:): the one the "
                "model was trained with is used");
    if (bitnet && *f->tokenizer && !mica_file_i64(file, "tokenizer.ggml.eot_token_id", &eot))
        warn(f, "there is no end-of-turn id: <|eot_id|> of the vocabulary is used");
    if (f->tokens && f->vocab > 0 && f->tokens != f->vocab) {
        snprintf(sentence, sizeof sentence, "the vocabulary has %lld tokens, the metadata states %lld",
                 (long long)f->tokens, (long long)f->vocab);
        warn(f, sentence);
    }
}

static void common_warnings(const mica_file *file, mica_facts *f)
{
    mica_meta_info m = {.struct_size = sizeof m};
    char sentence[256];
    for (size_t i = 0; mica_file_meta(file, i, &m); i++)
        if (strncmp(m.key, "prism.hadamard.", 15) == 0) {
            warn(f, "prism.hadamard.*: activations must be transformed before each product, which mica refuses to run "
                    "without");
            break;
        }
    for (int i = 0; i < f->n_formats; i++) {
        const char *format = f->formats[i].format;
        const bool own = strcmp(format, "HF_TERNARY") == 0;
        if (strcmp(format, "I2_S") == 0)
            warn(f, "I2_S: the file does not state whether an x86 or an ARM build of bitnet.cpp wrote it; the official "
                    "layout is assumed (--i2s-arm: the other)");
        mica_tensor_info t = {.struct_size = sizeof t};
        for (size_t k = 0; !own && mica_file_tensor(file, k, &t); k++) {
            if (strcmp(t.format, format) != 0) continue;
            if (t.dtype < 0 && t.ndim && t.shape[t.ndim - 1] > 0 &&
                mica_quant_nbytes(format, 1, t.shape[t.ndim - 1]) == 0) {
                snprintf(sentence, sizeof sentence, "%s can be listed and copied; kernels do not support it", format);
                warn(f, sentence);
            }
            break;
        }
    }
}

static void hf_warnings(const mica_file *file, mica_facts *f)
{
    const char *text;
    size_t n;
    bool packed = false;
    for (int i = 0; i < f->n_formats; i++) packed |= strcmp(f->formats[i].format, "HF_TERNARY") == 0;
    if (!mica_file_meta_count(file))
        warn(f, "there is no config.json in its folder (give the folder): not a model that can be run");
    else if (packed && !mica_file_string(file, "config.quantization_config.linear_class", &text, &n))
        warn(f, "config.json has no linear_class: weight_scale is assumed to divide (bitlinear)");
}

static void collect_facts(const mica_file *file, mica_facts *f)
{
    *f = (mica_facts){.struct_size = sizeof *f,
                      .layers = -1,
                      .hidden = -1,
                      .ffn = -1,
                      .heads = -1,
                      .kv_heads = -1,
                      .head_dim = -1,
                      .vocab = -1,
                      .context = -1,
                      .rope_theta = -1,
                      .norm_eps = -1,
                      .bos = -1,
                      .eos = -1};
    const bool gguf = strcmp(mica_file_kind(file), "gguf") == 0;
    mica_tensor_info t = {.struct_size = sizeof t};
    snprintf(f->kind, sizeof f->kind, "%s", mica_file_kind(file));
    copy_text(file, gguf ? "general.architecture" : "config.model_type", f->arch, sizeof f->arch);
    copy_text(file, gguf ? "general.name" : "config._name_or_path", f->name, sizeof f->name);
    f->tensors = mica_file_tensor_count(file);
    for (size_t i = 0; mica_file_tensor(file, i, &t); i++) count_tensor(file, &t, f);
    qsort(f->formats, (size_t)f->n_formats, sizeof f->formats[0], by_bytes);
    shape_facts(file, gguf, f);
    tokenizer_facts(file, gguf, f);
    f->tied = !mica_file_find(file, "output.weight", NULL) && !mica_file_find(file, "lm_head.weight", NULL);
    if (gguf) gguf_warnings(file, f);
    else if (strcmp(f->kind, "safetensors") == 0) hf_warnings(file, f);
    common_warnings(file, f);
}

mica_status mica_file_facts(const mica_file *file, mica_facts *facts)
{
    if (!file || !facts) return mica_fail(MICA_ERR_ARGUMENT, "file_facts: %s is NULL", file ? "facts" : "file");
    mica_facts *f = malloc(sizeof *f); /* too large for a small stack */
    if (!f) return mica_fail(MICA_ERR_MEMORY, "file_facts: out of memory: %zu bytes", sizeof *f);
    collect_facts(file, f);
    const mica_status status = mica_struct_write("file_facts: mica_facts", facts, f, sizeof *f);
    free(f);
    return status;
}

/* ----------------------------------------------------------------- codes --- */

static bool trit_counts(const mica_tensor_info *t, uint64_t counts[4])
{
    enum { BLOCK_BYTES = 54, BLOCK = 256 };
    float x[BLOCK];
    const uint8_t *b = t->data;
    for (uint64_t at = 0; at < t->nbytes; at += BLOCK_BYTES) {
        uint8_t block[BLOCK_BYTES];
        memcpy(block, b + at, BLOCK_BYTES);
        block[52] = 0, block[53] = 0x3c; /* scale 1, so that values are codes */
        if (mica_quant_unpack("TQ1_0", 1, BLOCK, block, BLOCK_BYTES, x) != MICA_OK) return false;
        for (int i = 0; i < BLOCK; i++) counts[x[i] < 0 ? 0 : x[i] > 0 ? 2 : 1]++;
    }
    return true;
}

/* Counts values of a format with padding between codes. */
static bool value_counts(const mica_tensor_info *t, uint64_t counts[4])
{
    const int64_t cols = t->ndim ? t->shape[t->ndim - 1] : 1;
    int64_t rows = 1;
    for (int d = 0; d + 1 < t->ndim; d++) rows *= t->shape[d];
    float *x = malloc((size_t)(rows * cols + 1) * sizeof *x);
    const bool read = x && mica_quant_unpack(t->format, rows, cols, t->data, (size_t)t->nbytes, x) == MICA_OK;
    for (int64_t i = 0; i < rows * cols && read; i++) counts[x[i] < 0 ? 0 : x[i] > 0 ? 2 : 1]++;
    free(x);
    return read;
}

/* Counts two-bit codes: all bytes of a block except its scale, which is first or last. */
static void pair_counts(const mica_tensor_info *t, const mica_format_info *f, uint64_t counts[4])
{
    const int64_t bytes = f->block_elements * f->block_rows / 4,
                  first = f->scale_offset == 0 ? f->block_bytes - bytes : 0;
    const uint8_t *b = t->data, *end = b + t->nbytes - f->tail_bytes;
    uint64_t by_byte[256] = {0};
    for (; b < end; b += f->block_bytes)
        for (int64_t k = 0; k < bytes; k++) by_byte[b[first + k]]++;
    for (int v = 0; v < 256; v++)
        for (int shift = 0; shift < 8; shift += 2) counts[v >> shift & 3] += by_byte[v];
    uint64_t elements = t->dtype == MICA_U8 ? 4 : 1, stored = counts[0] + counts[1] + counts[2] + counts[3];
    for (int d = 0; d < t->ndim; d++) elements *= (uint64_t)t->shape[d];
    counts[0] -= stored - elements < counts[0] ? stored - elements : counts[0]; /* padding is stored as code 0 */
}

bool mica_file_codes(const mica_file *file, const char *name, uint64_t counts[4])
{
    mica_tensor_info t = {.struct_size = sizeof t};
    memset(counts, 0, 4 * sizeof *counts);
    if (!mica_file_find(file, name, &t)) return false;
    if (t.dtype == MICA_U8 && (t.ndim != 2 || !find_scale(file, name))) return false;
    if (strcmp(t.format, "TQ1_0") == 0) return trit_counts(&t, counts);
    if (strcmp(t.format, "MICA_T1") == 0) return value_counts(&t, counts);
    mica_format_info f = {.struct_size = sizeof f};
    if (!mica_format_find(t.dtype == MICA_U8 ? "HF_TERNARY" : t.format, &f) || f.code_bits != 2) return false;
    pair_counts(&t, &f, counts);
    return true;
}
