/* mica chat: a line in, an answer out, until the end of the input. What was said
 * before stays in the session; a turn reads only what is new. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

typedef struct chat_options {
    cli_model_args model;
    cli_sample_args sample;
    const char *model_path, *system, *template;
    int64_t n;
} chat_options;

static const cli_arg chat_args[] = {
    {"--model", "-m", CLI_TEXT, offsetof(chat_options, model_path), 0, 0, "MODEL", "as the first argument"},
    {"--system", NULL, CLI_TEXT, offsetof(chat_options, system), 0, 0, "TEXT", "what the model is told first"},
    {"--template", NULL, CLI_TEXT, offsetof(chat_options, template), 0, 0, "NAME", "another chat template, by name"},
    {"--tokens", "-n", CLI_INT, offsetof(chat_options, n), 1, 2147483646, "N", "most tokens of an answer; 1024"},
    CLI_SAMPLE_ARGS(chat_options, sample),
    CLI_MODEL_ARGS(chat_options, model),
};

static const cli_args chat_table = {
    "mica chat",
    "[MODEL] [options]",
    "Answers line by line. /reset forgets what was said, /exit or the end of the input\n"
    "ends it, Ctrl-C ends an answer.",
    chat_args,
    sizeof chat_args / sizeof chat_args[0],
    0,
    1};

enum { CHAT_CONTEXT = 4096 };

typedef struct chat_state {
    const chat_options *o;
    cli_model m;
    mica_lm_session *session;
    mica_lm_sampler *sampler;
    const mica_tokenizer *tokenizer;
    mica_chat_message *messages;
    size_t n_messages, cap_messages;
    int32_t *fed;               /* the tokens in the session, room for its context        */
    int64_t n_fed;
    cli_spoken answer;
    int64_t made;
    double seconds;
    bool failed;
} chat_state;

/* -------------------------------------------------------------- messages --- */

static bool add_message(chat_state *c, const char *role, const char *content)
{
    if (c->n_messages == c->cap_messages) {
        const size_t cap = c->cap_messages ? 2 * c->cap_messages : 16;
        mica_chat_message *grown = realloc(c->messages, cap * sizeof *grown);
        if (!grown) return false;
        c->messages = grown;
        c->cap_messages = cap;
    }
    char *copy = strdup(content);
    if (!copy) return false;
    c->messages[c->n_messages++] = (mica_chat_message){role, copy};
    return true;
}

static void forget_messages(chat_state *c, size_t keep)
{
    while (c->n_messages > keep) free((char *)(uintptr_t)c->messages[--c->n_messages].content);
}

static bool reset_chat(chat_state *c)
{
    forget_messages(c, 0);
    return !c->o->system || add_message(c, "system", c->o->system);
}

/* The tokens of the whole chat up to where the answer begins, to be freed. */
static int32_t *render_chat(const chat_state *c, int64_t *n)
{
    size_t length = 0, cap = 4096;
    char *text = NULL;
    for (;;) {
        char *grown = realloc(text, cap);
        if (!grown) return free(text), NULL;
        text = grown;
        if (mica_chat_render(c->tokenizer, c->o->template, c->messages, c->n_messages, true, text, cap, &length) !=
            MICA_OK)
            return fprintf(stderr, "mica chat: %s\n", mica_last_error()), free(text), NULL;
        if (length < cap) break;
        cap = length + 1;
    }
    int32_t *ids =
        cli_encode(c->m.command, mica_lm_tokenizer(c->m.lm), text, length, MICA_ENCODE_BOS | MICA_ENCODE_SPECIAL, n);
    free(text);
    return ids;
}

/* ---------------------------------------------------------------- answer --- */

static bool say(chat_state *c, int32_t token)
{
    const size_t before = c->answer.n;
    return cli_speak(&c->answer, c->tokenizer, token) && cli_print_spoken(&c->answer, before);
}

static bool take_answer(int32_t token, void *user)
{
    chat_state *c = user;
    if (!say(c, token)) return c->failed = true, false;
    if (c->n_fed < mica_lm_session_context(c->session)) c->fed[c->n_fed++] = token;
    return !cli_interrupted();
}

/* Reads what is new of ids: the session keeps what is the same. */
static mica_status feed_new(chat_state *c, const int32_t *ids, int64_t n)
{
    int64_t same = 0;
    const float *logits;
    while (same < c->n_fed && same < n - 1 && c->fed[same] == ids[same]) same++;
    mica_status status = mica_lm_session_rewind(c->session, same);
    if (status == MICA_OK) status = mica_lm_feed(c->session, ids + same, n - same, &logits);
    if (status != MICA_OK) return status;
    memcpy(c->fed, ids, (size_t)n * sizeof *ids);
    c->n_fed = n;
    return MICA_OK;
}

