/* See run.h. Replaying a known plan is: walk the graph for its key, look the
 * plan up, take pooled memory, run the steps. Nothing on that way allocates. */
#include "runtime/run.h"

#include <string.h>

#include "base/clock.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "graph/simplify.h"
#include "kernels/launch.h"
#include "runtime/dump.h"
#include "runtime/stream.h"

/* ---------------------------------------------------------------- plan ---- */

static mica_status prepare_steps(mica_engine *e, mica__plan *plan, bool body)
{
    for (uint32_t i = 0; i < plan->n_step; i++) {
        mica__step *step = &plan->step[i];
        if (step->kind == MICA__STEP_SCAN) MICA_TRY(prepare_steps(e, step->body, true));
        else MICA_TRY(e->backend->prepare(plan, step));
    }
    return e->backend->finish ? e->backend->finish(plan, body) : MICA_OK;
}

mica_status mica__run_make_plan(mica_engine *e, mica__graph *g, mica__plan **out)
{
    const uint32_t passes = e->passes & e->backend->target->passes;
    mica__plan *plan;
    mica__dump_graph(MICA_DUMP_GRAPH, g);
#if defined(MICA_DEBUG)
    MICA_TRY(mica__graph_verify(g, "capture"));
#endif
    MICA_TRY(mica__simplify(g, passes));
    mica__dump_graph(MICA_DUMP_SIMPLE, g);
    MICA_TRY(mica__plan_new(g, e->backend->target, passes, e->threads, &plan));
    plan->release = e->backend->release;
    const mica_status status = prepare_steps(e, plan, false);
    if (status != MICA_OK) {
        mica__plan_free(plan);
        return status;
    }
    mica__dump_plan(plan);
    *out = plan;
    return MICA_OK;
}

mica_status mica__run_plan(mica_engine *e, mica__runner *r, mica_array *const *outs, size_t n, mica__cached **entry)
{
    mica__capture *c = &r->capture;
    *entry = mica__plan_cache_find(e->plans, c->key, c->key_words * sizeof *c->key);
    if (*entry) return MICA_OK;
    mica__arena arena;
    mica__graph *g;
    mica__plan *plan;
    mica__arena_init(&arena);
    mica_status status = mica__capture_graph(c, outs, n, false, &arena, &g);
    if (status == MICA_OK) status = mica__run_make_plan(e, g, &plan);
    if (status == MICA_OK) status = mica__plan_cache_put(e->plans, c->key, c->key_words * sizeof *c->key, plan, entry);
    mica__arena_free(&arena);
    return status;
}

/* ------------------------------------------------------------- binding ---- */

/* Where temporaries without elements are: a place, because arithmetic on NULL
 * is undefined even if nothing is read there. */
static _Alignas(64) char nothing[64];

static mica_status room(void **p, size_t *cap, size_t want, size_t size)
{
    if (want <= *cap) return MICA_OK;
    void *q = mica__realloc(*p, want * size);
    if (!q) return mica__fail_memory("eval: scratch", want * size);
    *p = q;
    *cap = want;
    return MICA_OK;
}

/* Of one lane: mica__exec.scratch. */
static size_t tensors_of(const mica__plan *plan) { return plan->max_in + 2u; }

static mica_status runner_room(mica__runner *r, const mica__plan *plan)
{
    void *p = r->owner;
    size_t cap = r->cap_block;
    mica_status status = room(&p, &cap, plan->n_slot + 1u, sizeof *r->owner);
    r->owner = p;
    if (status == MICA_OK) {
        p = r->home;
        cap = r->cap_block;
        status = room(&p, &cap, plan->n_slot + 1u, sizeof *r->home);
        r->home = p;
    }
    if (status == MICA_OK) {
        p = r->block;
        status = room(&p, &r->cap_block, plan->n_slot + 1u, sizeof *r->block);
        r->block = p;
    }
    if (status == MICA_OK) {
        p = r->output;
        status = room(&p, &r->cap_output, plan->n_output + 1u, sizeof *r->output);
        r->output = p;
    }
    if (status == MICA_OK)
        status = room(&r->tensors, &r->cap_tensors, (size_t)plan->max_lanes * tensors_of(plan), sizeof(mica__tensor));
    return status;
}

/* May the plan write where these leaves are? Each must be a state, of which it
 * sees nothing by another leaf: it would not know in which order. */
