/* Parses arguments and checks ranges as the table of a command states (command.h). */
#include <errno.h>
#include <mica.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"
#include "core/command.h"

/* ------------------------------------------------------------- the table --- */

const char *cli_last_word(const cli_command *c)
{
    const char *space = strrchr(c->name, ' ');
    return space ? space + 1 : c->name;
}

const cli_command *cli_find_command(const cli_command *const *list, const char *word)
{
    for (; list && *list; list++)
        if (strcmp(cli_last_word(*list), word) == 0) return *list;
    return NULL;
}

bool cli_option_at(const cli_command *c, size_t n, cli_option *out)
{
    for (const cli_group *g = c->groups; g && g->options; g++)
        for (const cli_option *o = g->options; o->name; o++) {
            if (n-- > 0) continue;
            *out = *o;
            out->at += g->at;
            return true;
        }
    return false;
}

bool cli_word_in(const char *list, const char *word, int *index)
{
    const size_t n = strlen(word);
    int i = 0;
    for (const char *at = list; at; i++) {
        const size_t length = strcspn(at, "|");
        if (length == n && strncmp(at, word, n) == 0) {
            if (index) *index = i;
            return true;
        }
        at = at[length] ? at + length + 1 : NULL;
    }
    return false;
}

static bool find_option(const cli_command *c, const char *name, cli_option *out)
{
    for (size_t i = 0; cli_option_at(c, i, out); i++)
        if (strcmp(out->name, name) == 0 || (out->letter && strcmp(out->letter, name) == 0) ||
            cli_word_in(out->aliases, name, NULL))
            return true;
    return false;
}

/* ---------------------------------------------------------------- values --- */

typedef enum value_state { VALUE_GOOD, VALUE_MALFORMED, VALUE_OUTSIDE } value_state;

static bool in_range(const cli_option *o, double value)
{
    return (o->above ? value > o->least : value >= o->least) && value <= o->most;
}

static value_state parse_int(const cli_option *o, const char *text, const char **end, int64_t *out)
{
    char *after;
    errno = 0;
    const long long value = strtoll(text, &after, 10);
    *end = after;
    if (after == text) return VALUE_MALFORMED;
    if (errno == ERANGE || !in_range(o, (double)value)) return VALUE_OUTSIDE;
    *out = value;
    return VALUE_GOOD;
}

static value_state parse_ints(const cli_option *o, const char *text, cli_ints *out)
{
    cli_ints list = {.n = 0};
    for (const char *at = text;;) {
        const char *end;
        if (list.n == CLI_MAX_INTS) return VALUE_MALFORMED;
        const value_state state = parse_int(o, at, &end, &list.at[list.n++]);
        if (state == VALUE_MALFORMED || (*end && *end != ',')) return VALUE_MALFORMED;
        if (state != VALUE_GOOD) return state;
        if (!*end) break;
        at = end + 1;
    }
    *out = list;
    return VALUE_GOOD;
}

static value_state parse_bytes(const char *text, uint64_t *out)
{
    static const char units[] = "KMGTkmgt";
    const size_t digits = strcspn(text, units);
    double value, unit = 1;
    if (!mica_number_parse(text, digits, &value) || (text[digits] && text[digits + 1])) return VALUE_MALFORMED;
    if (text[digits])
        for (ptrdiff_t u = (strchr(units, text[digits]) - units) % 4; u >= 0; u--) unit *= 1024;
    if (!(value >= 0 && value * unit < 0x1p63)) return VALUE_MALFORMED;
    *out = (uint64_t)(value * unit);
    return VALUE_GOOD;
}

