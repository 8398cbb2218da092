/* See signals.h. */
#include "core/signals.h"

#include <mica.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include "core/cli.h"

static volatile sig_atomic_t noted; /* signal number, or 0 */
static int watchers;

static const int stops[] = {SIGINT, SIGTERM}; /* the signals that a command can watch for */
enum { N_STOPS = sizeof stops / sizeof stops[0] };
static struct sigaction before[N_STOPS];      /* handlers before the first watch */

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

static void handle_stops(void (*handler)(int))
{
    for (int i = 0; i < N_STOPS; i++) handle(stops[i], handler);
}

static void end_at_signal(int number)
{
    static const char why[] = "mica: a mapped file became shorter while it was read (SIGBUS); --no-mmap or MICA_MMAP=0 "
                              "reads files instead\n";
    if (number == SIGBUS) (void)!write(STDERR_FILENO, why, sizeof why - 1);
    mica_remove_temporaries();
    handle(number, SIG_DFL);
    (void)raise(number);
}

static void note_signal(int number)
{
    if (noted) end_at_signal(number);
    noted = number;
}

void cli_signals_init(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGBUS};
    struct sigaction inherited;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN) /* nohup ignores some */
            handle(numbers[i], end_at_signal);
}

void cli_signals_watch(void)
{
    if (watchers++ > 0) return;
    for (int i = 0; i < N_STOPS; i++) (void)sigaction(stops[i], NULL, &before[i]);
    handle_stops(note_signal);
}

void cli_signals_release(void)
{
    if (watchers == 0 || --watchers > 0) return;
    for (int i = 0; i < N_STOPS; i++) (void)sigaction(stops[i], &before[i], NULL);
}

bool cli_interrupted(void) { return noted != 0; }

void cli_interrupt_clear(void) { noted = 0; }

void cli_signals_ignore(void) { handle_stops(SIG_IGN); }

/* ---------------------------------------------------------------- prompt --- */

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
    handle_stops(leave_prompt);
}

void cli_signals_prompt_end(void) { handle_stops(watchers > 0 ? note_signal : end_at_signal); }

int cli_interrupt_code(void) { return noted == SIGTERM ? CLI_TERMINATED : CLI_INTERRUPTED; }
