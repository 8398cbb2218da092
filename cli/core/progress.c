/* See progress.h. */
#include "core/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/process.h"
#include "core/signals.h"

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

void cli_progress_begin(cli_progress *p)
{
    *p = (cli_progress){.began = cli_seconds()};
    cli_signals_watch();
}

bool cli_progress_step(cli_progress *p, uint64_t done, uint64_t total, const char *what)
{
    const double now = cli_seconds(), spent = now - p->began;
    if (now - p->last > 0.1 && spent > 0.5) {
        const double share = total ? (double)done / (double)total : 1;
        cli_show_line("%5.1f %%  %.0f MB/s  %.0f s left  %.40s", 100 * share, (double)done / spent * 1e-6,
                      share > 0 ? spent / share - spent : 0, what);
        p->last = now;
    }
    return !cli_interrupted();
}

bool cli_progress_end(cli_progress *p)
{
    (void)p;
    cli_clear_line();
    cli_signals_release();
    return cli_interrupted();
}
