/* Running a plan: binding its blocks to memory and its results to arrays. */
#ifndef MICA_RUNTIME_RUN_H
#define MICA_RUNTIME_RUN_H

#include "runtime/engine.h"

/* One run, from binding to results. Owns a runner, a counted plan and the
 * buffers it writes. */
typedef struct mica__run {
    mica_engine *engine;
    mica__runner *runner;
    mica__cached *entry;
    mica__buffer *arena;
    size_t n_output;            /* buffers in runner->output                             */
} mica__run;

/* Finds or makes the plan of what runner->capture holds for these results. */
mica_status mica__run_plan(mica_engine *e, mica__runner *r, mica_array *const *outs, size_t n, mica__cached **entry);
/* The same for those of arrays[] that are not evaluated yet; runner->want gets them. */
mica_status mica__run_plan_lazy(mica_engine *e, mica__runner *r, mica_array *const *arrays, size_t n,
                                mica__cached **entry);
/* From a graph in an arena to a plan whose steps are prepared. */
mica_status mica__run_make_plan(mica_engine *e, mica__graph *g, mica__plan **plan);

/* Takes memory for the plan (checked against the limit before any work) and
 * points its blocks at it. leaf[i] is a ready array. Takes over entry. */
mica_status mica__run_begin(mica__run *run, mica_engine *e, mica__runner *r, mica__cached *entry,
                            mica_array *const *leaf);
/* Packs the weights that the steps of a run that has begun read (execute.c). */
mica_status mica__run_prepack(mica__run *run);
/* Runs the steps of what has begun (execute.c). */
mica_status mica__run_steps(mica__run *run);
/* The same in two parts: start encodes and submits, finish waits. Between them another run may be
 * started, which is ordered after this one (before, or NULL). mica__run_is_async: does the device
 * run all steps, so that overlapping saves time? */
typedef struct mica__started_run {
    void *work;                 /* the backend's                                         */
    mica__error error;          /* of a step                                             */
    mica__step_times times;
    bool timed;
} mica__started_run;

bool mica__run_is_async(const mica__run *run);
void mica__run_start(mica__run *run, const mica__started_run *before, mica__started_run *started);
mica_status mica__run_finish(mica__run *run, mica__started_run *started);
/* Gives result i its elements. */
void mica__run_result(mica__run *run, uint32_t i, mica_array *const *leaf, mica_array *a);
/* The scope of a result ended before it was evaluated: nobody will ask for its
 * gradient any more, so it lets go of what it was computed from. */
void mica__run_let_go(mica_array *a);
void mica__run_end(mica__run *run);

/* For run.c and execute.c. Where temporaries without elements are: a place, because arithmetic on
 * NULL is undefined even if nothing is read there. */
extern char mica__nothing[64];
/* Tensors that a step needs beside its blocks, in one lane: mica__exec.scratch. */
static inline size_t mica__run_tensors(const mica__plan *plan) { return plan->max_in + 2u; }
/* Where element number index of a value is; a value without elements may have no memory. */
static inline char *mica__element_at(char *base, const mica__spec *spec, int64_t index)
{
    return base ? base + index * (int64_t)mica_dtype_size((mica_dtype)spec->dtype) : NULL;
}

/* Room for n arrays in runner->want. */
mica_status mica__runner_want(mica__runner *r, size_t n);

/* Evaluate now (event NULL) or on the engine's stream. */
mica_status mica__evaluate(mica_scope *s, mica_array *const *arrays, size_t n, mica_event **event);
/* Everything that an evaluation does before it runs: plan, kernels, packed weights. */
mica_status mica__prepare(mica_scope *s, mica_array *const *arrays, size_t n);

#endif
