/* Runs the stages of planning in order. Bodies of scans are planned before the steps of
 * the graph, because the step of a scan needs the memory size of its body. */
#include "plan/planner.h"

#include "base/alloc.h"
#include "graph/batch.h"
#include "plan/work.h"

static mica_status make(mica__graph *g, const mica__target *target, uint32_t passes, int threads, bool body,
                        mica__arena *arena, mica__plan *plan);

/* Number of parts into which the batch of a scan is split; 1: not split. The parts are equal, at most
 * one per thread, and have a multiple of VECTOR rows, at least LEAST. */
static int64_t lanes_of(const mica__work *w, const mica__gnode *scan)
{
    enum { VECTOR = 8, LEAST = 16 };
    const int64_t batch = mica__batch_size(scan->body, (uint32_t)((const mica__attr_scan *)scan->attr)->n_carry);
    int64_t lanes = w->target->splits_scans && (w->passes & MICA_PASS_LANES) ? w->threads : 1;
    while (lanes > 1 && (batch % (lanes * VECTOR) != 0 || batch / lanes < LEAST)) lanes--;
    return batch ? lanes : 1;
}

/* Replaces the plan of a body by the plan for one part of the batch, if that is possible and faster.
 * It is not done if there are few parts and a single step has work for all threads: then the threads
 * share each step. */
static mica_status make_lanes(mica__work *w, const mica__gnode *scan, mica__plan *body)
{
    enum { SCAN_FLOPS = 1 << 19, STEP_FLOPS = 1 << 22 };
    const mica__attr_scan *attr = scan->attr;
    const int64_t lanes = lanes_of(w, scan);
    if (lanes < 2 || body->flops * (uint64_t)attr->length < SCAN_FLOPS * (uint64_t)lanes) return MICA_OK;
    if (lanes * 2 <= w->threads && body->flops > STEP_FLOPS) return MICA_OK;
    const uint32_t n_carry = (uint32_t)attr->n_carry;
    mica__graph *part;
    mica__plan plan = {0};
    bool *sliced = mica__arena_array(w->arena, scan->body->n_leaf + 1, sizeof *sliced);
    if (!sliced) return mica__fail_memory("plan: the body of a scan", scan->body->n_leaf);
    MICA_TRY(mica__batch_cut(scan->body, n_carry, n_carry + (uint32_t)attr->n_x,
                             mica__batch_size(scan->body, n_carry) / lanes, w->arena, sliced, &part));
    if (!part) return MICA_OK;
#if defined(MICA_DEBUG)
    MICA_TRY(mica__graph_verify(part, "lanes"));
#endif
    MICA_TRY(make(part, w->target, w->passes, 1, true, w->arena, &plan));
    plan.lanes = (uint32_t)lanes;
    plan.sliced = sliced;
    *body = plan;
    return MICA_OK;
}

static mica_status make_bodies(mica__work *w)
{
    w->body_plan = mica__arena_array(&w->scratch, w->g->n + 1, sizeof(mica__plan *));
    if (!w->body_plan) return mica__fail_memory("plan: bodies of scans", w->g->n * sizeof(mica__plan *));
    for (uint32_t i = 0; i < w->g->n; i++) {
        const mica__gnode *node = &w->g->node[i];
        if (node->op != MICA__OP_SCAN) continue;
        mica__plan *body = mica__arena_alloc(w->arena, sizeof *body);
        if (!body) return mica__fail_memory("plan: the body of a scan", sizeof *body);
        MICA_TRY(make(node->body, w->target, w->passes, w->threads, true, w->arena, body));
        MICA_TRY(make_lanes(w, node, body));
        w->body_plan[i] = body;
    }
    return MICA_OK;
}

/* One order of the steps with its layout, in a separate arena. */
typedef struct arrangement {
    mica__arena arena;
    mica__plan plan;
} arrangement;

static mica_status arrange(mica__work *w, const mica__order *order, arrangement *a)
{
    mica__arena *keep = w->arena;
    mica__arena_init(&a->arena);
    a->plan = (mica__plan){.graph = w->g};
    w->arena = &a->arena;
    mica_status status = mica__plan_steps(w, order, &a->plan);
    for (uint32_t i = 0; i < a->plan.n_step && status == MICA_OK; i++)
        if (a->plan.step[i].kind == MICA__STEP_SCAN) a->plan.step[i].body = w->body_plan[a->plan.step[i].node[0]];
    if (status == MICA_OK) status = mica__plan_layout(w, &a->plan);
    w->arena = keep;
    return status;
}

/* Lays out the caller's order and, if it differs, the depth-first order; keeps the one with the lower peak. */
static mica_status arrange_best(mica__work *w, mica__plan *plan)
{
    mica__order built, deep;
    arrangement first = {0}, second = {0}, *best = &first;
    bool differ = false;
    MICA_TRY(mica__plan_order(w, &built, (w->passes & MICA_PASS_ORDER) ? &deep : NULL, &differ));
    mica_status status = arrange(w, &built, &first);
    if (status == MICA_OK && differ) {
        status = arrange(w, &deep, &second);
        if (status == MICA_OK && second.plan.peak_bytes < first.plan.peak_bytes) best = &second;
    }
    *plan = best->plan;
    mica__arena_join(w->arena, &best->arena);
    mica__arena_free(&first.arena);
    mica__arena_free(&second.arena);
    return status;
}

static mica_status run_stages(mica__work *w, mica__graph *g, mica__plan *plan)
{
    MICA_TRY(mica__plan_legal(w, g));
    MICA_TRY(mica__plan_fuse(w));
    MICA_TRY(make_bodies(w));
    return arrange_best(w, plan);
}

static mica_status make(mica__graph *g, const mica__target *target, uint32_t passes, int threads, bool body,
                        mica__arena *arena, mica__plan *plan)
{
    mica__work w = {
        .arena = arena, .target = target, .passes = passes & target->passes, .threads = threads, .body = body};
    mica__arena_init(&w.scratch);
    const mica_status status = run_stages(&w, g, plan);
    mica__arena_free(&w.scratch);
    return status;
}

mica_status mica__plan_new(mica__graph *g, const mica__target *target, uint32_t passes, int threads, mica__plan **out)
{
    *out = NULL;
    mica__plan *plan = mica__alloc_zero(1, sizeof *plan);
    if (!plan) return mica__fail_memory("plan", sizeof *plan);
    const mica_status status = make(g, target, passes, threads, false, g->arena, plan);
    if (status != MICA_OK) {
        mica__free(plan);
        return status;
    }
    plan->arena = *g->arena;
    mica__arena_init(g->arena);
    plan->graph->arena = &plan->arena;
    *out = plan;
    return MICA_OK;
}

/* The plan of a body is stored in the arena of its parent. The body's own arena holds the
 * code that the backend prepared for its steps. */
static void free_bodies(mica__plan *plan)
{
    for (uint32_t i = 0; i < plan->n_step; i++)
        if (plan->step[i].body) {
            free_bodies(plan->step[i].body);
            mica__arena_free(&plan->step[i].body->arena);
        }
}

void mica__plan_free(mica__plan *plan)
{
    if (plan && plan->release) plan->release(plan);
    if (!plan) return;
    free_bodies(plan);
    mica__arena_free(&plan->arena);
    mica__free(plan);
}
