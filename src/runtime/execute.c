/* Runs the steps of a plan whose blocks are bound, in order (run.h). A scan is a step with a plan
 * for its body: the blocks of the body are bound again for each iteration. Its lanes are parts of
 * the batch that run on different threads. Nothing here allocates. After a failure the run still
 * waits for the work that was submitted. */
#include "base/clock.h"
#include "base/checked.h"
#include "kernels/launch.h"
#include "runtime/run.h"

typedef struct executor {
    mica_engine *engine;
    mica__runner *runner;
    mica__pool *pool;           /* NULL: run on this thread only                         */
    mica__tensor *scratch;
    size_t n_scratch;           /* tensors of one lane                                   */
    void *work;                 /* the result of mica__backend.begin_run                 */
    uint64_t kernels;
    mica__step_times *times;    /* NULL: not recorded                                    */
} executor;

static mica_status run_steps(executor *x, const mica__plan *plan, char **block);

static size_t aligned_bytes(const mica__spec *spec, uint32_t lanes)
{
    int64_t count;
    size_t nbytes = 0;
    mica__spec_count(spec, &count, &nbytes);
    return mica__round_up(nbytes / lanes, 64);
}

/* A scan that is running. */
typedef struct scan_run {
    executor *x;
    const mica__plan *plan;
    const mica__step *step;
    char **block;
    atomic_flag failed;         /* set by the first lane that fails                      */
    mica__error error;          /* its error                                             */
} scan_run;

/* One lane of a scan: the addresses of the blocks of its body. */
typedef struct scan_lane {
    const mica__plan *body;
    const mica__step *step;
    uint32_t n_carry, n_x;
    int64_t row;                /* first row of the batch in this lane                   */
    char **block, **inner;      /* blocks of the plan, blocks of the body                */
    mica__buffer **home, **inner_home;
    char *scratch, *carries;
    mica__buffer *scratch_home;
} scan_lane;

/* Offset in elements of the first row of the lane along the batch axis. */
static int64_t lane_offset(const scan_lane *l, uint32_t leaf, const mica__operand *o, int axis)
{
    return l->body->lanes > 1 && l->body->sliced[leaf] ? l->row * o->strides[axis] : 0;
}

/* Binds the leaves of the body: the carries, slices of the xs, and captured arrays. The block of a
 * leaf has the number of the leaf. */
static void bind_inputs(const scan_lane *l, int64_t at, mica__buffer **owner, mica__buffer **inner_owner)
{
    for (uint32_t i = 0; i < l->body->n_block; i++) {
        const mica__block *b = &l->body->block[i];
        const bool captured = b->place == MICA__AT_LEAF && b->index >= l->n_carry + l->n_x;
        inner_owner[i] = captured ? owner[l->step->in[b->index].block] : NULL;
        if (b->place == MICA__AT_ARENA) {
            l->inner[i] = l->scratch ? l->scratch + b->offset : mica__empty_block;
            l->inner_home[i] = l->scratch_home;
        } else if (b->place == MICA__AT_LEAF && b->index >= l->n_carry) {
            const mica__operand *o = &l->step->in[b->index];
            const int64_t skip = captured ? 0 : at * o->strides[0] + lane_offset(l, b->index, o, 1);
            l->inner[i] = mica__element_at(l->block[o->block], &o->spec, o->offset + skip);
            l->inner_home[i] = l->home[o->block];
        }
    }
}

/* Binds the results of the body. The ys are written directly to their slice. The carries alternate
 * between scratch and the result, so that the last iteration writes the result. */
static void bind_results(const scan_lane *l, int64_t t, int64_t at, int64_t length)
{
    const bool to_result = (length - 1 - t) % 2 == 0, cut = l->body->lanes > 1;
    char *spare = l->carries;
    for (uint32_t j = 0; j < l->step->n_out; j++) {
        const mica__operand *o = &l->step->out[j];
        const uint32_t out = l->body->out[j].block;
        if (j >= l->n_carry) {
            const int64_t skip = at * o->strides[0] + (cut ? l->row * o->strides[1] : 0);
            l->inner[out] = mica__element_at(l->block[o->block], &o->spec, skip);
            l->inner_home[out] = l->home[o->block];
            continue;
        }
        const mica__operand *first = &l->step->in[j];
        char *result = mica__element_at(l->block[o->block], &o->spec, cut ? l->row * o->strides[0] : 0);
        char *begin =
            mica__element_at(l->block[first->block], &first->spec, first->offset + lane_offset(l, j, first, 0));
        l->inner[j] = t == 0 ? begin : to_result ? spare : result;
        l->inner_home[j] = t > 0 && to_result ? l->scratch_home : l->home[t == 0 ? first->block : o->block];
        l->inner[out] = to_result ? result : spare;
        l->inner_home[out] = to_result ? l->home[o->block] : l->scratch_home;
        if (spare) spare += aligned_bytes(&o->spec, l->body->lanes);
    }
}

