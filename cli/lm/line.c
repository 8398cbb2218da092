/* See line.h. */
#include "lm/line.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/signals.h"

enum { HISTORY_LINES = 1000 };

/* --------------------------------------------------------------- history --- */

/* Creates the folder of a file and its parent folders. */
static void make_folders(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = '\0';
        (void)mkdir(path, 0700);
        *p = '/';
    }
}

static void choose_history(cli_lines *l)
{
    const char *set = getenv("MICA_HISTORY"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const size_t room = sizeof l->history;
    int n = -1;
    if (set && strcmp(set, "off") == 0) return;
    if (set && *set) n = snprintf(l->history, room, "%s", set);
    else if (state && state[0] == '/') n = snprintf(l->history, room, "%s/mica/chat_history", state);
    else if (home && *home) n = snprintf(l->history, room, "%s/.local/state/mica/chat_history", home);
    if (n <= 0 || (size_t)n >= room) {
        l->history[0] = '\0';
        return;
    }
    make_folders(l->history);
    const int file = open(l->history, O_CREAT | O_APPEND | O_WRONLY, 0600); /* only the user may read it */
    if (file >= 0) close(file);
    else l->history[0] = '\0';
}

static void remember_line(cli_lines *l, const char *line)
{
    if (!l->readline || !*line) return;
    l->add_history(line);
    if (l->history[0]) (void)l->write_history(l->history);
}

/* --------------------------------------------------------------- libedit --- */

/* Copies the address: ISO C has no conversion from void * to a function pointer. */
static bool find_function(void *library, const char *name, void *function, size_t size)
{
    void *const found = dlsym(library, name);
    memcpy(function, &found, size);
    return found != NULL;
}

static void load_libedit(cli_lines *l)
{
    static const char *const names[] = {"libedit.so.2", "libedit.so.0", "libedit.so", "libedit.3.dylib",
                                        "libedit.dylib"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !l->library; i++)
        l->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!l->library) return;
    const bool found = find_function(l->library, "readline", &l->readline, sizeof l->readline) &&
                       find_function(l->library, "add_history", &l->add_history, sizeof l->add_history) &&
                       find_function(l->library, "read_history", &l->read_history, sizeof l->read_history) &&
                       find_function(l->library, "write_history", &l->write_history, sizeof l->write_history) &&
                       find_function(l->library, "stifle_history", &l->stifle_history, sizeof l->stifle_history);
    if (!found) l->readline = NULL;
}

void cli_lines_open(cli_lines *l)
{
    *l = (cli_lines){.interactive = isatty(STDIN_FILENO) != 0};
    if (!l->interactive) return;
    const char *term = getenv("TERM"), *edit = getenv("MICA_EDIT");
    const bool off = edit && strcmp(edit, "0") == 0;
    if (!off && term && strcmp(term, "dumb") != 0) load_libedit(l);
    if (!l->readline) return;
    choose_history(l);
    l->stifle_history(HISTORY_LINES);
    if (l->history[0]) (void)l->read_history(l->history);
}

/* libedit stays loaded: it has registered functions that run at exit. */
void cli_lines_close(cli_lines *l)
{
    free(l->plain);
    free(l->message);
    *l = (cli_lines){.interactive = false};
}

/* ----------------------------------------------------------------- lines --- */

/* One line without its line break, which the caller frees; NULL: end of the input. */
static char *read_edited(cli_lines *l, const char *prompt)
{
    cli_signals_prompt_begin();
    char *line = l->readline(prompt);
    cli_signals_prompt_end();
    if (line) remember_line(l, line);
    return line;
}

/* NULL: end of the input, or an error in *state. */
static char *read_plain(cli_lines *l, const char *prompt, cli_line_state *state)
{
    size_t n = 0;
    if (l->interactive) fprintf(stderr, "%s", prompt);
    for (int c; (c = getchar()) != EOF;) {
        if (n + 2 > l->plain_cap) {
            if (n > CLI_LINE_LIMIT) {
                *state = CLI_LINE_TOO_LONG;
                return NULL;
            }
            char *grown = realloc(l->plain, 2 * n + 256);
            if (!grown) {
                *state = CLI_LINE_NO_MEMORY;
                return NULL;
            }
            l->plain = grown;
            l->plain_cap = 2 * n + 256;
        }
        l->plain[n++] = (char)c;
        if (c == '\n') break;
    }
    if (n == 0) return NULL;
    l->plain[n] = '\0';
    l->plain[strcspn(l->plain, "\r\n")] = '\0';
    return l->plain;
}

static bool append(cli_lines *l, const char *text, size_t n)
{
    if (l->n + n + 1 > l->cap) {
        const size_t cap = 2 * (l->n + n) + 256;
        char *grown = realloc(l->message, cap);
        if (!grown) return false;
        l->message = grown;
        l->cap = cap;
    }
    memcpy(l->message + l->n, text, n);
    l->n += n;
    l->message[l->n] = '\0';
    return true;
}

static bool ends_block(const char *line, size_t n) { return n >= 3 && strcmp(line + n - 3, "\"\"\"") == 0; }

/* Adds one line to the message. Sets *more if the message continues. False: out of memory. */
static bool add_line(cli_lines *l, const char *line, bool *block, bool *more)
{
    const bool begins = !*block && l->n == 0 && strncmp(line, "\"\"\"", 3) == 0, inside = *block || begins;
    const char *text = begins ? line + 3 : line;
    size_t n = strlen(text);
    const bool ended = inside && ends_block(text, n), continued = !inside && n > 0 && text[n - 1] == '\\';
    const bool opened_only = begins && n == 0;
    if (ended) n -= 3;
    if (continued) n--;
    *block = inside && !ended;
    *more = *block || continued;
    if (!append(l, text, n)) return false;
    if (*more && !opened_only) return append(l, "\n", 1);
    if (ended && l->n > 0 && l->message[l->n - 1] == '\n') l->message[--l->n] = '\0';
    return true;
}

cli_line_state cli_read_message(cli_lines *l)
{
    bool block = false, more = true;
    l->n = 0;
    for (const char *prompt = "> "; more; prompt = "... ") {
        cli_line_state state = CLI_LINE_END;
        char *line = l->readline ? read_edited(l, prompt) : read_plain(l, prompt, &state);
        if (!line) return state == CLI_LINE_END && l->n && !cli_interrupted() ? CLI_LINE_READ : state;
        const bool added = add_line(l, line, &block, &more);
        if (l->readline) free(line);
        if (!added) return CLI_LINE_NO_MEMORY;
        if (l->n > CLI_LINE_LIMIT) return CLI_LINE_TOO_LONG;
    }
    return CLI_LINE_READ;
}
