/* mica tokenizer train: trains a vocabulary on a text. */
#include <inttypes.h>
#include <mica_lm.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "lm/model.h"

enum { TOKENIZER_SPECIALS = 16 };

typedef struct tokenizer_options {
    const char *text, *out, *pre, *special;
    int64_t vocab;
    bool json;
} tokenizer_options;

/* clang-format off */
#define AT(field) offsetof(tokenizer_options, field)
static const cli_option tokenizer_rows[] = {
    {"--text", NULL, CLI_PATH, AT(text), .value = "FILE", .required = true, .text = "the text to train on; - is stdin"},
    {"--out", "-o", CLI_PATH, AT(out), .value = "FILE", .required = true,
     .text = "the file to write: tokenizer.json, or only the metadata if it ends in .gguf"},
    {"--vocab", NULL, CLI_INT, AT(vocab), 257, 1000000, "N", .initial = "1024", .text = "size of the vocabulary"},
    {"--pre", NULL, CLI_TEXT, AT(pre), .value = "NAME", .unset = "gpt-2",
     .text = "the pre-tokenizer, which splits a text into words"},
    {"--special", NULL, CLI_TEXT, AT(special), .value = "A,B,..", .unset = "<|endoftext|>",
     .text = "control tokens; the first one begins and ends a text"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print JSON"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

#define COMMAND "mica tokenizer train"

static int run_tokenizer_train(const cli_call *call);

static const cli_command tokenizer_train_command = {
    .name = COMMAND,
    .summary = "train a vocabulary on a text",
    .usage = "--text FILE -o FILE [--vocab N] [options]",
    .text = "Trains a byte-level BPE vocabulary. The same text gives the same file.",
    .groups = (const cli_group[]){{"Options", tokenizer_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(tokenizer_options),
    .run = run_tokenizer_train,
};

const cli_command cli_tokenizer_command = {
    .name = "mica tokenizer",
    .summary = "train a tokenizer",
    .usage = "train --text FILE -o FILE [options]",
    .subcommands = (const cli_command *const[]){&tokenizer_train_command, NULL},
};

/* Splits "a,b" into names[], which point into the copy. */
static size_t split_specials(char *copy, const char **names)
{
    size_t n = 0;
    for (char *p = copy; n < TOKENIZER_SPECIALS; p++) {
        char *comma = strchr(p, ',');
        names[n++] = p;
        if (!comma) break;
        *comma = '\0';
        p = comma;
    }
    return n;
}

static void print_trained(const tokenizer_options *o, const mica_tokenizer *t, size_t bytes, size_t tokens,
                          double seconds)
{
    if (o->json) {
        cli_json j = {.to = stdout};
        cli_json_object(&j, NULL, CLI_JSON_INLINE);
        cli_json_text(&j, "file", o->out);
        cli_json_int(&j, "vocabulary", mica_tokenizer_size(t));
        cli_json_uint(&j, "bytes", bytes);
        cli_json_uint(&j, "tokens", tokens);
        cli_json_number(&j, "seconds", seconds);
        cli_json_end(&j);
        return;
    }
    printf("%s: %" PRId32 " tokens; %zu bytes of text are %zu tokens (%.2f bytes each), trained in %.2f s\n", o->out,
           mica_tokenizer_size(t), bytes, tokens, tokens ? (double)bytes / (double)tokens : 0, seconds);
}

static int train_and_save(const tokenizer_options *o, const mica_bpe_options *bpe, const char *text, size_t n)
{
    mica_tokenizer *t = NULL;
    size_t tokens = 0;
    const double start = cli_seconds();
    mica_status status = mica_tokenizer_train(text, n, bpe, &t);
    const double seconds = cli_seconds() - start;
    if (status == MICA_OK) status = mica_tokenizer_encode(t, text, n, 0, NULL, 0, &tokens);
    if (status == MICA_OK) status = mica_tokenizer_save(t, o->out);
    if (status == MICA_OK) print_trained(o, t, n, tokens, seconds);
    else fprintf(stderr, "%s: %s\n", COMMAND, mica_last_error());
    mica_tokenizer_close(t);
    if (status == MICA_ERR_ARGUMENT || status == MICA_ERR_UNSUPPORTED) return CLI_USAGE; /* wrong --pre or --vocab */
    if (status == MICA_ERR_MEMORY) return CLI_MEMORY;
    return status == MICA_OK ? CLI_OK : CLI_FAILED;
}

static int run_tokenizer_train(const cli_call *call)
{
    const tokenizer_options *o = call->options;
    const char *names[TOKENIZER_SPECIALS];
    size_t n;
    mica_bpe_options bpe;
    mica_bpe_options_init(&bpe);
    bpe.vocab = (int32_t)o->vocab;
    if (o->pre) bpe.pre = o->pre;
    char *copy = o->special ? strdup(o->special) : NULL;
    if (o->special && !copy) return cli_no_memory(COMMAND);
    if (copy) {
        bpe.n_specials = split_specials(copy, names);
        bpe.specials = names;
    }
    char *text = cli_read_file(COMMAND, o->text, &n);
    const int code = text ? train_and_save(o, &bpe, text, n) : CLI_FILE;
    mica_text_free(text);
    free(copy);
    return code;
}
