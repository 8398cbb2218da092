/* mica train lm: the contents of its files: options, results, the model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lm/model.h"
#include "train/train_lm.h"

/* The options that must be equal to resume a run. */
void train_lm_options(const train_run *run, char text[TRAIN_OPTIONS])
{
    const lm_run *r = run->user;
    const train_options *o = &r->o;
    const uint64_t hash = cli_hash(r->text.ids, (size_t)r->text.n * sizeof *r->text.ids);
    char learning[256];
    train_learning_text(&o->learning, learning, sizeof learning);
    snprintf(
        text, TRAIN_OPTIONS,
        "dim %lld layers %lld heads %lld kv-heads %lld ffn %lld vocab %d seq %lld batch %lld steps %lld lr %.15g lr2 "
        "%.15g warmup %lld decay %.15g dropout %.15g f32 %d seed %lld valid %.15g eval-every %lld %s text %016llx",
        (long long)o->dim, (long long)o->layers, (long long)o->heads, (long long)o->kv_heads, (long long)o->ffn,
        (int)r->text.vocab, (long long)o->seq, (long long)o->batch, (long long)o->steps, o->lr, o->lr2,
        (long long)o->warmup, o->decay, o->dropout, o->f32, (long long)o->seed, o->valid, (long long)o->eval_every,
        learning, (unsigned long long)hash);
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
    const mica_status status = mica_tokenizer_save(r->text.tokenizer, train_path(&r->run, "tokenizer.gguf", kept));
    return status == MICA_OK ? mica_decoder_write(s, &r->shape, r->run.params, path, &e) : status;
}

static void json_options(cli_json *j, const lm_run *r)
{
    const train_options *o = &r->o;
    const mica_decoder_shape *m = &r->shape;
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"vocab", (double)m->vocab},
                   {"dim", (double)m->dim},
                   {"layers", (double)m->layers},
                   {"heads", (double)m->heads},
                   {"kv_heads", (double)m->kv_heads},
                   {"ffn", (double)m->ffn},
                   {"seq", (double)o->seq},
                   {"batch", (double)o->batch},
                   {"warmup", (double)o->warmup},
                   {"lr", o->lr},
                   {"lr2", o->lr2},
                   {"decay", o->decay},
                   {"dropout", o->dropout},
                   {"seed", (double)o->seed},
                   {"train_tokens", (double)r->text.n_train},
                   {"valid_tokens", (double)(r->text.n - r->text.n_train)}};
    cli_json_text(j, "text", o->text);
    cli_json_text(j, "weights", m->ternary ? "ternary" : "f32");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        cli_json_number(j, numbers[i].key, numbers[i].value);
}

/* Converts nats per token to bits per byte of the validation part. */
static double bits_per_byte(const lm_run *r, double loss)
{
    return loss / log(2) * (double)(r->text.n - r->text.n_train) / (double)r->text.valid_bytes;
}

void train_lm_json(FILE *to, const train_run *run)
{
    const lm_run *r = run->user;
    cli_json j = {.to = to};
    train_json_begin(&j, run);
    json_options(&j, r);
    cli_json_number(&j, "valid_loss", r->final_valid);
    cli_json_number(&j, "valid_bits_per_byte", bits_per_byte(r, r->final_valid));
    cli_json_text(&j, "model", r->model);
    cli_json_number(&j, "model_bytes", r->model ? (double)r->model_bytes : NAN);
    train_json_end(&j, run);
}

void train_lm_caption(const train_run *run, char *text, size_t room)
{
    const lm_run *r = run->user;
    snprintf(text, room, "loss, nats per token (%s weights, %lld parameters)", r->shape.ternary ? "ternary" : "f32",
             (long long)mica_params_elements(run->params));
}
