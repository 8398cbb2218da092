/* The stages of planning, one after the other; bodies of scans first, because a
 * scan's step needs to know the memory of its body. */
#include "plan/planner.h"

#include <string.h>

#include "base/alloc.h"
#include "plan/work.h"

static mica_status make(mica__graph *g, const mica__target *target, uint32_t passes, bool body, mica__arena *arena,
                        mica__plan *plan);

static mica_status make_bodies(mica__work *w)
{
    w->body_plan = mica__arena_array(&w->scratch, w->g->n + 1, sizeof(mica__plan *));
    if (!w->body_plan) return mica__fail_memory("plan: bodies of scans", w->g->n * sizeof(mica__plan *));
    for (uint32_t i = 0; i < w->g->n; i++) {
        if (w->g->node[i].op != MICA__OP_SCAN) continue;
        mica__plan *body = mica__arena_alloc(w->arena, sizeof *body);
        if (!body) return mica__fail_memory("plan: the body of a scan", sizeof *body);
        MICA_TRY(make(w->g->node[i].body, w->target, w->passes, true, w->arena, body));
        w->body_plan[i] = body;
    }
    return MICA_OK;
}

static mica_status arrange(mica__work *w, bool depth_first, mica__plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->graph = w->g;
    MICA_TRY(mica__plan_order(w, depth_first, plan));
    for (uint32_t i = 0; i < plan->n_step; i++)
        if (plan->step[i].kind == MICA__STEP_SCAN) plan->step[i].body = w->body_plan[plan->step[i].node[0]];
    return mica__plan_layout(w, plan);
}

static mica_status run_stages(mica__work *w, mica__graph *g, mica__plan *plan)
{
    MICA_TRY(mica__plan_legal(w, g));
    MICA_TRY(mica__plan_fuse(w));
    MICA_TRY(make_bodies(w));
    MICA_TRY(arrange(w, false, plan));
    if (!(w->passes & MICA_PASS_ORDER)) return MICA_OK;
    mica__plan other;
    MICA_TRY(arrange(w, true, &other));
    if (other.peak_bytes < plan->peak_bytes) *plan = other;
    return MICA_OK;
}

static mica_status make(mica__graph *g, const mica__target *target, uint32_t passes, bool body, mica__arena *arena,
                        mica__plan *plan)
{
    mica__work w = {.arena = arena, .target = target, .passes = passes & target->passes, .body = body};
    mica__arena_init(&w.scratch);
    const mica_status status = run_stages(&w, g, plan);
    mica__arena_free(&w.scratch);
    return status;
}

mica_status mica__plan_new(mica__graph *g, const mica__target *target, uint32_t passes, mica__plan **out)
{
    *out = NULL;
    mica__plan *plan = mica__alloc_zero(1, sizeof *plan);
    if (!plan) return mica__fail_memory("plan", sizeof *plan);
    const mica_status status = make(g, target, passes, false, g->arena, plan);
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

/* A body's plan lies in its parent's arena; its own holds what the backend
 * prepared for its steps. */
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
    if (!plan) return;
    free_bodies(plan);
    mica__arena_free(&plan->arena);
    mica__free(plan);
}
