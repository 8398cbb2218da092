/* Removes aliases, which only matter while gradients are built, and copies of values
 * that are row-major anyway. AFTER stays: it gives the planner an order. */
#include "graph/pass.h"
#include "graph/simplify.h"

static mica_status alias_rule(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *node = &rw->g->node[id];
    if (mica__op_get(node->op)->kind == MICA__ALIAS && node->op != MICA__OP_AFTER)
        mica__rewrite_replace(rw, id, node->in[0]);
    return MICA_OK;
}

mica_status mica__pass_alias(mica__graph *g, bool *changed) { return mica__rewrite_run(g, alias_rule, changed); }

static mica_status copies_rule(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *node = &rw->g->node[id];
    if (node->op != MICA__OP_COPY) return MICA_OK;
    switch (mica__op_get(rw->g->node[node->in[0]].op)->kind) {
    case MICA__MAKE:
    case MICA__MAP:
    case MICA__REDUCE:
    case MICA__FAMILY: mica__rewrite_replace(rw, id, node->in[0]); break;
    case MICA__SOURCE:
    case MICA__VIEW:
    case MICA__ALIAS:
    case MICA__LOOP: break;
    }
    return MICA_OK;
}

mica_status mica__pass_copies(mica__graph *g, bool *changed) { return mica__rewrite_run(g, copies_rule, changed); }
