/* One table describes a command: its name, its positional arguments, its options
 * and its subcommands. Parsing, range checks, help, the man page, docs/CLI.md and
 * shell completions all use this table. */
#ifndef MICA_CLI_COMMAND_H
#define MICA_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum cli_kind {
    CLI_FLAG,   /* bool: takes no value                                            */
    CLI_INT,    /* int64_t in the range of the option                              */
    CLI_NUMBER, /* double in the range of the option                               */
    CLI_TEXT,   /* const char *                                                    */
    CLI_PATH,   /* const char *: a file or a folder                                */
    CLI_CHOICE, /* int: the index of the word in `value`, a list separated by |    */
    CLI_BYTES,  /* uint64_t: a number, with or without a suffix K, M, G or T       */
    CLI_INTS,   /* cli_ints: integers in the range of the option, comma-separated  */
    CLI_TEXTS   /* cli_texts: the option may be given several times                */
} cli_kind;

enum { CLI_MAX_INTS = 8, CLI_MAX_TEXTS = 256 };

typedef struct cli_ints {
    int64_t at[CLI_MAX_INTS];
    size_t n;
} cli_ints;

typedef struct cli_texts {
    const char *at[CLI_MAX_TEXTS];
    size_t n;
} cli_texts;

typedef struct cli_option {
    const char *name;    /* "--tokens"                                             */
    const char *letter;  /* "-n", or NULL                                          */
    cli_kind kind;
    size_t at;           /* offset of the value in the struct of options           */
    double least, most;  /* the range of numbers, both ends included               */
    const char *value;   /* what help calls the value: "N", "f16|f32"; flags: NULL */
    bool above;          /* the value must be greater than least                   */
    bool required;
    const char *initial; /* the default, as a user would type it; or NULL          */
    const char *unset;   /* without a default value: what happens instead, for help */
    const char *aliases; /* other names, separated by |, or NULL                   */
    const char *text;    /* what the option does                                   */
} cli_option;

/* Options that belong together. A table of groups ends with a group without options. */
typedef struct cli_group {
    const char *title;         /* "Sampling"                                       */
    const cli_option *options; /* ends with an option without a name               */
    size_t at;                 /* added to the offset of each option               */
} cli_group;

typedef struct cli_argument {
    const char *name; /* "MODEL"; NULL ends a table                                */
    const char *text;
} cli_argument;

typedef struct cli_command cli_command;

/* One call of a command: the parsed arguments. */
typedef struct cli_call {
    const cli_command *command;
    void *options;     /* the struct of options of this command                    */
    const char **args; /* positional arguments                                     */
    size_t n_args;
} cli_call;

struct cli_command {
    const char *name;              /* "mica train lm"                              */
    const char *summary;           /* one line, without a full stop                */
    const char *usage;             /* what follows the name                        */
    const char *text;              /* paragraphs separated by an empty line        */
    const char *examples;          /* lines of a shell, or NULL                    */
    const cli_argument *arguments; /* positional arguments, or NULL                */
    size_t least_args, most_args;
    const cli_group *groups;
    size_t options_size;
    const void *defaults; /* a struct of options to begin with; NULL: all zero     */
    int (*run)(const cli_call *call);
    const cli_command *const *subcommands; /* ends with NULL                       */
    /* A command with several forms: returns the form that these arguments call. Its subcommands
     * are then the other forms, which have no separate command word. */
    const cli_command *(*choose)(int argc, char **argv);
};

/* All commands, in the order of their names; ends with NULL. */
extern const cli_command *const cli_commands[];

/* Parses argv[1..argc-1] and runs the command; returns its exit code. */
int cli_dispatch(const cli_command *c, int argc, char **argv);

/* The command with this last word among a list of them, or NULL. */
const cli_command *cli_find_command(const cli_command *const *list, const char *word);
/* "lm" of "mica train lm". */
const char *cli_last_word(const cli_command *c);

/* --------------------------------------------------------- parts of a table --- */

/* The n-th option of a command over all groups, with its final offset; false: no such option. */
bool cli_option_at(const cli_command *c, size_t n, cli_option *out);
/* True if word is in list, whose words are separated by |. index may be NULL. */
bool cli_word_in(const char *list, const char *word, int *index);
/* "0 to 1", "at least 1", "above 0, at most 1"; empty for kinds without a range. */
void cli_range_text(const cli_option *o, char *out, size_t room);
/* "required", "default 40; range 0 to 1", "default: ..."; empty: nothing to say. o has its
 * final offset. */
void cli_facts_text(const cli_command *c, const cli_option *o, char *out, size_t room);
/* The names of an option: "-n, --tokens N". */
void cli_names_text(const cli_option *o, char *out, size_t room);

/* ------------------------------------------------------- made from the table --- */

void cli_print_overview(FILE *to);
void cli_print_help(FILE *to, const cli_command *c);
void cli_print_markdown(FILE *to);
void cli_print_man(FILE *to);
/* Returns false for an unknown shell. */
bool cli_print_completions(FILE *to, const char *shell);

/* Finds the name most similar to `typed`: call cli_suggest for each name. best is NULL if none is similar. */
typedef struct cli_suggestion {
    const char *typed, *best;
    size_t distance;
} cli_suggestion;
void cli_suggest(cli_suggestion *s, const char *name);

#endif
