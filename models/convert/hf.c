/* Hugging Face folders to GGUF: tensor names, the rows of q and k that arch llama stores in pairs, packed ternary
 * weights with their scales, and the metadata. A tensor that is not in the tables here is refused by name: a model
 * without it would run and produce nonsense. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/name_ends.h"
#include "source.h"

/* ----------------------------------------------------------------- names --- */

typedef struct hf_name {
    const char *from, *to;
} hf_name;

/* Tensors of the model. */
static const hf_name hf_model_names[] = {
    /* clang-format off */
    {"model.embed_tokens", "token_embd"},
    {"model.norm",         "output_norm"},
    {"lm_head",            "output"},
    /* clang-format on */
};

/* Tensors of a layer: the part after "model.layers.N." or "blk.N.", before ".weight" or ".bias". */
static const hf_name hf_layer_names[] = {
    /* clang-format off */
    {"input_layernorm",          "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj",         "attn_q"},
    {"self_attn.k_proj",         "attn_k"},
    {"self_attn.v_proj",         "attn_v"},
    {"self_attn.o_proj",         "attn_output"},
    {"self_attn.q_norm",         "attn_q_norm"},
    {"self_attn.k_norm",         "attn_k_norm"},
    {"self_attn.attn_sub_norm",  "attn_sub_norm"},
    {"self_attn.inner_attn_ln",  "attn_sub_norm"},
    {"mlp.gate_proj",            "ffn_gate"},
    {"mlp.up_proj",              "ffn_up"},
    {"mlp.down_proj",            "ffn_down"},
    {"mlp.ffn_sub_norm",         "ffn_sub_norm"},
    {"mlp.ffn_layernorm",        "ffn_sub_norm"},
    /* clang-format on */
};

static const char *look_up(const hf_name *names, size_t n, const char *text, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i].from) == length && memcmp(names[i].from, text, length) == 0) return names[i].to;
    return NULL;
}

/* Writes the GGUF name; false: unknown. */
static bool gguf_name(const char *from, char out[SOURCE_NAME])
{
    const char *end = mica__name_ends(from, ".weight") ? ".weight" : mica__name_ends(from, ".bias") ? ".bias" : NULL;
    if (!end) return false;
    const size_t length = strlen(from) - strlen(end);
    const char *to = look_up(hf_model_names, sizeof hf_model_names / sizeof hf_model_names[0], from, length);
    int layer = -1, at = 0;
    if (to) {
        snprintf(out, SOURCE_NAME, "%s%s", to, end);
        return true;
    }
    if (sscanf(from, "model.layers.%9d.%n", &layer, &at) != 1 || at == 0 || layer < 0 || (size_t)at > length)
        return false;
    to = look_up(hf_layer_names, sizeof hf_layer_names / sizeof hf_layer_names[0], from + at, length - (size_t)at);
    if (to) snprintf(out, SOURCE_NAME, "blk.%d.%s%s", layer, to, end);
    return to != NULL;
}

/* -------------------------------------------------------------- the model --- */

static bool string_is(const mica_file *file, const char *key, const char *want)
{
    const char *text;
    size_t n;
    return mica_file_string(file, key, &text, &n) && n == strlen(want) && memcmp(text, want, n) == 0;
}

static bool any_key(const mica_file *file, const char *key)
{
    const char *text;
    size_t n;
    return mica_file_string(file, key, &text, &n);
}

static bool first_is(const mica_file *file, const char *key, const char *want)
{
    const char *text;
    size_t n, at = 0;
    return mica_file_next_string(file, key, &at, &text, &n) && n == strlen(want) && memcmp(text, want, n) == 0;
}

static bool any_named(const mica_file *file, const char *part)
{
    mica_tensor_info info = {.struct_size = sizeof info};
    for (size_t i = 0; mica_file_tensor(file, i, &info); i++)
        if (strstr(info.name, part)) return true;
    return false;
}

