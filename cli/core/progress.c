/* Lines that are written over, and progress of commands that read or write large files. */
#include "core/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------- lines -- */

static bool line_shown;

bool cli_shows_lines(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static size_t terminal_columns(void)
{
    struct winsize size = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

void cli_show_line(const char *format, ...)
{
    char text[256];
    va_list args;
    if (!cli_shows_lines()) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "\r\033[K%.*s", (int)terminal_columns() - 1, text);
    line_shown = true;
}

void cli_clear_line(void)
{
    if (line_shown) fputs("\r\033[K", stderr);
    line_shown = false;
}

/* ---------------------------------------------------------------- progress -- */

static volatile sig_atomic_t interrupted;

static void on_progress_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static double now_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void cli_progress_begin(cli_progress *p)
{
    *p = (cli_progress){.began = now_seconds()};
    interrupted = 0;
    struct sigaction action = {.sa_handler = on_progress_interrupt};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, &p->before);
}

bool cli_progress_step(cli_progress *p, uint64_t done, uint64_t total, const char *what)
{
    const double now = now_seconds(), spent = now - p->began;
    if (now - p->last > 0.1 && spent > 0.5) {
        const double share = total ? (double)done / (double)total : 1;
        cli_show_line("%5.1f %%  %.0f MB/s  %.0f s left  %.40s", 100 * share, (double)done / spent * 1e-6,
                      share > 0 ? spent / share - spent : 0, what);
        p->last = now;
    }
    return !interrupted;
}

bool cli_progress_end(cli_progress *p)
{
    cli_clear_line();
    (void)sigaction(SIGINT, &p->before, NULL);
    return interrupted;
}
