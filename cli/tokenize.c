/* mica tokenize: the tokens of a text, the text of tokens, and the chat template of
 * a model, as the library sees them. */
#include <errno.h>
#include <inttypes.h>
#include <mica_lm.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cli.h"
#include "model.h"

typedef struct tokenize_options {
    const char *prompt, *file, *pre, *chat;
    bool json, ids, special, no_bos, decode, as_chat, template;
} tokenize_options;

#define AT(field) offsetof(tokenize_options, field)
static const cli_arg tokenize_args[] = {
    {"--prompt", "-p", CLI_TEXT, AT(prompt), 0, 0, "TEXT", "the text"},
    {"--file", "-f", CLI_TEXT, AT(file), 0, 0, "FILE", "the text is in a file"},
    {"--ids", NULL, CLI_FLAG, AT(ids), 0, 0, NULL, "print ids alone, in one line"},
    {"--special", NULL, CLI_FLAG, AT(special), 0, 0, NULL,
     "<|eot_id|> and the like in the text are tokens, not letters"},
    {"--no-bos", NULL, CLI_FLAG, AT(no_bos), 0, 0, NULL, "no begin token"},
    {"--decode", NULL, CLI_FLAG, AT(decode), 0, 0, NULL, "the text is ids: print what they say"},
    {"--chat", NULL, CLI_FLAG, AT(as_chat), 0, 0, NULL, "the text is what a user says: put it into the chat template"},
    {"--chat-template", NULL, CLI_TEXT, AT(chat), 0, 0, "NAME", "this template, not the model's (or Jinja text)"},
    {"--template", NULL, CLI_FLAG, AT(template), 0, 0, NULL, "print the chat template that is used"},
    {"--pre", NULL, CLI_TEXT, AT(pre), 0, 0, "NAME", "this pre-tokenizer, not the model's"},
    {"--json", NULL, CLI_FLAG, AT(json), 0, 0, NULL, "print JSON"},
};
#undef AT
static const cli_args tokenize_command = {
    "mica tokenize",
    "MODEL|FILE [-p TEXT | -f FILE | -]",
    "The tokens of a text. MODEL is builtin, a GGUF file, a folder with a tokenizer, or a "
    "tokenizer.json, tokenizer.model or tokenizer.bin.",
    tokenize_args,
    sizeof tokenize_args / sizeof tokenize_args[0],
    1,
    2};

