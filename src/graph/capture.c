/* See capture.h. The walk is an explicit stack, so that a chain of a million
 * nodes needs no deep recursion; only scans inside scans recurse. */
#include "graph/capture.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

struct mica__slot {
    const mica_array *array;
    uint32_t number;
    uint32_t generation;        /* older ones count as empty: clearing costs nothing */
};

struct mica__frame {
    const mica_array *array;
    uint32_t next;              /* input to visit next */
};

/* ------------------------------------------------------------- storage ---- */

/* p with room for want elements, or NULL and the thread's error. */
static void *grow(void *p, uint32_t *cap, uint32_t want, size_t size)
{
    if (want <= *cap) return p;
    uint32_t n = *cap ? *cap : 64;
    while (n < want && n <= UINT32_MAX / 2) n *= 2;
    void *q = n < want ? NULL : mica__realloc(p, (size_t)n * size);
    if (q) *cap = n;
    else mica__fail_memory("eval: the node list", (size_t)n * size);
    return q;
}

#define GROW(p, cap, want)                                     \
    do {                                                       \
        void *grown_ = grow((p), &(cap), (want), sizeof *(p)); \
        if (!grown_) return MICA_ERR_MEMORY;                   \
        (p) = grown_;                                          \
    } while (0)

static mica_status key_bytes(mica__capture *c, const void *data, size_t n)
{
    if (c->key_size + n > c->cap_key) {
        size_t cap = c->cap_key ? c->cap_key * 2 : 4096;
        while (cap < c->key_size + n) cap *= 2;
        unsigned char *q = mica__realloc(c->key, cap);
        if (!q) return mica__fail_memory("eval: the plan key", cap);
        c->key = q;
        c->cap_key = cap;
    }
    if (n) memcpy(c->key + c->key_size, data, n);
    c->key_size += n;
    return MICA_OK;
}

static mica_status key_u32(mica__capture *c, uint32_t v) { return key_bytes(c, &v, sizeof v); }

void mica__capture_free(mica__capture *c)
{
    if (!c) return;
    if (c->inner) {
        mica__capture_free(c->inner);
        mica__free(c->inner);
    }
    mica__free(c->node);
    mica__free(c->leaf);
    mica__free(c->key);
    mica__free(c->slot);
    mica__free(c->stack);
    mica__free(c->leaf_of);
    memset(c, 0, sizeof *c);
}

/* ------------------------------------------------- pointer -> node number -- */

static uint32_t slot_home(const mica__capture *c, const mica_array *a)
{
    return (uint32_t)mica__hash_u64((uint64_t)(uintptr_t)a) & (c->cap_slot - 1);
}

static uint32_t slot_find(const mica__capture *c, const mica_array *a)
{
    for (uint32_t i = slot_home(c, a);; i = (i + 1) & (c->cap_slot - 1)) {
        if (c->slot[i].generation != c->generation) return UINT32_MAX;
        if (c->slot[i].array == a) return c->slot[i].number;
    }
}

static void slot_put(mica__capture *c, const mica_array *a, uint32_t number)
{
    uint32_t i = slot_home(c, a);
    while (c->slot[i].generation == c->generation) i = (i + 1) & (c->cap_slot - 1);
    c->slot[i] = (struct mica__slot){a, number, c->generation};
}

/* Keep the table at most half full. */
static mica_status slot_room(mica__capture *c)
{
    if (c->cap_slot && c->n_node < c->cap_slot / 2) return MICA_OK;
    const uint32_t cap = c->cap_slot ? c->cap_slot * 2 : 256;
    struct mica__slot *fresh = mica__alloc_zero(cap, sizeof *fresh);
    if (!fresh) return mica__fail_memory("eval: the node table", cap * sizeof *fresh);
    mica__free(c->slot);
    c->slot = fresh;
    c->cap_slot = cap;
    c->generation = 1;
    for (uint32_t i = 0; i < c->n_node; i++) slot_put(c, c->node[i], i);
    return MICA_OK;
}

/* ---------------------------------------------------------------- walk ---- */

