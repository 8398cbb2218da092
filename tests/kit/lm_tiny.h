/* Small random models, written in every container format that the decoder reads. The weights are
 * kept as the values that the file encodes; the reference in lm_reference.h computes with them.
 * Uses public headers only. */
#ifndef MICA_TEST_LM_TINY_H
#define MICA_TEST_LM_TINY_H

#include <math.h>
#include <mica_lm.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "on_device.h"
#include "test.h"

#define UNUSED __attribute__((unused))
#define COUNT(list) (sizeof(list) / sizeof *(list))
#define EXPECT_OK(call) EXPECT_MSG((call) == MICA_OK, "%s: %s", #call, mica_last_error())
#define CHECK_OK(call) CHECK_MSG((call) == MICA_OK, "%s: %s", #call, mica_last_error())

enum { TINY_MAX_TENSORS = 128 };

typedef struct tiny {
    const char *name;           /* name of the case                                            */
    const char *arch;           /* general.architecture or model_type                          */
    bool hf;
    int layers, hidden, heads, kv_heads, dim, ffn, vocab, context;
    bool relu2, sub_norms, qk_norms, pairs, untied, biases;
    const char *format;         /* format of the matrices of layers                            */
    const char *embed_format;   /* format of embeddings and head; NULL: F32                    */
    bool ternary;               /* weights are -s, 0, s                                        */
    bool divides;               /* HF: weight_scale divides                                    */
    bool online;                /* HF: floats that become ternary when they are loaded         */
    bool other_names;           /* HF: inner_attn_ln, ffn_layernorm                            */
    double theta;
    const char *scaling;        /* "linear", "llama3", "yarn" or NULL                          */
    int rope_dims;              /* 0: dim                                                      */
    const char *extra_key;      /* GGUF: one more number in the metadata                       */
    const char *extra_tensor;   /* one more tensor                                             */
    const char *without;        /* a tensor, by canonical name, that is left out               */
} tiny;

typedef struct tiny_tensor {
    char name[64];              /* canonical: that of GGUF, without .weight                    */
    int64_t rows, cols;         /* rows 0: a vector                                            */
    float *value;               /* the values that the file encodes                            */
} tiny_tensor;

typedef struct tiny_model {
    tiny t;
    char path[512];
    tiny_tensor tensors[TINY_MAX_TENSORS];
    int n;
    void *bytes[4 * TINY_MAX_TENSORS]; /* written data                                         */
    int n_bytes;
} tiny_model;

/* --------------------------------------------------------------- numbers --- */

static uint64_t tiny_seed;

static inline double tiny_uniform(void) { return (double)(mica_seed_split(4711, tiny_seed++) >> 11) * 0x1p-53 * 2 - 1; }

static inline void *tiny_own(tiny_model *m, size_t nbytes)
{
    void *p = calloc(1, nbytes + 1);
    if (!p || m->n_bytes == (int)COUNT(m->bytes)) abort();
    return m->bytes[m->n_bytes++] = p;
}

static inline tiny_tensor *tiny_add(tiny_model *m, const char *name, int64_t rows, int64_t cols)
{
    if (m->n == TINY_MAX_TENSORS) abort();
    tiny_tensor *t = &m->tensors[m->n++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->rows = rows;
    t->cols = cols;
    const int64_t n = (rows ? rows : 1) * cols;
    t->value = tiny_own(m, (size_t)n * sizeof *t->value);
    /* exact in f16, so that every container has the same scale */
    const float scale = (float)((double)(1 + tiny_seed % 3) / 64);
    for (int64_t i = 0; i < n; i++) {
        const double u = tiny_uniform();
        if (!rows) t->value[i] = (float)(1 + 0.3 * u);
        else if (m->t.ternary && strncmp(name, "blk.", 4) == 0) t->value[i] = scale * (float)rint(1.49 * u);
        else t->value[i] = (float)(u * 1.7 / sqrt((double)cols));
    }
    return t;
}

static inline const tiny_tensor *tiny_find(const tiny_model *m, const char *format, ...)
{
    char name[64];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->tensors[i].name, name) == 0) return &m->tensors[i];
    return NULL;
}

