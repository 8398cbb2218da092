/* Makes a model of a given shape with random ternary weights: to run, measure and compare containers without real
 * weights.
 *
 * A code is a function of seed, tensor, row and column; nothing is stored. So each container can read rows in its own
 * order, and the model may be larger than memory. Scales, embeddings and norms have so few bits that f16, bf16 and f32
 * represent them exactly: every container holds the same model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mica_lm.h>

#include "source.h"

typedef struct random_shape {
    int64_t hidden, layers, heads, kv_heads, ffn, vocab, context, theta;
} random_shape;

static const struct {
    const char *name;
    random_shape shape;
} random_shapes[] = {{"2b4t", {2560, 30, 20, 5, 6912, 128256, 4096, 500000}},
                     {"tiny", {256, 2, 4, 2, 512, 288, 512, 500000}}};

typedef enum random_part { PART_EMBEDDING, PART_NORM, PART_TERNARY, PART_SCALE } random_part;

typedef struct random_tensor {
    random_part part;
    uint32_t number;      /* selects the random stream; the same in every container */
    int64_t rows, cols;
} random_tensor;

typedef struct random_job {
    const mica_random_options *options;
    random_shape shape;
    bool folder;          /* write a Hugging Face folder   */
    char format[16];      /* of ternary tensors in GGUF    */
    random_tensor *tensors;
    size_t n_tensors;
    uint64_t done, total;
    float *rows;
    uint8_t *bytes;
} random_job;

enum { RANDOM_PIECE = 1 << 20, FIRST_CONTROL = 256, CONTROLS = 3, TOKEN_TEXT = 40 };

/* --------------------------------------------------------------- numbers --- */

static uint64_t mix_bits(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Eight bytes of a tensor's random stream. */
static uint64_t random_word(const random_job *job, const random_tensor *t, uint64_t i)
{
    return mix_bits(mix_bits(job->options->seed + ((uint64_t)t->number << 40)) ^ i);
}

/* Codes of a row: each has probability 1/3, up to 1/256. */
static void random_codes(const random_job *job, const random_tensor *t, int64_t row, int8_t *codes)
{
    const uint64_t words = (uint64_t)(t->cols + 7) / 8;
    for (int64_t c = 0; c < t->cols; c += 8) {
        uint64_t w = random_word(job, t, (uint64_t)row * words + (uint64_t)c / 8);
        for (int64_t k = c; k < t->cols && k < c + 8; k++, w >>= 8) codes[k] = (int8_t)((int)(w & 255) % 3 - 1);
    }
}

/* Keeps activations near their size: one over the root of the number of nonzero codes, rounded to three bits. */
static float random_scale(const random_job *job, const random_tensor *t)
{
    int exponent;
    const double exact =
        1 / sqrt((double)t->cols * 2 / 3) * (0.75 + (double)(random_word(job, t, UINT64_MAX) % 8) / 16);
    const double fraction = frexp(exact, &exponent);
    return (float)ldexp(floor(fraction * 8) / 8, exponent);
}

/* Seven bits and a sign; norms are near 1. */
static void random_values(const random_job *job, const random_tensor *t, int64_t row, float *out)
{
    for (int64_t c = 0; c < t->cols; c++) {
        const uint64_t w = random_word(job, t, (uint64_t)(row * t->cols + c));
        const int v = (int)(w & 255) - 128;
        out[c] = t->part == PART_NORM ? 1 + (float)(v / 8) / 64 : (float)(v == -128 ? 0 : v) / 64;
    }
}

/* ----------------------------------------------------------------- shape --- */

static int64_t *shape_field(random_shape *s, const char *name, size_t n)
{
    const struct {
        const char *name;
        int64_t *field;
    } fields[] = {{"hidden", &s->hidden}, {"layers", &s->layers}, {"heads", &s->heads},    {"kv_heads", &s->kv_heads},
                  {"ffn", &s->ffn},       {"vocab", &s->vocab},   {"context", &s->context}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strlen(fields[i].name) == n && memcmp(fields[i].name, name, n) == 0) return fields[i].field;
    return NULL;
}

/* "tiny", "2b4t,vocab=2048", "hidden=128,layers=3". */
static mica_status read_shape(const char *text, random_shape *s)
{
    *s = random_shapes[1].shape;
    for (const char *at = text; at && *at;) {
        const size_t n = strcspn(at, ","), name = strcspn(at, "=,");
        bool known = false;
        for (size_t i = 0; at == text && i < sizeof random_shapes / sizeof random_shapes[0]; i++) {
            if (strlen(random_shapes[i].name) != n || memcmp(random_shapes[i].name, at, n) != 0) continue;
            *s = random_shapes[i].shape;
            known = true;
        }
        int64_t *field = name < n ? shape_field(s, at, name) : NULL;
        char *end = NULL;
        if (field) *field = strtoll(at + name + 1, &end, 10);
        if (!known && (!field || end != at + n || n == name + 1))
            return mica_fail(
                MICA_ERR_ARGUMENT,
                "make-random: '%.*s' is not part of a shape: 2b4t, tiny, or hidden, layers, heads, kv_heads, "
                "ffn, vocab, context = a number",
                (int)n, at);
        at += n + (at[n] == ',');
    }
    return MICA_OK;
}

static mica_status check_shape(const random_job *job)
{
    const random_shape *s = &job->shape;
    const int64_t all[] = {s->hidden, s->layers, s->heads, s->kv_heads, s->ffn, s->vocab, s->context};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] < 1 || all[i] > 1 << 24)
            return mica_fail(MICA_ERR_ARGUMENT, "make-random: a size of %lld is out of range (1 to %d)",
                             (long long)all[i], 1 << 24);
    if (s->hidden % s->heads || s->heads % s->kv_heads || s->hidden / s->heads % 2 || s->layers > 10000)
        return mica_fail(MICA_ERR_ARGUMENT,
                         "make-random: %lld columns, %lld heads and %lld kv_heads do not go together",
                         (long long)s->hidden, (long long)s->heads, (long long)s->kv_heads);
    if (s->vocab < FIRST_CONTROL + CONTROLS)
        return mica_fail(MICA_ERR_ARGUMENT, "make-random: a vocabulary of %lld; bytes and %d controls need %d",
                         (long long)s->vocab, CONTROLS, FIRST_CONTROL + CONTROLS);
    const int64_t kv = s->hidden / s->heads * s->kv_heads;
    if (job->folder && (s->hidden % 4 || kv % 4 || s->ffn % 4))
        return mica_fail(MICA_ERR_ARGUMENT, "make-random: hf packs four rows a byte: sizes must be multiples of 4");
    for (int i = 0; i < 2 && !job->folder; i++)
        if (mica_quant_nbytes(job->format, 1, i ? s->ffn : s->hidden) == 0)
            return mica_fail(MICA_ERR_ARGUMENT, "make-random: rows of %lld do not fill blocks of %s",
                             (long long)(i ? s->ffn : s->hidden), job->format);
    return MICA_OK;
}