/* Bytes of the UTF-8 character at p, 0 if there is none. */
static size_t character_bytes(const char *p, size_t room)
{
    const unsigned char *u = (const unsigned char *)p;
    const size_t n = u[0] < 0x80                    ? 1
                     : u[0] >= 0xc2 && u[0] <= 0xdf ? 2
                     : (u[0] & 0xf0) == 0xe0        ? 3
                     : u[0] >= 0xf0 && u[0] <= 0xf4 ? 4
                                                    : 0;
    if (n == 0 || n > room) return 0;
    for (size_t i = 1; i < n; i++)
        if ((u[i] & 0xc0) != 0x80) return 0;
    const bool wrong = (u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
                       (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f);
    return wrong ? 0 : n;
}

/* A token's bytes for people: quotes, control characters and half characters as \xNN. */
static void print_token(const char *text, size_t n)
{
    putchar('\'');
    for (size_t i = 0, size; i < n; i += size ? size : 1) {
        const unsigned char c = (unsigned char)text[i];
        size = character_bytes(text + i, n - i);
        if (c == '\n') printf("\\n");
        else if (c == '\\' || c == '\'') printf("\\%c", c);
        else if (!size || c < 0x20 || c == 0x7f) printf("\\x%02x", c);
        else fwrite(text + i, 1, size, stdout);
    }
    putchar('\'');
}

/* The same for programs: JSON is UTF-8, so half characters are U+FFFD. */
static void print_token_json(const char *text, size_t n)
{
    putchar('"');
    for (size_t i = 0, size; i < n; i += size ? size : 1) {
        const unsigned char c = (unsigned char)text[i];
        size = character_bytes(text + i, n - i);
        if (c == '"' || c == '\\') printf("\\%c", c);
        else if (!size) printf("\\ufffd");
        else if (c < 0x20) printf("\\u%04x", c);
        else fwrite(text + i, 1, size, stdout);
    }
    putchar('"');
}

static int tokenize_failed(mica_status status)
{
    fprintf(stderr, "%s: %s\n", tokenize_command.command, mica_last_error());
    return cli_file_code(status);
}

/* ---------------------------------------------------------------- decode --- */

/* "1 2, 3": the ids in a text; NULL after a sentence. */
static int32_t *read_ids(const char *text, size_t n, size_t *count)
{
    int32_t *ids = malloc((n / 2 + 1) * sizeof *ids);
    *count = 0;
    if (!ids) return fprintf(stderr, "mica tokenize: no memory for %zu bytes of ids\n", n), NULL;
    for (const char *p = text; *p;) {
        char *end;
        if (strchr(" \t\r\n,[]", *p)) {
            p++;
            continue;
        }
        errno = 0;
        const long long id = strtoll(p, &end, 10);
        if (end == p || errno || id < 0 || id > INT32_MAX) {
            fprintf(stderr, "mica tokenize: '%.20s' is no id\n", p);
            free(ids);
            return NULL;
        }
        ids[(*count)++] = (int32_t)id;
        p = end;
    }
    return ids;
}

static int tokenize_decode(const mica_tokenizer *t, const tokenize_options *o, const char *text, size_t n)
{
    size_t count, length;
    int32_t *ids = read_ids(text, n, &count);
    if (!ids) return CLI_USAGE;
    const int flags = o->special ? MICA_DECODE_SPECIAL : 0;
    char *out = NULL;
    mica_status status = mica_tokenizer_decode(t, ids, count, flags, NULL, 0, &length);
    if (status == MICA_OK && !(out = malloc(length + 1))) {
        fprintf(stderr, "mica tokenize: no memory for a text of %zu bytes\n", length);
        return free(ids), CLI_FAILED;
    }
    if (status == MICA_OK) status = mica_tokenizer_decode(t, ids, count, flags, out, length, &length);
    if (status != MICA_OK) tokenize_failed(status);
    else if (o->json) {
        printf("{\"count\": %zu, \"text\": ", count);
        print_token_json(out, length);
        printf("}\n");
    } else fwrite(out, 1, length, stdout);
    free(out);
    free(ids);
    return status == MICA_OK ? CLI_OK : CLI_USAGE; /* the ids are the caller's */
}

/* ---------------------------------------------------------------- encode --- */

static void print_tokens_json(const mica_tokenizer *t, const int32_t *ids, size_t n, const char *model)
{
    printf("{\"model\": ");
    print_token_json(model, strlen(model));
    printf(", \"kind\": \"%s\", \"pre\": ", mica_tokenizer_kind(t));
    print_token_json(mica_tokenizer_pre(t), strlen(mica_tokenizer_pre(t)));
    printf(", \"vocabulary\": %" PRId32 ", \"notes\": [", mica_tokenizer_size(t));
    for (size_t i = 0; mica_tokenizer_note(t, i); i++) {
        if (i) printf(", ");
        print_token_json(mica_tokenizer_note(t, i), strlen(mica_tokenizer_note(t, i)));
    }
    printf("], \"count\": %zu, \"tokens\": [", n);
    for (size_t i = 0; i < n; i++) {
        const char *text = "";
        size_t length = 0;
        (void)mica_tokenizer_text(t, ids[i], &text, &length);
        printf("%s\n  {\"id\": %" PRId32 ", \"text\": ", i ? "," : "", ids[i]);
        print_token_json(text, length);
        printf("}");
    }
    printf("%s]}\n", n ? "\n" : "");
}

static void print_tokens(const mica_tokenizer *t, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = "";
        size_t length = 0;
        (void)mica_tokenizer_text(t, ids[i], &text, &length);
        printf("%8" PRId32 "  ", ids[i]);
        print_token(text, length);
        putchar('\n');
    }
}

static int tokenize_encode(const mica_tokenizer *t, const tokenize_options *o, const char *model, const char *text,
                           size_t n)
{
    const int flags = (o->no_bos ? 0 : MICA_ENCODE_BOS) | (o->special || o->as_chat ? MICA_ENCODE_SPECIAL : 0);
    size_t count = 0, cap = n + 16;
    int32_t *ids = NULL;
    mica_status status = MICA_OK;
    for (int round = 0; round < 2 && status == MICA_OK && (round == 0 || count > cap); round++) {
        if (round) cap = count;
        free(ids);
        if (!(ids = malloc(cap * sizeof *ids)))
            return fprintf(stderr, "mica tokenize: no memory for %zu tokens\n", cap), CLI_FAILED;
        status = mica_tokenizer_encode(t, text, n, flags, ids, cap, &count);
    }
    if (status != MICA_OK) tokenize_failed(status);
    else if (o->json) print_tokens_json(t, ids, count, model);
    else if (o->ids) {
        for (size_t i = 0; i < count; i++) printf(i ? " %" PRId32 : "%" PRId32, ids[i]);
        putchar('\n');
    } else print_tokens(t, ids, count);
    free(ids);
    return status == MICA_OK ? CLI_OK : CLI_FAILED;
}

