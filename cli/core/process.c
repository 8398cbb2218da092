/* See process.h. */
#include "core/process.h"

#include <math.h>
#include <sys/resource.h>
#include <time.h>

double cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double cli_peak_memory(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return NAN;
#if defined(__APPLE__)
    return (double)usage.ru_maxrss;
#else
    return 1024 * (double)usage.ru_maxrss;
#endif
}

uint64_t cli_hash(const void *data, size_t nbytes)
{
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < nbytes; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}
