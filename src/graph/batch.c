/* See batch.h. One walk over a copy of the body finds the nodes whose first axis is the batch; a second
 * walk changes their shapes to fewer rows. */
#include "graph/batch.h"

#include <string.h>

/* One pass over a copy of the body of a scan. */
typedef struct batch_cut {
    mica__graph *g;
    int64_t batch, rows;
    bool *has;                  /* per node: its first axis is the batch                 */
} batch_cut;

typedef enum batch_rule {
    BATCH_NONE,                 /* the node has no batch                                 */
    BATCH_ROWS,                 /* each row depends on the same row of its inputs only   */
    BATCH_MIXED                 /* rows depend on other rows                             */
} batch_rule;

static bool first_is_batch(const batch_cut *c, const mica__spec *spec)
{
    return spec->ndim > 0 && spec->shape[0] == c->batch;
}

int64_t mica__batch_size(const mica__graph *body, uint32_t n_carry)
{
    if (n_carry == 0 || body->leaf[0].spec.ndim == 0) return 0;
    for (uint32_t i = 1; i < n_carry; i++)
        if (body->leaf[i].spec.ndim == 0 || body->leaf[i].spec.shape[0] != body->leaf[0].spec.shape[0]) return 0;
    return body->leaf[0].spec.shape[0];
}

/* Number of inputs that have the batch. */
static uint32_t inputs_with(const batch_cut *c, const mica__gnode *node)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < node->n_in; k++) n += c->has[node->in[k]];
    return n;
}

/* Broadcasts a new first axis, or one of size 1, over the batch: each row has a copy. */
static batch_rule broadcast_rule(const batch_cut *c, const mica__gnode *node)
{
    const mica__spec *in = &c->g->node[node->in[0]].spec;
    if (c->has[node->in[0]]) return in->ndim == node->spec.ndim ? BATCH_ROWS : BATCH_MIXED;
    const bool repeats = in->ndim < node->spec.ndim || in->shape[0] == 1;
    return first_is_batch(c, &node->spec) && repeats ? BATCH_ROWS : BATCH_NONE;
}

/* For a node with inputs, at least one of which has the batch. */
static batch_rule rule_of_rows(const batch_cut *c, const mica__gnode *node)
{
    const bool all = inputs_with(c, node) == node->n_in, first = c->has[node->in[0]];
    if (!first_is_batch(c, &node->spec)) return BATCH_MIXED;
    switch (node->op) {
    case MICA__OP_RESHAPE: return BATCH_ROWS;
    case MICA__OP_PERMUTE: return ((const mica__attr_permute *)node->attr)->axes[0] == 0 ? BATCH_ROWS : BATCH_MIXED;
    case MICA__OP_CONCAT: return all && ((const mica__attr_axis *)node->attr)->axis != 0 ? BATCH_ROWS : BATCH_MIXED;
    case MICA__OP_SLICE: {
        const mica__attr_slice *slice = node->attr;
        return slice->start[0] == 0 && slice->step[0] == 1 ? BATCH_ROWS : BATCH_MIXED;
    }
    case MICA__OP_PAD: {
        const mica__attr_pad *pad = node->attr;
        return pad->low[0] == 0 && pad->high[0] == 0 && pad->interior[0] == 0 ? BATCH_ROWS : BATCH_MIXED;
    }
    case MICA__OP_MATMUL: /* f32: the bits of a row do not depend on the number of rows (kernels/matmul/gemm.h) */
        return first && inputs_with(c, node) == 1 && node->spec.ndim == 2 && node->spec.dtype == MICA_F32 &&
                       node->attr_size == 0
                   ? BATCH_ROWS
                   : BATCH_MIXED;
    case MICA__OP_SYNAPSES: return first && inputs_with(c, node) == 1 ? BATCH_ROWS : BATCH_MIXED;
    default: return mica__op_get(node->op)->kind == MICA__MAP && all ? BATCH_ROWS : BATCH_MIXED;
    }
}