static value_state parse_value(const cli_option *o, const char *text, void *at)
{
    const char *end;
    value_state state;
    switch (o->kind) {
    case CLI_TEXT:
    case CLI_PATH: memcpy(at, &text, sizeof text); return VALUE_GOOD;
    case CLI_CHOICE: return cli_word_in(o->value, text, at) ? VALUE_GOOD : VALUE_MALFORMED;
    case CLI_BYTES: return parse_bytes(text, at);
    case CLI_INTS: return parse_ints(o, text, at);
    case CLI_INT: state = parse_int(o, text, &end, at); return *end ? VALUE_MALFORMED : state;
    case CLI_NUMBER: {
        double value;
        if (!mica_number_parse(text, strlen(text), &value)) return VALUE_MALFORMED;
        if (!in_range(o, value)) return VALUE_OUTSIDE;
        memcpy(at, &value, sizeof value);
        return VALUE_GOOD;
    }
    case CLI_TEXTS: {
        cli_texts *list = at;
        if (list->n == CLI_MAX_TEXTS) return VALUE_OUTSIDE;
        list->at[list->n++] = text;
        return VALUE_GOOD;
    }
    case CLI_FLAG: break;
    }
    return VALUE_MALFORMED;
}

/* -------------------------------------------------------------- messages --- */

static int refuse_value(const cli_command *c, const cli_option *o, const char *text, value_state state)
{
    char range[96];
    cli_range_text(o, range, sizeof range);
    if (o->kind == CLI_TEXTS) fprintf(stderr, "%s: %s may be given %d times\n", c->name, o->name, CLI_MAX_TEXTS);
    else if (state == VALUE_OUTSIDE) fprintf(stderr, "%s: %s %s is out of range (%s)\n", c->name, o->name, text, range);
    else if (o->kind == CLI_CHOICE) fprintf(stderr, "%s: %s takes %s, not '%s'\n", c->name, o->name, o->value, text);
    else if (o->kind == CLI_BYTES)
        fprintf(stderr, "%s: %s takes a number of bytes such as 300M or 2G, not '%s'\n", c->name, o->name, text);
    else if (o->kind == CLI_INTS)
        fprintf(stderr, "%s: %s takes up to %d whole numbers (%s), separated by commas, not '%s'\n", c->name, o->name,
                CLI_MAX_INTS, range, text);
    else
        fprintf(stderr, "%s: %s takes a %snumber (%s), not '%s'\n", c->name, o->name,
                o->kind == CLI_INT ? "whole " : "", range, text);
    return CLI_USAGE;
}

static int refuse_option(const cli_command *c, const char *typed)
{
    cli_suggestion s = {.typed = typed};
    cli_option o;
    char alias[64], best[64];
    for (size_t i = 0; cli_option_at(c, i, &o); i++) {
        cli_suggest(&s, o.name);
        for (const char *at = o.aliases; at;) {
            const size_t length = strcspn(at, "|");
            snprintf(alias, sizeof alias, "%.*s", (int)length, at);
            cli_suggest(&s, alias);
            if (s.best == alias) s.best = memcpy(best, alias, sizeof best);
            at = at[length] ? at + length + 1 : NULL;
        }
    }
    cli_suggest(&s, "--help");
    if (s.best) fprintf(stderr, "%s: there is no option '%s'; did you mean '%s'?\n", c->name, typed, s.best);
    else fprintf(stderr, "%s: there is no option '%s'; '%s --help' lists the options\n", c->name, typed, c->name);
    return CLI_USAGE;
}

static int refuse_word(const cli_command *c, const char *typed)
{
    cli_suggestion s = {.typed = typed};
    for (const cli_command *const *sub = c->subcommands; *sub; sub++) cli_suggest(&s, cli_last_word(*sub));
    fprintf(stderr, "%s: there is no '%s %s'; ", c->name, c->name, typed);
    if (s.best) fprintf(stderr, "did you mean '%s %s'?\n", c->name, s.best);
    else fprintf(stderr, "'%s --help' lists the subcommands\n", c->name);
    return CLI_USAGE;
}

/* --------------------------------------------------------------- parsing --- */

enum { HELP_SHOWN = -1 };

static bool is_help(const char *arg) { return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0; }

