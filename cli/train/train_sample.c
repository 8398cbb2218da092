/* mica train lm: generates sample texts during training with the current parameters.
 * Each token is a full forward pass without a KV cache, which is fast enough for samples. */
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"
#include "core/progress.h"
#include "train/train_lm.h"

static mica_status build_logits(mica_forward *f, mica_array *const *data, size_t n, mica_array **out, size_t n_out,
                                void *user)
{
    (void)n, (void)n_out;
    const lm_run *r = user;
    out[0] = mica_decoder_logits(f, &r->shape, data[0]);
    return mica_scope_status(f->s);
}

/* Sets ids[at] to the token that follows ids[0 ... at-1]. The sequence always has full length, so
 * one plan serves all calls; attention is causal, so later tokens do not change earlier ones. */
static mica_status next_token(lm_run *r, mica_lm_sampler *sampler, int32_t *ids, int64_t at)
{
    const int64_t shape[] = {1, r->o.seq}, seen = at < r->o.seq ? at : r->o.seq, vocab = r->shape.vocab;
    mica_array *out = NULL;
    mica_scope *s = mica_scope_begin(r->run.engine);
    mica_array *in = mica_from_data(s, MICA_I32, 2, shape, ids + at - seen);
    mica_status status = mica_network_run(r->logits, s, &in, 1, &out, 1);
    if (status == MICA_OK) status = mica_lm_sample(sampler, mica_data_f32(out) + (seen - 1) * vocab, vocab, &ids[at]);
    mica_scope_end(s);
    return status;
}

static mica_status sample_ids(lm_run *r, int32_t *ids, int64_t *n)
{
    mica_lm_sampler *sampler = NULL;
    mica_lm_sampler_options o;
    mica_lm_sampler_options_init(&o);
    o.temperature = 0.8;
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 0;
    o.repeat_penalty = 1;
    o.seed = (uint64_t)r->o.seed;
    mica_status status = mica_lm_sampler_open(&o, &sampler);
    if (status == MICA_OK && !r->logits)
        status = mica_network_open(r->run.engine, r->run.params, build_logits, r, &r->logits);
    for (int64_t end = *n + r->o.sample_tokens; *n < end && status == MICA_OK; ++*n)
        status = next_token(r, sampler, ids, *n);
    mica_lm_sampler_close(sampler);
    return status;
}

mica_status train_sample(lm_run *r)
{
    const size_t length = strlen(r->o.prompt), room = length + (size_t)(r->o.sample_tokens + r->o.seq) + 2;
    int32_t *ids = calloc(room, sizeof *ids);
    size_t n_prompt = 0, n_text = 0;
    if (!ids) return mica_fail(MICA_ERR_MEMORY, "no memory for a sample");
    mica_status status = mica_tokenizer_encode(r->text.tokenizer, r->o.prompt, length, 0, ids, room, &n_prompt);
    int64_t n = (int64_t)(n_prompt ? n_prompt : 1);
    if (status == MICA_OK) status = sample_ids(r, ids, &n);
    if (status == MICA_OK) status = mica_tokenizer_decode(r->text.tokenizer, ids, (size_t)n, 0, NULL, 0, &n_text);
    char *text = malloc(n_text + 1), path[TRAIN_PATH];
    if (status == MICA_OK && text)
        status = mica_tokenizer_decode(r->text.tokenizer, ids, (size_t)n, 0, text, n_text, &n_text);
    FILE *to = text && status == MICA_OK ? fopen(train_path(&r->run, "samples.txt", path), "a") : NULL;
    if (to) {
        fprintf(to, "---- step %lld\n%.*s\n", (long long)mica_trainer_steps(r->run.trainer), (int)n_text, text);
        fclose(to);
    }
    cli_clear_line();
    if (to && cli_shows_lines()) fprintf(stderr, "---- sample\n%.*s\n----\n", (int)n_text, text);
    free(text);
    free(ids);
    return status;
}
