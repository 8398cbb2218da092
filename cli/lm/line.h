/* Reads lines from the user, with editing and history if libedit is installed, else with
 * the terminal's line mode. Input that is not a terminal is read line by line. */
#ifndef MICA_CLI_LINE_H
#define MICA_CLI_LINE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_lines {
    bool interactive; /* stdin is a terminal                                         */
    void *library;    /* libedit, or NULL                                            */
    char *(*readline)(const char *prompt);
    int (*add_history)(const char *line);
    int (*read_history)(const char *path);
    int (*write_history)(const char *path);
    void (*stifle_history)(int most);
    char history[1024]; /* the path of the history file; "": no file                 */
    char *plain;        /* line without editing                                        */
    size_t plain_cap;
    char *message;      /* the last message                                          */
    size_t n, cap;
} cli_lines;

/* MICA_EDIT=0: libedit is not used. MICA_HISTORY: the path of the history file, or off. */
void cli_lines_open(cli_lines *l);
void cli_lines_close(cli_lines *l);

typedef enum cli_line_state { CLI_LINE_READ, CLI_LINE_END, CLI_LINE_TOO_LONG, CLI_LINE_NO_MEMORY } cli_line_state;

/* The longest message in bytes: standard input may be endless. */
enum { CLI_LINE_LIMIT = 1 << 20 };

/* Reads a message into l->message, without the line break at its end. A line that ends in a
 * backslash continues on the next line. A line that begins with """ begins a block, which
 * ends with the next """ at the end of a line. CLI_LINE_END: the end of the input, or a signal. */
cli_line_state cli_read_message(cli_lines *l);

#endif
