/* A line of progress on stderr, if stderr is a terminal. While it is shown, Ctrl-C and
 * SIGTERM stop the work in good order. */
#ifndef MICA_CLI_PROGRESS_H
#define MICA_CLI_PROGRESS_H

#include <mica.h>
#include <stdbool.h>
#include <stdint.h>

/* Writes over the last line, if stderr is a terminal that can erase one (TERM is not
 * "dumb"), and not beyond its width: a wrapped line could not be erased. */
void cli_show_line(const char *format, ...) MICA_PRINTF(1, 2);
/* Erases it; call it before anything else is written. */
void cli_clear_line(void);
bool cli_shows_lines(void);

typedef struct cli_progress {
    double began, last; /* seconds */
} cli_progress;

/* Watches for signals (core/signals.h) until cli_progress_end. */
void cli_progress_begin(cli_progress *p);
/* False: the user has interrupted. */
bool cli_progress_step(cli_progress *p, uint64_t done, uint64_t total, const char *what);
/* Removes the line; true if the user has interrupted. */
bool cli_progress_end(cli_progress *p);

#endif
