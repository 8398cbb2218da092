/* Barriers and waits of a plan. Dispatches of one encoder run at once unless a barrier is
 * between them; a step of the CPU runs now, whatever the GPU is still at. What a step
 * touches is known by block, blocks of the arena by their range: one that another step
 * wrote, or that it writes and another touched, has to be waited for. */
#include "backend/metal/metal_lower.h"

typedef struct order_window {
    uint32_t first;             /* steps from here on may still be at work               */
    bool all;                   /* something unknown is: a scan, what was before a body  */
} order_window;

static bool blocks_meet(const mica__plan *plan, uint32_t a, uint32_t b)
{
    if (a == MICA__NO_BLOCK || b == MICA__NO_BLOCK) return false;
    if (a == b) return true;
    const mica__block *x = &plan->block[a], *y = &plan->block[b];
    if (x->place != MICA__AT_ARENA || y->place != MICA__AT_ARENA) return false;
    return x->offset < y->offset + y->nbytes && y->offset < x->offset + x->nbytes;
}

/* Is its scratch one more operand? */
static bool scratch_is_read(const mica__step *step)
{
    const mica__metal_code *code = step->kind == MICA__STEP_SCAN ? NULL : step->code;
    return code && code->found;
}

/* Does the step write (or also read) block? */
static bool step_touches(const mica__plan *plan, const mica__step *step, uint32_t block, bool writes_only)
{
    if (!(writes_only && scratch_is_read(step)) && blocks_meet(plan, step->workspace, block)) return true;
    if (blocks_meet(plan, step->anchor_block, block)) return true;
    for (uint32_t i = 0; i < step->n_out; i++)
        if (blocks_meet(plan, step->out[i].block, block)) return true;
    for (uint32_t i = 0; i < step->n_in && !writes_only; i++)
        if (blocks_meet(plan, step->in[i].block, block)) return true;
    return false;
}

/* Must the later step see the earlier one done? */
static bool steps_meet(const mica__plan *plan, const mica__step *earlier, const mica__step *later)
{
    for (uint32_t i = 0; i < later->n_in; i++)
        if (step_touches(plan, earlier, later->in[i].block, true)) return true;
    for (uint32_t i = 0; i < later->n_out; i++)
        if (step_touches(plan, earlier, later->out[i].block, false)) return true;
    return step_touches(plan, earlier, later->workspace, scratch_is_read(later)) ||
           step_touches(plan, earlier, later->anchor_block, false);
}

static bool is_dispatched(const mica__step *step)
{
    if (step->kind == MICA__STEP_SCAN) return false;
    const mica__metal_code *code = step->code;
    return code->n > 0;
}

static bool window_meets(const mica__plan *plan, const order_window *w, uint32_t number)
{
    if (w->all) return true;
    for (uint32_t i = w->first; i < number; i++)
        if (is_dispatched(&plan->step[i]) && steps_meet(plan, &plan->step[i], &plan->step[number])) return true;
    return false;
}

/* A body begins behind all that was before it, and its own last turn. */
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
            code->wait = window_meets(plan, &wait, i);
            if (code->wait) barrier = wait = (order_window){i, false}; /* nothing is at work any more */
        } else if (code->n > 0 && window_meets(plan, &barrier, i)) {
            code->dispatch[0].barrier = true;
            barrier = (order_window){i, false};
        }
    }
    return MICA_OK;
}