/* Runs all iterations of the body on one part of the batch. */
static mica_status run_lane(const scan_run *r, uint32_t lane, executor *x)
{
    const mica__step *step = r->step;
    const mica__plan *body = step->body;
    const mica__attr_scan *attr = r->plan->graph->node[step->node[0]].attr;
    const size_t before = (size_t)(r->block - x->runner->block), own = before + r->plan->n_block + lane * body->n_slot;
    const bool has_scratch = step->workspace != MICA__NO_BLOCK;
    scan_lane l = {.body = body, .step = step, .block = r->block};
    l.n_carry = (uint32_t)attr->n_carry;
    l.n_x = (uint32_t)attr->n_x;
    l.row = body->lanes > 1 ? lane * body->graph->leaf[0].spec.shape[0] : 0;
    l.inner = x->runner->block + own;
    l.home = x->runner->home + before;
    l.inner_home = x->runner->home + own;
    l.scratch = has_scratch ? r->block[step->workspace] + lane * (step->workspace_bytes / body->lanes) : NULL;
    l.scratch_home = has_scratch ? l.home[step->workspace] : NULL;
    l.carries = l.scratch ? l.scratch + mica__round_up(body->arena_bytes, 64) : mica__empty_block;
    for (int64_t t = 0; t < attr->length; t++) {
        const int64_t at = attr->reverse ? attr->length - 1 - t : t;
        bind_inputs(&l, at, x->runner->owner + before, x->runner->owner + own);
        bind_results(&l, t, at, attr->length);
        MICA_TRY(run_steps(x, body, l.inner));
    }
    return MICA_OK;
}

static void run_lane_task(void *context, int64_t lane)
{
    scan_run *r = context;
    executor x = *r->x;
    x.pool = NULL;
    x.scratch += (size_t)lane * x.n_scratch;
    const mica_status status = run_lane(r, (uint32_t)lane, &x);
    if (status != MICA_OK && !atomic_flag_test_and_set(&r->failed)) mica__error_capture(&r->error, status);
}

/* Lanes run at the same time, except when step times are recorded: then they run one after the
 * other. */
static mica_status run_scan(executor *x, const mica__plan *plan, const mica__step *step, char **block)
{
    scan_run r = {.x = x, .plan = plan, .step = step, .block = block, .failed = ATOMIC_FLAG_INIT};
    const uint32_t lanes = step->body->lanes;
    if (lanes == 1) return run_lane(&r, 0, x);
    mica__pool_run(x->times ? NULL : x->pool, lanes, run_lane_task, &r);
    x->kernels += step->body->n_kernels * lanes *
                  (uint64_t)((const mica__attr_scan *)plan->graph->node[step->node[0]].attr)->length;
    return r.error.status == MICA_OK ? MICA_OK : mica__error_raise(&r.error);
}

static mica_status run_timed(executor *x, const mica__plan *plan, const mica__step *step, const mica__exec *exec)
{
    mica__exec untimed = *exec;
    untimed.times = NULL;
    if (!mica__step_times_add(x->times, plan, step)) return x->engine->backend->run_step(plan, step, &untimed);
    mica__step_time *time = &x->times->time[x->times->n - 1];
    time->start_ns = mica__now_ns(); /* a backend that waits before the step sets a later time */
    const mica_status status = x->engine->backend->run_step(plan, step, exec);
    if (!time->on_device) time->end_ns = mica__now_ns();
    return status;
}

static mica_status run_steps(executor *x, const mica__plan *plan, char **block)
{
    const mica__exec exec = {.block = block,
                             .home = x->runner->home + (block - x->runner->block),
                             .owner = x->runner->owner + (block - x->runner->block),
                             .scratch = x->scratch,
                             .pool = x->pool,
                             .work = x->work,
                             .times = x->times};
    for (uint32_t i = 0; i < plan->n_step; i++) {
        const mica__step *step = &plan->step[i];
        if (step->kind == MICA__STEP_SCAN) {
            MICA_TRY(run_scan(x, plan, step, block));
        } else {
            MICA_TRY(x->times ? run_timed(x, plan, step, &exec) : x->engine->backend->run_step(plan, step, &exec));
            x->kernels++;
        }
    }
    return MICA_OK;
}

