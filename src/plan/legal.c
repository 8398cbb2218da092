/* Stage 1 of planning: copies the graph and inserts COPY nodes, so that every value that
 * needs memory has memory. Finds for every node the root that it is read from. */
#include <string.h>

#include "base/checked.h"
#include "plan/work.h"

typedef struct legal {
    mica__work *w;
    const mica__graph *from;
    mica__graph *g;             /* the copy                                              */
    uint32_t *map;              /* old number -> new number                              */
    uint32_t *copy;             /* new number -> its COPY node, or NO_NODE               */
} legal;

static void ref_of_source(const mica__graph *g, uint32_t id, mica__ref *ref)
{
    const mica__gnode *node = &g->node[id];
    ref->root = id;
    ref->offset = 0;
    memset(ref->strides, 0, sizeof ref->strides);
    if (node->op == MICA__OP_LEAF) {
        memcpy(ref->strides, g->leaf[node->leaf].strides, sizeof ref->strides);
    } else if (node->op == MICA__OP_IOTA) {
        /* IOTA has no memory: the position along its axis takes the place of an offset */
        ref->strides[((const mica__attr_iota *)node->attr)->axis] = 1;
    } else if (node->op != MICA__OP_FULL) {
        mica__row_major(&node->spec, ref->strides);
    }
}

static mica_status append(legal *l, const mica__gnode *node, uint32_t *id)
{
    mica__graph *g = l->g;
    if (g->n == g->cap) return mica__fail(MICA_ERR_INTERNAL, "plan: the copy of the graph is full at %u nodes", g->n);
    g->node[g->n] = *node;
    *id = g->n++;
    l->copy[*id] = MICA__NO_NODE;
    ref_of_source(g, *id, &l->w->ref[*id]);
    return MICA_OK;
}

/* A COPY of node `of` (new number): the same elements in row-major memory. */
static mica_status copy_of(legal *l, uint32_t of, uint32_t *id)
{
    if (l->copy[of] != MICA__NO_NODE) {
        *id = l->copy[of];
        return MICA_OK;
    }
    mica__gnode node = {.op = MICA__OP_COPY, .n_in = 1, .spec = l->g->node[of].spec, .leaf = -1};
    node.in = mica__arena_array(l->w->arena, 1, sizeof *node.in);
    if (!node.in) return mica__fail_memory("plan: a copy", sizeof *node.in);
    node.in[0] = of;
    MICA_TRY(append(l, &node, id));
    l->copy[of] = *id;
    return MICA_OK;
}

static bool is_made(const legal *l, uint32_t id) { return mica__kind_of(l->g, l->w->ref[id].root) == MICA__MAKE; }

static bool is_row_major(const legal *l, uint32_t id)
{
    return mica__is_row_major(&l->g->node[id].spec, l->w->ref[id].strides);
}

/* A state is a row-major leaf or the result of an earlier update. */
static mica_status legal_update(legal *l, const mica__gnode *node)
{
    const uint32_t state = node->in[0], root = l->w->ref[state].root;
    const uint16_t op = l->g->node[root].op;
    if (root != state || (op != MICA__OP_LEAF && op != MICA__OP_UPDATE) || !is_row_major(l, state))
        return mica__fail(MICA_ERR_STATE, "update: the array is a part of a state, or not a state");
    l->w->updates = l->w->overwritten[root] = true;
    return MICA_OK;
}

static mica_status legal_node(legal *l, uint32_t old)
{
    mica__gnode node = l->from->node[old];
    const mica__op_kind kind = mica__op_get(node.op)->kind;
    uint32_t id;
    node.in = mica__arena_array(l->w->arena, node.n_in + 1, sizeof *node.in);
    if (!node.in) return mica__fail_memory("plan: inputs", node.n_in * sizeof *node.in);
    for (uint32_t k = 0; k < node.n_in; k++) {
        uint32_t in = l->map[l->from->node[old].in[k]];
        if (kind == MICA__FAMILY && is_made(l, in)) MICA_TRY(copy_of(l, in, &in));
        if (node.op == MICA__OP_SCAN && (is_made(l, in) || !is_row_major(l, in))) MICA_TRY(copy_of(l, in, &in));
        /* the values must not be read from the memory that the UPDATE writes */
        if (node.op == MICA__OP_UPDATE && k > 0 && l->w->ref[in].root == l->w->ref[node.in[0]].root)
            MICA_TRY(copy_of(l, in, &in));
        node.in[k] = in;
    }
    if (node.op == MICA__OP_UPDATE) MICA_TRY(legal_update(l, &node));
    if (node.op == MICA__OP_COPY && !is_made(l, node.in[0]) && is_row_major(l, node.in[0])) {
        l->map[old] = node.in[0]; /* row-major memory already: no copy is needed */
        return MICA_OK;
    }
    if (kind == MICA__VIEW || kind == MICA__ALIAS) {
        mica__ref ref, *in = &l->w->ref[node.in[0]];
        ref.root = in->root;
        if (kind == MICA__ALIAS) {
            ref = *in;
        } else if (!mica__view_apply(&node, &l->g->node[node.in[0]].spec, in->strides, in->offset, ref.strides,
                                     &ref.offset)) {
            MICA_TRY(copy_of(l, node.in[0], &node.in[0]));
            in = &l->w->ref[node.in[0]];
            ref.root = in->root;
            if (!mica__view_apply(&node, &l->g->node[node.in[0]].spec, in->strides, in->offset, ref.strides,
                                  &ref.offset))
                return mica__fail(MICA_ERR_INTERNAL, "plan: %s of row-major memory has no strides",
                                  mica__op_get(node.op)->name);
        }
        MICA_TRY(append(l, &node, &id));
        l->w->ref[id] = ref;
    } else {
        MICA_TRY(append(l, &node, &id));
    }
    l->map[old] = id;
    return MICA_OK;
}

