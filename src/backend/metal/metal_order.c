/* Places the barriers and waits of a plan. Dispatches of one encoder run concurrently unless a
 * barrier separates them; a CPU step runs immediately, while the GPU may still run earlier steps.
 * Dependences are found by block; arena blocks are compared by their byte range. A step must wait
 * if it reads a block that an earlier step wrote, or writes a block that an earlier step used. */
#include "backend/metal/metal_lower.h"

typedef struct order_window {
    uint32_t first;             /* steps from this one on may still be running           */
    bool all;                   /* unknown steps may be running: of a scan, or before a body */
} order_window;

static bool blocks_overlap(const mica__plan *plan, uint32_t a, uint32_t b)
{
    if (a == MICA__NO_BLOCK || b == MICA__NO_BLOCK) return false;
    if (a == b) return true;
    const mica__block *x = &plan->block[a], *y = &plan->block[b];
    if (x->place != MICA__AT_ARENA || y->place != MICA__AT_ARENA) return false;
    return x->offset < y->offset + y->nbytes && y->offset < x->offset + x->nbytes;
}

/* Does the step read the shared scratch of an earlier step? */
static bool scratch_is_read(const mica__step *step)
{
    const mica__metal_code *code = step->kind == MICA__STEP_SCAN ? NULL : step->code;
    return code && code->found;
}

/* Does the step write block, or (writes_only false) use it at all? */
static bool step_uses_block(const mica__plan *plan, const mica__step *step, uint32_t block, bool writes_only)
{
    if (!(writes_only && scratch_is_read(step)) && blocks_overlap(plan, step->workspace, block)) return true;
    if (blocks_overlap(plan, step->anchor_block, block)) return true;
    for (uint32_t i = 0; i < step->n_out; i++)
        if (blocks_overlap(plan, step->out[i].block, block)) return true;
    for (uint32_t i = 0; i < step->n_in && !writes_only; i++)
        if (blocks_overlap(plan, step->in[i].block, block)) return true;
    return false;
}

/* Must the later step wait for the earlier one? */
static bool steps_conflict(const mica__plan *plan, const mica__step *earlier, const mica__step *later)
{
    for (uint32_t i = 0; i < later->n_in; i++)
        if (step_uses_block(plan, earlier, later->in[i].block, true)) return true;
    for (uint32_t i = 0; i < later->n_out; i++)
        if (step_uses_block(plan, earlier, later->out[i].block, false)) return true;
    return step_uses_block(plan, earlier, later->workspace, scratch_is_read(later)) ||
           step_uses_block(plan, earlier, later->anchor_block, false);
}

static bool is_dispatched(const mica__step *step)
{
    if (step->kind == MICA__STEP_SCAN) return false;
    const mica__metal_code *code = step->code;
    return code->n > 0;
}

static bool window_conflicts(const mica__plan *plan, const order_window *w, uint32_t number)
{
    if (w->all) return true;
    for (uint32_t i = w->first; i < number; i++)
        if (is_dispatched(&plan->step[i]) && steps_conflict(plan, &plan->step[i], &plan->step[number])) return true;
    return false;
}

/* The first step of a body waits for all earlier steps and for the previous iteration. */
mica_status mica__metal_order(mica__plan *plan, bool body)
{
    order_window barrier = {0, body}, wait = {0, body};
    for (uint32_t i = 0; i < plan->n_step; i++) {
        const mica__step *step = &plan->step[i];
        if (step->kind == MICA__STEP_SCAN) {
            barrier.all = wait.all = true;
            continue;
        }
        mica__metal_code *code = step->code;
        if (code->cpu) {
            code->wait = window_conflicts(plan, &wait, i);
            if (code->wait) barrier = wait = (order_window){i, false}; /* the GPU is idle here */
        } else if (code->n > 0 && window_conflicts(plan, &barrier, i)) {
            code->dispatch[0].barrier = true;
            barrier = (order_window){i, false};
        }
    }
    return MICA_OK;
}
