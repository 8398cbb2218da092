/* See run.h. This file finds the plan of arrays, binds its blocks to memory and stores the results;
 * execute.c runs the steps. An evaluation with a cached plan walks the graph to compute its key,
 * looks the plan up, takes memory from the pool and runs the steps, without heap allocations. */
#include "runtime/run.h"

#include "base/alloc.h"
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
        else MICA_TRY(e->backend->prepare_step(plan, step));
    }
    return e->backend->finish_plan ? e->backend->finish_plan(plan, body) : MICA_OK;
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
    plan->release = e->backend->release_plan;
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

mica_status mica__run_plan_lazy(mica_engine *e, mica__runner *r, mica_array *const *arrays, size_t n,
                                mica__cached **entry)
{
    MICA_TRY(mica__runner_want(r, n));
    r->n_want = 0;
    for (size_t i = 0; i < n; i++)
        if (mica__array_state(arrays[i]) == MICA__LAZY) r->want[r->n_want++] = arrays[i];
    MICA_TRY(mica__capture_run(&r->capture, r->want, r->n_want, NULL, 0));
    return mica__run_plan(e, r, r->want, r->n_want, entry);
}

/* ------------------------------------------------------------- binding ---- */

_Alignas(64) char mica__empty_block[64];

static mica_status room(void **p, size_t *cap, size_t want, size_t size)
{
    if (want <= *cap) return MICA_OK;
    void *q = mica__realloc(*p, want * size);
    if (!q) return mica__fail_memory("eval: scratch", want * size);
    *p = q;
    *cap = want;
    return MICA_OK;
}

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
        status =
            room(&r->tensors, &r->cap_tensors, (size_t)plan->max_lanes * mica__run_tensors(plan), sizeof(mica__tensor));
    if (status == MICA_OK && !r->tiles) {
        r->tiles = mica__scratch_new();
        if (!r->tiles) status = mica__fail_memory("eval: scratch", MICA__SCRATCH_BYTES);
    }
    return status;
}

/* Checks that each leaf that the plan writes is a state, and that no other leaf overlaps
 * it: the order of the accesses would be undefined. */
static mica_status check_states(const mica__plan *plan, mica_array *const *leaf, uint32_t n_leaf)
{
    for (uint32_t w = 0; w < plan->n_written; w++)
        if (!leaf[plan->written[w]]->buffer->changes)
            return mica__fail(MICA_ERR_STATE, "update: the array to write is not a state (mica_state)");
    for (uint32_t i = 0; i < n_leaf; i++) {
        if (!leaf[i]->buffer->changes) continue;
        for (uint32_t w = 0; w < plan->n_written; w++) {
            const mica_array *a = leaf[plan->written[w]], *b = leaf[i];
            if (a->buffer != b->buffer || plan->written[w] == i) continue;
            if (!mica__arrays_overlap(a, b)) continue;
            return mica__fail(MICA_ERR_STATE, "update: a part of the state is also used through another array");
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
                                                    : mica__empty_block;
    }
    return MICA_OK;
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
    if (r->last) run->runner->output[b->index] = NULL; /* the array gets the run's reference */
    else mica__buffer_keep(buffer);
    mica__array_set_ready(a, buffer, mica__element_at(base, &r->spec, r->offset), r->strides);
}

void mica__run_detach_result(mica_array *a)
{
    if (a->escaped) mica__array_detach(a);
}

void mica__run_end(mica__run *run)
{
    for (size_t i = 0; i < run->n_output; i++) mica__buffer_drop(run->runner->output[i]);
    mica__buffer_drop(run->arena);
    mica__cached_drop(run->entry);
    mica__runner_release(run->engine, run->runner);
}

/* ---------------------------------------------------------- evaluation ---- */

mica_status mica__runner_want(mica__runner *r, size_t n)
{
    void *p = r->want;
    const mica_status status = room(&p, &r->cap_want, n + 1, sizeof *r->want);
    r->want = p;
    return status;
}

/* Stores those of arrays[] that are not evaluated in runner->want. Waits for arrays of an
 * asynchronous evaluation that has not ended, so that its failure is not lost. */
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

/* Adds the updates of states to runner->want: they become ready too, so that no write runs twice. */
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
        for (uint32_t i = 0; i < r->n_want && status == MICA_OK; i++) mica__run_detach_result(r->want[i]);
    }
    mica__run_end(&run);
    return status;
}

mica_status mica__evaluate(mica_scope *s, mica_array *const *arrays, size_t n, mica_event **event)
{
    mica__runner *r;
    bool given = false;
    MICA_TRY(mica__runner_acquire(s->engine, &r));
    const mica_status status = evaluate(s, r, arrays, n, event, &given);
    if (!given) mica__runner_release(s->engine, r);
    return status;
}

mica_status mica__prepare(mica_scope *s, mica_array *const *arrays, size_t n)
{
    mica_engine *e = s->engine;
    mica__runner *r;
    mica__cached *entry = NULL;
    mica__run run;
    MICA_TRY(mica__runner_acquire(e, &r));
    mica_status status = mica__run_plan_lazy(e, r, arrays, n, &entry);
    if (status != MICA_OK || !e->backend->prepack_step) {
        mica__cached_drop(entry);
        mica__runner_release(e, r);
        return status;
    }
    status = mica__run_begin(&run, e, r, entry, r->capture.leaf);
    if (status == MICA_OK) status = mica__run_prepack(&run);
    mica__run_end(&run);
    return status;
}
