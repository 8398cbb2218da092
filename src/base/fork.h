/* Detects that this process was made by fork() after the library was first used.
 *
 * In such a child the threads of thread pools and streams do not exist, and another thread of the
 * parent may have held any lock. So objects store the fork count of the process that made them;
 * where it differs from the current one, nothing waits and no lock is taken: calls fail with
 * MICA_ERR_STATE, and freeing does nothing (the memory belongs to the copy that the child got of
 * the parent, and is freed with the process). */
#ifndef MICA_BASE_FORK_H
#define MICA_BASE_FORK_H

#include <stdatomic.h>

#include "base/status.h"

extern atomic_uint mica__fork_counter;

/* How many fork() calls are between the process that first called mica__fork_watch and this one. */
static inline unsigned mica__fork_count(void)
{
    return atomic_load_explicit(&mica__fork_counter, memory_order_relaxed);
}

/* Registers the handler that counts; cheap if it is registered already. */
mica_status mica__fork_watch(void);

/* MICA_ERR_STATE and its message, for a call (op) with an object of the parent. */
mica_status mica__fork_fail(const char *op);

#endif
