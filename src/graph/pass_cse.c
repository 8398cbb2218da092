/* Common subexpressions: nodes with the same op, attributes, inputs and spec become
 * one node. Attributes are compared as bytes, so none can be overlooked. RANDOM is
 * merged: it is a function of its seed. AFTER is not: it exists to keep two equal
 * computations separate. */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "graph/pass.h"
#include "graph/simplify.h"

typedef struct cse_table {
    uint32_t *slot;            /* node number + 1, 0: empty */
    uint64_t *hash;            /* of each node              */
    uint32_t mask;
} cse_table;

/* Is a op b equal to b op a, bit for bit? Not for minimum and maximum: of -0 and +0
 * they return the second operand. */
static bool cse_commutes(uint16_t op)
{
    switch (op) {
    case MICA__OP_ADD:
    case MICA__OP_MUL:
    case MICA__OP_EQUAL:
    case MICA__OP_NOT_EQUAL:
    case MICA__OP_LOGICAL_AND:
    case MICA__OP_LOGICAL_OR:
    case MICA__OP_LOGICAL_XOR:
    case MICA__OP_BITWISE_AND:
    case MICA__OP_BITWISE_OR:
    case MICA__OP_BITWISE_XOR: return true;
    default: return false;
    }
}

/* In a FULL the exact number of a weak constant may follow the value. It only matters when dtypes are promoted. */
static size_t cse_attr_size(const mica__gnode *node)
{
    return node->op == MICA__OP_FULL ? sizeof(mica__attr_full) : node->attr_size;
}

static uint64_t cse_hash(const mica__gnode *node)
{
    const uint64_t head[] = {node->op, node->n_in, (uint64_t)node->leaf, (uint64_t)node->spec.dtype,
                             (uint64_t)node->spec.ndim};
    uint64_t hash = mica__hash(head, sizeof head, 0);
    hash = mica__hash(node->spec.shape, (size_t)node->spec.ndim * sizeof *node->spec.shape, hash);
    if (cse_attr_size(node)) hash = mica__hash(node->attr, cse_attr_size(node), hash);
    if (cse_commutes(node->op))
        return mica__hash_u64(hash ^ (mica__hash_u64(node->in[0]) + mica__hash_u64(node->in[1])));
    return node->n_in ? mica__hash(node->in, node->n_in * sizeof *node->in, hash) : hash;
}

static bool cse_equal(const mica__gnode *a, const mica__gnode *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->leaf != b->leaf || a->body != b->body ||
        !mica__spec_equal(&a->spec, &b->spec) || cse_attr_size(a) != cse_attr_size(b))
        return false;
    if (cse_attr_size(a) && memcmp(a->attr, b->attr, cse_attr_size(a)) != 0) return false;
    if (a->n_in == 0 || memcmp(a->in, b->in, a->n_in * sizeof *a->in) == 0) return true;
    return cse_commutes(a->op) && a->in[0] == b->in[1] && a->in[1] == b->in[0];
}

/* The first node equal to id; id itself if it is the first. */
static uint32_t cse_find(cse_table *t, const mica__graph *g, uint32_t id)
{
    t->hash[id] = cse_hash(&g->node[id]);
    uint32_t at = (uint32_t)t->hash[id] & t->mask;
    for (; t->slot[at] != 0; at = (at + 1) & t->mask) {
        const uint32_t other = t->slot[at] - 1;
        if (t->hash[other] == t->hash[id] && cse_equal(&g->node[other], &g->node[id])) return other;
    }
    t->slot[at] = id + 1;
    return id;
}

/* The walk of pass.h with a hash table. This pass replaces nodes and never appends
 * any, so the map is complete when the walk ends. */
mica_status mica__pass_cse(mica__graph *g, bool *changed)
{
    cse_table t = {.mask = 15};
    while (t.mask / 2 < g->n) t.mask = t.mask * 2 + 1;
    uint32_t *map = mica__alloc_zero(g->n + 1, sizeof *map);
    t.slot = mica__alloc_zero((size_t)t.mask + 1, sizeof *t.slot);
    t.hash = mica__alloc_zero(g->n + 1, sizeof *t.hash);
    mica_status status = MICA_OK;
    *changed = false;
    if (!map || !t.slot || !t.hash) {
        status = mica__fail_memory("simplify: table", (size_t)t.mask * sizeof *t.slot + g->n * sizeof *t.hash);
    } else {
        for (uint32_t i = 0; i < g->n; i++) {
            const mica__gnode *node = &g->node[i];
            for (uint32_t k = 0; k < node->n_in; k++) node->in[k] = map[node->in[k]];
            map[i] = node->op == MICA__OP_AFTER ? i : cse_find(&t, g, i);
            *changed |= map[i] != i;
        }
        mica__graph_redirect(g, map);
        if (*changed) status = mica__graph_sweep(g);
    }
    mica__free(map);
    mica__free(t.slot);
    mica__free(t.hash);
    return status;
}
