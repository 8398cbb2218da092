/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SYS_RESOURCE_H
#define MICA_MACOS_SYS_RESOURCE_H
#include <sys/types.h>

struct rusage {
    struct timeval ru_utime, ru_stime;
    long ru_maxrss, ru_ixrss, ru_idrss, ru_isrss, ru_minflt, ru_majflt, ru_nswap, ru_inblock, ru_oublock, ru_msgsnd,
        ru_msgrcv, ru_nsignals, ru_nvcsw, ru_nivcsw;
};

typedef uint64_t rlim_t;

struct rlimit {
    rlim_t rlim_cur, rlim_max;
};

#define RLIMIT_FSIZE 1
#define RUSAGE_SELF 0

int getrlimit(int what, struct rlimit *out);
int setrlimit(int what, const struct rlimit *to);
int getrusage(int who, struct rusage *out);

#endif