/* ------------------------------------------------------------------ chat --- */

/* The text inside the chat template; NULL after a sentence. */
static char *tokenize_chat(const mica_tokenizer *t, const char *chat, const char *text, size_t *length, int *code)
{
    const mica_chat_message message = {"user", text};
    char *out = NULL;
    size_t n;
    mica_status status = mica_chat_render(t, chat, &message, 1, true, NULL, 0, &n);
    if (status == MICA_OK && (out = malloc(n + 1)))
        status = mica_chat_render(t, chat, &message, 1, true, out, n + 1, &n);
    if (status != MICA_OK) *code = tokenize_failed(status);
    else if (!out) *code = (fprintf(stderr, "mica tokenize: no memory for a chat\n"), CLI_FAILED);
    else return *length = n, out;
    return free(out), NULL;
}

static int tokenize_template(const mica_tokenizer *t, const tokenize_options *o, const char *model)
{
    const char *chat = o->chat ? o->chat : mica_chat_template(t);
    if (!chat) return fprintf(stderr, "mica tokenize: %s has no chat template\n", model), CLI_MODEL;
    if (o->json) {
        printf("{\"template\": ");
        print_token_json(chat, strlen(chat));
        printf("}\n");
    } else printf("%s\n", chat);
    return CLI_OK;
}

static int tokenize_text(const mica_tokenizer *t, const tokenize_options *o, const char *model, const char *second)
{
    const bool standard = second && strcmp(second, "-") == 0;
    const int given = (o->prompt != NULL) + (o->file != NULL) + (second != NULL);
    if (given != 1 || (second && !standard))
        return fprintf(stderr, "mica tokenize: give one text: -p TEXT, -f FILE, or - for what comes in\n"), CLI_USAGE;
    size_t n = 0;
    char *owned = o->prompt ? NULL : cli_read_file("mica tokenize", standard ? "-" : o->file, &n);
    const char *text = o->prompt ? o->prompt : owned;
    if (o->prompt) n = strlen(o->prompt);
    if (!text) return CLI_FAILED;
    int code = CLI_OK;
    char *chat = o->as_chat ? tokenize_chat(t, o->chat, text, &n, &code) : NULL;
    if (chat) text = chat;
    if (code == CLI_OK) code = o->decode ? tokenize_decode(t, o, text, n) : tokenize_encode(t, o, model, text, n);
    free(chat);
    mica_text_free(owned);
    return code;
}

static int tokenize_with(const mica_tokenizer *t, const tokenize_options *o, const char *model, const char *second)
{
    for (size_t i = 0; mica_tokenizer_note(t, i); i++)
        fprintf(stderr, "%s: note: %s\n", tokenize_command.command, mica_tokenizer_note(t, i));
    return o->template && !o->as_chat ? tokenize_template(t, o, model) : tokenize_text(t, o, model, second);
}

/* The model inside, whose tokenizer comes with it. */
static int tokenize_builtin(const tokenize_options *o, const char *second)
{
    const cli_model_args args = {.lazy = true};
    cli_model m;
    const int code = cli_model_open(tokenize_command.command, NULL, &args, &m);
    if (code != CLI_OK) return code;
    const mica_tokenizer *t = mica_lm_tokenizer(m.lm);
    const int result = t ? tokenize_with(t, o, "builtin", second) : tokenize_failed(MICA_ERR_UNSUPPORTED);
    cli_model_close(&m);
    return result;
}

int cli_tokenize(int argc, char **argv)
{
    tokenize_options o = {0};
    const char *places[CLI_MAX_PLACES];
    size_t n_places;
    const int parsed = cli_parse(&tokenize_command, argc, argv, &o, places, &n_places);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    if (o.decode && (o.as_chat || o.ids))
        return fprintf(stderr, "mica tokenize: --decode makes text, --ids and --chat make tokens\n"), CLI_USAGE;
    const char *second = n_places > 1 ? places[1] : NULL;
    if (strcmp(places[0], "builtin") == 0) return tokenize_builtin(&o, second);
    mica_tokenizer_options options;
    mica_tokenizer_options_init(&options);
    options.pre = o.pre;
    mica_tokenizer *t;
    const mica_status status = mica_tokenizer_open(places[0], &options, &t);
    if (status != MICA_OK) return tokenize_failed(status);
    const int code = tokenize_with(t, &o, places[0], second);
    mica_tokenizer_close(t);
    return code;
}