/* --------------------------------------------------------------- tensors --- */

static const struct {
    const char *gguf, *hf;
} random_layer[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_sub_norm", "self_attn.attn_sub_norm"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_sub_norm", "mlp.ffn_sub_norm"},
    {"ffn_down", "mlp.down_proj"},
};
enum { PER_LAYER = sizeof random_layer / sizeof random_layer[0] };

static mica_status declare_one(random_job *job, mica_writer *w, const char *name, random_tensor t)
{
    const bool ternary = t.part == PART_TERNARY, vector = t.part == PART_NORM || t.part == PART_SCALE;
    const char *format = ternary                    ? (job->folder ? "U8" : job->format)
                         : t.part == PART_EMBEDDING ? "F16"
                         : t.part == PART_SCALE     ? "BF16"
                                                    : "F32";
    const int64_t rows = ternary && job->folder ? t.rows / 4 : t.rows;
    const int64_t shape[2] = {vector ? t.cols : rows, t.cols};
    job->tensors[job->n_tensors++] = t;
    job->total += ternary && job->folder ? (uint64_t)(rows * t.cols) : mica_quant_nbytes(format, rows, t.cols);
    return mica_writer_tensor(w, name, format, vector ? 1 : 2, shape, NULL);
}

static mica_status declare_layer(random_job *job, mica_writer *w, int64_t layer)
{
    const random_shape *s = &job->shape;
    const int64_t kv = s->hidden / s->heads * s->kv_heads;
    const int64_t rows[PER_LAYER] = {1, s->hidden, kv, kv, 1, s->hidden, 1, s->ffn, s->ffn, 1, s->hidden};
    const int64_t cols[PER_LAYER] = {s->hidden, s->hidden, s->hidden, s->hidden, s->hidden, s->hidden,
                                     s->hidden, s->hidden, s->hidden, s->ffn,    s->ffn};
    mica_status status = MICA_OK;
    for (int k = 0; k < PER_LAYER && status == MICA_OK; k++) {
        char name[96];
        const uint32_t number = (uint32_t)(2 + layer * PER_LAYER + k);
        const random_tensor t = {strstr(random_layer[k].gguf, "norm") ? PART_NORM : PART_TERNARY, number, rows[k],
                                 cols[k]};
        snprintf(name, sizeof name, job->folder ? "model.layers.%d.%s.weight" : "blk.%d.%s.weight", (int)layer,
                 job->folder ? random_layer[k].hf : random_layer[k].gguf);
        status = declare_one(job, w, name, t);
        if (status != MICA_OK || t.part != PART_TERNARY || !job->folder) continue;
        strcat(name, "_scale");
        /* its columns are those of the matrix that it scales: see put_scale */
        status = declare_one(job, w, name, (random_tensor){PART_SCALE, number, 1, 1});
        job->tensors[job->n_tensors - 1].cols = cols[k];
    }
    return status;
}

