/* A fork-join thread pool. The caller works too; workers spin for a short,
 * bounded time after a job and then sleep. A pool that is busy with another
 * thread's job is not waited for: the caller then does all its work itself,
 * so many host threads never oversubscribe the machine.
 *
 * How work is cut into tasks is the caller's business and must not depend on
 * the number of threads: that is what makes results equal for any count. */
#ifndef MICA_BASE_POOL_H
#define MICA_BASE_POOL_H

#include "base/status.h"

typedef struct mica__pool mica__pool;

/* threads counts the caller: 1 makes a pool without workers. */
mica_status mica__pool_new(int threads, mica__pool **out);
void mica__pool_free(mica__pool *pool);
int mica__pool_threads(const mica__pool *pool);

/* fn(context, task) for task = 0 ... n-1, in any order, on any thread. Returns
 * when all are done. pool may be NULL. */
typedef void (*mica__task_fn)(void *context, int64_t task);
void mica__pool_run(mica__pool *pool, int64_t n, mica__task_fn fn, void *context);

#endif