bool mica__hf_known(const mica_file *file, char arch[32])
{
    const bool relu2 = string_is(file, "config.hidden_act", "relu2");
    const char *found = NULL;
    /* Some folders of 1bitLLM have model_type llama; sub-norms distinguish them. */
    if (any_named(file, ".inner_attn_ln.") || any_named(file, ".attn_sub_norm.") ||
        string_is(file, "config.model_type", "bitnet"))
        found = relu2 ? "bitnet-b1.58" : "bitnet";
    else if (first_is(file, "config.architectures", "LlamaForCausalLM") ||
             string_is(file, "config.model_type", "llama"))
        found = "llama";
    else if (first_is(file, "config.architectures", "Qwen3ForCausalLM") ||
             string_is(file, "config.model_type", "qwen3"))
        found = "qwen3";
    if (found) snprintf(arch, 32, "%s", found);
    return found != NULL;
}

/* -------------------------------------------------------------- ternary ---- */

static float first_value(const mica_tensor_info *t)
{
    uint16_t half = 0;
    float wide = NAN;
    if (t->dtype == MICA_F32 && t->nbytes >= 4) memcpy(&wide, t->data, 4);
    if ((t->dtype == MICA_F16 || t->dtype == MICA_BF16) && t->nbytes >= 2) {
        memcpy(&half, t->data, 2);
        wide = t->dtype == MICA_F16 ? mica_f16_to_f32(half) : mica_bf16_to_f32(half);
    }
    return wide;
}

/* A u8 matrix stores four rows per byte and needs a separate scale. Only linear_class states whether the scale
 * multiplies or divides. */
static mica_status unpack_ternary(const mica__source *source, const mica_tensor_info *info, mica__source_tensor *t)
{
    char name[SOURCE_NAME + 8];
    mica_tensor_info scale = {.struct_size = sizeof scale};
    snprintf(name, sizeof name, "%.*s_scale", SOURCE_NAME, info->name);
    if (info->ndim != 2 || !mica_file_find(source->file, name, &scale))
        return mica_fail(MICA_ERR_FORMAT, "%s: tensor '%s' is u8 and its '%s' is missing", info->path, info->name,
                         name);
    const bool multiplies = string_is(source->file, "config.quantization_config.linear_class", "autobitlinear");
    const float value = first_value(&scale);
    t->scale = multiplies ? value : 1 / value;
    if (!isfinite(t->scale) || !(value > 0))
        return mica_fail(MICA_ERR_FORMAT, "%s: tensor '%s' at byte %llu: the scale is %g", scale.path, name,
                         (unsigned long long)scale.offset, (double)value);
    t->format = "HF_TERNARY";
    t->dtype = -1;
    t->shape[0] = 4 * info->shape[0];
    return MICA_OK;
}

/* ------------------------------------------------------------------- MLX --- */

/* A setting of quantization; a module may override it. */
static int64_t affine_setting(const mica_file *file, const char *module, size_t length, const char *name)
{
    char key[SOURCE_NAME + 64];
    int64_t v = 0;
    snprintf(key, sizeof key, "config.quantization.%.*s.%s", (int)length, module, name);
    if (mica_file_i64(file, key, &v)) return v;
    snprintf(key, sizeof key, "config.quantization.%s", name);
    return mica_file_i64(file, key, &v) ? v : 0;
}

