/* The compact graph: appending nodes, redirecting uses, removing dead nodes. */
#include "graph/graph.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/pass.h"

mica_status mica__graph_new(mica__arena *arena, mica__graph **out)
{
    mica__graph *g = mica__arena_alloc(arena, sizeof *g);
    if (!g) return mica__fail_memory("graph", sizeof *g);
    g->arena = arena;
    *out = g;
    return MICA_OK;
}

/* The old list stays allocated in the arena. Doubling keeps that waste below the size of the new list. */
static mica_status graph_room(mica__graph *g)
{
    if (g->n < g->cap) return MICA_OK;
    if (g->cap > UINT32_MAX / 2) return mica__fail(MICA_ERR_SIZE, "graph: more than %u nodes", g->cap);
    const uint32_t cap = g->cap ? g->cap * 2 : 32;
    mica__gnode *node = mica__arena_array(g->arena, cap, sizeof *node);
    if (!node) return mica__fail_memory("graph: nodes", cap * sizeof *node);
    if (g->n) memcpy(node, g->node, g->n * sizeof *node);
    g->node = node;
    g->cap = cap;
    return MICA_OK;
}

mica_status mica__graph_infer(const mica__graph *g, const mica__op_info *info, const uint32_t *in, uint32_t n_in,
                              const void *attr, mica__spec *out)
{
    const mica__spec *few[16] = {NULL};
    const mica__spec **specs = few;
    if (n_in > sizeof few / sizeof few[0]) {
        specs = mica__alloc_zero(n_in, sizeof *specs);
        if (!specs) return mica__fail_memory("graph: inputs", n_in * sizeof *specs);
    }
    for (uint32_t k = 0; k < n_in; k++) specs[k] = &g->node[in[k]].spec;
    *out = (mica__spec){0};
    const mica_status status = info->shape(info, specs, n_in, attr, out);
    if (specs != few) mica__free(specs);
    return status;
}

mica_status mica__graph_add(mica__graph *g, mica__op op, const uint32_t *in, uint32_t n_in, const void *attr,
                            uint32_t attr_size, uint32_t *id)
{
    const mica__op_info *info = mica__op_get((uint16_t)op);
    if (info->n_in >= 0 && n_in != (uint32_t)info->n_in)
        return mica__fail(MICA_ERR_INTERNAL, "graph: %s with %u inputs instead of %d", info->name, n_in, info->n_in);
    for (uint32_t k = 0; k < n_in; k++)
        if (in[k] >= g->n) return mica__fail(MICA_ERR_INTERNAL, "graph: %s of %%%u: no such node", info->name, in[k]);
    mica__gnode node = {.op = (uint16_t)op, .n_in = n_in, .attr_size = attr_size, .leaf = -1};
    MICA_TRY(mica__graph_infer(g, info, in, n_in, attr, &node.spec));
    MICA_TRY(graph_room(g));
    if (n_in) node.in = mica__arena_copy(g->arena, in, n_in * sizeof *in);
    if (attr_size) node.attr = mica__arena_copy(g->arena, attr, attr_size);
    if (g->arena->failed) return mica__fail_memory("graph: a node", n_in * sizeof *in + attr_size);
    if (op == MICA__OP_PARAM) node.leaf = (int32_t)((const mica__attr_param *)attr)->index;
    g->node[g->n] = node;
    *id = g->n++;
    return MICA_OK;
}

void mica__graph_redirect(mica__graph *g, const uint32_t *map)
{
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < g->node[i].n_in; k++) g->node[i].in[k] = map[g->node[i].in[k]];
    for (uint32_t i = 0; i < g->n_out; i++) g->out[i] = map[g->out[i]];
}

/* ---------------------------------------------------------------- sweep ---- */

#define SWEEP_DEAD UINT32_MAX          /* no result needs it            */
#define SWEEP_ALIVE (UINT32_MAX - 1)   /* needed, has no number yet     */
#define SWEEP_OPEN (UINT32_MAX - 2)    /* its inputs are being numbered */

typedef struct sweep {
    uint32_t *number;          /* per node: one of the states above, then its new number */
    uint32_t *stack;           /* nodes whose inputs are being visited                   */
    uint32_t *next;            /* per stack entry: the input to visit next               */
    mica__gnode *node;         /* in the new order                                       */
    uint32_t n;
} sweep;

