/* SIGINT (Ctrl-C) and SIGTERM, for all commands. A command that watches for them ends
 * in good order: it keeps what it has, removes temporary files, and exits with 130 or 143. */
#ifndef MICA_CLI_SIGNALS_H
#define MICA_CLI_SIGNALS_H

#include <stdbool.h>

/* At the start of the program: from here on a signal removes temporary files before it ends the
 * process. */
void cli_signals_init(void);
/* From here on a signal is only noted; a second one ends the process at once. Calls
 * nest: the last cli_signals_release restores the default. */
void cli_signals_watch(void);
void cli_signals_release(void);
/* Was a signal noted? */
bool cli_interrupted(void);
/* Forgets a noted signal and watches for the next. */
void cli_interrupt_clear(void);
/* From here on both signals are ignored, until the process ends: what is saved now is saved. */
void cli_signals_ignore(void);
/* Between begin and end a line is read from the terminal: a signal restores the mode that the
 * terminal had at begin and ends the process. */
void cli_signals_prompt_begin(void);
void cli_signals_prompt_end(void);
/* CLI_INTERRUPTED, or CLI_TERMINATED if the signal was SIGTERM. */
int cli_interrupt_code(void);

#endif