static int answer_line(chat_state *c, const char *line)
{
    const size_t before = c->n_messages;
    int64_t n = 0, made = 0;
    if (!add_message(c, "user", line)) return CLI_FAILED;
    int32_t *ids = render_chat(c, &n);
    if (!ids) return CLI_MODEL;
    mica_status status = feed_new(c, ids, n);
    free(ids);
    c->answer.n = 0;
    c->answer.state = (mica_detokenizer){0};
    const double start = cli_seconds();
    const int64_t room = mica_lm_session_context(c->session) - mica_lm_session_position(c->session);
    if (status == MICA_OK && room > 0)
        status =
            mica_lm_generate(c->session, c->sampler, NULL, 0, c->o->n < room ? c->o->n : room, take_answer, c, &made);
    c->seconds += cli_seconds() - start;
    c->made += made;
    if (c->n_fed > mica_lm_session_position(c->session)) c->n_fed = mica_lm_session_position(c->session);
    if (status == MICA_OK && !c->failed && !say(c, -1)) c->failed = true;
    if (status != MICA_OK) {
        forget_messages(c, before);
        fprintf(stderr, "mica chat: %s%s\n", mica_last_error(), status == MICA_ERR_SIZE ? "; /reset begins anew" : "");
        return CLI_FAILED;
    }
    putchar('\n');
    if (fflush(stdout) != 0) c->failed = true;
    return !c->failed && add_message(c, "assistant", c->answer.text ? c->answer.text : "") ? CLI_OK : CLI_FAILED;
}

/* ------------------------------------------------------------------ lines --- */

enum { LINE_LIMIT = 1 << 20 };

/* As getline, but refuses a line that is too long: standard input may be endless. -1: the end, or that. */
static ssize_t read_line(char **line, size_t *cap)
{
    size_t n = 0;
    for (int c; (c = getchar()) != EOF;) {
        if (n + 2 > *cap) {
            char *grown = n < LINE_LIMIT ? realloc(*line, 2 * n + 256) : NULL;
            if (!grown) return fprintf(stderr, "mica chat: a line has more than %zu bytes\n", n), -1;
            *line = grown;
            *cap = 2 * n + 256;
        }
        (*line)[n++] = (char)c;
        if (c == '\n') break;
    }
    if (n == 0) return -1;
    (*line)[n] = '\0';
    return (ssize_t)n;
}

static int chat_lines(chat_state *c)
{
    char *line = NULL;
    size_t cap = 0;
    int code = CLI_OK;
    const bool asks = isatty(STDIN_FILENO) != 0;
    while (code == CLI_OK) {
        if (asks) fprintf(stderr, "> ");
        const ssize_t n = read_line(&line, &cap);
        if (n < 0) {
            if (cli_interrupted()) code = CLI_INTERRUPTED;
            else if (!feof(stdin)) code = CLI_FAILED;
            break;
        }
        line[strcspn(line, "\r\n")] = '\0';
        if (strcmp(line, "/exit") == 0 || strcmp(line, "/quit") == 0) break;
        if (strcmp(line, "/reset") == 0) {
            code = reset_chat(c) ? CLI_OK : CLI_FAILED;
            continue;
        }
        if (line[0] == '/' && asks) {
            fprintf(stderr, "there are /reset and /exit\n");
            continue;
        }
        if (!line[0]) continue;
        code = answer_line(c, line);
        if (code == CLI_FAILED && asks && !c->failed) code = CLI_OK; /* told; the next line may be shorter */
        if (cli_interrupted()) {
            if (!asks) code = CLI_INTERRUPTED;
            else cli_forget_interrupt();
        }
    }
    free(line);
    return code;
}

static int chat_model(chat_state *c)
{
    uint64_t seed = 0;
    c->tokenizer = mica_lm_tokenizer(c->m.lm);
    if (!c->tokenizer) return fprintf(stderr, "mica chat: %s\n", mica_last_error()), CLI_MODEL;
    if (!c->o->template && !mica_chat_template(c->tokenizer)) {
        fprintf(stderr, "mica chat: the model has no chat template; --template names one:");
        for (size_t i = 0; mica_chat_name(i); i++) fprintf(stderr, " %s", mica_chat_name(i));
        fprintf(stderr, "\n");
        return CLI_MODEL;
    }
    int code = cli_model_session(&c->m, &c->o->model, CHAT_CONTEXT, 1, &c->session);
    if (code == CLI_OK) code = cli_sampler_open(&c->m, &c->o->sample, &seed, &c->sampler);
    if (code != CLI_OK) return code;
    c->fed = malloc((size_t)mica_lm_session_context(c->session) * sizeof *c->fed);
    if (!c->fed || !reset_chat(c)) return fprintf(stderr, "mica chat: no memory\n"), CLI_FAILED;
    code = chat_lines(c);
    fprintf(stderr, "Generation: %" PRId64 " tokens", c->made);
    if (c->seconds > 0 && c->made) fprintf(stderr, ", %.1f tokens-per-sec", (double)c->made / c->seconds);
    fprintf(stderr, "\nDevice: %s\nSeed: %" PRIu64 "\n", mica_engine_device(c->m.engine), seed);
    return code;
}

int cli_chat(int argc, char **argv)
{
    chat_options o = {.sample = CLI_SAMPLE_ARGS_NONE, .n = 1024};
    const char *places[CLI_MAX_PLACES];
    size_t n_places;
    const int parsed = cli_parse(&chat_table, argc, argv, &o, places, &n_places);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    if (n_places) o.model_path = places[0];
    chat_state c = {.o = &o};
    (void)cli_interrupted();
    int code = cli_model_open("mica chat", o.model_path, &o.model, &c.m);
    if (code == CLI_OK) code = chat_model(&c);
    forget_messages(&c, 0);
    mica_lm_sampler_close(c.sampler);
    mica_lm_session_close(c.session);
    cli_model_close(&c.m);
    free(c.messages);
    free(c.fed);
    free(c.answer.text);
    return code;
}
