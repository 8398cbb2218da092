/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SYS_RESOURCE_H
#define MICA_MACOS_SYS_RESOURCE_H
#include <sys/types.h>

struct rusage {
    struct timeval ru_utime, ru_stime;
    long ru_maxrss, ru_ixrss, ru_idrss, ru_isrss, ru_minflt, ru_majflt, ru_nswap, ru_inblock, ru_oublock, ru_msgsnd,
        ru_msgrcv, ru_nsignals, ru_nvcsw, ru_nivcsw;
};

#define RUSAGE_SELF 0

int getrusage(int who, struct rusage *out);

#endif