static mica_status declare_tensors(random_job *job, mica_writer *w)
{
    const random_shape *s = &job->shape;
    job->tensors = calloc((size_t)(2 + 2 * PER_LAYER * s->layers), sizeof *job->tensors);
    if (!job->tensors) return mica_fail(MICA_ERR_MEMORY, "make-random: out of memory");
    mica_status status = declare_one(job, w, job->folder ? "model.embed_tokens.weight" : "token_embd.weight",
                                     (random_tensor){PART_EMBEDDING, 0, s->vocab, s->hidden});
    for (int64_t i = 0; i < s->layers && status == MICA_OK; i++) status = declare_layer(job, w, i);
    if (status == MICA_OK)
        status = declare_one(job, w, job->folder ? "model.norm.weight" : "output_norm.weight",
                             (random_tensor){PART_NORM, 1, 1, s->hidden});
    return status;
}

/* ---------------------------------------------------------------- writing --- */

static mica_status put_piece(random_job *job, mica_writer *w, const void *data, size_t nbytes)
{
    const mica_status status = mica_writer_put(w, data, nbytes);
    job->done += nbytes;
    if (status == MICA_OK && job->options->progress &&
        !job->options->progress(job->done, job->total, "", job->options->user))
        return mica_fail(MICA_ERR_STATE, "make-random: stopped");
    return status;
}

/* Four rows per byte, a quarter of the matrix apart. */
static mica_status put_hf_ternary(random_job *job, const random_tensor *t, mica_writer *w)
{
    int8_t *codes = (int8_t *)job->rows;
    const int64_t quarter = t->rows / 4;
    for (int64_t r = 0; r < quarter; r++) {
        memset(job->bytes, 0, (size_t)t->cols);
        for (int k = 0; k < 4; k++) {
            random_codes(job, t, r + k * quarter, codes);
            for (int64_t c = 0; c < t->cols; c++) job->bytes[c] |= (uint8_t)((codes[c] + 1) << 2 * k);
        }
        const mica_status status = put_piece(job, w, job->bytes, (size_t)t->cols);
        if (status != MICA_OK) return status;
    }
    return MICA_OK;
}

static int64_t rows_at_once(const random_tensor *t)
{
    const int64_t n = RANDOM_PIECE / 4 / t->cols / SOURCE_PANEL * SOURCE_PANEL;
    return n < SOURCE_PANEL ? SOURCE_PANEL : n < t->rows ? n : t->rows;
}

/* Packs rows from f32. The scale of an I2_S tensor is written once, at its end. */
static mica_status put_packed(random_job *job, const random_tensor *t, const char *format, mica_writer *w)
{
    const int64_t step = rows_at_once(t);
    const size_t tail = mica__source_tail(format);
    const float scale = t->part == PART_TERNARY ? random_scale(job, t) : 0;
    for (int64_t r = 0; r < t->rows; r += step) {
        const int64_t n = step < t->rows - r ? step : t->rows - r;
        for (int64_t i = 0; i < n; i++) {
            float *row = job->rows + i * t->cols;
            int8_t *codes = (int8_t *)job->bytes;
            if (t->part != PART_TERNARY) {
                random_values(job, t, r + i, row);
                continue;
            }
            random_codes(job, t, r + i, codes);
            for (int64_t c = 0; c < t->cols; c++) row[c] = (float)codes[c] * scale;
        }
        const size_t nbytes = mica_quant_nbytes(format, n, t->cols);
        mica_status status = mica_quant_pack(format, n, t->cols, job->rows, job->bytes, nbytes);
        if (status == MICA_OK) status = put_piece(job, w, job->bytes, nbytes - tail);
        if (status != MICA_OK) return status;
    }
    memset(job->bytes, 0, tail + sizeof scale);
    memcpy(job->bytes, &scale, sizeof scale);
    return tail ? put_piece(job, w, job->bytes, tail) : MICA_OK;
}

