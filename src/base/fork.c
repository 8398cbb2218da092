/* See fork.h. */
#include "base/fork.h"

#include <pthread.h>

atomic_uint mica__fork_counter;

static void count_child(void) { atomic_fetch_add_explicit(&mica__fork_counter, 1, memory_order_relaxed); }

/* Two threads may both register the handler. A fork then counts twice, which is harmless: only a change matters. */
mica_status mica__fork_watch(void)
{
    static atomic_bool watched;
    if (atomic_load(&watched)) return MICA_OK;
    if (pthread_atfork(NULL, NULL, count_child) != 0)
        return mica__fail(MICA_ERR_MEMORY, "open: out of memory for the handler of fork()");
    atomic_store(&watched, true);
    return MICA_OK;
}

mica_status mica__fork_fail(const char *op)
{
    return mica__fail(MICA_ERR_STATE,
                      "%s: the engine was opened before fork(), and its threads do not exist in this child process; "
                      "open an engine in the child",
                      op);
}
