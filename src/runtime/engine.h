/* The engine: one backend, its memory, its threads, its plans, its counters. */
#ifndef MICA_RUNTIME_ENGINE_H
#define MICA_RUNTIME_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "array/scope.h"
#include "backend/backend.h"
#include "base/scratch.h"
#include "graph/capture.h"
#include "plan/cache.h"

/* Scratch of one evaluation; kept by the engine and used again, so that an
 * evaluation of a known graph allocates nothing. */
typedef struct mica__runner {
    mica__capture capture;
    mica_array **want;          /* what is to be computed                               */
    size_t cap_want, n_want;
    char **block;               /* where each block of the plan (and of bodies) is      */
    mica__buffer **owner;       /* of the blocks that are memory of leaves, but for states; else NULL */
    mica__buffer **home;        /* of every block; NULL: it has no memory               */
    size_t cap_block;
    mica__buffer **output;      /* output buffers                                       */
    size_t cap_output;
    void *tensors;              /* mica__exec.scratch                                   */
    size_t cap_tensors;
    mica__scratch *tiles;       /* of the kernels that the calling thread runs          */
    struct mica__runner *next;
} mica__runner;

typedef struct mica__stream mica__stream;

struct mica_engine {
    atomic_int refs;            /* the caller's, one a scope, one an escaped array      */
    atomic_bool closed;
    unsigned process;           /* mica__fork_count() when it was opened                */
    const mica__backend *backend;
    void *device;               /* the backend's state for this engine; NULL: none      */
    uint32_t passes;
    int threads;
    mica__pool *pool;
    mica__memory *memory;
    mica__plan_cache *plans;
    _Atomic(mica__runner *) runner; /* the one used last, without a lock; or NULL       */
    pthread_mutex_t lock;       /* the lists below                                      */
    mica__runner *runners;
    mica_scope *scopes;         /* ended ones, for reuse (debug builds: never reused)   */
    mica__node_list spare;      /* blocks of nodes that no scope has                    */
    mica__stream *stream;       /* asynchronous work; NULL until first asked for        */
    atomic_bool profiled;       /* runs note when their steps ran                       */
    mica__step_times times;     /* of the last that ended; under the lock               */
    atomic_ullong n_scope;
    atomic_ullong evals, kernels, compiles, copies, bytes_copied, conversions, conversions_zero_copy;
};

/* Can this engine be used? It is not NULL, not closed, and was opened in this process. op names the
 * caller in the error message. */
mica_status mica__engine_check(const mica_engine *e, const char *op);
mica_status mica__engine_open(const mica_engine_options *options, mica_engine **out);
void mica__engine_close(mica_engine *e);

/* The device that the engine runs on. */
mica__device_facts mica__engine_device(const mica_engine *e);

/* What the engine keeps of freed nodes goes back to the heap. */
void mica__engine_trim_nodes(mica_engine *e);

mica_scope *mica__scope_open(mica_engine *e);
void mica__scope_close(mica_scope *s);

mica_status mica__runner_take(mica_engine *e, mica__runner **out);
void mica__runner_give(mica_engine *e, mica__runner *runner);

#endif