static mica_status put_random(mica_writer *w, size_t i, void *user)
{
    random_job *job = user;
    const random_tensor *t = &job->tensors[i];
    if (t->part == PART_SCALE) {
        const uint16_t half = mica_bf16_from_f32(random_scale(job, t));
        return put_piece(job, w, &half, 2);
    }
    if (t->part == PART_TERNARY) return job->folder ? put_hf_ternary(job, t, w) : put_packed(job, t, job->format, w);
    return put_packed(job, t, t->part == PART_NORM ? "F32" : "F16", w);
}

/* -------------------------------------------------------------- metadata --- */

/* A token for each byte, in GPT-2's byte alphabet; then the control tokens; then names that no text contains. */
static void token_text(int64_t id, char out[TOKEN_TEXT])
{
    static const char *const controls[CONTROLS] = {"<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"};
    if (id >= FIRST_CONTROL + CONTROLS) {
        snprintf(out, TOKEN_TEXT, "<|reserved_%lld|>", (long long)id);
        return;
    }
    if (id >= FIRST_CONTROL) {
        snprintf(out, TOKEN_TEXT, "%s", controls[id - FIRST_CONTROL]);
        return;
    }
    unsigned c = (unsigned)id, moved = 256;
    const bool printed = (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || c >= 174;
    for (unsigned k = 0; !printed && k < c; k++)
        moved += !((k >= 33 && k <= 126) || (k >= 161 && k <= 172) || k >= 174);
    c = printed ? c : moved;
    if (c < 128) snprintf(out, TOKEN_TEXT, "%c", (int)c);
    else out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), out[2] = '\0';
}

static mica_status tokens_meta(const random_shape *s, mica_writer *w)
{
    enum { NORMAL = 1, CONTROL = 3, UNUSED = 5 };
    const size_t n = (size_t)s->vocab;
    char(*texts)[TOKEN_TEXT] = calloc(n, sizeof *texts);
    const char **tokens = calloc(n, sizeof *tokens);
    int32_t *types = calloc(n, sizeof *types);
    mica_status status = texts && tokens && types ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "make-random: out of memory");
    for (size_t i = 0; i < n && status == MICA_OK; i++) {
        token_text((int64_t)i, texts[i]);
        tokens[i] = texts[i];
        types[i] = i < FIRST_CONTROL ? NORMAL : i < FIRST_CONTROL + CONTROLS ? CONTROL : UNUSED;
    }
    if (status == MICA_OK) {
        (void)mica_writer_string(w, "tokenizer.ggml.model", "gpt2", 4);
        (void)mica_writer_string(w, "tokenizer.ggml.pre", "llama-bpe", 9);
        (void)mica_writer_strings(w, "tokenizer.ggml.tokens", n, tokens, NULL);
        (void)mica_writer_array(w, "tokenizer.ggml.token_type", MICA_I32, n, types);
        (void)mica_writer_strings(w, "tokenizer.ggml.merges", 0, NULL, NULL);
        (void)mica_writer_i64(w, "tokenizer.ggml.bos_token_id", MICA_U32, FIRST_CONTROL);
        (void)mica_writer_i64(w, "tokenizer.ggml.eos_token_id", MICA_U32, FIRST_CONTROL + 1);
        (void)mica_writer_i64(w, "tokenizer.ggml.eot_token_id", MICA_U32, FIRST_CONTROL + 2);
        status = mica_writer_i64(w, "tokenizer.ggml.add_bos_token", MICA_BOOL, 1);
    }
    free(texts);
    free(tokens);
    free(types);
    return status;
}

