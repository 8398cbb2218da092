/* What runs on the GPU: an engine's queue, and the command buffers of one run.
 *
 * A run has one encoder open at a time, concurrent, with barriers where its plan says so;
 * it is committed when what is in it would take the GPU a while. Buffers are untracked:
 * a fence orders one command buffer behind the other. Nothing here allocates once a
 * run of the same size has been. */
#ifndef MICA_BACKEND_METAL_WORK_H
#define MICA_BACKEND_METAL_WORK_H

#include <pthread.h>

#include "backend/backend.h"
#include "backend/metal/metal_buffer.h"
#include "backend/metal/metal_device.h"
#include "backend/metal/metal_pipeline.h"
#include "backend/metal/metal_profile.h"

#define MICA__METAL_FAULT (MICA__NO_BLOCK - 1) /* a slot's block: a mica_fault */

/* A buffer of a kernel: a block of the plan, and bytes into it. */
typedef struct mica__metal_slot {
    uint32_t block;
    int64_t offset;
} mica__metal_slot;

/* One dispatch of a plan, all decided. */
typedef struct mica__metal_dispatch {
    mica__pipeline *pipeline;
    const mica__metal_slot *slot;
    uint32_t n_slot;
    const void *bytes;          /* NULL: none                                            */
    size_t n_bytes;
    uint32_t bytes_at;          /* their index; slots from there on are one further      */
    mica__mtl_size groups, threads;
    uint64_t cost_ns;           /* what it may take on the smallest GPU                  */
    uint16_t op;                /* of the family, if it has a mica_fault                 */
    bool barrier;               /* sees what was encoded before                          */
} mica__metal_dispatch;

enum { MICA__METAL_COMMANDS = 16 }; /* committed and not waited for, of one run          */

typedef struct mica__metal_engine mica__metal_engine;

typedef struct mica__metal_work {
    mica__metal_engine *engine;
    struct mica__metal_work *next;
    void *pool;
    mica__id command, encoder, fence;
    bool fence_set;             /* an encoder before updates it                          */
    mica__id before;            /* the fence of a run that is not waited for yet; NULL: none */
    bool behind;                /* this encoder has something                            */
    mica__buffer fault;         /* a page of mica_fault, one a launch that may have one; data NULL: not yet */
    uint16_t *fault_op;         /* whose they are, behind them                           */
    uint32_t n_fault;
    mica__id committed[MICA__METAL_COMMANDS];
    uint32_t n_committed;
    const mica__pipeline *pipeline; /* the one set last                                  */
    uint64_t cost_ns;
    uint32_t encoded;           /* in this command buffer                                */
    mica__metal_profile *profile; /* NULL until a step is timed                          */
} mica__metal_work;

typedef struct mica__metal_counters {
    atomic_uint_fast64_t dispatches; /* kernels on the GPU                               */
    atomic_uint_fast64_t cpu_steps;  /* steps of plans that the CPU ran instead          */
    atomic_uint_fast64_t waits;      /* of the CPU, in the middle of a run               */
    atomic_uint_fast64_t commands;   /* command buffers                                  */
    atomic_uint_fast64_t gpu_ns;     /* the GPU's own time                               */
    atomic_uint_fast64_t overlaps;   /* runs encoded while another was not waited for    */
} mica__metal_counters;

struct mica__metal_engine {
    const mica__metal_device *device;
    mica__id queue;
    pthread_mutex_t lock;
    mica__metal_work *works;    /* to be used again                                      */
    bool captured;              /* MICA_CAPTURE                                          */
    mica__metal_counters counters;
};

mica_status mica__metal_engine_open(const mica__metal_device *device, mica__metal_engine **out);
void mica__metal_engine_close(mica__metal_engine *engine);

mica_status mica__metal_begin(mica__metal_engine *engine, mica__metal_work **out);
/* The dispatches of one step. */
mica_status mica__metal_encode(mica__metal_work *work, const mica__plan *plan, const mica__step *step,
                               const mica__metal_dispatch *dispatch, uint32_t n, const mica__exec *exec);
/* Waits for all that was encoded. The first failure, if there was one. */
mica_status mica__metal_finish(mica__metal_work *work);
/* All that was encoded is committed; nothing of this thread is kept for it. */
void mica__metal_flush(mica__metal_work *work);
/* The same, and the work is given back. */
mica_status mica__metal_end(mica__metal_work *work);

/* Begins what MICA_CAPTURE asks for, if it does. */
mica_status mica__metal_capture(mica__id queue, bool *begun);
void mica__metal_capture_end(void);

#endif
