/* The sizes of a model, from the metadata of a GGUF file or from config.json.
 *
 * One table has the keys of both. Settings that are not supported and would change results are refused by name: a
 * model that loads and writes fluent nonsense is worse than one that does not load. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lm.h"

static const lm_arch architectures[] = {
#include "arch.def"
};
enum { N_ARCHITECTURES = sizeof architectures / sizeof architectures[0] };

typedef struct config_reader {
    const mica_file *file;
    const char *path;
    lm_names names;
    char arch[64];
    lm_config *c;
} config_reader;

/* Returns the key of a value in this file: "llama.block_count", "config.num_hidden_layers". */
static const char *key_of(const config_reader *r, const char *gguf, const char *hf, char key[160])
{
    if (r->names == LM_GGUF) snprintf(key, 160, "%s.%s", r->arch, gguf);
    else snprintf(key, 160, "config.%s", hf);
    return key;
}

static bool config_text(const mica_file *file, const char *key, char *out, size_t cap)
{
    const char *text;
    size_t n;
    if (!mica_file_string(file, key, &text, &n)) return false;
    snprintf(out, cap, "%.*s", n < cap ? (int)n : (int)cap - 1, text);
    return true;
}

/* ----------------------------------------------------------------- sizes --- */

static const struct {
    size_t at;
    const char *gguf, *hf;
    int64_t most;
    bool needed;
} config_sizes[] = {
#define SIZE(field, gguf, hf, most, needed) {offsetof(lm_config, field), gguf, hf, most, needed}
    SIZE(layers, "block_count", "num_hidden_layers", 4096, true),
    SIZE(hidden, "embedding_length", "hidden_size", 1 << 20, true),
    SIZE(heads, "attention.head_count", "num_attention_heads", 1 << 16, true),
    SIZE(kv_heads, "attention.head_count_kv", "num_key_value_heads", 1 << 16, false),
    SIZE(head_dim, "attention.key_length", "head_dim", 1 << 16, false),
    SIZE(ffn, "feed_forward_length", "intermediate_size", 1 << 24, true),
    SIZE(context, "context_length", "max_position_embeddings", INT32_MAX - 1, true),
    SIZE(rope_dims, "rope.dimension_count", "rotary_dim", 1 << 16, false),
#undef SIZE
};

static mica_status read_config_sizes(const config_reader *r)
{
    char key[160];
    for (size_t i = 0; i < sizeof config_sizes / sizeof config_sizes[0]; i++) {
        int64_t value = 0;
        key_of(r, config_sizes[i].gguf, config_sizes[i].hf, key);
        const bool there = mica_file_i64(r->file, key, &value);
        if (!there && config_sizes[i].needed)
            return mica_fail(MICA_ERR_FORMAT, "%s: '%s' is missing or not a number", r->path, key);
        if (there && (value < 1 || value > config_sizes[i].most))
            return mica_fail(MICA_ERR_FORMAT, "%s: '%s' is %" PRId64 ", not 1 to %" PRId64, r->path, key, value,
                             config_sizes[i].most);
        memcpy((char *)r->c + config_sizes[i].at, &value, sizeof value);
    }
    return MICA_OK;
}

static mica_status check_config_sizes(const config_reader *r)
{
    lm_config *c = r->c;
    int64_t value;
    char key[160];
    if (!c->kv_heads) c->kv_heads = c->heads;
    if (!c->head_dim && c->hidden % c->heads)
        return mica_fail(MICA_ERR_FORMAT, "%s: a width of %" PRId64 " is not a multiple of %" PRId64 " heads", r->path,
                         c->hidden, c->heads);
    if (!c->head_dim) c->head_dim = c->hidden / c->heads;
    if (!c->rope_dims) c->rope_dims = c->head_dim;
    if (c->heads % c->kv_heads)
        return mica_fail(MICA_ERR_FORMAT, "%s: %" PRId64 " heads are not a multiple of %" PRId64 " KV heads", r->path,
                         c->heads, c->kv_heads);
    if (c->rope_dims > c->head_dim || c->rope_dims % 2)
        return mica_fail(MICA_ERR_FORMAT, "%s: %" PRId64 " of %" PRId64 " values of a head cannot be rotated in pairs",
                         r->path, c->rope_dims, c->head_dim);
    if (mica_file_i64(r->file, key_of(r, "attention.value_length", "v_head_dim", key), &value) && value != c->head_dim)
        return mica_fail(MICA_ERR_UNSUPPORTED,
                         "%s: a value length of %" PRId64 " with a key length of %" PRId64 " is not supported", r->path,
                         value, c->head_dim);
    return MICA_OK;
}

