/* A backend: something that can run the steps of a plan. */
#ifndef MICA_BACKEND_BACKEND_H
#define MICA_BACKEND_BACKEND_H

#include "backend/step_times.h"
#include "base/pool.h"
#include "base/text.h"
#include "memory/memory.h"
#include "plan/target.h"

/* What one run of a plan has at hand. */
typedef struct mica__exec {
    char *const *block;         /* where each block of the plan is                       */
    mica__buffer *const *home;  /* the buffer that is in; NULL: without memory           */
    mica__buffer *const *owner; /* whose memory that is, for arrays that were given and stay
                                 * what they are; else NULL                              */
    void *scratch;              /* room for plan->max_in + 1 mica__tensor                */
    mica__pool *pool;           /* NULL: this thread alone                               */
    void *work;                 /* what begin() gave                                     */
    mica__step_times *times;    /* NULL, or where it is noted when this step, the last in it, ran */
} mica__exec;

typedef struct mica__backend {
    const char *name;
    const char *title;          /* for a person                                          */
    const mica__target *target;
    /* Can it run on this machine? If not, why. */
    bool (*available)(const char **why_not);
    /* Once per step, when a plan is made: fill step->code from the plan's arena. */
    mica_status (*prepare)(mica__plan *plan, mica__step *step);
    /* Runs one step (never a SCAN, whose body the runtime loops over). */
    mica_status (*run)(const mica__plan *plan, const mica__step *step, const mica__exec *exec);

    /* For a device of its own; NULL where there is none. An engine has a state of it,
     * which knows what to call the device and what it did (its part of the figures). */
    mica_status (*open)(void **state);
    void (*close)(void *state);
    const char *(*device)(void *state);
    void (*count)(void *state, mica_stats *stats);
    /* mica__buffer.device goes, with the buffer's memory. */
    void (*forget)(void *device);
    /* After the last prepare() of a plan, or of a body. */
    mica_status (*finish)(mica__plan *plan, bool body);
    void (*release)(mica__plan *plan); /* before a plan goes, all steps prepared or not   */
    /* Around the steps of one run, on one thread. When end() returns results are in
     * memory, or it says why not; it is called whatever a step said. */
    mica_status (*begin)(void *state, void **work);
    mica_status (*end)(void *work);
    /* For two runs at once, on one thread: NULL, or whether all of a plan is the device's; what
     * was encoded goes to it, end() is called later; a run sees what another, not ended yet, wrote. */
    bool (*flies)(const mica__plan *plan);
    void (*flush)(void *work);
    void (*follow)(void *work, void *before);
    void (*print)(mica__text *text); /* lines for `mica doctor`                          */
    bool (*preferred)(void);    /* NULL, or whether it is the one to take if none is named */
} mica__backend;

extern const mica__backend mica__backend_ref;
extern const mica__backend mica__backend_cpu;
extern const mica__backend mica__backend_metal;

/* All of them, best first; NULL ends the list. */
extern const mica__backend *const mica__backends[];
/* By name; NULL if there is none. */
const mica__backend *mica__backend_find(const char *name);

#endif
