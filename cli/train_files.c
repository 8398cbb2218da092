/* mica train lm: its checkpoints and its model. */
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "train.h"

/* What must be the same for a run to go on as if it had not stopped. */
static void options_text(const lm_run *r, char *text, size_t room)
{
    const train_options *o = &r->o;
    const uint64_t hash = cli_hash(r->text.ids, (size_t)r->text.n * sizeof *r->text.ids);
    snprintf(text, room,
             "dim %lld layers %lld heads %lld kv-heads %lld ffn %lld vocab %d seq %lld batch %lld steps %lld lr %a lr2 "
             "%a warmup %lld decay %a dropout %a f32 %d seed %lld valid %a eval-every %lld text %016llx",
             (long long)o->dim, (long long)o->layers, (long long)o->heads, (long long)o->kv_heads, (long long)o->ffn,
             (int)r->text.vocab, (long long)o->seq, (long long)o->batch, (long long)o->steps, o->lr, o->lr2,
             (long long)o->warmup, o->decay, o->dropout, o->f32, (long long)o->seed, o->valid, (long long)o->eval_every,
             (unsigned long long)hash);
}

mica_status train_save_last(lm_run *r)
{
    char path[TRAIN_PATH], options[1024], loss[64];
    char *history = train_history_text(&r->history);
    if (!history) return mica_fail(MICA_ERR_MEMORY, "no memory for the history");
    options_text(r, options, sizeof options);
    snprintf(loss, sizeof loss, "%a %lld", r->sum, (long long)r->summed);
    const mica_setting settings[] = {{"mica.options", options}, {"mica.history", history}, {"mica.sum", loss}};
    const mica_status status = mica_trainer_save(r->trainer, train_path(r, "last.safetensors", path), settings, 3);
    free(history);
    return status;
}

/* Metadata as a text that ends, to be freed. */
static char *setting_of(const mica_file *file, const char *key)
{
    const char *text;
    size_t length;
    if (!mica_file_string(file, key, &text, &length)) return NULL;
    char *copy = malloc(length + 1);
    if (copy) memcpy(copy, text, length), copy[length] = '\0';
    return copy;
}

static int resume_from(lm_run *r, mica_scope *s, mica_file *file, const char *path)
{
    char now[1024];
    options_text(r, now, sizeof now);
    char *then = setting_of(file, "mica.options"), *history = setting_of(file, "mica.history");
    char *sum = setting_of(file, "mica.sum");
    long long summed = 0;
    int code = CLI_OK;
    if (!then || !history || !sum || !train_history_parse(&r->history, history, strlen(history)) ||
        sscanf(sum, "%la %lld", &r->sum, &summed) != 2) {
        fprintf(stderr, "mica train lm: '%s' is no checkpoint of this command\n", path);
        code = CLI_MODEL;
    } else if (strcmp(then, now) != 0) {
        fprintf(stderr, "mica train lm: '%s' was made with other options (%s), not (%s)\n", path, then, now);
        code = CLI_USAGE;
    } else if (mica_trainer_load(r->trainer, s, file) != MICA_OK) code = train_failed();
    r->summed = summed;
    r->spent = r->history.seconds;
    free(then);
    free(history);
    free(sum);
    return code;
}

/* Parameters from --init, or everything from the last checkpoint. */
int train_load_start(lm_run *r, mica_scope *s)
{
    char path[TRAIN_PATH];
    mica_file *file;
    if (!r->o.init && !r->o.resume) return CLI_OK;
    snprintf(path, sizeof path, "%s", r->o.init ? r->o.init : "");
    if (r->o.resume) train_path(r, "last.safetensors", path);
    const mica_status status = mica_file_open(path, NULL, &file);
    if (status != MICA_OK) return train_failed(), status == MICA_ERR_FORMAT ? CLI_MODEL : CLI_USAGE;
    int code = CLI_OK;
    if (r->o.resume) code = resume_from(r, s, file, path);
    else if (mica_params_load(r->params, s, file) != MICA_OK) code = train_failed(), code = CLI_MODEL;
    mica_file_close(file);
    return code;
}

mica_status train_save_best(lm_run *r)
{
    char path[TRAIN_PATH];
    return mica_params_save(r->params, train_path(r, "best.safetensors", path), NULL, 0);
}

mica_status train_load_best(lm_run *r, mica_scope *s)
{
    char path[TRAIN_PATH];
    mica_file *file;
    mica_status status = mica_file_open(train_path(r, "best.safetensors", path), NULL, &file);
    if (status != MICA_OK) return status;
    status = mica_params_load(r->params, s, file);
    mica_file_close(file);
    return status;
}

mica_status train_write_model(lm_run *r, mica_scope *s, const char *path)
{
    char kept[TRAIN_PATH];
    mica_decoder_export e;
    mica_decoder_export_init(&e);
    e.name = r->o.name;
    e.ternary = train_ternary_type(&r->o);
    e.embedding = train_embedding_type(&r->o);
    e.more = train_put_vocabulary;
    e.user = r->text.tokenizer;
    const mica_status status = mica_tokenizer_save(r->text.tokenizer, train_path(r, "tokenizer.gguf", kept));
    return status == MICA_OK ? mica_decoder_write(s, &r->shape, r->params, path, &e) : status;
}
