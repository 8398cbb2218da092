/* view(map(a, b)) becomes map(view(a), view(b)). The element-wise op then has the shape
 * of its users and can be fused with them, and a slice is taken before the work instead
 * of after it.
 *
 * A view is pushed only if that is a gain: the op has no other user, the users of the view
 * can be fused with the op, and the op is not already fused with its inputs. A broadcast
 * repeats work, so it is pushed only if the work is small or the op takes few flops. A
 * reshape is pushed only if it needs no copy of the operands.
 *
 * Views are visited from the last to the first. Each is pushed as far as possible and
 * merged with the views it meets. So at most one view passes an op and the work is
 * linear. In the other order, stacks of views over chains of ops would cost the product
 * of both lengths. */
#include <string.h>

#include "graph/pass.h"

enum {
    PUSH_CHEAP = 2,            /* flops per element that memory traffic hides                */
    PUSH_SMALL = 16384,        /* flops that cost less than a separate kernel launch (~1 us) */
    PUSH_CHAIN = 8             /* limit of views followed to find strides                    */
};

/* Strides of a node as the planner will see them; false if strides need a copy. */
static bool push_strides(const mica__graph *g, uint32_t id, int64_t *strides, int64_t *offset)
{
    uint32_t chain[PUSH_CHAIN];
    int n = 0;
    for (; mica__op_get(g->node[id].op)->kind == MICA__VIEW; id = g->node[id].in[0]) {
        if (n == PUSH_CHAIN) return false;
        chain[n++] = id;
    }
    const mica__gnode *node = &g->node[id];
    memset(strides, 0, MICA_MAX_DIMS * sizeof *strides);
    *offset = 0;
    if (mica__op_get(node->op)->kind == MICA__ALIAS) return false;
    if (node->op == MICA__OP_IOTA) strides[((const mica__attr_iota *)node->attr)->axis] = 1;
    else if (node->leaf >= 0) memcpy(strides, g->leaf[node->leaf].strides, MICA_MAX_DIMS * sizeof *strides);
    else if (node->op != MICA__OP_FULL) mica__row_major(&node->spec, strides);
    while (n > 0) {
        const mica__gnode *view = &g->node[chain[--n]];
        if (!mica__view_apply(view, &g->node[view->in[0]].spec, strides, *offset, strides, offset)) return false;
    }
    return true;
}

/* Can strides express this view of node `of` (which has the shape of the view's input)? */
static bool push_is_free(const mica__graph *g, const mica__gnode *view, uint32_t of)
{
    int64_t strides[MICA_MAX_DIMS], offset;
    return push_strides(g, of, strides, &offset) &&
           mica__view_apply(view, &g->node[of].spec, strides, offset, strides, &offset);
}

/* Marks views of which every user can be fused with the op before the view, or is a
 * reshape that needs a copy (the pushed op then takes the place of the copy). */
static void push_mark(mica__rewrite *rw)
{
    const mica__graph *g = rw->g;
    for (uint32_t i = 0; i < g->n; i++) rw->mark[i] = mica__op_get(g->node[i].op)->kind == MICA__VIEW;
    for (uint32_t i = 0; i < g->n_out; i++) rw->mark[g->out[i]] = 0;
    for (uint32_t i = g->n; i-- > 0;) {
        const mica__gnode *user = &g->node[i];
        const mica__op_kind kind = mica__op_get(user->op)->kind;
        for (uint32_t k = 0; k < user->n_in; k++) {
            bool fuses = kind == MICA__MAP || kind == MICA__REDUCE;
            if (kind == MICA__VIEW && rw->mark[user->in[k]])
                fuses = rw->mark[i] || (user->op == MICA__OP_RESHAPE && !push_is_free(g, user, user->in[k]));
            if (!fuses) rw->mark[user->in[k]] = 0;
        }
    }
}

/* Flops per element; more for ops that are slower than their count. */
static int64_t push_cost(uint16_t op)
{
    switch (op) {
    case MICA__OP_SQRT:
    case MICA__OP_RSQRT:
    case MICA__OP_RECIPROCAL:
    case MICA__OP_DIV:
    case MICA__OP_FLOOR_DIV:
    case MICA__OP_MOD: return 8;
    default: return mica__op_get(op)->flops;
    }
}

