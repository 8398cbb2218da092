/* SIGSEGV, SIGBUS, SIGFPE and SIGILL of a thread that runs a kernel end the run. The
 * handler runs on a separate stack, records what happened and switches to the stack
 * on which the OS thread waits for the threadgroup. Other faults are passed to the
 * previous handler. The watchdog is a thread that checks, four times a second, the CPU
 * time (not the wall time: machines are busy) of the threads that run kernels, and sends
 * SIGURG to a thread that exceeds its limit. */
#include "signals.h"

#include "../msl/text.h"
#include "lines.h"
#include "../settings/settings.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

enum { SIGNAL_STACK = 64 * 1024 };

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGURG};
enum { FAULTS = sizeof faults / sizeof *faults };
static struct sigaction before[FAULTS];

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t watch_some = PTHREAD_COND_INITIALIZER;
static sm_engine *watched[256];
static int watched_count;
static bool watching;

static const void *fault_pc(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (const void *)context->uc_mcontext.gregs[REG_RIP];
#else
    return (const void *)context->uc_mcontext.pc;
#endif
}

/* Returns whether the address is in the guard page before a stack. Pages have up to 64 KB. */
static bool below(const char *address, const char *stack) { return address < stack && address >= stack - 65536; }

/* Returns whether the kernel has a threadgroup argument whose length was not set. */
static bool without_memory(const sm_engine *e)
{
    for (int i = 0; i < e->module->arguments_count; i++) {
        const sm_module_argument *a = &e->module->arguments[i];
        if (a->kind == 1 && a->needed && !e->local_length[a->index]) return true;
    }
    return false;
}

static void report_fault(sm_engine *e, int number, const siginfo_t *info, const void *pc)
{
    char where[96], line[160], near[120];
    sm_engine_where(e, e->current, where);
    sm_line_of(e->kernel, (const char *)pc + 1, line, sizeof line); /* +1: this instruction, not the one before */
    const char *label = *line ? line : e->label;
    if (number == SIGFPE) {
        sm_set_message(&e->message, "%s: %s: integer division by zero in %s", label, e->label, where);
        return;
    }
    if (number == SIGURG) {
        sm_set_message(&e->message, "%s: %s: the kernel did not end in time (SM_TIMEOUT); it was in %s", label,
                       e->label, where);
        return;
    }
    const char *address = info->si_addr;
    if (below(address, e->fibers[e->fiber].stack) || below(address, e->fibers[e->fiber].arrays))
        sm_set_message(&e->message, "%s: %s: the stack of %s is full: too many or too large variables", label, e->label,
                       where);
    else if ((uintptr_t)address < SM_MAX_THREADGROUP_BYTES && info->si_code != SI_KERNEL && without_memory(e))
        sm_set_message(&e->message,
                       "%s: %s: access to threadgroup memory that has no length (setThreadgroupMemoryLength) in %s",
                       label, e->label, where);
    else
        sm_set_message(&e->message, "%s: %s: access to address %p, outside all buffers, in %s%s", label, e->label,
                       (const void *)address, where, sm_buffer_near(e, address, near, sizeof near));
}

static void handler(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    sm_engine *e = sm_current;
    bool ours = e && atomic_load(&e->inside) && pthread_equal(e->thread, pthread_self());
    if (ours && number == SIGURG) ours = atomic_load(&e->overdue);
    const void *pc = fault_pc(context);
    /* Code of the runtime itself (for example the allocator) must not be interrupted: the watchdog signals again. */
    if (ours && number == SIGURG && !sm_in_module(e->kernel, pc)) return;
    if (ours) {
        report_fault(e, number, info, pc);
        sm_engine_stop(e, number == SIGURG ? SM_TIMEOUT : SM_FAULT);
    }
    errno = saved;
    for (int i = 0; i < FAULTS; i++) {
        if (faults[i] != number) continue;
        if (before[i].sa_flags & SA_SIGINFO) {
            before[i].sa_sigaction(number, info, context);
        } else if (before[i].sa_handler == SIG_DFL) {
            if (number == SIGURG) return;
            signal(number, SIG_DFL); /* returning repeats the fault, now with the default action */
        } else if (before[i].sa_handler != SIG_IGN) {
            before[i].sa_handler(number);
        }
    }
}

static double cpu_seconds(pthread_t thread)
{
    clockid_t clock;
    struct timespec t;
    if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &t)) return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *watch(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&watch_lock);
    for (;;) {
        while (!watched_count) pthread_cond_wait(&watch_some, &watch_lock);
        for (int i = 0; i < watched_count; i++) {
            sm_engine *e = watched[i];
            if (e->deadline > 0 && cpu_seconds(e->thread) > e->deadline) {
                atomic_store(&e->overdue, true);
                pthread_kill(e->thread, SIGURG);
            }
        }
        pthread_mutex_unlock(&watch_lock);
        nanosleep(&(struct timespec){0, 250000000}, NULL);
        pthread_mutex_lock(&watch_lock);
    }
    return NULL;
}

/* Signals for other threads must not be delivered to the watchdog. */
static bool start_watchdog(void)
{
    sigset_t all, old;
    pthread_t thread;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool good = pthread_attr_init(&attributes) == 0;
    if (good) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        good = pthread_create(&thread, &attributes, watch, NULL) == 0;
        pthread_attr_destroy(&attributes);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return good;
}

static bool install(void)
{
    for (int i = 0; i < FAULTS; i++) {
        struct sigaction now;
        if (sigaction(faults[i], NULL, &now)) return false;
        if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handler) continue;
        before[i] = now;
        struct sigaction ours = {0};
        ours.sa_sigaction = handler;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&ours.sa_mask);
        if (sigaction(faults[i], &ours, NULL)) return false;
    }
    return true;
}

bool sm_signals_enter(sm_engine *e, char **message)
{
    if (!e->signal_stack) {
        void *stack = mmap(NULL, SIGNAL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack == MAP_FAILED) {
            sm_set_message(message, "out of memory");
            return false;
        }
        e->signal_stack = stack;
    }
    e->thread = pthread_self();
    atomic_store(&e->overdue, false);
    const double seconds = sm_setting_seconds(SM_SET_TIMEOUT, 20);
    e->deadline = seconds > 0 ? cpu_seconds(e->thread) + seconds : 0;
    stack_t stack = {.ss_sp = e->signal_stack, .ss_size = SIGNAL_STACK}, old;
    sigaltstack(&stack, &old);
    pthread_mutex_lock(&watch_lock);
    bool good = install();
    if (!watching) watching = good = good && start_watchdog();
    if (good && watched_count < 256) {
        watched[watched_count++] = e;
        if (watched_count == 1) pthread_cond_signal(&watch_some);
    }
    pthread_mutex_unlock(&watch_lock);
    if (!good) sm_set_message(message, "softmetal cannot start its watchdog");
    e->old_stack = old;
    return good;
}

void sm_signals_leave(sm_engine *e)
{
    pthread_mutex_lock(&watch_lock);
    for (int i = 0; i < watched_count; i++)
        if (watched[i] == e) watched[i--] = watched[--watched_count];
    pthread_mutex_unlock(&watch_lock);
    sigaltstack(&e->old_stack, NULL);
}

void sm_signals_unblock(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < FAULTS; i++) sigaddset(&set, faults[i]);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
