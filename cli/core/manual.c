/* The man page and docs/CLI.md, generated from the command tables. */
#include <mica.h>
#include <string.h>

#include "core/cli.h"
#include "core/command.h"

/* Calls visit for each command that can be run, subcommands after their parent. */
static void visit_commands(const cli_command *const *list, void (*visit)(FILE *to, const cli_command *c), FILE *to)
{
    for (; list && *list; list++) {
        visit(to, *list);
        visit_commands((*list)->subcommands, visit, to);
    }
}

static void visit_lines(FILE *to, const char *text, void (*print)(FILE *to, const char *line, size_t n))
{
    while (text && *text) {
        const size_t n = strcspn(text, "\n");
        print(to, text, n);
        text += n + (text[n] == '\n');
    }
}

static void option_text(const cli_command *c, const cli_option *o, char *out, size_t room)
{
    char facts[512];
    cli_facts_text(c, o, facts, sizeof facts);
    snprintf(out, room, "%s%s%s%s", o->text, *facts ? " (" : "", facts, *facts ? ")" : "");
}

/* ------------------------------------------------------------------- man --- */

/* Escapes text for troff: a backslash and a leading dot or quote would be commands. */
static void print_troff(FILE *to, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool line_start = i == 0 || text[i - 1] == '\n';
        if (line_start && (text[i] == '.' || text[i] == '\'')) fputs("\\&", to);
        if (text[i] == '\\') fputs("\\e", to);
        else if (text[i] == '-') fputs("\\-", to);
        else fputc(text[i], to);
    }
}

static void print_troff_line(FILE *to, const char *line, size_t n)
{
    if (n == 0) fputs(".PP", to);
    else print_troff(to, line, n);
    fputc('\n', to);
}

static void print_troff_text(FILE *to, const char *text) { visit_lines(to, text, print_troff_line); }

static void print_man_row(FILE *to, const char *left, const char *text)
{
    fputs(".TP\n.B ", to);
    print_troff(to, left, strlen(left));
    fputc('\n', to);
    print_troff_text(to, text);
}

static void print_man_command(FILE *to, const cli_command *c)
{
    char names[160], text[1536];
    fprintf(to, ".SS \"%s %s\"\n", c->name, c->usage);
    print_troff_text(to, c->summary);
    if (c->text) fputs(".PP\n", to), print_troff_text(to, c->text);
    for (const cli_argument *a = c->arguments; a && a->name; a++) print_man_row(to, a->name, a->text);
    for (const cli_group *g = c->groups; g && g->options; g++)
        for (const cli_option *row = g->options; row->name; row++) {
            cli_option o = *row;
            o.at += g->at;
            cli_names_text(&o, names, sizeof names);
            option_text(c, &o, text, sizeof text);
            print_man_row(to, names, text);
        }
    if (!c->examples) return;
    fputs(".PP\nExamples:\n.PP\n.nf\n", to);
    print_troff_text(to, c->examples);
    fputs(".fi\n", to);
}

void cli_print_man(FILE *to)
{
    fprintf(to, ".TH MICA 1 \"\" \"mica %s\" \"User Commands\"\n.SH NAME\n", mica_version());
    fputs("mica \\- lazy arrays, gradients and plans for neural networks\n.SH SYNOPSIS\n.B mica\n", to);
    fputs(".I COMMAND\n[\\fIARGUMENT\\fR ...] [\\fIOPTION\\fR ...]\n.SH COMMANDS\n", to);
    visit_commands(cli_commands, print_man_command, to);
    fputs(".SH \"EXIT STATUS\"\n", to);
    for (const cli_exit_row *row = cli_exit_rows; row->text; row++) {
        fprintf(to, ".TP\n.B %d\n", row->code);
        print_troff_text(to, row->text);
    }
    fputs(".SH ENVIRONMENT\n", to);
    print_troff_text(to, "'mica doctor' lists the environment variables of the library and their values.");
}

/* -------------------------------------------------------------- Markdown --- */

/* Escapes text for a table cell: | separates cells, and < would begin HTML. */
static void print_cell(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '|') fputs("\\|", to);
        else if (*text == '<') fputs("&lt;", to);
        else if (*text == '*') fputs("\\*", to);
        else fputc(*text, to);
    }
}

static void print_code_cell(FILE *to, const char *text)
{
    fputc('`', to);
    for (; *text; text++) {
        if (*text == '|') fputs("\\|", to);
        else fputc(*text, to);
    }
    fputc('`', to);
}

static void print_markdown_line(FILE *to, const char *line, size_t n) { fprintf(to, "    %.*s\n", (int)n, line); }

static void print_markdown_options(FILE *to, const cli_command *c)
{
    char names[160], text[1536];
    for (const cli_group *g = c->groups; g && g->options; g++) {
        fprintf(to, "\n| %s | |\n|---|---|\n", g->title);
        for (const cli_option *row = g->options; row->name; row++) {
            cli_option o = *row;
            o.at += g->at;
            cli_names_text(&o, names, sizeof names);
            option_text(c, &o, text, sizeof text);
            fputs("| ", to);
            print_code_cell(to, names);
            fputs(" | ", to);
            print_cell(to, text);
            fputs(" |\n", to);
        }
    }
}

static void print_markdown_command(FILE *to, const cli_command *c)
{
    fprintf(to, "\n## %s\n\n%c%s.\n\n    %s %s\n", c->name, c->summary[0] - 'a' + 'A', c->summary + 1, c->name,
            c->usage);
    if (c->text) fprintf(to, "\n%s\n", c->text);
    if (c->arguments) fputs("\n| Arguments | |\n|---|---|\n", to);
    for (const cli_argument *a = c->arguments; a && a->name; a++) {
        fputs("| ", to);
        print_code_cell(to, a->name);
        fputs(" | ", to);
        print_cell(to, a->text);
        fputs(" |\n", to);
    }
    print_markdown_options(to, c);
    if (c->subcommands) fprintf(to, "\n%s:", c->choose ? "Other forms" : "Subcommands");
    for (const cli_command *const *sub = c->subcommands; sub && *sub; sub++)
        fprintf(to, "%s `%s`", sub == c->subcommands ? "" : ",", (*sub)->name);
    if (c->subcommands) fputs(".\n", to);
    if (!c->examples) return;
    fputs("\nExamples:\n\n", to);
    visit_lines(to, c->examples, print_markdown_line);
}

void cli_print_markdown(FILE *to)
{
    fputs("# The command mica\n\n"
          "Generated by `mica help --markdown` from the command tables; `tests/e2e/cli.sh` checks that it is up to "
          "date.\n`mica help COMMAND`, `mica COMMAND --help` and the manual page mica(1) have the same text.\n\n"
          "Options may be given as `--name VALUE` or `--name=VALUE`, before or after the arguments; `--` ends the "
          "options.\nResults go to stdout, all messages to stderr.\n\n"
          "| Exit code | Meaning |\n|---|---|\n",
          to);
    for (const cli_exit_row *row = cli_exit_rows; row->text; row++) fprintf(to, "| %d | %s |\n", row->code, row->text);
    fputs("\n| Command | |\n|---|---|\n", to);
    for (const cli_command *const *c = cli_commands; *c; c++)
        fprintf(to, "| [`%s`](#mica-%s) | %s |\n", (*c)->name, cli_last_word(*c), (*c)->summary);
    visit_commands(cli_commands, print_markdown_command, to);
}
