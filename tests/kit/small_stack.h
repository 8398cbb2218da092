/* Runs a function on a thread with a small stack and a wide guard area below it. A frame that
 * leaves the stack is a reported failure, not a write into other memory.
 *
 * The C library uses part of the stack: glibc stores the thread's descriptor and the static
 * thread-local variables at its top. It does not start a thread with less than PTHREAD_STACK_MIN
 * bytes (128 KB on AArch64). Stack beyond the requested size is used up before the function begins.
 * Sanitizers enlarge frames and run their own code on the same stack, so the size is
 * SANITIZED_BYTES there. */
#ifndef MICA_TEST_SMALL_STACK_H
#define MICA_TEST_SMALL_STACK_H

#include <alloca.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sanitized.h"
#include "test.h"

enum {
    SMALL_STACK = 64 * 1024,
    SMALL_STACK_GUARD = 4 * 1024 * 1024, /* larger than any frame, so that no frame can skip it */
    SANITIZED_BYTES = 1024 * 1024
};

typedef struct small_stack {
    void (*run)(void *user);
    void *user;
    char *low;                  /* lowest byte of the usable part                       */
    size_t nbytes, excess;
} small_stack;

static const char *small_stack_guard;

/* Uses only functions that are safe in a signal handler. */
static inline void small_stack_overflow(int signal, siginfo_t *info, void *context)
{
    static const char words[] = "FAIL: the stack of the thread overflows\n0 passed, 1 failed, 0 skipped\n";
    const char *at = info->si_addr;
    (void)signal, (void)context;
    if (at < small_stack_guard || at >= small_stack_guard + SMALL_STACK_GUARD + SANITIZED_BYTES) abort();
    if (write(STDOUT_FILENO, words, sizeof words - 1) < 0) _exit(2);
    _exit(1);
}

static inline void *small_stack_main(void *argument)
{
    static char other[64 * 1024]; /* for the handler */
    const small_stack *s = argument;
    const stack_t alternative = {.ss_sp = other, .ss_size = sizeof other};
    if (sigaltstack(&alternative, NULL) != 0) abort();
    volatile char *used = alloca(s->excess + 1);
    used[0] = 0;
    s->run(s->user);
    return NULL;
}

/* Runs run(user) on a stack of nbytes. Returns the number of used bytes; 0 under sanitizers. */
static inline size_t small_stack_run(size_t nbytes, void (*run)(void *), void *user)
{
    enum { MARK = 0x5a };
#ifdef SANITIZED
    const size_t least = SANITIZED_BYTES;
#else
    const size_t least = (size_t)PTHREAD_STACK_MIN;
    const struct sigaction action = {.sa_sigaction = small_stack_overflow, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    if (sigaction(SIGSEGV, &action, NULL) != 0 || sigaction(SIGBUS, &action, NULL) != 0) abort();
#endif
    small_stack s = {.run = run, .user = user, .nbytes = nbytes > least ? nbytes : least};
#ifndef SANITIZED
    s.excess = s.nbytes - nbytes;
#endif
    char *memory = mmap(NULL, SMALL_STACK_GUARD + s.nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (memory == MAP_FAILED) abort();
    small_stack_guard = memory;
    s.low = memory + SMALL_STACK_GUARD;
    if (mprotect(s.low, s.nbytes, PROT_READ | PROT_WRITE) != 0) abort();
    memset(s.low, MARK, s.nbytes);
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    fflush(stdout);
    if (pthread_attr_setstack(&attr, s.low, s.nbytes) != 0 || pthread_create(&thread, &attr, small_stack_main, &s) != 0)
        abort();
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    size_t free_bytes = 0;
    while (free_bytes < s.nbytes && s.low[free_bytes] == MARK) free_bytes++;
    munmap(memory, SMALL_STACK_GUARD + s.nbytes);
    return s.nbytes - s.excess > free_bytes ? s.nbytes - s.excess - free_bytes : 0;
}

#endif
