/* Threads of the library's own. Their stacks have the same size on every system: the default
 * ranges from 128 KB (musl) to 8 MB. */
#ifndef MICA_BASE_THREAD_H
#define MICA_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create: 0, or an error number. */
int mica__thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