/* otherwise: the value if the key is missing; below 0: the key is required. */
static mica_status read_positive(const config_reader *r, const char *gguf, const char *hf, double otherwise,
                                 double *out)
{
    char key[160];
    int64_t whole;
    if (!mica_file_f64(r->file, key_of(r, gguf, hf, key), out)) {
        const bool there = mica_file_i64(r->file, key, &whole);
        if (!there && otherwise < 0)
            return mica_fail(MICA_ERR_FORMAT, "%s: '%s' is missing or not a number", r->path, key);
        if (!there) {
            *out = otherwise;
            return MICA_OK;
        }
        *out = (double)whole;
    }
    if (isfinite(*out) && *out > 0) return MICA_OK;
    return mica_fail(MICA_ERR_FORMAT, "%s: '%s' is %g, which is not above 0", r->path, key, *out);
}

/* ------------------------------------------------------------------ rope --- */

/* newer config.json have rope_parameters instead of rope_theta and rope_scaling */
static const char *rope_key(const config_reader *r, const char *name, char key[64])
{
    int64_t whole;
    double value;
    char full[96];
    snprintf(key, 64, "rope_parameters.%s", name);
    snprintf(full, sizeof full, "config.%s", key);
    if (!mica_file_f64(r->file, full, &value) && !mica_file_i64(r->file, full, &whole))
        snprintf(key, 64, "rope_scaling.%s", name);
    return key;
}

static mica_status read_scaling_kind(const config_reader *r, char kind[32])
{
    static const char *const hf[] = {"config.rope_parameters.rope_type", "config.rope_parameters.type",
                                     "config.rope_scaling.rope_type", "config.rope_scaling.type"};
    char key[160];
    snprintf(kind, 32, "none");
    if (r->names == LM_GGUF) config_text(r->file, key_of(r, "rope.scaling.type", "", key), kind, 32);
    else
        for (size_t i = 0; i < sizeof hf / sizeof hf[0]; i++)
            if (config_text(r->file, hf[i], kind, 32)) break;
    static const struct {
        const char *name;
        lm_scaling scaling;
    } kinds[] = {{"none", LM_SCALE_NONE},
                 {"default", LM_SCALE_NONE},
                 {"linear", LM_SCALE_LINEAR},
                 {"llama3", LM_SCALE_LLAMA3},
                 {"yarn", LM_SCALE_YARN}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, kind) == 0) {
            r->c->scaling = kinds[i].scaling;
            return MICA_OK;
        }
    return mica_fail(MICA_ERR_UNSUPPORTED, "%s: rope scaling '%s' is not supported", r->path, kind);
}

static mica_status read_rope(const config_reader *r)
{
    lm_config *c = r->c;
    char kind[32], key[64];
    double theta;
    LM_TRY(read_positive(r, "rope.freq_base", rope_key(r, "rope_theta", key), 0, &theta));
    LM_TRY(read_positive(r, "rope.freq_base", "rope_theta", theta > 0 ? theta : 10000, &c->rope_base));
    LM_TRY(read_scaling_kind(r, kind));
    LM_TRY(read_positive(r, "rope.scaling.factor", rope_key(r, "factor", key), 1, &c->factor));
    LM_TRY(read_positive(r, "rope.scaling.original_context_length",
                         rope_key(r, "original_max_position_embeddings", key), (double)c->context,
                         &c->original_context));
    LM_TRY(read_positive(r, "rope.scaling.low_freq_factor", rope_key(r, "low_freq_factor", key), 1, &c->low_freq));
    LM_TRY(read_positive(r, "rope.scaling.high_freq_factor", rope_key(r, "high_freq_factor", key), 4, &c->high_freq));
    LM_TRY(read_positive(r, "rope.scaling.yarn_beta_fast", rope_key(r, "beta_fast", key), 32, &c->beta_fast));
    LM_TRY(read_positive(r, "rope.scaling.yarn_beta_slow", rope_key(r, "beta_slow", key), 1, &c->beta_slow));
    LM_TRY(read_positive(r, "rope.scaling.attn_factor", rope_key(r, "attention_factor", key), 0, &c->attn_factor));
    if (c->scaling == LM_SCALE_LLAMA3 && c->high_freq <= c->low_freq)
        return mica_fail(MICA_ERR_FORMAT, "%s: high_freq_factor %g is not above low_freq_factor %g", r->path,
                         c->high_freq, c->low_freq);
    return MICA_OK;
}

/* --------------------------------------------------------------- refused --- */