static mica_status check_states(const mica__plan *plan, mica_array *const *leaf, uint32_t n_leaf)
{
    for (uint32_t w = 0; w < plan->n_written; w++)
        if (!leaf[plan->written[w]]->buffer->changes)
            return mica__fail(MICA_ERR_STATE, "update: what is to be written is no state");
    for (uint32_t i = 0; i < n_leaf; i++) {
        if (!leaf[i]->buffer->changes) continue;
        for (uint32_t w = 0; w < plan->n_written; w++) {
            const mica_array *a = leaf[plan->written[w]], *b = leaf[i];
            if (a->buffer != b->buffer || plan->written[w] == i) continue;
            if (!mica__arrays_overlap(a, b)) continue;
            return mica__fail(MICA_ERR_STATE, "update: a part of the state is also read, or written, as another array");
        }
    }
    return MICA_OK;
}

mica_status mica__run_begin(mica__run *run, mica_engine *e, mica__runner *r, mica__cached *entry,
                            mica_array *const *leaf)
{
    const mica__plan *plan = entry->plan;
    *run = (mica__run){.engine = e, .runner = r, .entry = entry};
    MICA_TRY(runner_room(r, plan));
    if (plan->n_written) MICA_TRY(check_states(plan, leaf, plan->graph->n_leaf));
    MICA_TRY(mica__memory_check(e->memory, "eval: the plan", plan->peak_bytes));
    if (plan->arena_bytes) MICA_TRY(mica__buffer_new(e->memory, plan->arena_bytes, &run->arena));
    for (; run->n_output < plan->n_output; run->n_output++)
        MICA_TRY(mica__buffer_new(e->memory, plan->output_bytes[run->n_output], &r->output[run->n_output]));
    for (uint32_t i = 0; i < plan->n_block; i++) {
        const mica__block *b = &plan->block[i];
        r->home[i] = b->place == MICA__AT_LEAF     ? leaf[b->index]->buffer
                     : b->place == MICA__AT_OUTPUT ? r->output[b->index]
                                                   : run->arena;
        r->owner[i] = b->place == MICA__AT_LEAF && !leaf[b->index]->buffer->changes ? leaf[b->index]->buffer : NULL;
        r->block[i] = b->place == MICA__AT_LEAF     ? leaf[b->index]->data
                      : b->place == MICA__AT_OUTPUT ? r->output[b->index]->data
                      : run->arena                  ? (char *)run->arena->data + b->offset
                                                    : nothing;
    }
    return MICA_OK;
}

/* Where element number index of a value is; a value without elements may have
 * no memory. */
static char *element_at(char *base, const mica__spec *spec, int64_t index)
{
    return base ? base + index * (int64_t)mica_dtype_size((mica_dtype)spec->dtype) : NULL;
}

void mica__run_result(mica__run *run, uint32_t i, mica_array *const *leaf, mica_array *a)
{
    const mica__plan *plan = run->entry->plan;
    const mica__result *r = &plan->out[i];
    const mica__block *b = &plan->block[r->block];
    const bool shared = b->place == MICA__AT_LEAF;
    mica__buffer *buffer = shared ? leaf[b->index]->buffer : run->runner->output[b->index];
    char *base = shared ? leaf[b->index]->data : buffer->data;
    if (shared) mica__count_conversion(run->engine, true);
    if (r->last) run->runner->output[b->index] = NULL; /* the run's reference goes to the array */
    else mica__buffer_keep(buffer);
    mica__array_set_ready(a, buffer, element_at(base, &r->spec, r->offset), r->strides);
}

void mica__run_let_go(mica_array *a)
{
    if (a->escaped) mica__array_detach(a);
}

void mica__run_end(mica__run *run)
{
    for (size_t i = 0; i < run->n_output; i++) mica__buffer_drop(run->runner->output[i]);
    mica__buffer_drop(run->arena);
    mica__cached_drop(run->entry);
    mica__runner_give(run->engine, run->runner);
}

/* ----------------------------------------------------------- execution ---- */

typedef struct executor {
    mica_engine *engine;
    mica__runner *runner;
    mica__pool *pool;           /* NULL: this thread alone                               */
    mica__tensor *scratch;
    size_t n_scratch;           /* of one lane                                           */
    void *work;                 /* the backend's                                         */
    uint64_t kernels;
    mica__step_times *times;    /* NULL: not wanted                                      */
} executor;

static mica_status run_steps(executor *x, const mica__plan *plan, char **block);

static size_t aligned_bytes(const mica__spec *spec, uint32_t lanes)
{
    int64_t count;
    size_t nbytes = 0;
    mica__spec_count(spec, &count, &nbytes);
    return mica__round_up(nbytes / lanes, 64);
}

/* A scan under way, and one lane of it: where the blocks of its body are. */
typedef struct scan_run {
    executor *x;
    const mica__plan *plan;
    const mica__step *step;
    char **block;
    atomic_flag failed;         /* a lane, with ...                                      */
    mica__error error;
} scan_run;

