/* mica chat: reads messages and prints answers until the end of the input. The conversation
 * stays in the session; each turn processes only the new tokens. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lm/line.h"
#include "lm/model.h"

typedef struct chat_options {
    cli_model_args model;
    cli_sample_args sample;
    const char *model_path, *system, *template;
    int64_t n;
} chat_options;

/* clang-format off */
#define AT(field) offsetof(chat_options, field)
static const cli_option chat_rows[] = {
    {"--model", "-m", CLI_PATH, AT(model_path), .value = "MODEL", .text = "the model; the same as the argument MODEL"},
    {"--system", NULL, CLI_TEXT, AT(system), .value = "TEXT", .unset = "none", .aliases = "--system-prompt|-sys",
     .text = "the system message, which precedes the conversation"},
    {"--template", NULL, CLI_TEXT, AT(template), .value = "NAME", .unset = "the model's", .aliases = "--chat-template",
     .text = "the name of a chat template, or a template as Jinja text"},
    {"--tokens", "-n", CLI_INT, AT(n), 1, 2147483646, "N", .initial = "1024",
     .aliases = "--n-predict|--predict|--max-tokens", .text = "generate at most N tokens per answer"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_chat(const cli_call *call);

const cli_command cli_chat_command = {
    .name = "mica chat",
    .summary = "chat with a language model",
    .usage = "[MODEL] [options]",
    .text = "Reads messages from stdin and prints the answers on stdout. A line that ends in a backslash continues on "
            "the next line; a block between lines of three double quotes is one message. /help lists the commands of "
            "a chat, /exit or the end of the input (Ctrl-D) ends it, Ctrl-C stops an answer.\n\n"
            "On a terminal, lines can be edited and recalled if libedit is installed. The history is kept in "
            "$XDG_STATE_HOME/mica/chat_history or ~/.local/state/mica/chat_history. MICA_HISTORY sets another file, or "
            "off; MICA_EDIT=0 switches editing off.",
    .arguments = (const cli_argument[]){{"MODEL", "a GGUF file, a folder with config.json and safetensors files, or "
                                                  "builtin; without it, the built-in model"},
                                        {NULL, NULL}},
    .most_args = 1,
    .groups = (const cli_group[]){{"Options", chat_rows, 0},
                                  {"Sampling", cli_sample_rows, offsetof(chat_options, sample)},
                                  {"Model and device", cli_model_rows, offsetof(chat_options, model)},
                                  {NULL, NULL, 0}},
    .options_size = sizeof(chat_options),
    .defaults = &(const chat_options){.sample = CLI_SAMPLE_UNSET},
    .run = run_chat,
};

enum { CHAT_CONTEXT = 4096 };

typedef struct chat_state {
    const chat_options *o;
    const char *template;
    cli_model m;
    mica_lm_session *session;
    mica_lm_sampler *sampler;
    const mica_tokenizer *tokenizer;
    mica_chat_message *messages;
    size_t n_messages, cap_messages;
    int32_t *fed;               /* the tokens in the session, room for its context        */
    int64_t n_fed;
    cli_decoded answer;
    int64_t made;
    double seconds;
    uint64_t seed;
    char *system;               /* the system message, or NULL                            */
    cli_lines lines;
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

static void drop_messages(chat_state *c, size_t keep)
{
    while (c->n_messages > keep) free((char *)(uintptr_t)c->messages[--c->n_messages].content);
}

static bool reset_chat(chat_state *c)
{
    drop_messages(c, 0);
    return !c->system || add_message(c, "system", c->system);
}

/* The tokens of the whole chat up to the start of the answer. The caller frees them. */
static int32_t *render_chat(const chat_state *c, int64_t *n)
{
    size_t length = 0, cap = 4096;
    char *text = NULL;
    for (;;) {
        char *grown = realloc(text, cap);
        if (!grown) {
            free(text);
            return NULL;
        }
        text = grown;
        if (mica_chat_render(c->tokenizer, c->template, c->messages, c->n_messages, true, text, cap, &length) !=
            MICA_OK) {
            fprintf(stderr, "mica chat: %s\n", mica_last_error());
            free(text);
            return NULL;
        }
        if (length < cap) break;
        cap = length + 1;
    }
    int32_t *ids =
        cli_encode(c->m.command, mica_lm_tokenizer(c->m.lm), text, length, MICA_ENCODE_BOS | MICA_ENCODE_SPECIAL, n);
    free(text);
    return ids;
}

/* ---------------------------------------------------------------- answer --- */

static bool print_token(chat_state *c, int32_t token)
{
    const size_t before = c->answer.n;
    return cli_decode_token(&c->answer, c->tokenizer, token) && cli_print_decoded(&c->answer, before);
}

static bool take_answer(int32_t token, void *user)
{
    chat_state *c = user;
    if (!print_token(c, token)) {
        c->failed = true;
        return false;
    }
    if (c->n_fed < mica_lm_session_context(c->session)) c->fed[c->n_fed++] = token;
    return !cli_interrupted();
}

/* Feeds the ids after the common prefix with the session, which keeps that prefix. */
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
    if (!add_message(c, "user", line)) return cli_no_memory("mica chat");
    int32_t *ids = render_chat(c, &n);
    if (!ids) return CLI_FILE;
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
    if (status == MICA_OK && !c->failed && !print_token(c, -1)) c->failed = true;
    if (status != MICA_OK) {
        drop_messages(c, before);
        return cli_fail(CLI_FAILED, "mica chat: %s%s", mica_last_error(),
                        status == MICA_ERR_SIZE ? "; /reset starts a new conversation" : "");
    }
    putchar('\n');
    if (fflush(stdout) != 0) c->failed = true;
    return !c->failed && add_message(c, "assistant", c->answer.text ? c->answer.text : "") ? CLI_OK : CLI_FAILED;
}

/* --------------------------------------------------------------- commands --- */

static void print_stats(const chat_state *c)
{
    fprintf(stderr, "Generation: %" PRId64 " tokens", c->made);
    if (c->seconds > 0 && c->made) fprintf(stderr, ", %.1f tokens-per-sec", (double)c->made / c->seconds);
    fprintf(stderr, "\nContext: %" PRId64 " of %" PRId64 " tokens\nDevice: %s\nSeed: %" PRIu64 "\n",
            mica_lm_session_position(c->session), mica_lm_session_context(c->session), mica_engine_device(c->m.engine),
            c->seed);
}

static int command_reset(chat_state *c, const char *rest)
{
    (void)rest;
    return reset_chat(c) ? CLI_OK : cli_no_memory("mica chat");
}

static int command_stats(chat_state *c, const char *rest)
{
    (void)rest;
    print_stats(c);
    return CLI_OK;
}

static int command_system(chat_state *c, const char *rest)
{
    char *copy = *rest ? strdup(rest) : NULL;
    if (*rest && !copy) return cli_no_memory("mica chat");
    free(c->system);
    c->system = copy;
    return command_reset(c, rest);
}

static int command_help(chat_state *c, const char *rest);

/* run NULL: ends the chat */
static const struct {
    const char *name, *argument, *text;
    int (*run)(chat_state *c, const char *rest);
} chat_commands[] = {
    {"/help", "", "print this list", command_help},
    {"/exit", "", "end the chat; so does Ctrl-D", NULL},
    {"/quit", "", "the same as /exit", NULL},
    {"/reset", "", "start a new conversation", command_reset},
    {"/clear", "", "the same as /reset", command_reset},
    {"/stats", "", "print tokens, speed, context and device", command_stats},
    {"/system", "TEXT", "start a new conversation with this system message; without TEXT, with none", command_system},
};
enum { N_COMMANDS = sizeof chat_commands / sizeof chat_commands[0] };

static int command_help(chat_state *c, const char *rest)
{
    (void)c, (void)rest;
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(stderr, "  %-7s %-5s %s\n", chat_commands[i].name, chat_commands[i].argument, chat_commands[i].text);
    fprintf(stderr, "A line that ends in \\ continues on the next line. \"\"\" begins and ends a block of lines.\n"
                    "Ctrl-C stops an answer; at the prompt it ends the chat.\n");
    return CLI_OK;
}

enum { CHAT_SENT = -1, CHAT_LEFT = -2 };

/* Returns CHAT_SENT for a message to the model, CHAT_LEFT to end the chat, otherwise an exit code. */
static int run_chat_command(chat_state *c, const char *line)
{
    const size_t n = strcspn(line, " ");
    if (line[0] != '/') return CHAT_SENT;
    for (int i = 0; i < N_COMMANDS; i++) {
        const bool takes = *chat_commands[i].argument != '\0';
        if (strlen(chat_commands[i].name) != n || strncmp(chat_commands[i].name, line, n) != 0) continue;
        if (line[n] && !takes) break;
        return chat_commands[i].run ? chat_commands[i].run(c, line + n + strspn(line + n, " ")) : CHAT_LEFT;
    }
    if (!c->lines.interactive) return CHAT_SENT;
    cli_suggestion s = {.typed = line};
    for (int i = 0; i < N_COMMANDS; i++) cli_suggest(&s, chat_commands[i].name);
    fprintf(stderr, "There is no command '%s'; ", line);
    if (s.best) fprintf(stderr, "did you mean '%s'?\n", s.best);
    else fprintf(stderr, "/help lists the commands.\n");
    return CLI_OK;
}

/* ------------------------------------------------------------------- turns --- */

static int answer_message(chat_state *c)
{
    int code = answer_line(c, c->lines.message);
    /* the failure was reported; a shorter message may succeed, so the chat continues */
    if (code == CLI_FAILED && c->lines.interactive && !c->failed) code = CLI_OK;
    if (!cli_interrupted()) return code;
    if (!c->lines.interactive) return CLI_INTERRUPTED;
    cli_interrupt_clear();
    return code;
}

static int chat_turns(chat_state *c)
{
    for (;;) {
        const cli_line_state state = cli_read_message(&c->lines);
        if (state == CLI_LINE_NO_MEMORY) return cli_no_memory("mica chat");
        if (state == CLI_LINE_TOO_LONG)
            return cli_fail(CLI_FAILED, "mica chat: a message has more than %d bytes", CLI_LINE_LIMIT);
        if (state == CLI_LINE_END) {
            if (c->lines.interactive) fputc('\n', stderr);
            return cli_interrupted() ? CLI_INTERRUPTED : CLI_OK;
        }
        if (!c->lines.message[0]) continue;
        int code = run_chat_command(c, c->lines.message);
        if (code == CHAT_LEFT) return CLI_OK;
        if (code == CHAT_SENT) code = answer_message(c);
        if (code != CLI_OK) return code;
    }
}

static void print_banner(const chat_state *c, const char *path)
{
    const mica_lm_info *info = &c->m.info;
    const double n = (double)info->parameters;
    fprintf(stderr, "mica %s: %s (%s, %.1f %s parameters, %s)\n", mica_version(), path ? path : "built-in model",
            info->arch, n < 1e9 ? n * 1e-6 : n * 1e-9, n < 1e9 ? "million" : "billion", info->format);
    fprintf(stderr, "Context %" PRId64 " tokens, device %s, %d threads\n", mica_lm_session_context(c->session),
            mica_engine_device(c->m.engine), mica_engine_threads(c->m.engine));
    fprintf(stderr, "/help lists the commands, /exit or Ctrl-D ends the chat, Ctrl-C stops an answer.\n\n");
}

static int chat_model(chat_state *c)
{
    c->tokenizer = mica_lm_tokenizer(c->m.lm);
    if (!c->tokenizer) return cli_fail(CLI_FILE, "mica chat: %s", mica_last_error());
    if (!c->template && !mica_chat_template(c->tokenizer)) {
        fprintf(stderr, "mica chat: the model has no chat template; --template names one:");
        for (size_t i = 0; mica_chat_name(i); i++) fprintf(stderr, " %s", mica_chat_name(i));
        fputc('\n', stderr);
        return CLI_FILE;
    }
    int code = cli_model_session(&c->m, &c->o->model, CHAT_CONTEXT, 1, &c->session);
    if (code == CLI_OK) code = cli_sampler_open(&c->m, &c->o->sample, &c->seed, &c->sampler);
    if (code != CLI_OK) return code;
    c->system = c->o->system ? strdup(c->o->system) : NULL;
    c->fed = malloc((size_t)mica_lm_session_context(c->session) * sizeof *c->fed);
    if (!c->fed || (c->o->system && !c->system) || !reset_chat(c)) return cli_no_memory("mica chat");
    if (c->lines.interactive) print_banner(c, c->o->model_path);
    code = chat_turns(c);
    print_stats(c);
    return code;
}

static int run_chat(const cli_call *call)
{
    chat_options *o = call->options;
    if (call->n_args) o->model_path = call->args[0];
    chat_state c = {.o = o, .template = o->template};
    cli_signals_watch();
    cli_lines_open(&c.lines);
    int code = cli_model_open("mica chat", o->model_path, &o->model, &c.m);
    if (code == CLI_OK) code = chat_model(&c);
    cli_signals_release();
    cli_lines_close(&c.lines);
    drop_messages(&c, 0);
    mica_lm_sampler_close(c.sampler);
    mica_lm_session_close(c.session);
    cli_model_close(&c.m);
    free(c.messages);
    free(c.fed);
    free(c.system);
    free(c.answer.text);
    return code;
}
