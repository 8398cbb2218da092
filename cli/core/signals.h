/* SIGINT (Ctrl-C) and SIGTERM, for all commands. A command that watches for them ends
 * cleanly: it saves its results, removes temporary files, and exits with 130 or 143. */
#ifndef MICA_CLI_SIGNALS_H
#define MICA_CLI_SIGNALS_H

#include <stdbool.h>

/* Call at the start of the program. After it a signal removes temporary files before it ends
 * the process. */
void cli_signals_init(void);
/* After this call a signal only sets a flag; a second one ends the process at once. Calls
 * nest: the last cli_signals_release restores the previous handlers. */
void cli_signals_watch(void);
void cli_signals_release(void);
/* True if the flag is set. */
bool cli_interrupted(void);
/* Clears the flag and watches for the next signal. */
void cli_interrupt_clear(void);
/* Ignores both signals until the process ends, so that they cannot interrupt the final save. */
void cli_signals_ignore(void);
/* Call them around reading a line from the terminal. In between a signal restores the terminal
 * mode of the begin call and ends the process. */
void cli_signals_prompt_begin(void);
void cli_signals_prompt_end(void);
/* CLI_INTERRUPTED, or CLI_TERMINATED if the signal was SIGTERM. */
int cli_interrupt_code(void);

#endif