/* A result keeps the memory of its root alive. That costs nothing for a leaf or a state,
 * and little if the result is at least half as large as its root. A smaller part of a
 * temporary is copied, so that the temporary can be freed. */
static bool keeps_too_much(const legal *l, uint32_t id)
{
    const uint32_t root = l->w->ref[id].root;
    if (l->g->node[root].op == MICA__OP_LEAF || l->g->node[root].op == MICA__OP_UPDATE) return false;
    return mica__spec_size(&l->g->node[id].spec) * 2 < mica__spec_size(&l->g->node[root].spec);
}

static mica_status legal_result(legal *l, uint32_t number)
{
    mica__work *w = l->w;
    uint32_t id = l->map[l->from->out[number]];
    bool copy = is_made(l, id) || keeps_too_much(l, id);
    if (w->body) {
        const uint32_t root = w->ref[id].root;
        copy = copy || !mica__ref_is_root(w, id) || w->result[root] || !mica__computes(l->g, root) ||
               l->g->node[root].op == MICA__OP_SCAN;
        id = copy ? id : root;
        if (copy && l->copy[id] != MICA__NO_NODE) l->copy[id] = MICA__NO_NODE; /* each result has separate memory */
    }
    if (copy) MICA_TRY(copy_of(l, id, &id));
    l->g->out[number] = id;
    w->result[w->ref[id].root] = true;
    return MICA_OK;
}

bool mica__ref_is_root(const mica__work *w, uint32_t node)
{
    const mica__ref *r = &w->ref[node];
    if (r->root == node) return true;
    return r->offset == 0 && mica__shape_equal(&w->g->node[node].spec, &w->g->node[r->root].spec) &&
           mica__is_row_major(&w->g->node[node].spec, r->strides) && w->g->node[r->root].op != MICA__OP_LEAF &&
           mica__kind_of(w->g, r->root) != MICA__MAKE;
}

/* Upper bound of the nodes of the copy: one COPY for each input of a family, a scan or
 * a view, and for each result. */
static size_t most_nodes(const mica__graph *from)
{
    size_t n = (size_t)from->n + from->n_out + 1;
    for (uint32_t i = 0; i < from->n; i++) {
        const mica__op_kind kind = mica__kind_of(from, i);
        if (kind == MICA__VIEW) n++;
        else if (kind == MICA__FAMILY || kind == MICA__LOOP) n += from->node[i].n_in;
    }
    return n;
}

mica_status mica__plan_legal(mica__work *w, mica__graph *from)
{
    const size_t most = most_nodes(from);
    if (most > UINT32_MAX) return mica__fail(MICA_ERR_SIZE, "plan: a graph of %zu nodes", most);
    const uint32_t cap = (uint32_t)most;
    legal l = {.w = w, .from = from};
    MICA_TRY(mica__graph_new(w->arena, &l.g));
    w->g = l.g;
    l.g->node = mica__arena_array(w->arena, cap, sizeof *l.g->node);
    l.g->out = mica__arena_array(w->arena, from->n_out + 1, sizeof *l.g->out);
    l.map = mica__arena_array(&w->scratch, from->n + 1, sizeof *l.map);
    l.copy = mica__arena_array(&w->scratch, cap, sizeof *l.copy);
    w->ref = mica__arena_array(&w->scratch, cap, sizeof *w->ref);
    w->result = mica__arena_array(&w->scratch, cap, sizeof *w->result);
    w->overwritten = mica__arena_array(&w->scratch, cap, sizeof *w->overwritten);
    if (w->arena->failed || w->scratch.failed) return mica__fail_memory("plan: the graph", cap * sizeof *l.g->node);
    l.g->cap = cap;
    l.g->n_out = from->n_out;
    l.g->leaf = from->leaf;
    l.g->n_leaf = from->n_leaf;
    for (uint32_t i = 0; i < from->n; i++) MICA_TRY(legal_node(&l, i));
    for (uint32_t i = 0; i < from->n_out; i++) MICA_TRY(legal_result(&l, i));
    return MICA_OK;
}
