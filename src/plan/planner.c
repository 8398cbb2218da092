/* The stages of planning, one after the other; bodies of scans first, because a
 * scan's step needs to know the memory of its body. */
#include "plan/planner.h"

#include <string.h>

#include "base/alloc.h"
#include "plan/work.h"

static mica_status make(mica__graph *g, const mica__target *target, uint32_t passes, bool body, mica__arena *arena,
                        mica__plan *plan);

static mica_status make_bodies(mica__work *w, mica__plan *plan)
{
    for (uint32_t i = 0; i < plan->n_step; i++) {
        mica__step *step = &plan->step[i];
        if (step->kind != MICA__STEP_SCAN) continue;
        step->body = mica__arena_alloc(w->arena, sizeof *step->body);
        if (!step->body) return mica__fail_memory("plan: the body of a scan", sizeof *step->body);
        MICA_TRY(make(w->g->node[step->node[0]].body, w->target, w->passes, true, w->arena, step->body));
    }
    return MICA_OK;
}

static mica_status run_stages(mica__work *w, mica__graph *g, mica__plan *plan)
{
    MICA_TRY(mica__plan_legal(w, g));
    MICA_TRY(mica__plan_fuse(w));
    MICA_TRY(mica__plan_order(w, plan));
    plan->graph = w->g;
    MICA_TRY(make_bodies(w, plan));
    return mica__plan_layout(w, plan);
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