/* u32 words with separate scales and biases; value = scale * code + bias. */
static mica_status unpack_affine(const mica__source *source, const mica_tensor_info *info, mica__source_tensor *t)
{
    const char *const ends[] = {"scales", "biases"};
    const uint8_t **const data[] = {&t->scales, &t->biases};
    const size_t length = strlen(info->name) - strlen(".weight");
    char name[SOURCE_NAME + 8];
    t->bits = (int)affine_setting(source->file, info->name, length, "bits");
    t->group = (int)affine_setting(source->file, info->name, length, "group_size");
    const bool known =
        t->bits >= 2 && t->bits <= 8 && t->bits != 7 && (t->group == 32 || t->group == 64 || t->group == 128);
    const int64_t cols = known && info->ndim == 2 ? info->shape[1] * 32 / t->bits : 0;
    if (!known || cols % t->group || cols * t->bits != info->shape[1] * 32 || !mica__name_ends(info->name, ".weight") ||
        (any_key(source->file, "config.quantization.mode") &&
         !string_is(source->file, "config.quantization.mode", "affine")))
        return mica_fail(MICA_ERR_UNSUPPORTED,
                         "%s: tensor '%s' is u32 and not an affine format of MLX (%d bits, groups of %d)", info->path,
                         info->name, t->bits, t->group);
    for (int i = 0; i < 2; i++) {
        mica_tensor_info beside = {.struct_size = sizeof beside};
        snprintf(name, sizeof name, "%.*s.%s", (int)length, info->name, ends[i]);
        const bool there = mica_file_find(source->file, name, &beside);
        if (!there || beside.ndim != 2 || beside.shape[0] != info->shape[0] || beside.shape[1] != cols / t->group ||
            mica_quant_nbytes(beside.format, 1, 1) == 0 || (i && strcmp(beside.format, t->scale_format) != 0))
            return mica_fail(MICA_ERR_FORMAT, "%s: tensor '%s': '%s' is missing or has another shape", info->path,
                             info->name, name);
        *data[i] = beside.data;
        t->scale_format = beside.format;
    }
    t->format = "AFFINE";
    t->dtype = -1;
    t->shape[1] = cols;
    return MICA_OK;
}

/* ------------------------------------------------------------ rope scaling -- */

static double real_of(const mica_file *file, const char *key, double otherwise)
{
    double v;
    return mica_file_f64(file, key, &v) ? v : otherwise;
}

static int64_t integer_of(const mica_file *file, const char *key, int64_t otherwise)
{
    int64_t v;
    return mica_file_i64(file, key, &v) ? v : otherwise;
}

static int64_t head_dim(const mica_file *file)
{
    const int64_t heads = integer_of(file, "config.num_attention_heads", 0);
    const int64_t whole = heads > 0 ? integer_of(file, "config.hidden_size", 0) / heads : 0;
    return integer_of(file, "config.head_dim", whole);
}

static double rope_theta(const mica_file *file)
{
    return real_of(file, "config.rope_theta", real_of(file, "config.rope_parameters.rope_theta", 10000));
}

/* Reads a key of rope_scaling, also under its newer name. */
static double rope_number(const mica_file *file, const char *name, double otherwise)
{
    char key[80];
    snprintf(key, sizeof key, "config.rope_parameters.%s", name);
    otherwise = real_of(file, key, otherwise);
    snprintf(key, sizeof key, "config.rope_scaling.%s", name);
    return real_of(file, key, otherwise);
}

static bool rope_type_is(const mica_file *file, const char *want)
{
    return string_is(file, "config.rope_scaling.rope_type", want) ||
           string_is(file, "config.rope_scaling.type", want) ||
           string_is(file, "config.rope_parameters.rope_type", want);
}

/* Llama 3.1 divides low frequencies by a factor and high ones by 1, and interpolates between them; GGUF stores the
 * divisors as a tensor. */
static mica_status llama3_factors(mica__source *source)
{
    const mica_file *file = source->file;
    const int64_t half = head_dim(file) / 2;
    const double factor = rope_number(file, "factor", 8), low = rope_number(file, "low_freq_factor", 1);
    const double high = rope_number(file, "high_freq_factor", 4);
    const double context = rope_number(file, "original_max_position_embeddings", 8192), theta = rope_theta(file);
    mica__source_tensor *t;
    if (!rope_type_is(file, "llama3") || half <= 0 || half > 1 << 20) return MICA_OK;
    if (!(source->rope_freqs = malloc((size_t)half * sizeof(float))))
        return mica_fail(MICA_ERR_MEMORY, "out of memory: rope factors");
    for (int64_t i = 0; i < half; i++) {
        const double length = 2 * 3.14159265358979323846 * pow(theta, (double)(2 * i) / (double)(2 * half));
        const double smooth = (context / length - low) / (high - low);
        const double between = 1 / ((1 - smooth) / factor + smooth);
        source->rope_freqs[i] = (float)(length < context / high ? 1 : length > context / low ? factor : between);
    }
    const mica_status status = mica__source_add(source, "rope_freqs.weight", &t);
    if (status != MICA_OK) return status;
    t->from = "";
    t->ndim = 1;
    t->shape[0] = t->cols = half;
    t->format = "F32";
    t->dtype = MICA_F32;
    t->data = (const uint8_t *)source->rope_freqs;
    t->nbytes = (uint64_t)half * 4;
    return MICA_OK;
}

