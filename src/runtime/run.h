/* Runs a plan: binds its blocks to memory, runs its steps, and stores the results in arrays. */
#ifndef MICA_RUNTIME_RUN_H
#define MICA_RUNTIME_RUN_H

#include "runtime/engine.h"

/* One run of a plan. Owns a runner, a reference to the plan and the buffers that
 * it writes. */
typedef struct mica__run {
    mica_engine *engine;
    mica__runner *runner;
    mica__cached *entry;
    mica__buffer *arena;
    size_t n_output;            /* buffers in runner->output                             */
} mica__run;

/* Finds or makes the plan of the graph in runner->capture for these results. */
mica_status mica__run_plan(mica_engine *e, mica__runner *r, mica_array *const *outs, size_t n, mica__cached **entry);
/* Captures the graph of those of arrays[] that are not evaluated yet, stores them in runner->want, and
 * finds or makes the plan. */
mica_status mica__run_plan_lazy(mica_engine *e, mica__runner *r, mica_array *const *arrays, size_t n,
                                mica__cached **entry);
/* Simplifies the graph (in an arena of the caller), plans it and prepares the steps. */
mica_status mica__run_make_plan(mica_engine *e, mica__graph *g, mica__plan **plan);

/* Allocates the memory of the plan, after a check against the memory limit, and sets the
 * addresses of its blocks. leaf[i] is a ready array. The run owns entry and r from here on. */
mica_status mica__run_begin(mica__run *run, mica_engine *e, mica__runner *r, mica__cached *entry,
                            mica_array *const *leaf);
/* After mica__run_begin: packs the weights that the steps read (execute.c). */
mica_status mica__run_prepack(mica__run *run);
/* After mica__run_begin: runs the steps (execute.c). */
mica_status mica__run_steps(mica__run *run);
/* The same in two parts: start encodes and submits, finish waits. Between them another run may be
 * started; it passes this one as `before` and is ordered after it (NULL: no order).
 * mica__run_is_async: true if the device runs all steps, so that overlapping runs saves time. */
typedef struct mica__started_run {
    void *work;                 /* the result of mica__backend.begin_run                 */
    mica__error error;          /* the first failure of a step                           */
    mica__step_times times;
    bool timed;                 /* times are recorded                                    */
} mica__started_run;

bool mica__run_is_async(const mica__run *run);
void mica__run_start(mica__run *run, const mica__started_run *before, mica__started_run *started);
mica_status mica__run_finish(mica__run *run, mica__started_run *started);
/* Makes array a ready: result i of the plan becomes its elements. */
void mica__run_result(mica__run *run, uint32_t i, mica_array *const *leaf, mica_array *a);
/* Drops the inputs of a result whose scope ended before it was evaluated: its
 * gradient can no longer be requested. */
void mica__run_detach_result(mica_array *a);
void mica__run_end(mica__run *run);

/* For run.c and execute.c: the address of temporaries without elements. It is not NULL, because
 * arithmetic on NULL is undefined even if nothing is read. */
extern char mica__empty_block[64];
/* The number of mica__tensor in mica__exec.scratch, for one lane of a scan. */
static inline size_t mica__run_tensors(const mica__plan *plan) { return plan->max_in + 2u; }
/* The address of element `index`; NULL if base is NULL (a value without elements may have no memory). */
static inline char *mica__element_at(char *base, const mica__spec *spec, int64_t index)
{
    return base ? base + index * (int64_t)mica_dtype_size((mica_dtype)spec->dtype) : NULL;
}

/* Ensures room for n arrays in runner->want. */
mica_status mica__runner_want(mica__runner *r, size_t n);

/* Evaluates now (event NULL) or on the stream of the engine. */
mica_status mica__evaluate(mica_scope *s, mica_array *const *arrays, size_t n, mica_event **event);
/* Does everything that an evaluation does before it runs: plan, kernels, packed weights. */
mica_status mica__prepare(mica_scope *s, mica_array *const *arrays, size_t n);

#endif
