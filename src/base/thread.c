/* See thread.h. */
#include "base/thread.h"

#include <stddef.h>

/* The library needs less than 48 KB (tests/api/test_small_stack.c). The C library stores the
 * program's thread-local variables in the same memory, and sanitizers enlarge stack frames. */
static const size_t thread_stack_least = 512 * 1024;

int mica__thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);
    if (error) return error;
    size_t nbytes = 0;
    (void)pthread_attr_getstacksize(&attr, &nbytes); /* the program's default */
    if (nbytes < thread_stack_least) error = pthread_attr_setstacksize(&attr, thread_stack_least);
    if (!error) error = pthread_create(thread, &attr, run, argument);
    pthread_attr_destroy(&attr);
    return error;
}
