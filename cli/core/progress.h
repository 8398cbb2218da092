/* A line of progress on stderr, if that is a terminal; and Ctrl-C as an end that
 * leaves nothing behind. */
#ifndef MICA_CLI_PROGRESS_H
#define MICA_CLI_PROGRESS_H

#include <signal.h>
#include <mica.h>
#include <stdbool.h>
#include <stdint.h>

/* Writes over the line before, if stderr is a terminal that can erase one (TERM is not
 * "dumb"), and no further than its width: a line that wraps could not be erased. */
void cli_show_line(const char *format, ...) MICA_PRINTF(1, 2);
/* Erases it; before anything else is written. */
void cli_clear_line(void);
bool cli_shows_lines(void);

typedef struct cli_progress {
    double began, last;
    struct sigaction before; /* what Ctrl-C did              */
} cli_progress;

/* From here on Ctrl-C only sets what cli_progress_step returns. */
void cli_progress_begin(cli_progress *p);
/* false: the user has interrupted. */
bool cli_progress_step(cli_progress *p, uint64_t done, uint64_t total, const char *what);
/* Removes the line, and Ctrl-C is what it was; true if the user has interrupted. */
bool cli_progress_end(cli_progress *p);

#endif