static mica_status add_node(mica__capture *c, const mica_array *a, bool leaf)
{
    MICA_TRY(slot_room(c));
    GROW(c->node, c->cap_node, c->n_node + 1);
    GROW(c->leaf_of, c->cap_leaf_of, c->n_node + 1);
    uint32_t number = UINT32_MAX;
    if (leaf) {
        GROW(c->leaf, c->cap_leaf, c->n_leaf + 1);
        number = c->n_leaf++;
        c->leaf[number] = (mica_array *)(uintptr_t)a;
    }
    c->leaf_of[c->n_node] = number;
    c->node[c->n_node] = a;
    slot_put(c, a, c->n_node++);
    return MICA_OK;
}

static mica_status push(mica__capture *c, uint32_t *depth, const mica_array *a)
{
    GROW(c->stack, c->cap_stack, *depth + 1);
    c->stack[(*depth)++] = (struct mica__frame){a, 0};
    return MICA_OK;
}

/* What of a body was evaluated by itself after the scan was built is no leaf:
 * the body does not get it as an input. It is computed again, which it can be
 * as long as it knows its inputs. */
static bool ends_walk(const mica__capture *c, const mica_array *a)
{
    if (mica__array_state(a) == MICA__LAZY) return false;
    const mica__op_info *info = mica__op_get(a->op);
    return !c->body || info->kind == MICA__SOURCE || (a->n_in == 0 && info->n_in != 0);
}

static mica_status walk(mica__capture *c, const mica_array *from)
{
    uint32_t depth = 0;
    if (slot_find(c, from) != UINT32_MAX) return MICA_OK;
    MICA_TRY(push(c, &depth, from));
    while (depth) {
        struct mica__frame *top = &c->stack[depth - 1];
        const mica_array *a = top->array;
        if (slot_find(c, a) != UINT32_MAX) {
            depth--;
        } else if (ends_walk(c, a)) {
            MICA_TRY(add_node(c, a, true));
            depth--;
        } else if (a->op == MICA__OP_PARAM) {
            return mica__fail(MICA_ERR_STATE,
                              "eval: a parameter of a scan step or of a traced function has no value of its own");
        } else if (top->next < a->n_in) {
            const mica_array *in = a->in[top->next++];
            if (slot_find(c, in) == UINT32_MAX) MICA_TRY(push(c, &depth, in));
        } else {
            MICA_TRY(add_node(c, a, false));
            depth--;
        }
    }
    return MICA_OK;
}

/* ----------------------------------------------------------------- key ---- */

static mica_status capture_body(mica__capture *c, const mica__body *b)
{
    if (!c->inner) {
        c->inner = mica__alloc_zero(1, sizeof *c->inner);
        if (!c->inner) return mica__fail_memory("eval: scratch for a scan", sizeof *c->inner);
        c->inner->body = true;
    }
    MICA_TRY(mica__capture_run(c->inner, b->out, b->n_out, b->param, b->n_param));
    if (c->inner->n_leaf > b->n_param)
        return mica__fail(MICA_ERR_STATE,
                          "scan: a value of its step was evaluated by itself in a scope that has ended");
    return MICA_OK;
}

static mica_status key_body(mica__capture *c, const mica__attr_scan *scan)
{
    MICA_TRY(capture_body(c, scan->body));
    MICA_TRY(key_u32(c, (uint32_t)c->inner->key_size));
    return key_bytes(c, c->inner->key, c->inner->key_size);
}

static mica_status key_node(mica__capture *c, uint32_t i, size_t n_param)
{
    const mica_array *a = c->node[i];
    const uint32_t leaf = c->leaf_of[i];
    if (leaf != UINT32_MAX) {
        MICA_TRY(key_u32(c, 0x10000u | MICA__OP_LEAF));
        MICA_TRY(key_bytes(c, &a->spec, offsetof(mica__spec, shape) + sizeof(int64_t) * (size_t)a->spec.ndim));
        if (leaf < n_param) return MICA_OK;   /* laid out row-major by whoever runs the body */
        MICA_TRY(mica__event_settle(c->leaf[leaf])); /* a pending one has no strides yet */
        return key_bytes(c, a->strides, sizeof(int64_t) * (size_t)a->spec.ndim);
    }
    MICA_TRY(key_u32(c, a->op));
    MICA_TRY(key_u32(c, a->n_in));
    for (uint32_t k = 0; k < a->n_in; k++) MICA_TRY(key_u32(c, slot_find(c, a->in[k])));
    if (mica__op_get(a->op)->kind == MICA__ALIAS) return MICA_OK; /* attributes are for gradients only */
    if (a->op == MICA__OP_SCAN) {
        mica__attr_scan scan;
        memcpy(&scan, a->attr, sizeof scan);
        scan.body = NULL;
        MICA_TRY(key_bytes(c, &scan, sizeof scan));
        return key_body(c, a->attr);
    }
    MICA_TRY(key_u32(c, a->attr_size));
    return key_bytes(c, a->attr, a->attr_size);
}