/* Refuses settings that would change results and are not implemented. */
static mica_status refuse_unsupported_keys(const config_reader *r)
{
    static const struct {
        const char *gguf, *hf;
    } keys[] = {{"expert_count", "num_local_experts"},
                {"attention.sliding_window", NULL},
                {"attn_logit_softcapping", "attn_logit_softcapping"},
                {"final_logit_softcapping", "final_logit_softcapping"},
                {"logit_scale", "logits_scaling"},
                {"embedding_scale", "embedding_multiplier"},
                {"residual_scale", "residual_multiplier"},
                {"attention.scale", "attention_multiplier"}};
    char key[160];
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        double value = 0;
        int64_t whole = 0;
        const char *name = r->names == LM_GGUF ? keys[i].gguf : keys[i].hf;
        if (!name) continue;
        key_of(r, name, name, key);
        if ((mica_file_f64(r->file, key, &value) && value != 0) || (mica_file_i64(r->file, key, &whole) && whole != 0))
            return mica_fail(MICA_ERR_UNSUPPORTED, "%s: '%s' is not supported for architecture %s", r->path, key,
                             r->arch);
    }
    bool sliding;
    if (mica_file_bool(r->file, "config.use_sliding_window", &sliding) && sliding)
        return mica_fail(MICA_ERR_UNSUPPORTED, "%s: 'config.use_sliding_window' is not supported", r->path);
    static const char hadamard[] = "prism.hadamard.";
    mica_meta_info info = {.struct_size = sizeof info};
    for (size_t i = 0; mica_file_meta(r->file, i, &info); i++)
        if (strncmp(info.key, hadamard, sizeof hadamard - 1) == 0)
            return mica_fail(MICA_ERR_UNSUPPORTED,
                             "%s: '%s' needs a Hadamard transform of activations, which is not supported", r->path,
                             info.key);
    return MICA_OK;
}

/* ----------------------------------------------------------- config.json --- */

static mica_status read_hf_quantization(const config_reader *r)
{
    lm_config *c = r->c;
    char text[64];
    bool flag;
    int64_t bits, group;
    if (config_text(r->file, "config.quantization_config.quant_method", text, sizeof text)) {
        if (strcmp(text, "bitnet") != 0)
            return mica_fail(MICA_ERR_UNSUPPORTED, "%s: quant_method '%s' is not supported", r->path, text);
        /* Only linear_class states what weight_scale means. The first upload of 2B4T has offline_quantization instead,
         * for the class that multiplies. */
        c->scale_divides = !mica_file_bool(r->file, "config.quantization_config.offline_quantization", &flag);
        if (config_text(r->file, "config.quantization_config.linear_class", text, sizeof text))
            c->scale_divides = strcmp(text, "autobitlinear") != 0;
        if (config_text(r->file, "config.quantization_config.quantization_mode", text, sizeof text))
            c->online = strcmp(text, "online") == 0;
    }
    if (mica_file_i64(r->file, "config.weight_bits", &bits) && bits == 1) c->online = true; /* 1bitLLM */
    if (mica_file_i64(r->file, "config.quantization.bits", &bits)) {
        if (config_text(r->file, "config.quantization.mode", text, sizeof text) && strcmp(text, "affine") != 0)
            return mica_fail(MICA_ERR_UNSUPPORTED, "%s: quantization mode '%s' is not supported", r->path, text);
        if (!mica_file_i64(r->file, "config.quantization.group_size", &group) || bits < 1 || bits > 8 || group < 1 ||
            group > 4096)
            return mica_fail(MICA_ERR_FORMAT, "%s: quantization of %" PRId64 " bits without a group_size", r->path,
                             bits);
        c->affine_bits = (int)bits;
        c->affine_group = (int)group;
    }
    return MICA_OK;
}

static mica_status read_hf_parts(const config_reader *r)
{
    lm_config *c = r->c;
    char text[64];
    mica_tensor_info head = {.struct_size = sizeof head};
    if (config_text(r->file, "config.hidden_act", text, sizeof text)) {
        if (strcmp(text, "silu") == 0) c->activation = DECODER_SILU;
        else if (strcmp(text, "relu2") == 0) c->activation = DECODER_RELU2;
        else return mica_fail(MICA_ERR_UNSUPPORTED, "%s: hidden_act '%s' is not supported", r->path, text);
    }
    if (!mica_file_bool(r->file, "config.tie_word_embeddings", &c->tied))
        c->tied = !mica_file_find(r->file, "lm_head.weight", &head);
    return read_hf_quantization(r);
}

/* --------------------------------------------------------------- the row --- */