static mica_status random_meta(const random_job *job, mica_writer *w)
{
    const random_shape *s = &job->shape;
    const char *arch = job->options->arch;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"vocab_size", s->vocab},           {"context_length", s->context},
                   {"embedding_length", s->hidden},    {"block_count", s->layers},
                   {"feed_forward_length", s->ffn},    {"rope.dimension_count", s->hidden / s->heads},
                   {"attention.head_count", s->heads}, {"attention.head_count_kv", s->kv_heads}};
    char key[96];
    (void)mica_writer_string(w, "general.architecture", arch, strlen(arch));
    (void)mica_writer_string(w, "general.name", "random", 6);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        snprintf(key, sizeof key, "%s.%s", arch, numbers[i].name);
        (void)mica_writer_i64(w, key, MICA_U32, numbers[i].value);
    }
    if (mica__source_panels(job->format)) (void)mica_writer_i64(w, "general.alignment", MICA_U32, 64);
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", arch);
    (void)mica_writer_f64(w, key, MICA_F32, 1e-5);
    snprintf(key, sizeof key, "%s.rope.freq_base", arch);
    (void)mica_writer_f64(w, key, MICA_F32, (double)s->theta);
    return tokens_meta(s, w);
}

/* ---------------------------------------------------------------- folders --- */

static mica_status write_json(const char *folder, const char *name, const char *text)
{
    char path[1024];
    FILE *f = snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path ? fopen(path, "wb") : NULL;
    const bool good = f && fputs(text, f) >= 0;
    if ((f && fclose(f) != 0) || !good) return mica_fail(MICA_ERR_FILE, "%s/%s: cannot write it", folder, name);
    return MICA_OK;
}

static mica_status write_configs(const random_job *job, const char *folder)
{
    const random_shape *s = &job->shape;
    char text[1536];
    snprintf(text, sizeof text,
             "{\"architectures\": [\"BitNetForCausalLM\"], \"model_type\": \"bitnet\", \"hidden_act\": \"relu2\",\n"
             " \"hidden_size\": %lld, \"num_hidden_layers\": %lld, \"num_attention_heads\": %lld,\n"
             " \"num_key_value_heads\": %lld, \"intermediate_size\": %lld, \"vocab_size\": %lld,\n"
             " \"max_position_embeddings\": %lld, \"rope_theta\": %lld.0, \"rms_norm_eps\": 1e-05,\n"
             " \"tie_word_embeddings\": true, \"bos_token_id\": %d, \"eos_token_id\": %d,\n"
             " \"quantization_config\": {\"quant_method\": \"bitnet\", \"linear_class\": \"autobitlinear\",\n"
             "  \"quantization_mode\": \"offline\"}}\n",
             (long long)s->hidden, (long long)s->layers, (long long)s->heads, (long long)s->kv_heads, (long long)s->ffn,
             (long long)s->vocab, (long long)s->context, (long long)s->theta, FIRST_CONTROL, FIRST_CONTROL + 1);
    mica_status status = write_json(folder, "config.json", text);
    snprintf(text, sizeof text, "{\"bos_token_id\": %d, \"eos_token_id\": [%d, %d]}\n", FIRST_CONTROL,
             FIRST_CONTROL + 1, FIRST_CONTROL + 2);
    if (status == MICA_OK) status = write_json(folder, "generation_config.json", text);
    if (status == MICA_OK)
        status = write_json(folder, "tokenizer_config.json",
                            "{\"add_bos_token\": true, \"bos_token\": \"<|begin_of_text|>\", \"eos_token\": "
                            "\"<|end_of_text|>\"}\n");
    return status;
}

/* Writes tokenizer.json, through a GGUF file that holds only the tokenizer. */
static mica_status write_tokenizer(const random_job *job, const char *folder)
{
    char from[1024], to[1024];
    mica_writer *w = NULL;
    mica_tokenizer *t = NULL;
    if (snprintf(from, sizeof from, "%s/tokenizer.%ld.gguf", folder, (long)getpid()) >= (int)sizeof from ||
        snprintf(to, sizeof to, "%s/tokenizer.json", folder) >= (int)sizeof to)
        return mica_fail(MICA_ERR_ARGUMENT, "make-random: a path of %zu bytes", strlen(folder));
    mica_status status = mica_writer_open(from, NULL, &w);
    if (status == MICA_OK) (void)mica_writer_string(w, "general.architecture", "bitnet-b1.58", 12);
    if (status == MICA_OK) status = tokens_meta(&job->shape, w);
    if (status != MICA_OK) {
        mica_writer_abandon(w);
        return status;
    }
    status = mica_writer_finish(w, NULL, NULL);
    if (status == MICA_OK) status = mica_tokenizer_open(from, NULL, &t);
    if (status == MICA_OK) status = mica_tokenizer_save(t, to);
    mica_tokenizer_close(t);
    (void)unlink(from);
    return status;
}

