/* The command queue of an engine and the command buffers of one run.
 *
 * A run has one open encoder, which is concurrent, with barriers where the plan requires them.
 * The command buffer is committed when the estimated GPU time of its dispatches is long enough.
 * Buffers are untracked: a fence orders each command buffer after the previous one. After the
 * first run of a plan, later runs do not allocate. */
#ifndef MICA_BACKEND_METAL_WORK_H
#define MICA_BACKEND_METAL_WORK_H

#include <pthread.h>

#include "backend/backend.h"
#include "backend/metal/metal_buffer.h"
#include "backend/metal/metal_device.h"
#include "backend/metal/metal_pipeline.h"
#include "backend/metal/metal_profile.h"

#define MICA__METAL_FAULT (MICA__NO_BLOCK - 1) /* value of a slot's block: the slot is a mica_fault */

/* A buffer argument of a kernel: a block of the plan, and an offset in bytes. */
typedef struct mica__metal_slot {
    uint32_t block;
    int64_t offset;
} mica__metal_slot;

/* One dispatch of a plan with all its arguments. */
typedef struct mica__metal_dispatch {
    mica__pipeline *pipeline;
    const mica__metal_slot *slot;
    uint32_t n_slot;
    const void *bytes;          /* parameters (setBytes); NULL: none                     */
    size_t n_bytes;
    uint32_t bytes_at;          /* their buffer index; slots from this index on are shifted by one */
    mica__mtl_size groups, threads;
    uint64_t cost_ns;           /* estimated time on the smallest GPU                    */
    uint16_t op;                /* the op that a mica_fault of this dispatch belongs to  */
    bool barrier;               /* a barrier precedes it: it reads earlier results       */
} mica__metal_dispatch;

enum { MICA__METAL_COMMANDS = 16 }; /* most committed command buffers of a run that are not waited for */

typedef struct mica__metal_engine mica__metal_engine;

/* The state of one run; reused by later runs of the engine. */
typedef struct mica__metal_work {
    mica__metal_engine *engine;
    struct mica__metal_work *next;
    void *pool;                 /* autorelease pool; NULL: none is open                  */
    mica__id command, encoder, fence;
    bool fence_set;             /* an earlier encoder of this run updates the fence      */
    mica__id before;            /* fence of an earlier run that is not waited for; NULL: none */
    bool has_dispatch;          /* this encoder has at least one dispatch                */
    mica__buffer fault;         /* a page of mica_fault, one per dispatch that can fail; data NULL: not allocated */
    uint16_t *fault_op;         /* the op of each mica_fault; stored after them in the page */
    uint32_t n_fault;
    mica__id committed[MICA__METAL_COMMANDS];
    uint32_t n_committed;
    const mica__pipeline *pipeline; /* the pipeline that the encoder has set             */
    uint64_t cost_ns;           /* estimated time of this command buffer                 */
    uint32_t encoded;           /* dispatches of this command buffer                     */
    mica__metal_profile *profile; /* NULL until a step is timed                          */
} mica__metal_work;

typedef struct mica__metal_counters {
    atomic_uint_fast64_t dispatches; /* kernels on the GPU                               */
    atomic_uint_fast64_t cpu_steps;  /* steps of plans that the CPU ran instead          */
    atomic_uint_fast64_t waits;      /* times that a CPU step waited for the GPU         */
    atomic_uint_fast64_t commands;   /* command buffers that have ended                  */
    atomic_uint_fast64_t gpu_ns;     /* GPU time of the command buffers                  */
    atomic_uint_fast64_t overlaps;   /* runs started before the previous run had ended   */
} mica__metal_counters;

struct mica__metal_engine {
    const mica__metal_device *device;
    mica__id queue;
    pthread_mutex_t lock;
    mica__metal_work *works;    /* free ones, for reuse                                  */
    bool captured;              /* a capture is active (MICA_CAPTURE)                    */
    mica__metal_counters counters;
};

mica_status mica__metal_engine_open(const mica__metal_device *device, mica__metal_engine **out);
void mica__metal_engine_close(mica__metal_engine *engine);

mica_status mica__metal_begin(mica__metal_engine *engine, mica__metal_work **out);
/* Encodes the dispatches of one step. */
mica_status mica__metal_encode(mica__metal_work *work, const mica__plan *plan, const mica__step *step,
                               const mica__metal_dispatch *dispatch, uint32_t n, const mica__exec *exec);
/* Commits and waits for everything that was encoded. Returns the first failure. */
mica_status mica__metal_finish(mica__metal_work *work);
/* Commits everything that was encoded and pops the autorelease pool of this thread. */
void mica__metal_flush(mica__metal_work *work);
/* mica__metal_finish, then returns the work to the engine. */
mica_status mica__metal_end(mica__metal_work *work);

/* Starts a capture if MICA_CAPTURE is set. */
mica_status mica__metal_capture(mica__id queue, bool *begun);
void mica__metal_capture_end(void);

#endif