/* Parses the option at argv[*i]; advances *i if the value is the next argument. */
static int parse_option(const cli_call *call, int argc, char **argv, int *i)
{
    const cli_command *c = call->command;
    const char *typed = argv[*i], *equals = strncmp(typed, "--", 2) == 0 ? strchr(typed, '=') : NULL;
    char name[64];
    cli_option o;
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - typed) : (int)strlen(typed), typed);
    if (!find_option(c, name, &o)) {
        if (!is_help(typed)) return refuse_option(c, name);
        cli_print_help(stdout, c);
        return HELP_SHOWN;
    }
    char *at = (char *)call->options + o.at;
    if (o.kind == CLI_FLAG) {
        if (equals) return cli_fail(CLI_USAGE, "%s: %s takes no value", c->name, o.name);
        *(bool *)(void *)at = true;
        return CLI_OK;
    }
    const char *text = equals ? equals + 1 : ++*i < argc ? argv[*i] : NULL;
    if (!text) return cli_fail(CLI_USAGE, "%s: %s needs a value: %s %s", c->name, name, name, o.value);
    const value_state state = parse_value(&o, text, at);
    return state == VALUE_GOOD ? CLI_OK : refuse_value(c, &o, text, state);
}

/* Required options are pointers; NULL means not given. */
static int check_required(const cli_call *call)
{
    const cli_command *c = call->command;
    cli_option o;
    for (size_t i = 0; cli_option_at(c, i, &o); i++) {
        const char *text;
        if (!o.required) continue;
        memcpy(&text, (char *)call->options + o.at, sizeof text);
        if (text) continue;
        return cli_fail(CLI_USAGE, "%s: %s %s is missing; usage: %s %s", c->name, o.name, o.value, c->name, c->usage);
    }
    return CLI_OK;
}

static int parse_arguments(cli_call *call, int argc, char **argv)
{
    const cli_command *c = call->command;
    bool options_end = false;
    for (int i = 1; i < argc; i++) {
        if (!options_end && strcmp(argv[i], "--") == 0) {
            options_end = true;
        } else if (!options_end && argv[i][0] == '-' && argv[i][1]) {
            const int code = parse_option(call, argc, argv, &i);
            if (code != CLI_OK) return code;
        } else if (call->n_args == c->most_args) {
            return cli_fail(CLI_USAGE, "%s: '%s' is one argument too many; usage: %s %s", c->name, argv[i], c->name,
                            c->usage);
        } else call->args[call->n_args++] = argv[i];
    }
    if (call->n_args >= c->least_args) return check_required(call);
    return cli_fail(CLI_USAGE, "%s: %s is missing; usage: %s %s", c->name, c->arguments[call->n_args].name, c->name,
                    c->usage);
}

static void set_defaults(const cli_call *call)
{
    const cli_command *c = call->command;
    cli_option o;
    if (c->defaults) memcpy(call->options, c->defaults, c->options_size);
    for (size_t i = 0; cli_option_at(c, i, &o); i++)
        if (o.initial) (void)parse_value(&o, o.initial, (char *)call->options + o.at);
}

static int run_command(const cli_command *c, int argc, char **argv)
{
    cli_call call = {.command = c};
    call.options = calloc(1, c->options_size ? c->options_size : 1);
    call.args = calloc((size_t)argc + 1, sizeof *call.args);
    int code = call.options && call.args ? CLI_OK : cli_no_memory(c->name);
    if (code == CLI_OK) {
        set_defaults(&call);
        code = parse_arguments(&call, argc, argv);
    }
    if (code == CLI_OK) code = c->run(&call);
    free(call.options);
    free(call.args);
    return code == HELP_SHOWN ? CLI_OK : code;
}

int cli_dispatch(const cli_command *c, int argc, char **argv)
{
    if (c->choose) return run_command(c->choose(argc, argv), argc, argv);
    if (!c->subcommands) return run_command(c, argc, argv);
    if (argc < 2) return cli_fail(CLI_USAGE, "%s: a subcommand is missing; '%s --help' lists them", c->name, c->name);
    if (is_help(argv[1])) {
        cli_print_help(stdout, c);
        return CLI_OK;
    }
    const cli_command *sub = cli_find_command(c->subcommands, argv[1]);
    return sub ? cli_dispatch(sub, argc - 1, argv + 1) : refuse_word(c, argv[1]);
}
