/* The engine: one backend with its memory, threads, plan cache and counters. */
#ifndef MICA_RUNTIME_ENGINE_H
#define MICA_RUNTIME_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "array/scope.h"
#include "backend/backend.h"
#include "base/scratch.h"
#include "graph/capture.h"
#include "plan/cache.h"

/* Scratch memory of one evaluation. The engine keeps it for reuse, so that an
 * evaluation with a cached plan does not allocate. */
typedef struct mica__runner {
    mica__capture capture;
    mica_array **want;          /* the arrays to compute                                */
    size_t cap_want, n_want;
    char **block;               /* address of each block of the plan and of its scan bodies */
    mica__buffer **owner;       /* mica__exec.owner: the buffer of a leaf that is not a state, else NULL */
    mica__buffer **home;        /* the buffer of each block; NULL: it has no memory     */
    size_t cap_block;
    mica__buffer **output;      /* output buffers                                       */
    size_t cap_output;
    void *tensors;              /* mica__exec.scratch                                   */
    size_t cap_tensors;
    mica__scratch *tiles;       /* scratch of the kernels that the calling thread runs  */
    struct mica__runner *next;
} mica__runner;

typedef struct mica__stream mica__stream;

struct mica_engine {
    atomic_int refs;            /* one for the caller, each scope, function and escaped array */
    atomic_bool closed;
    unsigned process;           /* mica__fork_count() when it was opened                */
    const mica__backend *backend;
    void *device;               /* the result of mica__backend.open; NULL: the backend has no open */
    uint32_t passes;
    int threads;
    mica__pool *pool;
    mica__memory *memory;
    mica__plan_cache *plans;
    _Atomic(mica__runner *) runner; /* the runner used last, taken without the lock; or NULL */
    pthread_mutex_t lock;       /* guards runners, scopes, spare, stream and times      */
    mica__runner *runners;      /* the other free runners                               */
    mica_scope *scopes;         /* ended scopes, for reuse (debug builds: never reused) */
    mica__node_list spare;      /* free blocks of nodes that belong to no scope         */
    mica__stream *stream;       /* asynchronous evaluations; NULL before the first      */
    atomic_bool profiled;       /* runs record the times of their steps                 */
    mica__step_times times;     /* of the last profiled run that ended                  */
    atomic_ullong n_scope;
    atomic_ullong evals, kernels, compiles, copies, bytes_copied, conversions, conversions_zero_copy;
};

/* MICA_OK if the engine is not NULL, not closed, and was opened in this process. op names the
 * caller in the error message. */
mica_status mica__engine_check(const mica_engine *e, const char *op);
mica_status mica__engine_open(const mica_engine_options *options, mica_engine **out);
void mica__engine_close(mica_engine *e);

/* The device that the engine runs on. */
mica__device_facts mica__engine_device(const mica_engine *e);

/* Frees the memory of nodes that the engine keeps for reuse. */
void mica__engine_trim_nodes(mica_engine *e);

mica_scope *mica__scope_open(mica_engine *e);
void mica__scope_close(mica_scope *s);

/* A free runner, or a new one; it must be given back with mica__runner_release. */
mica_status mica__runner_acquire(mica_engine *e, mica__runner **out);
void mica__runner_release(mica_engine *e, mica__runner *runner);

#endif
