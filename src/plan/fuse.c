/* Stage 2 of planning: decides which nodes share a kernel.
 *
 * Nodes are visited users first. A node joins the group of its users if all of them
 * are in one group and read it exactly as it is written. Then no other group needs
 * its value, so it needs no memory (unless it is a result), and no path can leave the
 * group and return. A reduction or a family may be the head of a group of element-wise
 * nodes (its epilogue). Element-wise nodes before a reduction are its prologue. */
#include "plan/work.h"

/* Lists the users of each root: a user of a view counts as a user of its root. Order-only
 * dependencies (the second input of AFTER) count as users too. */
static mica_status find_users(mica__work *w)
{
    const mica__graph *g = w->g;
    size_t edges = 0;
    w->user_start = mica__arena_array(&w->scratch, g->n + 2, sizeof *w->user_start);
    if (!w->user_start) return mica__fail_memory("plan: users", (g->n + 2) * sizeof *w->user_start);
    for (uint32_t i = 0; i < g->n; i++)
        if (mica__computes(g, i) || g->node[i].op == MICA__OP_AFTER)
            for (uint32_t k = 0; k < g->node[i].n_in; k++, edges++) w->user_start[w->ref[g->node[i].in[k]].root + 2]++;
    for (uint32_t i = 2; i < g->n + 2; i++) w->user_start[i] += w->user_start[i - 1];
    w->user = mica__arena_array(&w->scratch, edges + 1, sizeof *w->user);
    if (!w->user) return mica__fail_memory("plan: users", edges * sizeof *w->user);
    for (uint32_t i = 0; i < g->n; i++)
        if (mica__computes(g, i) || g->node[i].op == MICA__OP_AFTER)
            for (uint32_t k = 0; k < g->node[i].n_in; k++)
                w->user[w->user_start[w->ref[g->node[i].in[k]].root + 1]++] = i;
    return MICA_OK;
}

/* Does user read node p only as it is written? */
static bool reads_as_written(const mica__work *w, uint32_t user, uint32_t p)
{
    const mica__gnode *u = &w->g->node[user];
    for (uint32_t k = 0; k < u->n_in; k++)
        if (w->ref[u->in[k]].root == p && !(u->in[k] == p || mica__ref_is_root(w, u->in[k]))) return false;
    return true;
}

/* Number of operands that node p adds to a group. An operand that the group counted
 * before is not counted again, unless another group counted it in between. So the
 * total may be too high, never too low. */
static uint32_t new_operands(const mica__work *w, uint32_t p, uint32_t group)
{
    const mica__gnode *node = &w->g->node[p];
    uint32_t n = w->result[p] ? 1 : 0;
    for (uint32_t k = 0; k < node->n_in; k++) n += w->operand_of[node->in[k]] != group;
    return n;
}

static void count_operands(mica__work *w, uint32_t p, uint32_t group)
{
    w->groups[group].n_operand += new_operands(w, p, group);
    for (uint32_t k = 0; k < w->g->node[p].n_in; k++) w->operand_of[w->g->node[p].in[k]] = group;
}

/* Does node p read memory that an UPDATE overwrites? Then p must run before the UPDATE, but its
 * users may have to run after it. */
static bool reads_overwritten(const mica__work *w, uint32_t p)
{
    for (uint32_t k = 0; k < w->g->node[p].n_in; k++)
        if (w->overwritten[w->ref[w->g->node[p].in[k]].root]) return true;
    return false;
}

/* Can element-wise node p, with its operands, be part of the epilogue of a family? */
static bool can_follow(const mica__work *w, uint32_t family, uint32_t p)
{
    const mica__graph *g = w->g;
    bool may = !w->target->can_follow || w->target->can_follow(g, family, p);
    for (uint32_t k = 0; may && w->target->can_follow && k < g->node[p].n_in; k++)
        may = w->target->can_follow(g, family, w->ref[g->node[p].in[k]].root);
    return may;
}

/* Can family p be the head of group q? */
static bool can_lead(const mica__work *w, uint32_t p, const mica__group *q)
{
    bool may = w->target->takes_epilogue(w->g->node[p].op);
    for (uint32_t i = q->newest; may && i != MICA__NO_NODE; i = w->joined[i]) may = can_follow(w, p, i);
    return may;
}