static inline void tiny_make(tiny_model *m)
{
    const tiny *t = &m->t;
    const int64_t q = t->heads * t->dim, kv = t->kv_heads * t->dim;
    tiny_seed = 0;
    tiny_add(m, "token_embd", t->vocab, t->hidden);
    for (int i = 0; i < t->layers; i++) {
        const struct {
            const char *name;
            int64_t rows, cols;
            bool there;
        } parts[] = {{"attn_norm", 0, t->hidden, true},         {"attn_q", q, t->hidden, true},
                     {"attn_k", kv, t->hidden, true},           {"attn_v", kv, t->hidden, true},
                     {"attn_q.bias", 0, q, t->biases},          {"attn_q_norm", 0, t->dim, t->qk_norms},
                     {"attn_k_norm", 0, t->dim, t->qk_norms},   {"attn_sub_norm", 0, q, t->sub_norms},
                     {"attn_output", t->hidden, q, true},       {"ffn_norm", 0, t->hidden, true},
                     {"ffn_gate", t->ffn, t->hidden, true},     {"ffn_up", t->ffn, t->hidden, true},
                     {"ffn_sub_norm", 0, t->ffn, t->sub_norms}, {"ffn_down", t->hidden, t->ffn, true}};
        for (size_t k = 0; k < COUNT(parts); k++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s", i, parts[k].name);
            if (parts[k].there) tiny_add(m, name, parts[k].rows, parts[k].cols);
        }
    }
    tiny_add(m, "output_norm", 0, t->hidden);
    if (t->untied) tiny_add(m, "output", t->vocab, t->hidden);
}

/* --------------------------------------------------------------- writing --- */

static char tiny_folder_path[256];

static inline const char *tiny_folder(void)
{
    if (!tiny_folder_path[0]) {
        const char *tmp = getenv("TMPDIR");
        snprintf(tiny_folder_path, sizeof tiny_folder_path, "%s/mica-lm-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        if (!mkdtemp(tiny_folder_path)) abort();
    }
    return tiny_folder_path;
}

__attribute__((destructor)) static inline void tiny_remove_folder(void)
{
    char command[320];
    if (!tiny_folder_path[0]) return;
    snprintf(command, sizeof command, "rm -rf '%s'", tiny_folder_path);
    if (system(command) != 0) fprintf(stderr, "%s failed\n", command);
}

/* The name of a tensor in a file of Hugging Face. */
static inline void tiny_hf_name(const tiny *t, const char *name, char out[128])
{
    static const char *const names[][2] = {{"attn_q.bias", "self_attn.q_proj.bias"},
                                           {"attn_norm", "input_layernorm.weight"},
                                           {"attn_q_norm", "self_attn.q_norm.weight"},
                                           {"attn_k_norm", "self_attn.k_norm.weight"},
                                           {"attn_q", "self_attn.q_proj.weight"},
                                           {"attn_k", "self_attn.k_proj.weight"},
                                           {"attn_v", "self_attn.v_proj.weight"},
                                           {"attn_output", "self_attn.o_proj.weight"},
                                           {"ffn_norm", "post_attention_layernorm.weight"},
                                           {"ffn_gate", "mlp.gate_proj.weight"},
                                           {"ffn_up", "mlp.up_proj.weight"},
                                           {"ffn_down", "mlp.down_proj.weight"}};
    int layer, at = 0;
    if (strcmp(name, "token_embd") == 0) snprintf(out, 128, "model.embed_tokens.weight");
    if (strcmp(name, "output_norm") == 0) snprintf(out, 128, "model.norm.weight");
    if (strcmp(name, "output") == 0) snprintf(out, 128, "lm_head.weight");
    if (sscanf(name, "blk.%d.%n", &layer, &at) != 1 || !at) return;
    const char *end = name + at;
    if (strcmp(end, "attn_sub_norm") == 0)
        snprintf(out, 128, "model.layers.%d.self_attn.%s.weight", layer,
                 t->other_names ? "inner_attn_ln" : "attn_sub_norm");
    if (strcmp(end, "ffn_sub_norm") == 0)
        snprintf(out, 128, "model.layers.%d.mlp.%s.weight", layer, t->other_names ? "ffn_layernorm" : "ffn_sub_norm");
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(names[i][0], end) == 0) snprintf(out, 128, "model.layers.%d.%s", layer, names[i][1]);
}

