/* mica train lm: reads the text as tokens and splits it into a training and a validation part. */
#include <stdlib.h>
#include <string.h>

#include "lm/model.h"
#include "train/train_lm.h"

#define COMMAND "mica train lm"

static mica_status make_tokenizer(const train_options *o, const char *text, size_t length, mica_tokenizer **out)
{
    if (o->tokenizer) return mica_tokenizer_open(o->tokenizer, NULL, out);
    mica_bpe_options bpe;
    mica_bpe_options_init(&bpe);
    bpe.vocab = (int32_t)o->vocab;
    return mica_tokenizer_train(text, length, &bpe, out);
}

/* The end of a line at or before this share of the text, so that no word is cut. */
static size_t cut_at(const char *text, size_t length, double share)
{
    size_t at = (size_t)((double)length * share);
    while (at > 0 && at < length && text[at - 1] != '\n') at--;
    return at > 0 ? at : (size_t)((double)length * share);
}

static int encode_text(const train_options *o, train_text *t, const char *text, size_t length)
{
    const size_t cut = cut_at(text, length, 1 - o->valid);
    int64_t n_valid = 0;
    t->bytes = (int64_t)length;
    t->valid_bytes = (int64_t)(length - cut);
    t->ids = cli_encode(COMMAND, t->tokenizer, text, cut, 0, &t->n_train);
    int32_t *rest = t->ids ? cli_encode(COMMAND, t->tokenizer, text + cut, length - cut, 0, &n_valid) : NULL;
    if (!rest) return CLI_FILE;
    t->n = t->n_train + n_valid;
    int32_t *all = realloc(t->ids, ((size_t)t->n + 1) * sizeof *all);
    if (all) {
        memcpy(all + t->n_train, rest, (size_t)n_valid * sizeof *all);
        t->ids = all;
    }
    free(rest);
    if (all) return CLI_OK;
    return cli_no_memory(COMMAND);
}

int train_text_open(const train_options *o, train_text *t)
{
    size_t length;
    *t = (train_text){0};
    char *text = cli_read_file(COMMAND, o->text, &length);
    if (!text) return CLI_FILE;
    int code = make_tokenizer(o, text, length, &t->tokenizer) == MICA_OK ? CLI_OK : train_lm_failed();
    if (code == CLI_OK) code = encode_text(o, t, text, length);
    mica_text_free(text);
    if (code != CLI_OK) return code;
    t->vocab = mica_tokenizer_size(t->tokenizer);
    const int64_t least = o->seq + 1, rest = t->n - t->n_train;
    if (t->n_train < least || rest < least) {
        fprintf(stderr,
                COMMAND ": '%s' has %lld tokens to train on and %lld to validate with; --seq %lld needs %lld of "
                        "each\n",
                o->text, (long long)t->n_train, (long long)rest, (long long)o->seq, (long long)least);
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* The network was trained without a begin token, so programs must not add one to a prompt. */
mica_status train_put_vocabulary(mica_writer *w, void *user)
{
    const mica_status status = mica_tokenizer_put(user, w);
    return status == MICA_OK ? mica_writer_i64(w, "tokenizer.ggml.add_bos_token", MICA_BOOL, 0) : status;
}

void train_text_close(train_text *t)
{
    mica_tokenizer_close(t->tokenizer);
    free(t->ids);
    *t = (train_text){0};
}