/* --------------------------------------------------------------- tensors --- */

static bool left_out(const mica__source *source, const char *name)
{
    bool tied = false;
    if (mica__name_ends(name, ".weight_scale") || mica__name_ends(name, "rotary_emb.inv_freq") ||
        mica__name_ends(name, ".scales") || mica__name_ends(name, ".biases"))
        return true;
    if (strcmp(name, "lm_head.weight") != 0 || !mica_file_bool(source->file, "config.tie_word_embeddings", &tied) ||
        !tied)
        return false;
    mica__source_note(source, "lm_head.weight is left out: config.json states that the head is the embedding");
    return true;
}

/* Arch llama stores rows of q and k in pairs. Returns the heads of such a tensor; 0: the order is kept. */
static int64_t paired_heads(const mica__source *source, const char *name)
{
    if (strcmp(source->arch, "llama") != 0) return 0;
    const int64_t heads = integer_of(source->file, "config.num_attention_heads", 0);
    if (strstr(name, ".self_attn.q_proj.")) return heads;
    return strstr(name, ".self_attn.k_proj.") ? integer_of(source->file, "config.num_key_value_heads", heads) : 0;
}

static mica_status hf_tensor(mica__source *source, const mica_tensor_info *info)
{
    char name[SOURCE_NAME];
    mica__source_tensor *t;
    if (!gguf_name(info->name, name))
        return mica_fail(MICA_ERR_UNSUPPORTED, "%s: tensor '%s' of arch %s has no known GGUF name", info->path,
                         info->name, source->arch);
    mica_status status = mica__source_add(source, name, &t);
    if (status != MICA_OK) return status;
    t->from = info->name;
    t->ndim = info->ndim;
    memcpy(t->shape, info->shape, sizeof t->shape);
    t->format = info->format;
    t->dtype = info->dtype;
    t->data = info->data;
    t->nbytes = info->nbytes;
    if (info->dtype == MICA_U8) status = unpack_ternary(source, info, t);
    if (info->dtype == MICA_U32) status = unpack_affine(source, info, t);
    if (status != MICA_OK) return status;
    t->cols = t->ndim ? t->shape[t->ndim - 1] : 1;
    for (int d = 0; d + 1 < t->ndim; d++) t->rows *= t->shape[d];
    const int64_t heads = paired_heads(source, info->name);
    const int64_t rows = t->ndim == 2 ? t->rows : t->cols;
    if (heads <= 0) return MICA_OK;
    if (rows % (2 * heads))
        return mica_fail(MICA_ERR_FORMAT, "%s: tensor '%s': %lld rows do not divide into %lld heads", info->path,
                         info->name, (long long)rows, (long long)heads);
    if (t->ndim == 1) { /* a bias is treated as a matrix of one column, so that its rows are paired too */
        t->rows = rows;
        t->cols = 1;
    }
    t->heads = heads;
    return MICA_OK;
}

mica_status mica__hf_tensors(mica__source *source)
{
    const char *text = "", *type = "";
    size_t n = 0, at = 0, n_type = 0;
    mica_tensor_info info = {.struct_size = sizeof info};
    (void)mica_file_next_string(source->file, "config.architectures", &at, &text, &n);
    (void)mica_file_string(source->file, "config.model_type", &type, &n_type);
    if (!mica__hf_known(source->file, source->arch))
        return mica_fail(MICA_ERR_UNSUPPORTED,
                         "architecture '%.*s' (model_type '%.*s') is not converted: llama, qwen3 and bitnet are",
                         (int)n, text, (int)n_type, type);
    mica_status status = MICA_OK;
    for (size_t i = 0; status == MICA_OK && mica_file_tensor(source->file, i, &info); i++)
        if (!left_out(source, info.name)) status = hf_tensor(source, &info);
    return status == MICA_OK ? llama3_factors(source) : status;
}