mica_status mica__capture_run(mica__capture *c, mica_array *const *outs, size_t n_out, mica_array *const *params,
                              size_t n_param)
{
    c->n_node = c->n_leaf = 0;
    c->key_size = 0;
    if (++c->generation == 0 && c->slot) { /* wrapped: old marks could look new */
        memset(c->slot, 0, c->cap_slot * sizeof *c->slot);
        c->generation = 1;
    }
    MICA_TRY(slot_room(c));
    for (size_t i = 0; i < n_param; i++) MICA_TRY(add_node(c, params[i], true));
    for (size_t i = 0; i < n_out; i++) MICA_TRY(walk(c, outs[i]));
    MICA_TRY(key_u32(c, c->n_node));
    for (uint32_t i = 0; i < c->n_node; i++) MICA_TRY(key_node(c, i, n_param));
    for (size_t i = 0; i < n_out; i++) MICA_TRY(key_u32(c, slot_find(c, outs[i])));
    return MICA_OK;
}

/* --------------------------------------------------------------- graph ---- */

static mica_status body_graph(mica__capture *c, const mica__attr_scan *scan, mica__arena *arena, mica__graph **graph)
{
    const mica__body *b = scan->body;
    MICA_TRY(capture_body(c, b));
    return mica__capture_graph(c->inner, b->out, b->n_out, true, arena, graph);
}

mica_status mica__capture_graph(mica__capture *c, mica_array *const *outs, size_t n_out, bool row_major,
                                mica__arena *arena, mica__graph **graph)
{
    mica__graph *g;
    MICA_TRY(mica__graph_new(arena, &g));
    g->node = mica__arena_array(arena, c->n_node + 1, sizeof *g->node);
    g->leaf = mica__arena_array(arena, c->n_leaf + 1, sizeof *g->leaf);
    g->out = mica__arena_array(arena, n_out + 1, sizeof *g->out);
    if (arena->failed) return mica__fail_memory("eval: the graph", c->n_node * sizeof *g->node);
    g->cap = c->n_node + 1;
    g->n = c->n_node;
    g->n_leaf = c->n_leaf;
    g->n_out = (uint32_t)n_out;
    for (uint32_t i = 0; i < c->n_node; i++) {
        const mica_array *a = c->node[i];
        mica__gnode *node = &g->node[i];
        node->spec = a->spec;
        node->leaf = -1;
        if (c->leaf_of[i] != UINT32_MAX) {
            node->op = MICA__OP_LEAF;
            node->leaf = (int32_t)c->leaf_of[i];
            mica__leaf_layout *layout = &g->leaf[c->leaf_of[i]];
            layout->spec = a->spec;
            if (row_major || mica__array_state(a) != MICA__READY) mica__row_major(&a->spec, layout->strides);
            else memcpy(layout->strides, a->strides, sizeof layout->strides);
            continue;
        }
        node->op = a->op;
        node->n_in = a->n_in;
        node->in = mica__arena_array(arena, a->n_in + 1, sizeof *node->in);
        node->attr_size = a->attr_size;
        node->attr = a->attr_size ? mica__arena_copy(arena, a->attr, a->attr_size) : NULL;
        if (arena->failed) return mica__fail_memory("eval: the graph", a->attr_size);
        for (uint32_t k = 0; k < a->n_in; k++) node->in[k] = slot_find(c, a->in[k]);
        if (a->op == MICA__OP_SCAN) MICA_TRY(body_graph(c, a->attr, arena, &node->body));
    }
    for (size_t i = 0; i < n_out; i++) g->out[i] = slot_find(c, outs[i]);
    *graph = g;
    return MICA_OK;
}