/* Packs as Hugging Face does; the scale is a separate tensor. */
static inline void tiny_put_hf_ternary(tiny_model *m, mica_writer *w, const char *name, const tiny_tensor *x)
{
    const int64_t quarter = (x->rows + 3) / 4;
    uint8_t *codes = tiny_own(m, (size_t)(quarter * x->cols));
    float *scale = tiny_own(m, sizeof *scale);
    for (int64_t i = 0; i < x->rows * x->cols; i++) *scale = fmaxf(*scale, fabsf(x->value[i]));
    for (int64_t r = 0; r < x->rows; r++)
        for (int64_t c = 0; c < x->cols; c++) {
            const int code = (int)rintf(x->value[r * x->cols + c] / *scale) + 1;
            codes[r % quarter * x->cols + c] |= (uint8_t)(code << 2 * (r / quarter));
        }
    if (m->t.divides) *scale = 1 / *scale;
    char beside[160];
    snprintf(beside, sizeof beside, "%s_scale", name);
    EXPECT_OK(mica_writer_tensor(w, name, "U8", 2, (int64_t[]){quarter, x->cols}, codes));
    EXPECT_OK(mica_writer_tensor(w, beside, "F32", 1, (int64_t[]){1}, scale));
}

/* MLX: four bits, groups of 32, a scale and a bias each. Sets x to the encoded values. */
static inline void tiny_put_affine(tiny_model *m, mica_writer *w, const char *name, tiny_tensor *x)
{
    enum { GROUP = 32, BITS = 4 };
    const int64_t groups = x->rows * x->cols / GROUP;
    uint32_t *words = tiny_own(m, (size_t)(groups * GROUP * BITS / 8));
    float *scales = tiny_own(m, (size_t)groups * sizeof *scales),
          *biases = tiny_own(m, (size_t)groups * sizeof *biases);
    for (int64_t g = 0; g < groups; g++) {
        float *v = x->value + g * GROUP, least = v[0], most = v[0];
        for (int i = 0; i < GROUP; i++) {
            least = fminf(least, v[i]);
            most = fmaxf(most, v[i]);
        }
        scales[g] = (most - least) / 15;
        biases[g] = least;
        for (int i = 0; i < GROUP; i++) {
            const uint32_t code = (uint32_t)rintf((v[i] - least) / scales[g]);
            words[(g * GROUP + i) / 8] |= code << 4 * (i % 8);
            v[i] = scales[g] * (float)code + least;
        }
    }
    char beside[160];
    const int n = (int)(strlen(name) - strlen("weight"));
    EXPECT_OK(mica_writer_tensor(w, name, "U32", 2, (int64_t[]){x->rows, x->cols * BITS / 32}, words));
    snprintf(beside, sizeof beside, "%.*sscales", n, name);
    EXPECT_OK(mica_writer_tensor(w, beside, "F32", 2, (int64_t[]){x->rows, x->cols / GROUP}, scales));
    snprintf(beside, sizeof beside, "%.*sbiases", n, name);
    EXPECT_OK(mica_writer_tensor(w, beside, "F32", 2, (int64_t[]){x->rows, x->cols / GROUP}, biases));
}

