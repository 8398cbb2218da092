/* See signals.h. */
#include "core/signals.h"

#include <signal.h>
#include <stddef.h>
#include <termios.h>
#include <unistd.h>

#include "core/cli.h"

static volatile sig_atomic_t noted; /* the number of the signal, or 0 */
static int watchers;

static void note_signal(int number) { noted = number; }

static void handle_both(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

void cli_signals_watch(void)
{
    if (watchers++ == 0) handle_both(note_signal, (int)SA_RESETHAND);
}

void cli_signals_release(void)
{
    if (watchers > 0 && --watchers == 0) handle_both(SIG_DFL, 0);
}

bool cli_interrupted(void) { return noted != 0; }

void cli_interrupt_clear(void)
{
    noted = 0;
    if (watchers > 0) handle_both(note_signal, (int)SA_RESETHAND);
}

void cli_signals_ignore(void) { handle_both(SIG_IGN, 0); }

static struct termios terminal_mode;
static bool has_terminal_mode;

static void leave_prompt(int number)
{
    if (has_terminal_mode) (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal_mode);
    if (write(STDERR_FILENO, "\n", 1) < 0) _exit(CLI_FAILED);
    _exit(number == SIGTERM ? CLI_TERMINATED : CLI_INTERRUPTED);
}

void cli_signals_prompt_begin(void)
{
    has_terminal_mode = tcgetattr(STDIN_FILENO, &terminal_mode) == 0;
    handle_both(leave_prompt, 0);
}

void cli_signals_prompt_end(void)
{
    if (watchers > 0) handle_both(note_signal, (int)SA_RESETHAND);
    else handle_both(SIG_DFL, 0);
}

int cli_interrupt_code(void) { return noted == SIGTERM ? CLI_TERMINATED : CLI_INTERRUPTED; }