typedef struct scan_lane {
    const mica__plan *body;
    const mica__step *step;
    uint32_t n_carry, n_x;
    int64_t row;                /* of the batch: the lane's first                        */
    char **block, **inner;      /* of the plan, of the body                              */
    mica__buffer **home, **inner_home;
    char *scratch, *carries;
    mica__buffer *scratch_home;
} scan_lane;

/* Elements before the lane's first row, along the axis of the batch. */
static int64_t lane_offset(const scan_lane *l, uint32_t leaf, const mica__operand *o, int axis)
{
    return l->body->lanes > 1 && l->body->sliced[leaf] ? l->row * o->strides[axis] : 0;
}

/* Its leaves are the carries, slices of the xs and what it captured. A leaf block of a body is
 * numbered like its leaf. */
static void bind_inputs(const scan_lane *l, int64_t at, mica__buffer **owner, mica__buffer **inner_owner)
{
    for (uint32_t i = 0; i < l->body->n_block; i++) {
        const mica__block *b = &l->body->block[i];
        const bool captured = b->place == MICA__AT_LEAF && b->index >= l->n_carry + l->n_x;
        inner_owner[i] = captured ? owner[l->step->in[b->index].block] : NULL;
        if (b->place == MICA__AT_ARENA) {
            l->inner[i] = l->scratch ? l->scratch + b->offset : nothing;
            l->inner_home[i] = l->scratch_home;
        } else if (b->place == MICA__AT_LEAF && b->index >= l->n_carry) {
            const mica__operand *o = &l->step->in[b->index];
            const int64_t skip = captured ? 0 : at * o->strides[0] + lane_offset(l, b->index, o, 1);
            l->inner[i] = element_at(l->block[o->block], &o->spec, o->offset + skip);
            l->inner_home[i] = l->home[o->block];
        }
    }
}

/* It writes ys straight to their place and carries in turn to scratch and to the result, so
 * that the last ones end up there. The block of a result is in out[]. */
static void bind_results(const scan_lane *l, int64_t t, int64_t at, int64_t length)
{
    const bool to_result = (length - 1 - t) % 2 == 0, cut = l->body->lanes > 1;
    char *spare = l->carries;
    for (uint32_t j = 0; j < l->step->n_out; j++) {
        const mica__operand *o = &l->step->out[j];
        const uint32_t out = l->body->out[j].block;
        if (j >= l->n_carry) {
            const int64_t skip = at * o->strides[0] + (cut ? l->row * o->strides[1] : 0);
            l->inner[out] = element_at(l->block[o->block], &o->spec, skip);
            l->inner_home[out] = l->home[o->block];
            continue;
        }
        const mica__operand *first = &l->step->in[j];
        char *result = element_at(l->block[o->block], &o->spec, cut ? l->row * o->strides[0] : 0);
        char *begin = element_at(l->block[first->block], &first->spec, first->offset + lane_offset(l, j, first, 0));
        l->inner[j] = t == 0 ? begin : to_result ? spare : result;
        l->inner_home[j] = t > 0 && to_result ? l->scratch_home : l->home[t == 0 ? first->block : o->block];
        l->inner[out] = to_result ? result : spare;
        l->inner_home[out] = to_result ? l->home[o->block] : l->scratch_home;
        if (spare) spare += aligned_bytes(&o->spec, l->body->lanes);
    }
}

/* The body, once for each step, on one part of the batch. */
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
    l.carries = l.scratch ? l.scratch + mica__round_up(body->arena_bytes, 64) : nothing;
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

/* With lanes, all of them at the same time; one after the other where times are noted, because
 * each step has its own. */
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
    if (!mica__step_times_add(x->times, plan, step)) return x->engine->backend->run(plan, step, &untimed);
    mica__step_time *time = &x->times->time[x->times->n - 1];
    time->start_ns = mica__now_ns(); /* or later: a backend may have to wait for something first */
    const mica_status status = x->engine->backend->run(plan, step, exec);
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
            MICA_TRY(x->times ? run_timed(x, plan, step, &exec) : x->engine->backend->run(plan, step, &exec));
            x->kernels++;
        }
    }
    return MICA_OK;
}

/* They become the engine's. */
static void publish_times(mica_engine *e, mica__step_times *times)
{
    pthread_mutex_lock(&e->lock);
    const mica__step_times before = e->times;
    e->times = *times;
    *times = before;
    pthread_mutex_unlock(&e->lock);
    mica__step_times_free(times);
}

bool mica__run_flies(const mica__run *run)
{
    const mica__backend *backend = run->engine->backend;
    return backend->flies && backend->flies(run->entry->plan);
}

