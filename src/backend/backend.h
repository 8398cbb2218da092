/* A backend: something that can run the steps of a plan. */
#ifndef MICA_BACKEND_BACKEND_H
#define MICA_BACKEND_BACKEND_H

#include "base/pool.h"
#include "plan/target.h"

/* What one run of a plan has at hand. */
typedef struct mica__exec {
    char *const *block;         /* where each block of the plan is                       */
    mica__buffer *const *owner; /* whose memory that is, for arrays that were given and stay
                                 * what they are; else NULL                              */
    void *scratch;              /* room for plan->max_in + 1 mica__tensor                */
    mica__pool *pool;           /* NULL: this thread alone                               */
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
} mica__backend;

extern const mica__backend mica__backend_ref;
extern const mica__backend mica__backend_cpu;

/* All of them, best first; NULL ends the list. */
extern const mica__backend *const mica__backends[];
/* By name; NULL if there is none. */
const mica__backend *mica__backend_find(const char *name);

#endif
