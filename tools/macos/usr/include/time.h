/* See tools/macos/README.md. */
#ifndef MICA_MACOS_TIME_H
#define MICA_MACOS_TIME_H
#include <sys/types.h>

typedef enum {
    CLOCK_REALTIME = 0,
    CLOCK_MONOTONIC_RAW = 4,
    CLOCK_MONOTONIC = 6,
    CLOCK_PROCESS_CPUTIME_ID = 12,
    CLOCK_THREAD_CPUTIME_ID = 16
} clockid_t;

struct tm {
    int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst;
    long tm_gmtoff;
    char *tm_zone;
};

int clock_gettime(clockid_t clock, struct timespec *out);
struct tm *gmtime_r(const time_t *time, struct tm *out);
struct tm *localtime_r(const time_t *time, struct tm *out);
int nanosleep(const struct timespec *wish, struct timespec *left);
size_t strftime(char *to, size_t cap, const char *format, const struct tm *time);
time_t time(time_t *out);

#endif
