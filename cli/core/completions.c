/* Completions for bash, zsh and fish, generated from the command tables. */
#include <string.h>

#include "core/command.h"

/* Calls visit for each command that has a command word; other forms of a command have none. */
static void visit_typed(const cli_command *const *list, void (*visit)(FILE *to, const cli_command *c), FILE *to)
{
    for (; list && *list; list++) {
        visit(to, *list);
        if (!(*list)->choose) visit_typed((*list)->subcommands, visit, to);
    }
}

/* The words after "mica": "train lm". */
static const char *words_of(const cli_command *c) { return c->name + strlen("mica "); }

static bool is_value_list(const cli_option *o) { return o->value && strchr(o->value, '|') != NULL; }

static void print_words(FILE *to, const char *list)
{
    for (const char *p = list; *p; p++) fputc(*p == '|' ? ' ' : *p, to);
}

static bool has_subcommands(const cli_command *c) { return c->subcommands && !c->choose; }

/* ------------------------------------------------------------ bash, zsh --- */

/* The names of all options of a command and of its other forms. */
static void print_option_names(FILE *to, const cli_command *c)
{
    cli_option o;
    for (size_t i = 0; cli_option_at(c, i, &o); i++) fprintf(to, " %s", o.name);
    if (!c->choose) return;
    for (const cli_command *const *form = c->subcommands; *form; form++) print_option_names(to, *form);
}

static void print_shell_words(FILE *to, const cli_command *c)
{
    fprintf(to, "    '%s') words='", words_of(c));
    for (const cli_command *const *sub = has_subcommands(c) ? c->subcommands : NULL; sub && *sub; sub++)
        fprintf(to, "%s ", cli_last_word(*sub));
    fputs("--help", to);
    print_option_names(to, c);
    fputs("' ;;\n", to);
}

/* The values of options that take one of a list of words. */
static void print_shell_values(FILE *to, const cli_command *c)
{
    cli_option o;
    for (size_t i = 0; cli_option_at(c, i, &o); i++) {
        if (!is_value_list(&o)) continue;
        fprintf(to, "    '%s %s') words='", words_of(c), o.name);
        print_words(to, o.value);
        fputs("' ;;\n", to);
    }
}

/* The part that bash and zsh share: it sets `words` to the candidates for $command and $previous. */
static void print_shell_cases(FILE *to)
{
    fputs("    case \"$command $previous\" in\n", to);
    visit_typed(cli_commands, print_shell_values, to);
    fputs("    esac\n    if [ -n \"$words\" ]; then return; fi\n    case \"$command\" in\n    '') words='", to);
    for (const cli_command *const *c = cli_commands; *c; c++) fprintf(to, "%s ", cli_last_word(*c));
    fputs("--help --version' ;;\n", to);
    visit_typed(cli_commands, print_shell_words, to);
    fputs("    esac\n", to);
}

/* The command is the first word, and the second if the first has subcommands. */
static void print_shell_command(FILE *to)
{
    fputs("    case \"$first\" in\n    ", to);
    bool started = false;
    for (const cli_command *const *c = cli_commands; *c; c++) {
        if (!has_subcommands(*c)) continue;
        fprintf(to, "%s%s", started ? "|" : "", cli_last_word(*c));
        started = true;
    }
    fputs(") command=\"$first${second:+ $second}\" ;;\n    *) command=$first ;;\n    esac\n", to);
}

static void print_bash(FILE *to)
{
    fputs("# bash completions of mica: mica completions bash\n"
          "_mica_words()\n{\n    local first=$1 second=$2 previous=$3 command\n    words=''\n",
          to);
    print_shell_command(to);
    print_shell_cases(to);
    fputs("}\n"
          "_mica()\n{\n    local current=${COMP_WORDS[COMP_CWORD]} words='' first='' second=''\n"
          "    [ \"$COMP_CWORD\" -gt 1 ] && first=${COMP_WORDS[1]}\n"
          "    [ \"$COMP_CWORD\" -gt 2 ] && second=${COMP_WORDS[2]}\n"
          "    _mica_words \"$first\" \"$second\" \"${COMP_WORDS[COMP_CWORD-1]}\"\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$current\"))\n}\n"
          "complete -o filenames -F _mica mica\n",
          to);
}

static void print_zsh(FILE *to)
{
    fputs("#compdef mica\n# zsh completions of mica: mica completions zsh\n"
          "_mica_words()\n{\n    local first=$1 second=$2 previous=$3 command\n    words=''\n",
          to);
    print_shell_command(to);
    print_shell_cases(to);
    fputs("}\n"
          "_mica()\n{\n    local first='' second='' typed=(\"${(@)words}\") at=$CURRENT\n    local words=''\n"
          "    (( at > 2 )) && first=$typed[2]\n    (( at > 3 )) && second=$typed[3]\n"
          "    _mica_words \"$first\" \"$second\" \"$typed[at-1]\"\n"
          "    compadd -- ${=words} || _files\n}\n"
          "if [ \"$funcstack[1]\" = _mica ]; then _mica \"$@\"; else compdef _mica mica; fi\n",
          to);
}

/* ------------------------------------------------------------------ fish --- */

static void print_fish_quoted(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') fputc('\\', to);
        fputc(*text, to);
    }
    fputc('\'', to);
}

/* The condition that the words of this command were typed. */
static void print_fish_condition(FILE *to, const cli_command *c)
{
    const char *words = words_of(c), *space = strchr(words, ' ');
    fprintf(to, "complete -c mica -n '__fish_seen_subcommand_from %.*s",
            (int)(space ? space - words : (int)strlen(words)), words);
    if (space) fprintf(to, "; and __fish_seen_subcommand_from %s", space + 1);
    fputs("' ", to);
}

static void print_fish_options(FILE *to, const cli_command *c)
{
    cli_option o;
    for (const cli_command *const *sub = has_subcommands(c) ? c->subcommands : NULL; sub && *sub; sub++) {
        print_fish_condition(to, c);
        fprintf(to, "-f -a %s -d ", cli_last_word(*sub));
        print_fish_quoted(to, (*sub)->summary);
        fputc('\n', to);
    }
    for (size_t i = 0; cli_option_at(c, i, &o); i++) {
        print_fish_condition(to, c);
        fprintf(to, "-l %s", o.name + 2);
        if (o.letter) fprintf(to, " -s %s", o.letter + 1);
        if (is_value_list(&o)) {
            fputs(" -x -a '", to);
            print_words(to, o.value);
            fputc('\'', to);
        } else if (o.kind == CLI_PATH) fputs(" -r -F", to);
        else if (o.kind != CLI_FLAG) fputs(" -x", to);
        fputs(" -d ", to);
        print_fish_quoted(to, o.text);
        fputc('\n', to);
    }
}

static void print_fish(FILE *to)
{
    fputs("# fish completions of mica: mica completions fish\n", to);
    for (const cli_command *const *c = cli_commands; *c; c++) {
        fprintf(to, "complete -c mica -n __fish_use_subcommand -f -a %s -d ", cli_last_word(*c));
        print_fish_quoted(to, (*c)->summary);
        fputc('\n', to);
    }
    visit_typed(cli_commands, print_fish_options, to);
}

bool cli_print_completions(FILE *to, const char *shell)
{
    if (strcmp(shell, "bash") == 0) print_bash(to);
    else if (strcmp(shell, "zsh") == 0) print_zsh(to);
    else if (strcmp(shell, "fish") == 0) print_fish(to);
    else return false;
    return true;
}
