/* Help text for terminals, generated from the command tables. */
#include <string.h>

#include "core/cli.h"
#include "core/command.h"

enum { WIDTH = 100, LEFT = 28 };

/* Upper limits from here on are not shown. */
static const double UNLIMITED = 1e9;

/* ----------------------------------------------------------------- parts --- */

void cli_range_text(const cli_option *o, char *out, size_t room)
{
    out[0] = '\0';
    if (o->kind != CLI_INT && o->kind != CLI_NUMBER && o->kind != CLI_INTS) return;
    if (o->most >= UNLIMITED) snprintf(out, room, "%s %.15g", o->above ? "above" : "at least", o->least);
    else if (o->above) snprintf(out, room, "above %.15g, at most %.15g", o->least, o->most);
    else snprintf(out, room, "%.15g to %.15g", o->least, o->most);
}

static void append(char *out, size_t room, const char *before, const char *text)
{
    const size_t used = strlen(out);
    if (text && *text) snprintf(out + used, room - used, "%s%s%s", used ? "; " : "", before, text);
}

/* The default of a choice: the word whose index the defaults of the command have. */
static void default_choice(const cli_command *c, const cli_option *o, char *out, size_t room)
{
    int index = 0;
    const char *word = o->value;
    if (c->defaults) memcpy(&index, (const char *)c->defaults + o->at, sizeof index);
    while (index-- > 0) word += strcspn(word, "|") + 1;
    snprintf(out, room, "%.*s", (int)strcspn(word, "|"), word);
}

void cli_facts_text(const cli_command *c, const cli_option *o, char *out, size_t room)
{
    char range[96], first[64] = "", aliases[160] = "";
    cli_range_text(o, range, sizeof range);
    out[0] = '\0';
    if (o->kind == CLI_CHOICE) default_choice(c, o, first, sizeof first);
    if (o->required) append(out, room, "", "required");
    else if (o->initial) append(out, room, "default ", o->initial);
    else if (o->unset) append(out, room, "default: ", o->unset);
    else append(out, room, "default ", first);
    append(out, room, o->most >= UNLIMITED ? "" : "range ", range);
    for (const char *at = o->aliases; at;) {
        const size_t length = strcspn(at, "|"), used = strlen(aliases);
        snprintf(aliases + used, sizeof aliases - used, "%s%.*s", used ? ", " : "", (int)length, at);
        at = at[length] ? at + length + 1 : NULL;
    }
    append(out, room, "also ", aliases);
}

void cli_names_text(const cli_option *o, char *out, size_t room)
{
    snprintf(out, room, "%s%s%s%s%s", o->letter ? o->letter : "", o->letter ? ", " : "", o->name, o->value ? " " : "",
             o->value ? o->value : "");
}

/* Prints text from column `at` on, with further lines indented to `indent`. */
static void print_wrapped(FILE *to, const char *text, size_t at, size_t indent)
{
    size_t column = at;
    while (*text) {
        const size_t length = strcspn(text, " ");
        if (column > indent && column + 1 + length > WIDTH) {
            fprintf(to, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', to);
            column++;
        }
        fwrite(text, 1, length, to);
        column += length;
        text += length + strspn(text + length, " ");
    }
    fputc('\n', to);
}

/* Paragraphs are separated by an empty line; each is wrapped again. */
static void print_paragraphs(FILE *to, const char *text)
{
    char part[2048];
    while (text && *text) {
        const char *end = strstr(text, "\n\n");
        const size_t length = end ? (size_t)(end - text) : strlen(text);
        snprintf(part, sizeof part, "%.*s", (int)length, text);
        for (char *p = part; *p; p++)
            if (*p == '\n') *p = ' ';
        print_wrapped(to, part, 0, 0);
        text += length + (end ? 2 : 0);
        if (*text) fputc('\n', to);
    }
}

/* ------------------------------------------------------------ one command --- */

static void print_row(FILE *to, const char *left, const char *text)
{
    fprintf(to, "  %s%*s", left, strlen(left) > LEFT ? 0 : (int)(LEFT + 1 - strlen(left)), "");
    if (strlen(left) > LEFT) fprintf(to, "\n%*s", LEFT + 3, "");
    print_wrapped(to, text, LEFT + 3, LEFT + 3);
}

static void print_option(FILE *to, const cli_command *c, const cli_option *o)
{
    char names[160], left[176], facts[512], text[1536];
    cli_names_text(o, names, sizeof names);
    cli_facts_text(c, o, facts, sizeof facts);
    snprintf(left, sizeof left, "%s%s", o->letter ? "" : "    ", names);
    snprintf(text, sizeof text, "%s%s%s%s", o->text, *facts ? " (" : "", facts, *facts ? ")" : "");
    print_row(to, left, text);
}

static void print_one(FILE *to, const cli_command *c)
{
    fprintf(to, "%s: %s\n\nUsage: %s %s\n", c->name, c->summary, c->name, c->usage);
    if (c->text) fputc('\n', to);
    print_paragraphs(to, c->text);
    if (c->arguments) fprintf(to, "\nArguments:\n");
    for (const cli_argument *a = c->arguments; a && a->name; a++) print_row(to, a->name, a->text);
    for (const cli_group *g = c->groups; g && g->options; g++) {
        fprintf(to, "\n%s:\n", g->title);
        for (const cli_option *row = g->options; row->name; row++) {
            cli_option o = *row;
            o.at += g->at;
            print_option(to, c, &o);
        }
    }
}

static void print_examples(FILE *to, const cli_command *c)
{
    if (!c->examples) return;
    fprintf(to, "\nExamples:\n");
    for (const char *line = c->examples; *line;) {
        const size_t length = strcspn(line, "\n");
        fprintf(to, "  %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

/* The other forms of a command are described with it; subcommands are only listed. */
static void print_subcommands(FILE *to, const cli_command *c)
{
    if (!c->subcommands) return;
    fprintf(to, "\n%s:\n", c->choose ? "Other forms" : "Subcommands");
    for (const cli_command *const *sub = c->subcommands; *sub; sub++) print_row(to, (*sub)->name, (*sub)->summary);
    if (!c->choose) fprintf(to, "\n'%s SUBCOMMAND --help' lists the options of a subcommand.\n", c->name);
    for (const cli_command *const *sub = c->subcommands; c->choose && *sub; sub++) {
        fputc('\n', to);
        print_one(to, *sub);
    }
}

void cli_print_help(FILE *to, const cli_command *c)
{
    print_one(to, c);
    print_subcommands(to, c);
    print_examples(to, c);
}

/* ------------------------------------------------------------------- all --- */

static void print_line(FILE *to, const cli_command *c) { print_row(to, c->name, c->summary); }

void cli_print_overview(FILE *to)
{
    fprintf(to, "mica: lazy arrays, gradients and plans for neural networks\n\n"
                "Usage: mica COMMAND [ARGUMENT...] [OPTION...]\n\nCommands:\n");
    for (const cli_command *const *c = cli_commands; *c; c++) {
        const bool lists = (*c)->subcommands && !(*c)->choose;
        if (!lists) print_line(to, *c);
        for (const cli_command *const *sub = (*c)->subcommands; sub && *sub; sub++) print_line(to, *sub);
    }
    fprintf(to, "\n'mica help COMMAND' and 'mica COMMAND --help' describe a command and its options.\n\nExit codes:\n");
    for (const cli_exit_row *row = cli_exit_rows; row->text; row++) {
        const int printed = fprintf(to, "  %3d ", row->code);
        print_wrapped(to, row->text, (size_t)printed, (size_t)printed);
    }
}