/* Steps in the body of a scan are not packed here; they pack when they run. */
mica_status mica__run_prepack(mica__run *run)
{
    const mica__plan *plan = run->entry->plan;
    const mica__runner *r = run->runner;
    const mica__exec exec = {
        .block = r->block, .home = r->home, .owner = r->owner, .scratch = r->tensors, .pool = run->engine->pool};
    for (uint32_t i = 0; i < plan->n_step; i++)
        if (plan->step[i].kind != MICA__STEP_SCAN)
            MICA_TRY(run->engine->backend->prepack_step(plan, &plan->step[i], &exec));
    return MICA_OK;
}

/* Moves the times into the engine. */
static void publish_times(mica_engine *e, mica__step_times *times)
{
    pthread_mutex_lock(&e->lock);
    const mica__step_times before = e->times;
    e->times = *times;
    *times = before;
    pthread_mutex_unlock(&e->lock);
    mica__step_times_free(times);
}

bool mica__run_is_async(const mica__run *run)
{
    const mica__backend *backend = run->engine->backend;
    return backend->is_async && backend->is_async(run->entry->plan);
}

/* Mapped files must not have changed since they were opened: reading past the end of a file that became shorter raises
 * SIGBUS. Arrays of one file usually follow each other, so each file is checked about once. */
static mica_status check_files(const mica__run *run)
{
    const mica__plan *plan = run->entry->plan;
    const void *checked = NULL;
    for (uint32_t i = 0; i < plan->n_block; i++) {
        const mica__buffer *b = plan->block[i].place == MICA__AT_LEAF ? run->runner->home[i] : NULL;
        if (!b || !b->check || b->user == checked) continue;
        MICA_TRY(b->check(b->user));
        checked = b->user;
    }
    return MICA_OK;
}

void mica__run_start(mica__run *run, const mica__started_run *before, mica__started_run *f)
{
    const mica__backend *backend = run->engine->backend;
    *f = (mica__started_run){.timed = atomic_load_explicit(&run->engine->profiled, memory_order_relaxed)};
    executor x = {.engine = run->engine,
                  .runner = run->runner,
                  .pool = run->engine->pool,
                  .scratch = run->runner->tensors,
                  .n_scratch = mica__run_tensors(run->entry->plan),
                  .times = f->timed ? &f->times : NULL};
    mica__scratch *tiles = mica__scratch_use(run->runner->tiles);
    mica_status status = check_files(run);
    if (status == MICA_OK && backend->begin_run) status = backend->begin_run(run->engine->device, &x.work);
    if (status == MICA_OK && before && before->work) backend->order_after(x.work, before->work);
    if (status == MICA_OK) status = run_steps(&x, run->entry->plan, run->runner->block);
    (void)mica__scratch_use(tiles);
    f->work = x.work;
    if (status != MICA_OK) mica__error_capture(&f->error, status);
    else if (x.work && backend->submit) backend->submit(x.work);
    atomic_fetch_add_explicit(&run->engine->kernels, x.kernels, memory_order_relaxed);
}

/* Waits for the device also if a step failed. The error of the step has priority. */
mica_status mica__run_finish(mica__run *run, mica__started_run *f)
{
    const mica__plan *plan = run->entry->plan;
    mica_status status = f->work ? run->engine->backend->end_run(f->work) : MICA_OK;
    if (f->error.status != MICA_OK) status = mica__error_raise(&f->error);
    if (f->timed) publish_times(run->engine, &f->times);
    atomic_fetch_add_explicit(&run->engine->evals, 1, memory_order_relaxed);
    if (plan->copies == 0) return status;
    atomic_fetch_add_explicit(&run->engine->copies, plan->copies, memory_order_relaxed);
    atomic_fetch_add_explicit(&run->engine->bytes_copied, plan->copy_bytes, memory_order_relaxed);
    return status;
}

mica_status mica__run_steps(mica__run *run)
{
    mica__started_run started;
    mica__run_start(run, NULL, &started);
    return mica__run_finish(run, &started);
}