static mica_status find_arch(config_reader *r)
{
    static const char *const keys[] = {[LM_GGUF] = "general.architecture", [LM_HF] = "config.model_type"};
    mica_tensor_info info = {.struct_size = sizeof info};
    r->names = strcmp(mica_file_kind(r->file), "gguf") == 0 ? LM_GGUF : LM_HF;
    if (!config_text(r->file, keys[r->names], r->arch, sizeof r->arch))
        return mica_fail(MICA_ERR_FORMAT, "%s: '%s' is missing, so this model cannot be run", r->path, keys[r->names]);
    for (int i = 0; i < N_ARCHITECTURES; i++) {
        const lm_arch *a = &architectures[i];
        if (a->names != r->names || strcmp(a->name, r->arch) != 0) continue;
        if (a->needs && !mica_file_find(r->file, a->needs, &info)) continue;
        r->c->arch = a;
        r->c->activation = a->activation;
        return MICA_OK;
    }
    return mica_fail(MICA_ERR_UNSUPPORTED, "%s: architecture '%s' is not supported", r->path, r->arch);
}

mica_status mica__lm_read_config(const mica_file *file, const char *path, lm_config *c)
{
    config_reader r = {.file = file, .path = path, .c = c};
    mica_tensor_info info = {.struct_size = sizeof info};
    *c = (lm_config){0};
    LM_TRY(find_arch(&r));
    LM_TRY(refuse_unsupported_keys(&r));
    LM_TRY(read_config_sizes(&r));
    LM_TRY(check_config_sizes(&r));
    LM_TRY(read_positive(&r, "attention.layer_norm_rms_epsilon", "rms_norm_eps", -1, &c->eps));
    LM_TRY(read_rope(&r));
    if (r.names == LM_HF) LM_TRY(read_hf_parts(&r));
    else c->tied = !mica_file_find(file, "output.weight", &info);
    const char *embed = r.names == LM_GGUF ? "token_embd.weight" : "model.embed_tokens.weight";
    if (!mica_file_find(file, embed, &info) || info.ndim != 2 || info.shape[0] < 1 || info.shape[0] > 1 << 24)
        return mica_fail(MICA_ERR_FORMAT, "%s: there is no embedding table '%s'", path, embed);
    c->vocab = info.shape[0];
    if (!config_text(file, "general.name", c->name, sizeof c->name))
        config_text(file, "config._name_or_path", c->name, sizeof c->name);
    return MICA_OK;
}

/* --------------------------------------------------------------- factors --- */

static const double PI = 3.14159265358979323846;

/* Llama 3: high frequencies are kept, low ones divided by the factor, those between interpolated. */
static double llama3_factor(const lm_config *c, double frequency)
{
    const double turns = c->original_context * frequency / (2 * PI); /* within the context of training */
    if (turns > c->high_freq) return 1;
    if (turns < c->low_freq) return c->factor;
    const double smooth = (turns - c->low_freq) / (c->high_freq - c->low_freq);
    return 1 / ((1 - smooth) / c->factor + smooth);
}

/* YaRN: the same idea, with a linear ramp over the pairs between two numbers of turns. */
static double yarn_pair(const lm_config *c, double turns)
{
    return (double)c->rope_dims * log(c->original_context / (turns * 2 * PI)) / (2 * log(c->rope_base));
}

static double yarn_factor(const lm_config *c, int64_t pair)
{
    const double low = fmax(floor(yarn_pair(c, c->beta_fast)), 0);
    const double high = fmin(ceil(yarn_pair(c, c->beta_slow)), (double)(c->rope_dims - 1));
    const double ramp = fmin(fmax(((double)pair - low) / fmax(high - low, 0.001), 0), 1);
    return 1 / (ramp / c->factor + (1 - ramp));
}

bool mica__lm_rope_factors(const lm_config *c, float *factors, double *magnitude)
{
    *magnitude = 1;
    if (c->scaling == LM_SCALE_NONE) return false;
    for (int64_t i = 0; i < c->rope_dims / 2; i++) {
        const double frequency = pow(c->rope_base, -2 * (double)i / (double)c->rope_dims);
        factors[i] = (float)(c->scaling == LM_SCALE_LINEAR   ? c->factor
                             : c->scaling == LM_SCALE_LLAMA3 ? llama3_factor(c, frequency)
                                                             : yarn_factor(c, i));
    }
    if (c->scaling == LM_SCALE_YARN) {
        const double paper = c->factor > 1 ? 1 + 0.1 * log(c->factor) : 1;
        /* GGUF: attn_factor is an additional factor; config.json: it replaces the whole value */
        if (c->arch->names == LM_GGUF) *magnitude = paper * (c->attn_factor > 0 ? c->attn_factor : 1);
        else *magnitude = c->attn_factor > 0 ? c->attn_factor : paper;
    }
    return true;
}
