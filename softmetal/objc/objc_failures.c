/* Records the errors of a program for tests: see softmetal.h. */
#include "objc/objc_runtime.h"
#include "softmetal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t failures_lock = PTHREAD_MUTEX_INITIALIZER;
static long failures_count;
static char failures_last[2048];

void sm_failed(const char *format, ...)
{
    char text[sizeof failures_last];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    pthread_mutex_lock(&failures_lock);
    failures_count++;
    /* A loop that repeats the same error prints one line. */
    if (strcmp(text, failures_last) != 0) fprintf(stderr, "softmetal: %s\n", text);
    memcpy(failures_last, text, sizeof text);
    pthread_mutex_unlock(&failures_lock);
}

long sm_failures(char *text, size_t size)
{
    pthread_mutex_lock(&failures_lock);
    const long count = failures_count;
    if (text != NULL && size > 0) snprintf(text, size, "%s", failures_last);
    failures_count = 0;
    failures_last[0] = 0;
    pthread_mutex_unlock(&failures_lock);
    return count;
}
