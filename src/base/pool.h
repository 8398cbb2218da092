/* A fork-join thread pool. The caller runs tasks too; workers spin for a short,
 * bounded time after a job and then sleep. If the pool is busy with the job of
 * another thread, the caller does not wait but runs all its tasks itself. So many
 * host threads never oversubscribe the machine.
 *
 * The caller splits work into tasks. The split must not depend on the number of
 * threads, so that results are equal for any number. */
#ifndef MICA_BASE_POOL_H
#define MICA_BASE_POOL_H

#include "base/status.h"

typedef struct mica__pool mica__pool;

/* threads counts the caller: 1 makes a pool without workers. */
mica_status mica__pool_new(int threads, mica__pool **out);
void mica__pool_free(mica__pool *pool);
int mica__pool_threads(const mica__pool *pool);

/* Calls fn(context, task) for task = 0 ... n-1, in any order, on any thread, and
 * returns when all are done. pool may be NULL: the caller runs all tasks. */
typedef void (*mica__task_fn)(void *context, int64_t task);
void mica__pool_run(mica__pool *pool, int64_t n, mica__task_fn fn, void *context);

#endif
