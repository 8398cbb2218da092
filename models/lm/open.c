/* Opening a model: the file, the decoder in it, and its tokenizer at first use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lm.h"

void mica_lm_options_init(mica_lm_options *options)
{
    if (options) *options = (mica_lm_options){.struct_size = sizeof *options, .act = MICA_LM_ACT_TRAINED};
}

mica_status mica_lm_builtin_open(const mica_file_options *options, mica_file **out)
{
    const void *data;
    size_t size;
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "built-in model: out is NULL");
    *out = NULL;
    if (!mica__lm_builtin(&data, &size))
        return mica_fail(MICA_ERR_UNSUPPORTED, "this library was built without a model inside; name a file");
    return mica_file_from_memory("built-in model", data, size, options, out);
}

static mica_status open_file(mica_lm *lm, const char *path, const mica_lm_options *o)
{
    mica_file_options options;
    mica_file_options_init(&options);
    options.i2_s_arm = o->i2_s_arm;
    options.no_mmap = o->no_mmap;
    return path ? mica_file_open(path, &options, &lm->file) : mica_lm_builtin_open(&options, &lm->file);
}

mica_status mica_lm_open(mica_engine *engine, const char *path, const mica_lm_options *options, mica_lm **out)
{
    if (!engine || !out) return mica_fail(MICA_ERR_ARGUMENT, "model: engine or out is NULL");
    *out = NULL;
    mica_lm_options o;
    mica_lm_options_init(&o);
    LM_TRY(mica_struct_read("model: mica_lm_options", &o, sizeof o, options));
    if (o.act < MICA_LM_ACT_TRAINED || o.act > MICA_ACT_BLOCK256)
        return mica_fail(MICA_ERR_ARGUMENT, "model: act is %d, which is not a mica_act", o.act);
    mica_lm *lm = calloc(1, sizeof *lm);
    if (!lm) return mica_fail(MICA_ERR_MEMORY, "model: out of memory");
    lm->engine = engine;
    lm->act = o.act;
    lm->memory_limit = o.memory_limit;
    lm->rope_magnitude = 1;
    atomic_init(&lm->refs, 1);
    pthread_mutex_init(&lm->lock, NULL);
    lm->scope = mica_scope_begin(engine);
    mica_status status = lm->scope ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "model: out of memory: a scope");
    if (status == MICA_OK) status = open_file(lm, path, &o);
    if (status == MICA_OK) status = mica__lm_load(lm, path ? path : "built-in model");
    if (status == MICA_OK && !o.lazy) status = mica__lm_pack(lm, &o);
    if (status == MICA_OK && !o.lazy) status = mica__lm_compile(lm, &o);
    if (status == MICA_OK) *out = lm;
    else mica__lm_release(lm);
    return status;
}

void mica__lm_release(mica_lm *lm)
{
    if (atomic_fetch_sub(&lm->refs, 1) != 1) return;
    mica_tokenizer_close(lm->tokenizer);
    mica_scope_end(lm->scope);
    mica_file_close(lm->file);
    pthread_mutex_destroy(&lm->lock);
    free(lm->layers);
    free(lm);
}

void mica_lm_close(mica_lm *lm)
{
    if (lm) mica__lm_release(lm);
}

const mica_tokenizer *mica_lm_tokenizer(mica_lm *lm)
{
    if (!lm) {
        mica_fail(MICA_ERR_ARGUMENT, "tokenizer: model is NULL");
        return NULL;
    }
    pthread_mutex_lock(&lm->lock);
    if (!lm->tokenizer && mica_tokenizer_from_file(lm->file, NULL, &lm->tokenizer) != MICA_OK) lm->tokenizer = NULL;
    pthread_mutex_unlock(&lm->lock);
    return lm->tokenizer;
}

void mica_lm_get_info(const mica_lm *lm, mica_lm_info *info)
{
    if (!lm || !info) return;
    const lm_config *c = &lm->config;
    const mica_lm_info full = {.arch = c->arch->name,
                               .name = c->name,
                               .format = lm->format,
                               .layers = c->layers,
                               .hidden = c->hidden,
                               .heads = c->heads,
                               .kv_heads = c->kv_heads,
                               .head_dim = c->head_dim,
                               .ffn = c->ffn,
                               .vocab = c->vocab,
                               .context = c->context,
                               .parameters = lm->parameters,
                               .layer_parameters = lm->layer_parameters,
                               .weight_bytes = lm->weight_bytes,
                               .token_bytes = lm->token_bytes,
                               .act = lm->layer_act};
    if (mica_struct_write("lm_get_info: mica_lm_info", info, &full, sizeof full) != MICA_OK)
        return; /* mica_last_error */
}

/* From Hugging Face's generation_config.json, or the keys of newer GGUF files. */
void mica_lm_suggested_sampling(const mica_lm *lm, mica_lm_sampler_options *options)
{
    if (!lm || !options) return;
    double value;
    int64_t whole;
    bool sample;
    const struct {
        const char *hf, *gguf;
        double *out;
        double least, most;
    } numbers[] = {{"generation_config.temperature", "general.sampling.temp", &options->temperature, 0, 100},
                   {"generation_config.top_p", "general.sampling.top_p", &options->top_p, 1e-6, 1},
                   {"generation_config.min_p", "general.sampling.min_p", &options->min_p, 0, 1},
                   {"generation_config.repetition_penalty", "general.sampling.penalty_repeat", &options->repeat_penalty,
                    0.01, 100}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if ((mica_file_f64(lm->file, numbers[i].hf, &value) || mica_file_f64(lm->file, numbers[i].gguf, &value)) &&
            value >= numbers[i].least && value <= numbers[i].most)
            *numbers[i].out = value;
    if ((mica_file_i64(lm->file, "generation_config.top_k", &whole) ||
         mica_file_i64(lm->file, "general.sampling.top_k", &whole)) &&
        whole >= 0)
        options->top_k = whole;
    if (mica_file_bool(lm->file, "generation_config.do_sample", &sample) && !sample) options->temperature = 0;
}
