/* An engine runs one threadgroup at a time on one OS thread. Each thread that has begun and
 * not ended has a fiber (a separate stack). */
#ifndef SOFTMETAL_ENGINE_H
#define SOFTMETAL_ENGINE_H

#include "../core.h"
#include "../shim/abi.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { SM_SIMDGROUPS = SM_MAX_THREADS / SM_SIMD_WIDTH, SM_STACK = 128 * 1024, SM_SLACK = 4096, SM_NO_THREAD = 0xffff };

typedef struct sm_fiber {
    void *sp;     /* saved stack pointer */
    char *stack;  /* lowest usable byte */
    char *arrays; /* the same of the second stack, which holds arrays; see sm_runtime */
    void *free;   /* lowest byte in use on the second stack */
} sm_fiber;

typedef struct sm_engine sm_engine;

/* The interface of the checker (softmetal/check); NULL functions: no checks. */
typedef struct sm_checker sm_checker;
struct sm_tally;

struct sm_engine {
    const sm_module *module;
    sm_group group;
    unsigned simdgroups;
    unsigned current; /* the running thread */

    /* One bit per lane. A thread is in one of these sets, or runs, or has ended. */
    uint32_t unstarted[SM_SIMDGROUPS], ready[SM_SIMDGROUPS], waiting[SM_SIMDGROUPS], at_barrier[SM_SIMDGROUPS];
    uint32_t active; /* simdgroups that have an unstarted, ready or waiting lane */
    unsigned ended;

    sm_fiber fibers[SM_MAX_THREADS];
    unsigned fibers_made;
    uint16_t idle[SM_MAX_THREADS]; /* fibers that no thread uses */
    unsigned idle_count;
    uint16_t fiber_of[SM_MAX_THREADS]; /* fiber index of a thread that has begun */
    unsigned fiber;                    /* the running fiber */
    char *stacks;
    size_t stacks_length;

    struct {
        const void *site; /* call site where a lane waits: the return address */
        unsigned line, flags;
        unsigned size;
    } at[SM_MAX_THREADS];
    /* Accesses of each simdgroup to threadgroup memory since its lanes last met (lockstep.c). */
    bool lockstep, loaded[SM_SIMDGROUPS], stored[SM_SIMDGROUPS];
    const void *store_site[SM_SIMDGROUPS]; /* of the last store */
    unsigned char given[SM_MAX_THREADS][SM_SLOT];
    sm_record records[SM_SIMDGROUPS];

    unsigned shape[3]; /* group shape for which thread positions are filled in */
    uint16_t positions[SM_MAX_THREADS][3];

    uint64_t random; /* 0: the default order */
    void *main;      /* saved stack pointer of the OS thread */
    void *buffers[SM_BUFFERS];
    char *local[SM_BUFFERS];
    size_t local_length[SM_BUFFERS];
    char *local_memory; /* backing store of the locals */
    size_t local_room, local_total; /* allocated; used by this dispatch */
    char *statics; /* the module's threadgroup variables, for this OS thread */
    size_t statics_length;

    sm_status status; /* status of the run; not SM_OK: the threadgroup is abandoned */
    char *message;
    const char *label;
    const struct sm_kernel *kernel;
    const sm_dispatch *dispatch;
    sm_checker *checker;
    struct sm_tally *tally; /* SM_COUNT (softmetal/count) */
    bool is_counted;        /* the threadgroup is one that it counts */

    /* For signal handlers and the watchdog. */
    atomic_bool inside;     /* fibers are running on thread */
    atomic_bool overdue;
    pthread_t thread;
    double deadline; /* in CPU time of thread */
    sm_engine *next;
    void *signal_stack;
    stack_t old_stack;
};

void sm_switch(void **save, void *to);

/* The engine of this OS thread while it runs a threadgroup. */
extern _Thread_local sm_engine *sm_current __attribute__((tls_model("initial-exec"), visibility("hidden")));
extern const sm_runtime sm_runtime_table;

sm_engine *sm_engine_open(void); /* from the pool; NULL: out of memory */
void sm_engine_close(sm_engine *engine);

/* Runs the threadgroup described in engine->group. false: engine->status holds the reason. */
bool sm_engine_run(sm_engine *engine);

/* Ends the run from within a fiber or a signal handler; does not return. The message is in engine->message. */
_Noreturn void sm_engine_stop(sm_engine *engine, sm_status status);

/* The lanes of the simdgroup wait for each other, those at this call site then continue. */
void sm_engine_meet(sm_engine *engine, const void *site);
/* Call before the current thread accesses memory. Keeps lanes in step (lockstep.c). */
void sm_engine_keep_step(sm_engine *engine, const void *address, bool write, const void *site);

uint32_t sm_engine_random(sm_engine *engine);

/* "thread (3, 0, 0) of threadgroup (1, 0, 0)" */
void sm_engine_where(const sm_engine *engine, unsigned thread, char text[96]);

#endif
