/* Stage 4 of planning: turns each group into a step: its nodes in the order that plan.h
 * specifies, its operands and its costs. */
#include <string.h>

#include "plan/work.h"

static uint64_t bytes_touched(const mica__operand *o)
{
    uint64_t n = mica_dtype_size((mica_dtype)o->spec.dtype);
    for (int d = 0; d < o->spec.ndim; d++)
        if (o->strides[d] != 0 || o->spec.shape[d] == 0) n *= (uint64_t)o->spec.shape[d];
    return o->block == MICA__NO_BLOCK && o->make != MICA__NO_NODE ? 0 : n;
}

static void fill_operand(const mica__work *w, uint32_t node, mica__operand *o)
{
    const mica__ref *ref = &w->ref[node];
    o->node = node;
    o->block = MICA__NO_BLOCK; /* the layout sets it, unless the value is computed on the fly */
    o->make = mica__kind_of(w->g, ref->root) == MICA__MAKE ? ref->root : MICA__NO_NODE;
    o->spec = w->g->node[node].spec;
    o->offset = ref->offset;
    memcpy(o->strides, ref->strides, sizeof o->strides);
}

static void add_operand(const mica__work *w, mica__step *step, uint32_t node, bool always)
{
    for (uint32_t i = 0; i < step->n_in && !always; i++)
        if (step->in[i].node == node) return;
    fill_operand(w, node, &step->in[step->n_in++]);
}

static uint64_t node_flops(const mica__work *w, uint32_t id)
{
    const mica__gnode *node = &w->g->node[id];
    const mica__op_info *info = mica__op_get(node->op);
    const mica__spec *few[8];
    const mica__spec **in = few;
    mica__arena more;
    mica__arena_init(&more);
    if (node->n_in > 8) in = mica__arena_array(&more, node->n_in, sizeof *in);
    uint64_t flops = 0;
    if (in) {
        for (uint32_t k = 0; k < node->n_in; k++) in[k] = &w->g->node[node->in[k]].spec;
        flops = info->cost(info, in, node->n_in, node->attr, &node->spec);
    }
    mica__arena_free(&more);
    return flops;
}

static bool in_group(const mica__work *w, uint32_t node, uint32_t group)
{
    return mica__computes(w->g, node) && w->group[node] == group;
}

/* Lists the members in the order that plan.h specifies: the anchor first; or the nodes
 * before the fold, the fold, the nodes after it. */
static void list_members(const mica__work *w, const mica__order *d, uint32_t group, mica__step *step)
{
    const mica__group *q = &w->groups[group];
    const uint32_t *member = d->member + d->member_start[group];
    const uint32_t n = d->member_start[group + 1] - d->member_start[group];
    const uint32_t head = q->anchor != MICA__NO_NODE ? q->anchor : q->fold;
    if (q->anchor != MICA__NO_NODE) step->node[step->n_node++] = head;
    if (q->fold != MICA__NO_NODE) {
        for (uint32_t i = 0; i < n; i++)
            if (member[i] != head && w->phase[member[i]] == MICA__BEFORE_FOLD) step->node[step->n_node++] = member[i];
        step->node[step->n_node++] = head;
    }
    for (uint32_t i = 0; i < n; i++)
        if (member[i] != head && (q->fold == MICA__NO_NODE || w->phase[member[i]] == MICA__AFTER_FOLD))
            step->node[step->n_node++] = member[i];
}

static mica__step_kind kind_of_step(const mica__work *w, const mica__group *q)
{
    if (q->anchor != MICA__NO_NODE)
        return w->g->node[q->anchor].op == MICA__OP_SCAN ? MICA__STEP_SCAN : MICA__STEP_FAMILY;
    return q->fold != MICA__NO_NODE ? MICA__STEP_REDUCE : MICA__STEP_MAP;
}

/* Upper bound of the operands of a step: the inputs of all members. */
static uint32_t most_operands(const mica__work *w, const mica__order *order, uint32_t group)
{
    uint32_t n = 0;
    for (uint32_t m = order->member_start[group]; m < order->member_start[group + 1]; m++)
        n += w->g->node[order->member[m]].n_in;
    return n;
}

/* Fills in[] with the values that the step reads from outside. An input that is a member is replaced
 * by its root, because members read each other as written. */
