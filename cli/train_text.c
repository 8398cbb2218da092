/* mica train lm: the text as tokens, cut into a part to train on and the rest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "train.h"

/* The whole file, to be freed. */
static int read_text(const char *path, char **text, size_t *length)
{
    struct stat info;
    FILE *f = fopen(path, "rb");
    if (!f) return fprintf(stderr, "mica train lm: cannot read '%s': %s\n", path, strerror(errno)), CLI_USAGE;
    const bool plain = fstat(fileno(f), &info) == 0 && S_ISREG(info.st_mode);
    *length = plain ? (size_t)info.st_size : 0;
    *text = plain ? malloc(*length + 1) : NULL;
    const bool whole = *text && fread(*text, 1, *length, f) == *length;
    fclose(f);
    if (whole) return CLI_OK;
    fprintf(stderr, "mica train lm: '%s' %s\n", path, !plain ? "is not a file" : "cannot be read");
    free(*text);
    *text = NULL;
    return CLI_USAGE;
}

static mica_status make_tokenizer(const train_options *o, const char *text, size_t length, mica_tokenizer **out)
{
    if (o->tokenizer) return mica_tokenizer_open(o->tokenizer, NULL, out);
    mica_bpe_options bpe;
    mica_bpe_options_init(&bpe);
    bpe.vocab = (int32_t)o->vocab;
    return mica_tokenizer_train(text, length, &bpe, out);
}

/* The end of a line at or before this place: a word is not cut in two. */
static size_t cut_at(const char *text, size_t length, double share)
{
    size_t at = (size_t)((double)length * share);
    while (at > 0 && at < length && text[at - 1] != '\n') at--;
    return at > 0 ? at : (size_t)((double)length * share);
}

static mica_status encode_part(train_text *t, const char *text, size_t length, size_t room)
{
    size_t count = 0;
    const mica_status status = mica_tokenizer_encode(t->tokenizer, text, length, 0, t->ids + t->n, room, &count);
    t->n += (int64_t)count;
    return status;
}

static mica_status encode_text(const train_options *o, train_text *t, const char *text, size_t length)
{
    const size_t cut = cut_at(text, length, 1 - o->valid);
    t->bytes = (int64_t)length;
    t->valid_bytes = (int64_t)(length - cut);
    t->ids = malloc((length + 1) * sizeof *t->ids); /* a token has at least one byte */
    if (!t->ids) return mica_fail(MICA_ERR_MEMORY, "no memory for %zu tokens", length);
    mica_status status = encode_part(t, text, cut, length);
    t->n_train = t->n;
    if (status == MICA_OK) status = encode_part(t, text + cut, length - cut, length - (size_t)t->n);
    return status;
}

int train_text_open(const train_options *o, train_text *t)
{
    char *text;
    size_t length;
    *t = (train_text){0};
    int code = read_text(o->text, &text, &length);
    if (code != CLI_OK) return code;
    mica_status status = make_tokenizer(o, text, length, &t->tokenizer);
    if (status == MICA_OK) status = encode_text(o, t, text, length);
    if (status == MICA_OK) t->vocab = mica_tokenizer_size(t->tokenizer);
    free(text);
    if (status != MICA_OK) {
        fprintf(stderr, "mica train lm: %s\n", mica_last_error());
        return CLI_FAILED;
    }
    const int64_t least = o->seq + 1, rest = t->n - t->n_train;
    if (t->n_train < least || rest < least) {
        fprintf(stderr,
                "mica train lm: '%s' has %lld tokens to train on and %lld to validate with; --seq %lld needs %lld of "
                "each\n",
                o->text, (long long)t->n_train, (long long)rest, (long long)o->seq, (long long)least);
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* The network has never seen a begin token, so nobody may put one before a prompt. */
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