static void sweep_mark(const mica__graph *g, sweep *s)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < g->n; i++) s->number[i] = SWEEP_DEAD;
    for (uint32_t i = 0; i < g->n_out; i++) {
        if (s->number[g->out[i]] != SWEEP_DEAD) continue;
        s->number[g->out[i]] = SWEEP_ALIVE;
        s->stack[depth++] = g->out[i];
        while (depth > 0) {
            const mica__gnode *node = &g->node[s->stack[--depth]];
            for (uint32_t k = 0; k < node->n_in; k++) {
                if (s->number[node->in[k]] != SWEEP_DEAD) continue;
                s->number[node->in[k]] = SWEEP_ALIVE;
                s->stack[depth++] = node->in[k];
            }
        }
    }
}

/* Numbers the inputs that have no number yet, then the node. The caller starts from
 * the nodes in their old order, so that order is kept wherever it is legal. */
static mica_status sweep_number(const mica__graph *g, sweep *s, uint32_t from)
{
    uint32_t depth = 1;
    s->stack[0] = from;
    s->next[0] = 0;
    s->number[from] = SWEEP_OPEN;
    while (depth > 0) {
        const uint32_t id = s->stack[depth - 1];
        const mica__gnode *node = &g->node[id];
        if (s->next[depth - 1] == node->n_in) {
            s->node[s->n] = *node;
            s->number[id] = s->n++;
            depth--;
            continue;
        }
        const uint32_t in = node->in[s->next[depth - 1]++];
        if (s->number[in] == SWEEP_OPEN) return mica__fail(MICA_ERR_INTERNAL, "graph: %%%u depends on itself", in);
        if (s->number[in] != SWEEP_ALIVE) continue;
        s->number[in] = SWEEP_OPEN;
        s->stack[depth] = in;
        s->next[depth++] = 0;
    }
    return MICA_OK;
}

mica_status mica__graph_sweep(mica__graph *g)
{
    sweep s = {.number = mica__alloc_zero(g->n + 1, 3 * sizeof *s.number),
               .node = mica__alloc((g->n + (size_t)1) * sizeof *s.node)};
    mica_status status = MICA_OK;
    if (!s.number || !s.node) {
        status = mica__fail_memory("graph: sweep", (g->n + 1) * (sizeof *s.node + 3 * sizeof *s.number));
    } else {
        s.stack = s.number + g->n + 1;
        s.next = s.stack + g->n + 1;
        sweep_mark(g, &s);
        for (uint32_t i = 0; i < g->n && status == MICA_OK; i++)
            if (s.number[i] == SWEEP_ALIVE) status = sweep_number(g, &s, i);
    }
    if (status == MICA_OK) {
        for (uint32_t i = 0; i < s.n; i++)
            for (uint32_t k = 0; k < s.node[i].n_in; k++) s.node[i].in[k] = s.number[s.node[i].in[k]];
        for (uint32_t i = 0; i < g->n_out; i++) g->out[i] = s.number[g->out[i]];
        if (s.n) memcpy(g->node, s.node, s.n * sizeof *s.node);
        g->n = s.n;
    }
    mica__free(s.number);
    mica__free(s.node);
    return status;
}

#undef SWEEP_DEAD
#undef SWEEP_ALIVE
#undef SWEEP_OPEN

/* ------------------------------------------------------------- constants ---- */

bool mica__graph_constant(const mica__graph *g, uint32_t id, mica__number *value)
{
    while (mica__op_get(g->node[id].op)->kind == MICA__VIEW) id = g->node[id].in[0];
    const mica__gnode *node = &g->node[id];
    if (node->op != MICA__OP_FULL) return false;
    const mica_dtype dtype = (mica_dtype)node->spec.dtype;
    const mica__number raw = ((const mica__attr_full *)node->attr)->value;
    *value = (mica__number){0};
    if (mica__is_float(dtype)) value->f = mica__round_f64(dtype, raw.f);
    else value->i = mica__wrap_i64(dtype, raw.i);
    return true;
}
