/* Detects that this process was made by fork() after the library was first used.
 *
 * In such a child the threads of thread pools and streams do not exist, and another thread of the
 * parent may have held any lock. So objects store the fork count of the process that made them.
 * If it differs from the current count, calls do not wait and take no lock: they fail with
 * MICA_ERR_STATE, and freeing does nothing (the memory is part of the child's copy of the parent
 * and is freed when the child exits). */
#ifndef MICA_BASE_FORK_H
#define MICA_BASE_FORK_H

#include <stdatomic.h>

#include "base/status.h"

extern atomic_uint mica__fork_counter;

/* The number of fork() calls between the process that first called mica__fork_watch and this one. */
static inline unsigned mica__fork_count(void)
{
    return atomic_load_explicit(&mica__fork_counter, memory_order_relaxed);
}

/* Registers the handler that counts; if it is registered already, this is one atomic load. */
mica_status mica__fork_watch(void);

/* Returns MICA_ERR_STATE with an error message, for a call (op) on an object of the parent. */
mica_status mica__fork_fail(const char *op);

#endif
