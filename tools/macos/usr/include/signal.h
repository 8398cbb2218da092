/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SIGNAL_H
#define MICA_MACOS_SIGNAL_H
#include <sys/types.h>

typedef uint32_t sigset_t;
typedef int sig_atomic_t;
struct sigaction {
    union {
        void (*sa_handler)(int);
    };
    sigset_t sa_mask;
    int sa_flags;
};

#define SIGHUP 1
#define SIGINT 2
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGFPE 8
#define SIGBUS 10
#define SIGSEGV 11
#define SIGPIPE 13
#define SIGTERM 15
#define SIGXFSZ 25
#define SIGPROF 27
#define SIG_DFL ((void (*)(int))0)
#define SIG_IGN ((void (*)(int))1)
#define SIG_SETMASK 3
#define SA_RESETHAND 0x0004
#define SA_RESTART 0x0002

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int sigaction(int number, const struct sigaction *action, struct sigaction *old);
int (sigdelset)(sigset_t *set, int number);
int (sigemptyset)(sigset_t *set);
int (sigfillset)(sigset_t *set);
void (*signal(int number, void (*handler)(int)))(int);
int raise(int number);
int kill(pid_t process, int number);

#endif