/* -------------------------------------------------------------- metadata --- */

static mica_status arch_i64(const mica__source *source, mica_writer *w, const char *name, int64_t value)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", source->arch, name);
    return mica_writer_i64(w, key, MICA_U32, value);
}

static mica_status arch_f64(const mica__source *source, mica_writer *w, const char *name, double value)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", source->arch, name);
    return mica_writer_f64(w, key, MICA_F32, value);
}

static mica_status scaling_meta(const mica__source *source, mica_writer *w)
{
    const mica_file *file = source->file;
    const bool yarn = rope_type_is(file, "yarn"), linear = rope_type_is(file, "linear");
    char key[96];
    const char *text;
    size_t n;
    if (!yarn && !linear) {
        if (!rope_type_is(file, "llama3") && !rope_type_is(file, "default") &&
            (mica_file_string(file, "config.rope_scaling.rope_type", &text, &n) ||
             mica_file_string(file, "config.rope_scaling.type", &text, &n)))
            return mica_fail(MICA_ERR_UNSUPPORTED, "rope_scaling of type '%.*s' is not converted", (int)n, text);
        return MICA_OK;
    }
    snprintf(key, sizeof key, "%s.rope.scaling.type", source->arch);
    (void)mica_writer_string(w, key, yarn ? "yarn" : "linear", yarn ? 4 : 6);
    (void)arch_f64(source, w, "rope.scaling.factor", rope_number(file, "factor", 1));
    const double original = rope_number(file, "original_max_position_embeddings", 0);
    return original > 0 ? arch_i64(source, w, "rope.scaling.original_context_length", (int64_t)original) : MICA_OK;
}

mica_status mica__hf_meta(const mica__source *source, mica_writer *w)
{
    const mica_file *file = source->file;
    static const struct {
        const char *from, *to;
    } numbers[] = {{"vocab_size", "vocab_size"},
                   {"max_position_embeddings", "context_length"},
                   {"hidden_size", "embedding_length"},
                   {"num_hidden_layers", "block_count"},
                   {"intermediate_size", "feed_forward_length"},
                   {"num_attention_heads", "attention.head_count"}};
    (void)mica_writer_string(w, "general.architecture", source->arch, strlen(source->arch));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char key[64];
        int64_t v;
        snprintf(key, sizeof key, "config.%s", numbers[i].from);
        if (!mica_file_i64(file, key, &v) || v <= 0)
            return mica_fail(MICA_ERR_FORMAT, "config.json has no %s that is a positive integer", numbers[i].from);
        (void)arch_i64(source, w, numbers[i].to, v);
    }
    if (real_of(file, "config.partial_rotary_factor", 1) != 1)
        return mica_fail(MICA_ERR_UNSUPPORTED, "config.json: partial_rotary_factor is not converted");
    const int64_t heads = integer_of(file, "config.num_attention_heads", 1), dim = head_dim(file);
    (void)arch_i64(source, w, "attention.head_count_kv", integer_of(file, "config.num_key_value_heads", heads));
    (void)arch_i64(source, w, "rope.dimension_count", dim);
    if (dim * heads != integer_of(file, "config.hidden_size", 0) || strcmp(source->arch, "qwen3") == 0) {
        (void)arch_i64(source, w, "attention.key_length", dim);
        (void)arch_i64(source, w, "attention.value_length", dim);
    }
    (void)arch_f64(source, w, "attention.layer_norm_rms_epsilon", real_of(file, "config.rms_norm_eps", 1e-6));
    (void)arch_f64(source, w, "rope.freq_base", rope_theta(file));
    return scaling_meta(source, w);
}
