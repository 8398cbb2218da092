/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SIGNAL_H
#define MICA_MACOS_SIGNAL_H
#include <sys/types.h>

typedef uint32_t sigset_t;
typedef int sig_atomic_t;
union sigval {
    int sival_int;
    void *sival_ptr;
};
typedef struct siginfo {
    int si_signo, si_errno, si_code;
    pid_t si_pid;
    uid_t si_uid;
    int si_status;
    void *si_addr;
    union sigval si_value;
    long si_band;
    unsigned long reserved[7];
} siginfo_t;
typedef struct stack {
    void *ss_sp;
    size_t ss_size;
    int ss_flags;
} stack_t;
struct sigaction {
    union {
        void (*sa_handler)(int);
        void (*sa_sigaction)(int, siginfo_t *, void *);
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
#define SIGKILL 9
#define SIGBUS 10
#define SIGSEGV 11
#define SIGPIPE 13
#define SIGTERM 15
#define SIGXFSZ 25
#define SIGPROF 27
#define SIG_DFL ((void (*)(int))0)
#define SIG_IGN ((void (*)(int))1)
#define SIG_SETMASK 3
#define SA_ONSTACK 0x0001
#define SA_SIGINFO 0x0040
#define SA_RESETHAND 0x0004
#define SA_RESTART 0x0002

int kill(pid_t process, int number);
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int sigaltstack(const stack_t *to, stack_t *old);
int sigaction(int number, const struct sigaction *action, struct sigaction *old);
int (sigdelset)(sigset_t *set, int number);
int (sigemptyset)(sigset_t *set);
int (sigfillset)(sigset_t *set);
void (*signal(int number, void (*handler)(int)))(int);
int raise(int number);
int kill(pid_t process, int number);

#endif
