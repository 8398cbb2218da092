/* mica tokenize: prints the tokens of a text, the text of tokens, or the chat template
 * of a model. */
#include <errno.h>
#include <inttypes.h>
#include <mica_lm.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "lm/model.h"

typedef struct tokenize_options {
    const char *prompt, *file, *pre, *chat;
    bool json, ids, special, no_bos, decode, as_chat, template;
} tokenize_options;

/* clang-format off */
#define AT(field) offsetof(tokenize_options, field)
static const cli_option tokenize_rows[] = {
    {"--prompt", "-p", CLI_TEXT, AT(prompt), .value = "TEXT", .text = "the text"},
    {"--file", "-f", CLI_PATH, AT(file), .value = "FILE", .text = "read the text from a file"},
    {"--ids", NULL, CLI_FLAG, AT(ids), .text = "print only the ids, in one line"},
    {"--special", NULL, CLI_FLAG, AT(special), .aliases = "--parse-special",
     .text = "read names such as <|eot_id|> in the text as control tokens; with --decode, print control tokens"},
    {"--no-bos", NULL, CLI_FLAG, AT(no_bos), .text = "do not add the begin token"},
    {"--decode", NULL, CLI_FLAG, AT(decode), .text = "the text is a list of token ids: print their text"},
    {"--chat", NULL, CLI_FLAG, AT(as_chat), .text = "the text is a user message: apply the chat template"},
    {"--chat-template", NULL, CLI_TEXT, AT(chat), .value = "NAME", .unset = "the model's",
     .text = "the name of a chat template, or a template as Jinja text"},
    {"--template", NULL, CLI_FLAG, AT(template), .text = "print the chat template"},
    {"--pre", NULL, CLI_TEXT, AT(pre), .value = "NAME", .unset = "the model's", .text = "the pre-tokenizer"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print JSON"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

#define COMMAND "mica tokenize"

static int run_tokenize(const cli_call *call);

const cli_command cli_tokenize_command = {
    .name = COMMAND,
    .summary = "print the tokens of a text, the text of tokens, or the chat template",
    .usage = "MODEL [-p TEXT | -f FILE | -] [options]",
    .arguments = (const cli_argument[]){{"MODEL", "builtin, a GGUF file, a folder with a tokenizer, or a "
                                                  "tokenizer.json, tokenizer.model or tokenizer.bin"},
                                        {"-", "read the text from stdin"},
                                        {NULL, NULL}},
    .least_args = 1,
    .most_args = 2,
    .groups = (const cli_group[]){{"Options", tokenize_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(tokenize_options),
    .run = run_tokenize,
};

/* Prints the bytes of a token as readable text: control characters and partial characters as \xNN. */
static void print_token(const char *text, size_t n)
{
    putchar('\'');
    for (size_t i = 0, size; i < n; i += size ? size : 1) {
        const unsigned char c = (unsigned char)text[i];
        size = cli_utf8_length(text + i, n - i);
        if (c == '\n') printf("\\n");
        else if (c == '\\' || c == '\'') printf("\\%c", c);
        else if (!size || c < 0x20 || c == 0x7f) printf("\\x%02x", c);
        else fwrite(text + i, 1, size, stdout);
    }
    putchar('\'');
}

static int tokenize_failed(mica_status status) { return cli_file_failed(COMMAND, status); }

/* ---------------------------------------------------------------- decode --- */

/* Reads the ids in a text such as "1 2, 3"; NULL after an error message. */
static int32_t *read_ids(const char *text, size_t n, size_t *count)
{
    int32_t *ids = malloc((n / 2 + 1) * sizeof *ids);
    *count = 0;
    if (!ids) {
        cli_no_memory(COMMAND);
        return NULL;
    }
    for (const char *p = text; *p;) {
        char *end;
        if (strchr(" \t\r\n,[]", *p)) {
            p++;
            continue;
        }
        errno = 0;
        const long long id = strtoll(p, &end, 10);
        if (end == p || errno || id < 0 || id > INT32_MAX) {
            fprintf(stderr, "mica tokenize: '%.20s' is not an id\n", p);
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
        free(ids);
        return cli_no_memory(COMMAND);
    }
    if (status == MICA_OK) status = mica_tokenizer_decode(t, ids, count, flags, out, length, &length);
    if (status != MICA_OK) tokenize_failed(status);
    else if (o->json) {
        cli_json j = {.to = stdout};
        cli_json_object(&j, NULL, CLI_JSON_INLINE);
        cli_json_uint(&j, "count", count);
        cli_json_bytes(&j, "text", out, length);
        cli_json_end(&j);
    } else fwrite(out, 1, length, stdout);
    free(out);
    free(ids);
    return status == MICA_OK ? CLI_OK : CLI_USAGE; /* the user typed the ids */
}

/* ---------------------------------------------------------------- encode --- */

static void print_tokens_json(const mica_tokenizer *t, const int32_t *ids, size_t n, const char *model)
{
    cli_json j = {.to = stdout};
    cli_json_object(&j, NULL, CLI_JSON_INLINE);
    cli_json_text(&j, "model", model);
    cli_json_text(&j, "kind", mica_tokenizer_kind(t));
    cli_json_text(&j, "pre", mica_tokenizer_pre(t));
    cli_json_int(&j, "vocabulary", mica_tokenizer_size(t));
    cli_json_array(&j, "notes", CLI_JSON_INLINE);
    for (size_t i = 0; mica_tokenizer_note(t, i); i++) cli_json_text(&j, NULL, mica_tokenizer_note(t, i));
    cli_json_end(&j);
    cli_json_uint(&j, "count", n);
    cli_json_array(&j, "tokens", CLI_JSON_LINES);
    for (size_t i = 0; i < n; i++) {
        const char *text = "";
        size_t length = 0;
        (void)mica_tokenizer_text(t, ids[i], &text, &length);
        cli_json_object(&j, NULL, CLI_JSON_INLINE);
        cli_json_int(&j, "id", ids[i]);
        cli_json_bytes(&j, "text", text, length);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_end(&j);
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
        if (!(ids = malloc(cap * sizeof *ids))) return cli_no_memory(COMMAND);
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

/* The text inside the chat template; NULL after an error message. */
static char *tokenize_chat(const mica_tokenizer *t, const char *chat, const char *text, size_t *length, int *code)
{
    const mica_chat_message message = {"user", text};
    char *out = NULL;
    size_t n;
    mica_status status = mica_chat_render(t, chat, &message, 1, true, NULL, 0, &n);
    if (status == MICA_OK && (out = malloc(n + 1)))
        status = mica_chat_render(t, chat, &message, 1, true, out, n + 1, &n);
    if (status != MICA_OK) *code = tokenize_failed(status);
    else if (!out) *code = cli_no_memory(COMMAND);
    else {
        *length = n;
        return out;
    }
    free(out);
    return NULL;
}

static void print_notes(const mica_tokenizer *t)
{
    for (size_t i = 0; mica_tokenizer_note(t, i); i++)
        fprintf(stderr, "%s: note: %s\n", COMMAND, mica_tokenizer_note(t, i));
}

static int tokenize_template(const mica_tokenizer *t, const tokenize_options *o, const char *model)
{
    const char *chat = o->chat ? o->chat : mica_chat_template(t);
    if (!chat) return cli_fail(CLI_FILE, "mica tokenize: %s has no chat template", model);
    print_notes(t);
    if (o->json) {
        cli_json j = {.to = stdout};
        cli_json_object(&j, NULL, CLI_JSON_INLINE);
        cli_json_text(&j, "template", chat);
        cli_json_end(&j);
    } else printf("%s\n", chat);
    return CLI_OK;
}

static int tokenize_text(const mica_tokenizer *t, const tokenize_options *o, const char *model, const char *second)
{
    const bool standard = second && strcmp(second, "-") == 0;
    const int given = (o->prompt != NULL) + (o->file != NULL) + (second != NULL);
    if (given != 1 || (second && !standard))
        return cli_fail(CLI_USAGE, "mica tokenize: give one text: -p TEXT, -f FILE, or - for stdin");
    size_t n = 0;
    char *owned = o->prompt ? NULL : cli_read_file(COMMAND, standard ? "-" : o->file, &n);
    const char *text = o->prompt ? o->prompt : owned;
    if (o->prompt) n = strlen(o->prompt);
    if (!text) return CLI_FILE;
    print_notes(t);
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
    return o->template && !o->as_chat ? tokenize_template(t, o, model) : tokenize_text(t, o, model, second);
}

/* The built-in model contains its tokenizer. */
static int tokenize_builtin(const tokenize_options *o, const char *second)
{
    const cli_model_args args = {.lazy = true};
    cli_model m;
    const int code = cli_model_open(COMMAND, NULL, &args, &m);
    if (code != CLI_OK) return code;
    const mica_tokenizer *t = mica_lm_tokenizer(m.lm);
    const int result = t ? tokenize_with(t, o, "builtin", second) : tokenize_failed(MICA_ERR_UNSUPPORTED);
    cli_model_close(&m);
    return result;
}

static int run_tokenize(const cli_call *call)
{
    const tokenize_options *o = call->options;
    if (o->decode && (o->as_chat || o->ids))
        return cli_fail(CLI_USAGE, "mica tokenize: --decode makes text, --ids and --chat make tokens");
    const char *model = call->args[0], *second = call->n_args > 1 ? call->args[1] : NULL;
    if (strcmp(model, "builtin") == 0) return tokenize_builtin(o, second);
    mica_tokenizer_options options;
    mica_tokenizer_options_init(&options);
    options.pre = o->pre;
    mica_tokenizer *t;
    const mica_status status = mica_tokenizer_open(model, &options, &t);
    if (status != MICA_OK) return tokenize_failed(status);
    const int code = tokenize_with(t, o, model, second);
    mica_tokenizer_close(t);
    return code;
}