void mica__run_start(mica__run *run, const mica__flight *before, mica__flight *f)
{
    const mica__backend *backend = run->engine->backend;
    *f = (mica__flight){.timed = atomic_load_explicit(&run->engine->profiled, memory_order_relaxed)};
    executor x = {.engine = run->engine,
                  .runner = run->runner,
                  .pool = run->engine->pool,
                  .scratch = run->runner->tensors,
                  .n_scratch = tensors_of(run->entry->plan),
                  .times = f->timed ? &f->times : NULL};
    mica_status status = backend->begin ? backend->begin(run->engine->device, &x.work) : MICA_OK;
    if (status == MICA_OK && before && before->work) backend->follow(x.work, before->work);
    if (status == MICA_OK) status = run_steps(&x, run->entry->plan, run->runner->block);
    f->work = x.work;
    if (status != MICA_OK) mica__error_capture(&f->error, status);
    else if (x.work && backend->flush) backend->flush(x.work);
    atomic_fetch_add_explicit(&run->engine->kernels, x.kernels, memory_order_relaxed);
}

/* The device may still be at work, also if a step failed; what failed first is said. */
mica_status mica__run_finish(mica__run *run, mica__flight *f)
{
    const mica__plan *plan = run->entry->plan;
    mica_status status = f->work ? run->engine->backend->end(f->work) : MICA_OK;
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
    mica__flight flight;
    mica__run_start(run, NULL, &flight);
    return mica__run_finish(run, &flight);
}

/* ---------------------------------------------------------- evaluation ---- */

mica_status mica__runner_want(mica__runner *r, size_t n)
{
    void *p = r->want;
    const mica_status status = room(&p, &r->cap_want, n + 1, sizeof *r->want);
    r->want = p;
    return status;
}

/* What of arrays[] is still to be computed, into runner->want. Waits for what
 * an earlier evaluation is still at, so that its failure is not lost. */
static mica_status collect_wanted(mica__runner *r, mica_array *const *arrays, size_t n)
{
    MICA_TRY(mica__runner_want(r, n));
    r->n_want = 0;
    for (size_t i = 0; i < n; i++) {
        if (mica__array_state(arrays[i]) == MICA__LAZY) r->want[r->n_want++] = arrays[i];
        else MICA_TRY(mica__event_settle(arrays[i]));
    }
    return MICA_OK;
}

/* What is written becomes ready with the rest, so that no write runs twice. */
static mica_status want_updates(mica__runner *r)
{
    const mica__capture *c = &r->capture;
    MICA_TRY(mica__runner_want(r, r->n_want + c->n_update));
    for (uint32_t i = 0; i < c->n_update; i++) r->want[r->n_want++] = c->update[i];
    return MICA_OK;
}

static mica_status evaluate(mica_scope *s, mica__runner *r, mica_array *const *arrays, size_t n, mica_event **event,
                            bool *given)
{
    mica_engine *e = s->engine;
    mica__capture *c = &r->capture;
    mica__cached *entry;
    mica__run run;
    MICA_TRY(collect_wanted(r, arrays, n));
    if (r->n_want == 0 && !event) return MICA_OK;
    MICA_TRY(mica__capture_run(c, r->want, r->n_want, NULL, 0));
    MICA_TRY(mica__run_plan(e, r, r->want, r->n_want, &entry));
    mica_status status = want_updates(r);
    if (status != MICA_OK) {
        mica__cached_drop(entry);
        return status;
    }
    *given = true; /* the run returns the runner */
    status = mica__run_begin(&run, e, r, entry, c->leaf);
    if (status == MICA_OK && event) {
        status = mica__stream_submit(&run, r->want, r->n_want, c->leaf, c->n_leaf, event);
        if (status == MICA_OK) return MICA_OK;
    } else if (status == MICA_OK) {
        status = mica__run_steps(&run);
        for (uint32_t i = 0; i < r->n_want && status == MICA_OK; i++)
            if (mica__array_state(r->want[i]) == MICA__LAZY) mica__run_result(&run, i, c->leaf, r->want[i]);
        for (uint32_t i = 0; i < r->n_want && status == MICA_OK; i++) mica__run_let_go(r->want[i]);
    }
    mica__run_end(&run);
    return status;
}

mica_status mica__evaluate(mica_scope *s, mica_array *const *arrays, size_t n, mica_event **event)
{
    mica__runner *r;
    bool given = false;
    MICA_TRY(mica__runner_take(s->engine, &r));
    const mica_status status = evaluate(s, r, arrays, n, event, &given);
    if (!given) mica__runner_give(s->engine, r);
    return status;
}