static void list_operands(mica__work *w, uint32_t group, mica__step *step)
{
    for (uint32_t i = 0; i < step->n_node; i++) {
        mica__gnode *node = &w->g->node[step->node[i]];
        const bool anchor = step->node[i] == w->groups[group].anchor;
        for (uint32_t k = 0; k < node->n_in; k++) {
            const uint32_t root = w->ref[node->in[k]].root;
            if (!anchor && in_group(w, root, group)) node->in[k] = root;
            else add_operand(w, step, node->in[k], anchor);
        }
        if (anchor) step->n_anchor_in = step->n_in;
    }
}

static bool is_written(const mica__work *w, uint32_t node)
{
    return w->groups[w->group[node]].root == node || w->result[node];
}

static mica_status list_results(mica__work *w, mica__step *step)
{
    uint32_t n = 0;
    if (step->kind == MICA__STEP_SCAN) {
        const mica__attr_scan *attr = w->g->node[step->node[0]].attr;
        n = (uint32_t)(attr->n_carry + attr->n_y);
    } else {
        for (uint32_t i = 0; i < step->n_node; i++) n += is_written(w, step->node[i]);
    }
    step->out = mica__arena_array(w->arena, n, sizeof *step->out);
    if (!step->out) return mica__fail_memory("plan: a step", n * sizeof *step->out);
    for (uint32_t i = 0; step->kind != MICA__STEP_SCAN && i < step->n_node; i++)
        if (is_written(w, step->node[i])) fill_operand(w, step->node[i], &step->out[step->n_out++]);
    for (; step->n_out < n; step->n_out++) step->out[step->n_out].node = MICA__NO_NODE; /* the layout finds it */
    return MICA_OK;
}

/* in: scratch with room for the operands of any step. */
static mica_status make_step(mica__work *w, const mica__order *order, uint32_t group, mica__operand *in,
                             mica__step *step)
{
    step->kind = kind_of_step(w, &w->groups[group]);
    step->anchor_block = step->workspace = MICA__NO_BLOCK;
    step->scratch_from = MICA__NO_NODE;
    step->node = mica__arena_array(w->arena, w->groups[group].n_node, sizeof *step->node);
    if (!step->node) return mica__fail_memory("plan: a step", w->groups[group].n_node * sizeof *step->node);
    list_members(w, order, group, step);
    step->in = in;
    list_operands(w, group, step);
    step->in = mica__arena_copy(w->arena, in, step->n_in * sizeof *in);
    if (!step->in) return mica__fail_memory("plan: a step", step->n_in * sizeof *in);
    MICA_TRY(list_results(w, step));
    for (uint32_t i = 0; i < step->n_node; i++) step->flops += node_flops(w, step->node[i]);
    if (mica__overwrites(w, step->node[0]) != MICA__NO_NODE) { /* an UPDATE moves the values, not the whole state */
        step->bytes_read = bytes_touched(&step->in[1]);
        step->bytes_written = (uint64_t)mica__spec_size(&step->in[1].spec) *
                              mica_dtype_size((mica_dtype)w->g->node[step->node[0]].spec.dtype);
        return MICA_OK;
    }
    for (uint32_t i = 0; i < step->n_in; i++) step->bytes_read += bytes_touched(&step->in[i]);
    for (uint32_t i = 0; i < step->n_out && step->kind != MICA__STEP_SCAN; i++)
        step->bytes_written += bytes_touched(&step->out[i]);
    return MICA_OK;
}

mica_status mica__plan_steps(mica__work *w, const mica__order *order, mica__plan *plan)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < w->n_group; i++) {
        const uint32_t n = most_operands(w, order, i);
        if (n > most) most = n;
    }
    mica__operand *in = mica__arena_array(&w->scratch, most + 1, sizeof *in);
    plan->step = mica__arena_array(w->arena, w->n_group + 1, sizeof *plan->step);
    if (!in || !plan->step) return mica__fail_memory("plan: steps", w->n_group * sizeof *plan->step);
    plan->n_step = w->n_group;
    for (uint32_t i = 0; i < w->n_group; i++) MICA_TRY(make_step(w, order, order->group[i], in, &plan->step[i]));
    return MICA_OK;
}
