/* A progress line on stderr, if stderr is a terminal. While it is active, Ctrl-C and
 * SIGTERM let the command stop cleanly. */
#ifndef MICA_CLI_PROGRESS_H
#define MICA_CLI_PROGRESS_H

#include <mica.h>
#include <stdbool.h>
#include <stdint.h>

/* Replaces the current line, if stderr is a terminal that can erase lines (TERM is not
 * "dumb"). The text is cut at the terminal width: a wrapped line could not be erased. */
void cli_show_line(const char *format, ...) MICA_PRINTF(1, 2);
/* Erases the line; call it before other output. */
void cli_clear_line(void);
bool cli_shows_lines(void);

typedef struct cli_progress {
    double began, last; /* seconds */
} cli_progress;

/* Watches for signals (core/signals.h) until cli_progress_end. */
void cli_progress_begin(cli_progress *p);
/* Returns false after a signal. */
bool cli_progress_step(cli_progress *p, uint64_t done, uint64_t total, const char *what);
/* Erases the line; true after a signal. */
bool cli_progress_end(cli_progress *p);

#endif
