/* Progress of commands that read or write large files. */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

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
    *p = (cli_progress){.shown = isatty(STDERR_FILENO) != 0, .began = now_seconds()};
    interrupted = 0;
    struct sigaction action = {.sa_handler = on_progress_interrupt};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, &p->before);
}

bool cli_progress_step(cli_progress *p, uint64_t done, uint64_t total, const char *what)
{
    const double now = now_seconds(), spent = now - p->began;
    if (p->shown && now - p->last > 0.1 && spent > 0.5) {
        const double share = total ? (double)done / (double)total : 1;
        fprintf(stderr, "\r\033[K%5.1f %%  %.0f MB/s  %.0f s left  %.40s", 100 * share, (double)done / spent * 1e-6,
                share > 0 ? spent / share - spent : 0, what);
        p->last = now;
    }
    return !interrupted;
}

bool cli_progress_end(cli_progress *p)
{
    if (p->shown && p->last > 0) fputs("\r\033[K", stderr);
    (void)sigaction(SIGINT, &p->before, NULL);
    return interrupted;
}