/* Writes x in its format and sets x to the encoded values. */
static inline void tiny_put(tiny_model *m, mica_writer *w, tiny_tensor *x)
{
    const tiny *t = &m->t;
    const bool layer = strncmp(x->name, "blk.", 4) == 0;
    const char *format = !x->rows ? "F32" : layer ? t->format : t->embed_format ? t->embed_format : "F32";
    char name[128];
    if (t->without && strcmp(t->without, x->name) == 0) return;
    snprintf(name, sizeof name, "%s%s", x->name, strstr(x->name, ".bias") ? "" : ".weight");
    if (t->hf) tiny_hf_name(t, x->name, name);
    if (strcmp(format, "HF_TERNARY") == 0) {
        tiny_put_hf_ternary(m, w, name, x);
        return;
    }
    if (strcmp(format, "AFFINE") == 0) {
        tiny_put_affine(m, w, name, x);
        return;
    }
    const int64_t rows = x->rows ? x->rows : 1, shape[2] = {x->rows, x->cols};
    const size_t nbytes = mica_quant_nbytes(format, rows, x->cols);
    void *bytes = tiny_own(m, nbytes);
    EXPECT_OK(mica_quant_pack(format, rows, x->cols, x->value, bytes, nbytes));
    EXPECT_OK(mica_quant_unpack(format, rows, x->cols, bytes, nbytes, x->value));
    EXPECT_OK(mica_writer_tensor(w, name, format, x->rows ? 2 : 1, x->rows ? shape : shape + 1, bytes));
    if (t->online && layer && x->rows) { /* quantised as in training */
        double sum = 0;
        for (int64_t i = 0; i < rows * x->cols; i++) sum += fabs((double)x->value[i]);
        const float scale = fmaxf((float)(sum / (double)(rows * x->cols)), 1e-5f);
        for (int64_t i = 0; i < rows * x->cols; i++)
            x->value[i] = scale * fminf(fmaxf(rintf(x->value[i] / scale), -1), 1);
    }
}