/* ------------------------------------------------------------------- all --- */

static mica_status write_random(random_job *job, const char *path)
{
    mica_writer *w = NULL;
    int64_t widest = job->shape.hidden > job->shape.ffn ? job->shape.hidden : job->shape.ffn;
    /* room for a piece, or for SOURCE_PANEL rows if these are larger */
    job->rows = malloc((size_t)(RANDOM_PIECE + 4 * SOURCE_PANEL * widest));
    job->bytes = malloc((size_t)(RANDOM_PIECE + 4 * SOURCE_PANEL * widest));
    if (!job->rows || !job->bytes) return mica_fail(MICA_ERR_MEMORY, "make-random: out of memory");
    mica_status status = mica_writer_open(path, job->folder ? "safetensors" : "gguf", &w);
    if (status == MICA_OK && !job->folder) status = random_meta(job, w);
    if (status == MICA_OK && job->folder) status = mica_writer_string(w, "format", "pt", 2);
    if (status == MICA_OK) status = declare_tensors(job, w);
    if (status != MICA_OK) {
        mica_writer_abandon(w);
        return status;
    }
    return mica_writer_finish(w, put_random, job);
}

/* The model is written last: a folder without it is not a model, so an interrupted run leaves no partial model. */
static mica_status write_folder(random_job *job, const char *folder)
{
    char path[1024];
    struct stat s;
    if (snprintf(path, sizeof path, "%s/model.safetensors", folder) >= (int)sizeof path)
        return mica_fail(MICA_ERR_ARGUMENT, "make-random: a path of %zu bytes", strlen(folder));
    if (mkdir(folder, 0777) != 0 && (stat(folder, &s) != 0 || !S_ISDIR(s.st_mode)))
        return mica_fail(MICA_ERR_FILE, "%s: cannot make the folder", folder);
    mica_status status = write_configs(job, folder);
    if (status == MICA_OK) status = write_tokenizer(job, folder);
    return status == MICA_OK ? write_random(job, path) : status;
}

void mica_random_options_init(mica_random_options *options)
{
    if (options)
        *options = (mica_random_options){
            .struct_size = sizeof *options, .arch = "bitnet-b1.58", .shape = "tiny", .container = "i2_s", .seed = 1};
}

/* Formats that store -1, 0, 1 times a scale exactly, and that files can have. */
static bool can_hold_codes(const mica_format_info *f) { return (f->ternary && f->output) || f->dtype == MICA_F16; }

mica_status mica_make_random(const char *out, const mica_random_options *options)
{
    mica_random_options o;
    mica_random_options_init(&o);
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "make-random: the path is NULL");
    const mica_status read = mica_struct_read("make-random: mica_random_options", &o, sizeof o, options);
    if (read != MICA_OK) return read;
    random_job job = {.options = &o};
    if (!o.arch || (strcmp(o.arch, "bitnet-b1.58") != 0 && strcmp(o.arch, "bitnet-25") != 0))
        return mica_fail(MICA_ERR_ARGUMENT, "make-random: architecture '%s'; bitnet-b1.58 and bitnet-25 can be made",
                         o.arch ? o.arch : "(NULL)");
    mica_format_info f = {.struct_size = sizeof f};
    job.folder = o.container && strcmp(o.container, "hf") == 0;
    if (!job.folder && !(o.container && mica_format_find(o.container, &f) && can_hold_codes(&f)))
        return mica_fail(MICA_ERR_ARGUMENT,
                         "make-random: container '%s'; it is hf, f16, or a ternary format that quantize writes "
                         "(i2_s, tq1_0, tq2_0, q2_0, mica_t2, mica_t1)",
                         o.container ? o.container : "(NULL)");
    snprintf(job.format, sizeof job.format, "%s", job.folder ? "" : f.name);
    mica_status status = read_shape(o.shape, &job.shape);
    if (status == MICA_OK && o.vocab) job.shape.vocab = o.vocab;
    if (status == MICA_OK) status = check_shape(&job);
    if (status == MICA_OK) status = job.folder ? write_folder(&job, out) : write_random(&job, out);
    free(job.tensors);
    free(job.rows);
    free(job.bytes);
    return status;
}