/* Can node p join the group of its users? Returns the group and the phase. */
static bool can_join(const mica__work *w, uint32_t p, uint32_t *group, uint8_t *phase)
{
    const mica__graph *g = w->g;
    const mica__op_kind kind = mica__kind_of(g, p);
    uint32_t into = MICA__NO_NODE;
    uint8_t at = 0;
    if (g->node[p].op == MICA__OP_SCAN || w->user_start[p] == w->user_start[p + 1]) return false;
    if (reads_overwritten(w, p)) return false;
    for (uint32_t i = w->user_start[p]; i < w->user_start[p + 1]; i++) {
        const uint32_t user = w->user[i];
        const mica__op_kind user_kind = mica__kind_of(g, user);
        if (user_kind != MICA__MAP && user_kind != MICA__REDUCE) return false;
        if (!reads_as_written(w, user, p)) return false;
        const uint8_t user_phase = user_kind == MICA__REDUCE ? MICA__BEFORE_FOLD : w->phase[user];
        if (into != MICA__NO_NODE && (into != w->group[user] || at != user_phase)) return false;
        into = w->group[user];
        at = user_phase;
    }
    const mica__group *q = &w->groups[into];
    /* n_operand - 1: p becomes an internal value, so it no longer counts as an operand */
    if (q->n_node + 1 > w->target->max_nodes) return false;
    if (q->n_operand - 1 + new_operands(w, p, into) > w->target->max_operands) return false;
    if (kind == MICA__MAP) {
        if (w->result[p] && (q->fold != MICA__NO_NODE || q->anchor != MICA__NO_NODE)) return false;
        if (q->anchor != MICA__NO_NODE && !can_follow(w, q->anchor, p)) return false;
    } else {
        /* p becomes the head of the group, of which there can be only one */
        if (w->result[p] || q->fold != MICA__NO_NODE || q->anchor != MICA__NO_NODE) return false;
        if (kind == MICA__FAMILY && !can_lead(w, p, q)) return false;
        if (!mica__shape_equal(&g->node[p].spec, &g->node[q->root].spec)) return false;
    }
    *group = into;
    *phase = at;
    return true;
}

static void set_group_head(mica__work *w, uint32_t p, mica__group *q)
{
    if (mica__kind_of(w->g, p) == MICA__FAMILY) {
        q->anchor = p;
        return;
    }
    q->fold = p;
    /* the nodes that joined before run after the fold */
    for (uint32_t i = q->newest; i != MICA__NO_NODE; i = w->joined[i]) w->phase[i] = MICA__AFTER_FOLD;
    w->phase[p] = MICA__BEFORE_FOLD;
}

mica_status mica__plan_fuse(mica__work *w)
{
    const mica__graph *g = w->g;
    MICA_TRY(find_users(w));
    w->group = mica__arena_array(&w->scratch, g->n + 1, sizeof *w->group);
    w->phase = mica__arena_array(&w->scratch, g->n + 1, sizeof *w->phase);
    w->groups = mica__arena_array(&w->scratch, g->n + 1, sizeof *w->groups);
    w->joined = mica__arena_array(&w->scratch, g->n + 1, sizeof *w->joined);
    w->operand_of = mica__arena_array(&w->scratch, g->n + 1, sizeof *w->operand_of);
    if (w->scratch.failed) return mica__fail_memory("plan: groups", g->n * sizeof *w->groups);
    for (uint32_t i = 0; i < g->n; i++) w->group[i] = w->joined[i] = w->operand_of[i] = MICA__NO_NODE;
    for (uint32_t p = g->n; p-- > 0;) {
        uint32_t into;
        uint8_t phase;
        if (!mica__computes(g, p)) continue;
        const mica__op_kind kind = mica__kind_of(g, p);
        if ((w->passes & MICA_PASS_FUSE) && can_join(w, p, &into, &phase)) {
            mica__group *q = &w->groups[into];
            w->group[p] = into;
            w->phase[p] = phase;
            q->n_node++;
            q->n_operand--;
            if (kind != MICA__MAP) set_group_head(w, p, q);
            w->joined[p] = q->newest;
            q->newest = p;
        } else {
            w->group[p] = w->n_group;
            w->groups[w->n_group++] = (mica__group){
                .root = p,
                .anchor = kind == MICA__FAMILY || g->node[p].op == MICA__OP_SCAN ? p : MICA__NO_NODE,
                .fold = kind == MICA__REDUCE ? p : MICA__NO_NODE,
                .n_node = 1,
                .n_operand = w->result[p] ? 0 : 1, /* the root is always written */
                .newest = p,
            };
        }
        count_operands(w, p, w->group[p]);
    }
    return MICA_OK;
}
