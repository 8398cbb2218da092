/* The arguments of a command as a table: what each is called, where its value
 * goes, what it may be. One table parses, refuses and prints the help. */
#ifndef MICA_CLI_ARGS_H
#define MICA_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum cli_arg_kind {
    CLI_FLAG,   /* bool: takes no value                                              */
    CLI_INT,    /* int64_t from least to most                                        */
    CLI_NUMBER, /* double from least to most                                         */
    CLI_TEXT,   /* const char *                                                      */
    CLI_CHOICE, /* int: which word of `value`, which has them with | between         */
    CLI_BYTES   /* uint64_t: a whole number, or one with K, M, G or T behind it      */
} cli_arg_kind;

typedef struct cli_arg {
    const char *name, *other; /* "--temp"; a second name or NULL                     */
    cli_arg_kind kind;
    size_t at;                /* where in the struct of options                      */
    double least, most;
    const char *value;        /* what help calls it: "N", "f16|q8|f32"; flags: NULL  */
    const char *text;
} cli_arg;

typedef struct cli_args {
    const char *command;      /* "mica run"                                          */
    const char *usage;        /* "[MODEL] [-p TEXT | -f FILE | -]"                   */
    const char *text;         /* what it does, in a sentence or a few                */
    const cli_arg *args;
    size_t n_args;
    size_t least_places, most_places; /* arguments that are no options               */
} cli_args;

enum { CLI_HELP_SHOWN = -1, CLI_MAX_PLACES = 4 };

/* Fills options (which holds the defaults), and places[most_places] with what is no option:
 * "-" alone is none. CLI_OK, CLI_USAGE after a sentence, or CLI_HELP_SHOWN. *n_places
 * says how many there are. */
int cli_parse(const cli_args *a, int argc, char **argv, void *options, const char **places, size_t *n_places);

#endif