static batch_rule rule_of(const batch_cut *c, const mica__gnode *node, uint32_t n_own)
{
    if (mica__op_get(node->op)->kind == MICA__SOURCE)
        return (uint32_t)node->leaf < n_own && first_is_batch(c, &node->spec) ? BATCH_ROWS : BATCH_NONE;
    if (node->op == MICA__OP_FULL) return first_is_batch(c, &node->spec) ? BATCH_ROWS : BATCH_NONE;
    if (node->op == MICA__OP_BROADCAST) return broadcast_rule(c, node);
    return inputs_with(c, node) ? rule_of_rows(c, node) : BATCH_NONE;
}

/* Changes the node to fewer rows: its shape, and attributes that contain a shape. */
static mica_status cut_node(const batch_cut *c, mica__gnode *node)
{
    node->spec.shape[0] = c->rows;
    int64_t *size = NULL;
    void *attr = node->attr_size ? mica__arena_copy(c->g->arena, node->attr, node->attr_size) : NULL;
    if (node->attr_size && !attr) return mica__fail_memory("the body of a scan", node->attr_size);
    switch (node->op) {
    case MICA__OP_RESHAPE:
    case MICA__OP_BROADCAST: size = &((mica__attr_shape *)attr)->shape[0]; break;
    case MICA__OP_SLICE: size = &((mica__attr_slice *)attr)->size[0]; break;
    case MICA__OP_FULL: size = &((mica__attr_full *)attr)->spec.shape[0]; break;
    case MICA__OP_PARAM: size = &((mica__attr_param *)attr)->spec.shape[0]; break;
    default: break;
    }
    if (size) *size = c->rows;
    node->attr = attr;
    return MICA_OK;
}

static mica_status copy_graph(const mica__graph *from, mica__arena *arena, mica__graph **out)
{
    MICA_TRY(mica__graph_new(arena, out));
    mica__graph *g = *out;
    g->n = g->cap = from->n;
    g->n_out = from->n_out;
    g->n_leaf = from->n_leaf;
    g->node = mica__arena_copy(arena, from->node, from->n * sizeof *from->node);
    g->out = mica__arena_copy(arena, from->out, from->n_out * sizeof *from->out);
    g->leaf = mica__arena_copy(arena, from->leaf, from->n_leaf * sizeof *from->leaf);
    for (uint32_t i = 0; g->node && i < g->n; i++)
        if (g->node[i].n_in) g->node[i].in = mica__arena_copy(arena, g->node[i].in, g->node[i].n_in * sizeof(uint32_t));
    return arena->failed ? mica__fail_memory("the body of a scan", from->n * sizeof *from->node) : MICA_OK;
}

static mica_status cut_all(batch_cut *c, uint32_t n_own, bool *sliced, bool *can)
{
    for (uint32_t i = 0; i < c->g->n; i++) {
        mica__gnode *node = &c->g->node[i];
        const batch_rule rule = rule_of(c, node, n_own);
        if (rule == BATCH_MIXED) return MICA_OK;
        c->has[i] = rule == BATCH_ROWS;
    }
    for (uint32_t i = 0; i < c->g->n_out; i++)
        if (!c->has[c->g->out[i]]) return MICA_OK; /* every part would write it */
    for (uint32_t i = 0; i < c->g->n; i++) {
        mica__gnode *node = &c->g->node[i];
        if (!c->has[i]) continue;
        if (mica__op_get(node->op)->kind == MICA__SOURCE) {
            sliced[node->leaf] = true;
            c->g->leaf[node->leaf].spec.shape[0] = c->rows;
        }
        MICA_TRY(cut_node(c, node));
    }
    *can = true;
    return MICA_OK;
}

mica_status mica__batch_cut(const mica__graph *body, uint32_t n_carry, uint32_t n_own, int64_t rows, mica__arena *arena,
                            bool *sliced, mica__graph **out)
{
    batch_cut c = {.batch = mica__batch_size(body, n_carry), .rows = rows};
    mica__arena scratch;
    bool can = false;
    *out = NULL;
    if (c.batch == 0) return MICA_OK;
    mica__arena_init(&scratch);
    c.has = mica__arena_array(&scratch, body->n + 1, sizeof *c.has);
    mica_status status = c.has ? copy_graph(body, arena, &c.g) : mica__fail_memory("the body of a scan", body->n);
    if (status == MICA_OK) status = cut_all(&c, n_own, sliced, &can);
    mica__arena_free(&scratch);
    if (status == MICA_OK && can) *out = c.g;
    return status;
}
