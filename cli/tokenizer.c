/* mica tokenizer train: a vocabulary learned from a text. */
#include <inttypes.h>
#include <mica_lm.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cli.h"
#include "model.h"

enum { TOKENIZER_SPECIALS = 16 };

typedef struct tokenizer_options {
    const char *text, *out, *pre, *special;
    int64_t vocab;
    bool json;
} tokenizer_options;

#define AT(field) offsetof(tokenizer_options, field)
static const cli_arg tokenizer_args[] = {
    {"--text", NULL, CLI_TEXT, AT(text), 0, 0, "FILE", "the text to learn from; - is what comes in"},
    {"--vocab", NULL, CLI_INT, AT(vocab), 257, 1000000, "N", "tokens wanted; 1024 if not given"},
    {"--out", "-o", CLI_TEXT, AT(out), 0, 0, "FILE", "tokenizer.json, or metadata alone if it ends in .gguf"},
    {"--pre", NULL, CLI_TEXT, AT(pre), 0, 0, "NAME", "how texts are cut into words; gpt-2 if not given"},
    {"--special", NULL, CLI_TEXT, AT(special), 0, 0, "A,B,..",
     "control tokens, the first begins and ends a text; <|endoftext|> if not given"},
    {"--json", NULL, CLI_FLAG, AT(json), 0, 0, NULL, "print JSON"},
};
#undef AT
static const cli_args tokenizer_command = {
    "mica tokenizer train",
    "--text FILE --vocab N -o FILE",
    "Learns a byte-level BPE vocabulary from a text. The same text gives the same file.",
    tokenizer_args,
    sizeof tokenizer_args / sizeof tokenizer_args[0],
    0,
    0};

/* "a,b": into names[], which point into the copy. */
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
        printf("{\"file\": ");
        cli_print_json(stdout, o->out, strlen(o->out));
        printf(", \"vocabulary\": %" PRId32 ", \"bytes\": %zu, \"tokens\": %zu, \"seconds\": ", mica_tokenizer_size(t),
               bytes, tokens);
        cli_print_json_number(stdout, seconds);
        printf("}\n");
        return;
    }
    printf("%s: %" PRId32 " tokens; %zu bytes of text are %zu of them (%.2f bytes each), learned in %.2f s\n", o->out,
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
    else fprintf(stderr, "%s: %s\n", tokenizer_command.command, mica_last_error());
    mica_tokenizer_close(t);
    if (status == MICA_ERR_ARGUMENT || status == MICA_ERR_UNSUPPORTED) return CLI_USAGE; /* of --pre, --vocab */
    return status == MICA_OK ? CLI_OK : CLI_FAILED;
}

static int tokenizer_train(int argc, char **argv)
{
    tokenizer_options o = {.vocab = 1024};
    const char *places[CLI_MAX_PLACES], *names[TOKENIZER_SPECIALS];
    size_t n_places, n;
    const int parsed = cli_parse(&tokenizer_command, argc, argv, &o, places, &n_places);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    if (!o.text || !o.out)
        return fprintf(stderr, "%s: %s is missing\n", tokenizer_command.command, o.text ? "-o FILE" : "--text FILE"),
               CLI_USAGE;
    mica_bpe_options bpe;
    mica_bpe_options_init(&bpe);
    bpe.vocab = (int32_t)o.vocab;
    if (o.pre) bpe.pre = o.pre;
    char *copy = o.special ? strdup(o.special) : NULL;
    if (o.special && !copy) return fprintf(stderr, "%s: no memory\n", tokenizer_command.command), CLI_FAILED;
    if (copy) {
        bpe.n_specials = split_specials(copy, names);
        bpe.specials = names;
    }
    char *text = cli_read_file(tokenizer_command.command, o.text, &n);
    const int code = text ? train_and_save(&o, &bpe, text, n) : CLI_FAILED;
    mica_text_free(text);
    free(copy);
    return code;
}

int cli_tokenizer(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return tokenizer_train(argc, argv);
    if (argc > 1 && strcmp(argv[1], "train") == 0) return tokenizer_train(argc - 1, argv + 1);
    fprintf(stderr, "mica tokenizer: %s; there is 'mica tokenizer train --help'\n",
            argc > 1 ? "that is not known" : "what is to be done?");
    return CLI_USAGE;
}