static bool push_is_gain(const mica__rewrite *rw, const mica__gnode *view, uint32_t below)
{
    const mica__graph *g = rw->g;
    const mica__gnode *map = &g->node[below];
    mica__number value;
    for (uint32_t k = 0; k < map->n_in; k++) {
        const mica__op_kind kind = mica__op_get(g->node[map->in[k]].op)->kind;
        if ((kind == MICA__FAMILY || kind == MICA__REDUCE) && rw->uses[map->in[k]] == 1) return false;
    }
    switch ((int)view->op) {
    case MICA__OP_PERMUTE:
    case MICA__OP_SLICE: return true;
    case MICA__OP_BROADCAST: {
        const int64_t wide = mica__spec_size(&view->spec), cost = push_cost(map->op);
        if (wide <= PUSH_SMALL && wide * cost <= PUSH_SMALL) return true;
        return cost <= PUSH_CHEAP && wide / 2 <= mica__spec_size(&map->spec);
    }
    case MICA__OP_RESHAPE:
        for (uint32_t k = 0; k < map->n_in; k++)
            if (!mica__graph_constant(g, map->in[k], &value) && !push_is_free(g, view, map->in[k])) return false;
        return true;
    default: return false;
    }
}

/* The view of one operand; a constant becomes a constant of the view's shape. */
static mica_status push_operand(mica__rewrite *rw, uint32_t id, uint32_t operand, uint32_t *out)
{
    const mica__gnode *view = &rw->g->node[id];
    mica__number value;
    if (mica__graph_constant(rw->g, operand, &value)) {
        mica__attr_full attr = {view->spec, value};
        attr.spec.dtype = rw->g->node[operand].spec.dtype;
        return mica__rewrite_add(rw, MICA__OP_FULL, NULL, 0, &attr, sizeof attr, out);
    }
    MICA_TRY(mica__rewrite_add(rw, (mica__op)view->op, &operand, 1, view->attr, view->attr_size, out));
    rw->mark[*out] = 1;
    return MICA_OK;
}

static bool can_push(const mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *view = &rw->g->node[id];
    const uint32_t below = view->in[0];
    const mica__gnode *map = &rw->g->node[below];
    if (mica__op_get(map->op)->kind != MICA__MAP || map->n_in > 3 || rw->uses[below] != 1) return false;
    /* a copy exists for its layout; a slice must not hide an index that is out of range */
    if (map->op == MICA__OP_COPY || map->op == MICA__OP_CHECK_INDEX) return false;
    if (!rw->mark[id] && view->op != MICA__OP_SLICE) return false; /* a slice also reduces the work */
    if (view->op == MICA__OP_BROADCAST && rw->uses[id] != 1) return false;
    return push_is_gain(rw, view, below);
}

static mica_status push_view(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode map = rw->g->node[rw->g->node[id].in[0]];
    uint32_t in[3];
    for (uint32_t k = 0; k < map.n_in; k++) {
        uint32_t same = 0;
        while (same < k && map.in[same] != map.in[k]) same++;
        if (same < k) in[k] = in[same];
        else MICA_TRY(push_operand(rw, id, map.in[k], &in[k]));
    }
    return mica__rewrite_by(rw, id, (mica__op)map.op, in, map.n_in, map.attr, map.attr_size);
}

/* The inner loop visits the appended nodes: views of operands and merged views. */
mica_status mica__push_views(mica__graph *g, bool *changed)
{
    mica__rewrite rw;
    MICA_TRY(mica__rewrite_begin(&rw, g));
    push_mark(&rw);
    mica_status status = MICA_OK;
    for (uint32_t i = g->n; i-- > 0 && status == MICA_OK;) {
        if (rw.uses[i] == 0 || !mica__rewrite_is_view(&rw, i) || !can_push(&rw, i)) continue;
        uint32_t next = g->n;
        status = push_view(&rw, i);
        for (; next < g->n && status == MICA_OK; next++) {
            if (rw.uses[next] == 0 || !mica__rewrite_is_view(&rw, next)) continue;
            status = mica__merge_view(&rw, next);
            if (status == MICA_OK && rw.uses[next] != 0 && can_push(&rw, next)) status = push_view(&rw, next);
        }
    }
    return mica__rewrite_end(&rw, status, changed);
}
