/* The interface of a backend, which runs the steps of a plan. */
#ifndef MICA_BACKEND_BACKEND_H
#define MICA_BACKEND_BACKEND_H

#include "backend/step_times.h"
#include "base/pool.h"
#include "base/text.h"
#include "memory/memory.h"
#include "plan/target.h"

/* The arguments of one step of a run. */
typedef struct mica__exec {
    char *const *block;         /* the address of each block of the plan                 */
    mica__buffer *const *home;  /* the buffer of each block; NULL: it has no memory      */
    mica__buffer *const *owner; /* the buffer of a block that is an array given by the caller and
                                 * that does not change; else NULL                       */
    void *scratch;              /* room for at least plan->max_in + 1 mica__tensor       */
    mica__pool *pool;           /* NULL: run on this thread only                         */
    void *work;                 /* the result of begin_run                               */
    mica__step_times *times;    /* where the times of this step, the last entry, are stored; NULL:
                                 * they are not measured                                 */
} mica__exec;

/* The properties of the device of an engine (mica_engine_info). */
typedef struct mica__device_facts {
    const char *name;           /* "Apple M2 Pro"; valid while the engine is open        */
    bool is_gpu;
    bool is_software;           /* a software device that replaces a GPU                 */
    bool unified_memory;        /* CPU and device use the same memory                    */
} mica__device_facts;

/* A function pointer is required unless its comment says "optional". */
typedef struct mica__backend {
    const char *name;           /* "cpu": the value of --device and mica_engine_options.backend */
    const char *title;          /* one line for `mica doctor`                            */
    const char *device;         /* name of the device for a backend without open         */
    const mica__target *target; /* what the planner needs to know about the backend      */

    /* ---- selection ---- */
    /* Can the backend run on this machine? If not, *why_not is the reason. */
    bool (*is_available)(const char **why_not);
    /* Should mica_open choose it if the caller names none? (optional; default: no) */
    bool (*is_preferred)(void);
    /* Adds lines about the device for `mica doctor`. (optional; default: none) */
    void (*print_info)(mica__text *text);

    /* ---- the device of one engine: all of these or none ---- */
    /* Makes the state of an engine. (optional; default: no state, the CPU alone) */
    mica_status (*open)(void **state);
    /* Frees the state; all runs have ended. (required with open) */
    void (*close)(void *state);
    /* Describes the device. (required with open) */
    void (*describe)(void *state, mica__device_facts *facts);
    /* Fills in the gpu_* fields of the statistics. (required with open) */
    void (*add_stats)(void *state, mica_stats *stats);
    /* Frees mica__buffer.device before the memory of the buffer is freed. (required with open) */
    void (*release_buffer)(void *device);

    /* ---- plans ---- */
    /* Called once for each step when a plan is made: fills in step->code from the plan's arena. */
    mica_status (*prepare_step)(mica__plan *plan, mica__step *step);
    /* Called after the last prepare_step of a plan, or of the body of a scan. (optional; default: nothing) */
    mica_status (*finish_plan)(mica__plan *plan, bool body);
    /* Called before a plan is freed, also if not all its steps were prepared. (optional; default: nothing) */
    void (*release_plan)(mica__plan *plan);
    /* Packs the weights that the step reads, so that its first run finds them packed. Only blocks
     * of arrays given by the caller have an address in exec. (optional; default: nothing) */
    mica_status (*prepack_step)(const mica__plan *plan, const mica__step *step, const mica__exec *exec);

    /* ---- runs ---- */
    /* Runs one step. Never called for a scan: the runtime runs the steps of its body. */
    mica_status (*run_step)(const mica__plan *plan, const mica__step *step, const mica__exec *exec);
    /* Called before the steps of a run, on its thread; exec->work is *work.
     * (optional; default: *work is NULL) */
    mica_status (*begin_run)(void *state, void **work);
    /* Waits until the results of the run are in memory, or returns why not. Called after
     * begin_run in all cases, also if a step failed. (required with begin_run) */
    mica_status (*end_run)(void *work);

    /* ---- overlapping runs: all of these or none ---- */
    /* Does the device run all steps of the plan, so that another run can start before end_run?
     * (optional; default: no) */
    bool (*is_async)(const mica__plan *plan);
    /* Submits the encoded steps to the device without waiting. (required with is_async) */
    void (*submit)(void *work);
    /* Orders the run after an earlier one that has not ended, so that it reads what that one
     * writes. (required with is_async) */
    void (*order_after)(void *work, void *earlier);
} mica__backend;

extern const mica__backend mica__backend_ref;
extern const mica__backend mica__backend_cpu;
extern const mica__backend mica__backend_metal;

/* All backends, the best first, with a NULL at the end. */
extern const mica__backend *const mica__backends[];
/* The backend with this name, or NULL. */
const mica__backend *mica__backend_find(const char *name);

#endif
