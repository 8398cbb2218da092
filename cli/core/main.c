/* The command `mica`: finds the command in the table and makes sure that its
 * output was written. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/cli.h"
#include "core/signals.h"

static const cli_command *find_named(const char *name)
{
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) name = "version";
    const cli_command *c = cli_find_command(cli_commands, name);
    if (c) return c;
    cli_suggestion s = {.typed = name};
    for (const cli_command *const *at = cli_commands; *at; at++) cli_suggest(&s, cli_last_word(*at));
    fprintf(stderr, "mica: there is no %s '%s'; ", name[0] == '-' ? "option" : "command", name);
    if (s.best) fprintf(stderr, "did you mean 'mica %s'?\n", s.best);
    else fprintf(stderr, "'mica help' lists the commands\n");
    return NULL;
}

/* ------------------------------------------------------------------ help --- */

typedef struct help_options {
    bool markdown;
} help_options;

static int run_help(const cli_call *call)
{
    const help_options *o = call->options;
    if (o->markdown && call->n_args) return cli_fail(CLI_USAGE, "mica help: --markdown prints all commands");
    if (o->markdown) {
        cli_print_markdown(stdout);
        return CLI_OK;
    }
    if (call->n_args == 0) {
        cli_print_overview(stdout);
        return CLI_OK;
    }
    const cli_command *c = find_named(call->args[0]);
    if (!c) return CLI_USAGE;
    if (call->n_args > 1) {
        const cli_command *sub = c->choose ? NULL : cli_find_command(c->subcommands, call->args[1]);
        if (!sub) return cli_fail(CLI_USAGE, "mica help: there is no '%s %s'", c->name, call->args[1]);
        c = sub;
    }
    cli_print_help(stdout, c);
    return CLI_OK;
}

static const cli_option help_rows[] = {
    {"--markdown", NULL, CLI_FLAG, offsetof(help_options, markdown),
     .text = "print the reference of all commands as Markdown, which is docs/CLI.md"},
    {.name = NULL},
};

const cli_command cli_help_command = {
    .name = "mica help",
    .summary = "describe the commands, or one command",
    .usage = "[COMMAND [SUBCOMMAND]] [--markdown]",
    .arguments = (const cli_argument[]){{"COMMAND", "the command to describe"},
                                        {"SUBCOMMAND", "its subcommand, such as lm of train"},
                                        {NULL, NULL}},
    .most_args = 2,
    .groups = (const cli_group[]){{"Options", help_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(help_options),
    .run = run_help,
};

/* ------------------------------------------------------- man, completions --- */

static int run_man(const cli_call *call)
{
    (void)call;
    cli_print_man(stdout);
    return CLI_OK;
}

const cli_command cli_man_command = {
    .name = "mica man",
    .summary = "print the manual page as troff",
    .usage = "",
    .text = "'make install' installs this page as mica(1).",
    .examples = "mica man > mica.1\nman ./mica.1",
    .run = run_man,
};

static int run_completions(const cli_call *call)
{
    if (cli_print_completions(stdout, call->args[0])) return CLI_OK;
    return cli_fail(CLI_USAGE, "mica completions: SHELL is bash, zsh or fish, not '%s'", call->args[0]);
}

const cli_command cli_completions_command = {
    .name = "mica completions",
    .summary = "print the completions of commands and options for a shell",
    .usage = "SHELL",
    .arguments = (const cli_argument[]){{"SHELL", "bash, zsh or fish"}, {NULL, NULL}},
    .least_args = 1,
    .most_args = 1,
    .examples = "mica completions bash > ~/.local/share/bash-completion/completions/mica\n"
                "mica completions zsh > ~/.zfunc/_mica\n"
                "mica completions fish > ~/.config/fish/completions/mica.fish",
    .run = run_completions,
};

/* ------------------------------------------------------------------ main --- */

int main(int argc, char **argv)
{
    if (argc < 2) {
        cli_print_overview(stderr);
        return CLI_USAGE;
    }
    const cli_command *command = find_named(argv[1]);
    if (!command) return CLI_USAGE;
    cli_signals_init();
    (void)signal(SIGXFSZ, SIG_IGN); /* write() then fails for a file that is too large */

    const int code = cli_dispatch(command, argc - 1, argv + 1);

    /* output is buffered, so a full disk may be detected only here */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == CLI_OK)
        return cli_fail(CLI_FAILED, "mica: cannot write the output: %s", strerror(errno));
    return code == CLI_INTERRUPTED ? cli_interrupt_code() : code;
}
