/* Starts the library's threads. Their stacks have at least the size that the library needs, also
 * where the default is small (128 KB with musl). */
#ifndef MICA_BASE_THREAD_H
#define MICA_BASE_THREAD_H

#include <pthread.h>

/* Like pthread_create: returns 0 or an error number. */
int mica__thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