static inline void tiny_gguf_meta(const tiny_model *m, mica_writer *w)
{
    const tiny *t = &m->t;
    char key[96];
    EXPECT_OK(mica_writer_string(w, "general.architecture", t->arch, strlen(t->arch)));
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {{"block_count", t->layers},
                 {"embedding_length", t->hidden},
                 {"feed_forward_length", t->ffn},
                 {"context_length", t->context},
                 {"attention.head_count", t->heads},
                 {"attention.head_count_kv", t->kv_heads},
                 {"attention.key_length", t->dim},
                 {"attention.value_length", t->dim},
                 {"rope.dimension_count", t->rope_dims ? t->rope_dims : t->dim}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        snprintf(key, sizeof key, "%s.%s", t->arch, sizes[i].key);
        EXPECT_OK(mica_writer_i64(w, key, MICA_U32, sizes[i].value));
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", t->arch);
    EXPECT_OK(mica_writer_f64(w, key, MICA_F32, 1e-5));
    snprintf(key, sizeof key, "%s.rope.freq_base", t->arch);
    EXPECT_OK(mica_writer_f64(w, key, MICA_F32, t->theta));
    if (t->scaling) {
        snprintf(key, sizeof key, "%s.rope.scaling.type", t->arch);
        EXPECT_OK(mica_writer_string(w, key, t->scaling, strlen(t->scaling)));
        snprintf(key, sizeof key, "%s.rope.scaling.factor", t->arch);
        EXPECT_OK(mica_writer_f64(w, key, MICA_F32, 4));
        snprintf(key, sizeof key, "%s.rope.scaling.original_context_length", t->arch);
        EXPECT_OK(mica_writer_i64(w, key, MICA_U32, t->context / 4));
    }
    if (t->extra_key) EXPECT_OK(mica_writer_i64(w, t->extra_key, MICA_U32, 1));
}

static inline void tiny_config_json(const tiny_model *m)
{
    const tiny *t = &m->t;
    char path[640];
    snprintf(path, sizeof path, "%s/config.json", m->path);
    FILE *f = fopen(path, "w");
    if (!f) abort();
    fprintf(f,
            "{\"model_type\": \"%s\", \"num_hidden_layers\": %d, \"hidden_size\": %d, \"num_attention_heads\": %d,\n"
            "\"num_key_value_heads\": %d, \"head_dim\": %d, \"intermediate_size\": %d, \"vocab_size\": %d,\n"
            "\"max_position_embeddings\": %d, \"rms_norm_eps\": 1e-5, \"rope_theta\": %.1f, \"hidden_act\": \"%s\",\n"
            "\"tie_word_embeddings\": %s",
            t->arch, t->layers, t->hidden, t->heads, t->kv_heads, t->dim, t->ffn, t->vocab, t->context, t->theta,
            t->relu2 ? "relu2" : "silu", t->untied ? "false" : "true");
    if (t->scaling)
        fprintf(
            f,
            ",\n\"rope_scaling\": {\"rope_type\": \"%s\", \"factor\": 4.0, \"original_max_position_embeddings\": %d,"
            " \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0}",
            t->scaling, t->context / 4);
    if (strcmp(t->format, "HF_TERNARY") == 0 || t->online)
        fprintf(f,
                ",\n\"quantization_config\": {\"quant_method\": \"bitnet\", \"linear_class\": \"%s\", "
                "\"quantization_mode\": \"%s\"}",
                t->divides ? "bitlinear" : "autobitlinear", t->online ? "online" : "offline");
    if (strcmp(t->format, "AFFINE") == 0) fprintf(f, ",\n\"quantization\": {\"group_size\": 32, \"bits\": 4}");
    fprintf(f, "}\n");
    if (fclose(f) != 0) abort();
}

/* Makes and writes a model; free it with tiny_free. */
static inline tiny_model *tiny_new(const tiny *t)
{
    static int number;
    tiny_model *m = calloc(1, sizeof *m);
    if (!m) abort();
    m->t = *t;
    snprintf(m->path, sizeof m->path, "%s/model%d%s", tiny_folder(), number++, t->hf ? "" : ".gguf");
    char file[640];
    snprintf(file, sizeof file, "%s%s", m->path, t->hf ? "/model.safetensors" : "");
    if (t->hf && mkdir(m->path, 0700) != 0) abort();
    tiny_make(m);
    mica_writer *w = NULL;
    if (!EXPECT_OK(mica_writer_open(file, t->hf ? "safetensors" : "gguf", &w))) abort();
    if (t->hf) tiny_config_json(m);
    else tiny_gguf_meta(m, w);
    for (int i = 0; i < m->n; i++) tiny_put(m, w, &m->tensors[i]);
    if (t->extra_tensor)
        EXPECT_OK(mica_writer_tensor(w, t->extra_tensor, "F32", 1, (int64_t[]){1}, tiny_own(m, sizeof(float))));
    EXPECT_OK(mica_writer_finish(w, NULL, NULL));
    return m;
}

static inline void tiny_free(tiny_model *m)
{
    for (int i = 0; i < m->n_bytes; i++) free(m->bytes[i]);
    free(m);
}

/* --------------------------------------------------------------- running --- */

static UNUSED mica_engine *tiny_engine(int threads)
{
    mica_engine_options o;
    mica_engine *e = NULL;
    mica_engine_options_init(&o);
    o.threads = threads;
    if (!EXPECT_OK(mica_open(&o, &e))) abort();
    return e;
}

/* The logits after these tokens, which are passed `piece` at a time; to be freed. */
static UNUSED float *tiny_logits(mica_engine *e, const char *path, const int32_t *tokens, int64_t n, int64_t piece)
{
    mica_lm *lm = NULL;
    mica_lm_session *session = NULL;
    mica_lm_info info = {.struct_size = sizeof info};
    const float *logits = NULL;
    float *copy = NULL;
    if (EXPECT_OK(mica_lm_open(e, path, NULL, &lm)) && EXPECT_OK(mica_lm_session_open(lm, NULL, &session))) {
        mica_lm_get_info(lm, &info);
        for (int64_t i = 0; i < n; i += piece)
            if (!EXPECT_OK(mica_lm_feed(session, tokens + i, n - i < piece ? n - i : piece, &logits))) break;
        copy = calloc((size_t)info.vocab, sizeof *copy);
        if (!copy) abort();
        if (logits) memcpy(copy, logits, (size_t)info.vocab * sizeof *copy);
    }
    mica_lm_session_close(session);
    mica_lm_close(lm);
    return copy;
}

#endif
