/* See args.h. */
#include "core/args.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"

static void print_args(const cli_args *a)
{
    printf("%s %s\n\n%s\n\n", a->command, a->usage, a->text);
    for (size_t i = 0; i < a->n_args; i++) {
        const cli_arg *arg = &a->args[i];
        char left[80];
        snprintf(left, sizeof left, "%s%s%s%s%s", arg->other ? arg->other : "", arg->other ? ", " : "", arg->name,
                 arg->value ? " " : "", arg->value ? arg->value : "");
        printf("  %-28s %s\n", left, arg->text);
    }
}

static int refuse(const cli_args *a, const cli_arg *arg, const char *given)
{
    if (arg->kind == CLI_CHOICE)
        fprintf(stderr, "%s: %s takes %s, not '%s'\n", a->command, arg->name, arg->value, given);
    else if (arg->kind == CLI_BYTES)
        fprintf(stderr, "%s: %s takes bytes, as 300M or 2G, not '%s'\n", a->command, arg->name, given);
    else
        fprintf(stderr, "%s: %s takes a %snumber from %.15g to %.15g, not '%s'\n", a->command, arg->name,
                arg->kind == CLI_INT ? "whole " : "", arg->least, arg->most, given);
    return CLI_USAGE;
}

static bool parse_choice(const cli_arg *arg, const char *text, int *out)
{
    const size_t n = strlen(text);
    int i = 0;
    for (const char *word = arg->value; word; i++) {
        const size_t length = strcspn(word, "|");
        if (length == n && strncmp(word, text, n) == 0) return *out = i, true;
        word = word[length] ? word + length + 1 : NULL;
    }
    return false;
}

static bool parse_bytes(const char *text, uint64_t *out)
{
    static const char units[] = "KMGTkmgt";
    const size_t digits = strcspn(text, units);
    double value, unit = 1;
    if (!mica_number_parse(text, digits, &value) || (text[digits] && text[digits + 1])) return false;
    if (text[digits])
        for (ptrdiff_t u = (strchr(units, text[digits]) - units) % 4; u >= 0; u--) unit *= 1024;
    if (!(value >= 0 && value * unit < 0x1p63)) return false;
    *out = (uint64_t)(value * unit);
    return true;
}

static bool parse_value(const cli_arg *arg, const char *text, char *at)
{
    char *end = NULL;
    errno = 0;
    switch (arg->kind) {
    case CLI_TEXT: memcpy(at, &text, sizeof text); return true;
    case CLI_CHOICE: return parse_choice(arg, text, (int *)(void *)at);
    case CLI_BYTES: return parse_bytes(text, (uint64_t *)(void *)at);
    case CLI_INT: {
        const long long value = strtoll(text, &end, 10);
        if (end == text || *end || errno || (double)value < arg->least || (double)value > arg->most) return false;
        *(int64_t *)(void *)at = value;
        return true;
    }
    case CLI_NUMBER: {
        double value;
        if (!mica_number_parse(text, strlen(text), &value) || !(value >= arg->least && value <= arg->most))
            return false;
        *(double *)(void *)at = value;
        return true;
    }
    case CLI_FLAG: break;
    }
    return false;
}

static const cli_arg *find_arg(const cli_args *a, const char *name)
{
    for (size_t i = 0; i < a->n_args; i++)
        if (strcmp(a->args[i].name, name) == 0 || (a->args[i].other && strcmp(a->args[i].other, name) == 0))
            return &a->args[i];
    return NULL;
}

int cli_parse(const cli_args *a, int argc, char **argv, void *options, const char **places, size_t *n_places)
{
    *n_places = 0;
    for (int i = 1; i < argc; i++) {
        const cli_arg *arg = find_arg(a, argv[i]);
        char *at = arg ? (char *)options + arg->at : NULL;
        if (arg && arg->kind == CLI_FLAG) {
            *(bool *)(void *)at = true;
        } else if (arg) {
            if (++i == argc) return fprintf(stderr, "%s: %s takes a value\n", a->command, argv[i - 1]), CLI_USAGE;
            if (!parse_value(arg, argv[i], at)) return refuse(a, arg, argv[i]);
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return print_args(a), CLI_HELP_SHOWN;
        } else if (argv[i][0] == '-' && argv[i][1]) {
            return fprintf(stderr, "%s: there is no option '%s'; --help lists them\n", a->command, argv[i]), CLI_USAGE;
        } else if (*n_places == a->most_places) {
            return fprintf(stderr, "%s: '%s' is one argument too many; usage: %s %s\n", a->command, argv[i], a->command,
                           a->usage),
                   CLI_USAGE;
        } else places[(*n_places)++] = argv[i];
    }
    if (*n_places >= a->least_places) return CLI_OK;
    fprintf(stderr, "%s: usage: %s %s\n", a->command, a->command, a->usage);
    return CLI_USAGE;
}
