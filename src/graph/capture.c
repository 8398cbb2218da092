/* See capture.h. The walk uses an explicit stack, so that a chain of a million
 * nodes needs no deep recursion; only nested scans recurse. The key record of a
 * node is written when the node gets its number, after those of its inputs. */
#include "graph/capture.h"

#include <string.h>

#include "base/alloc.h"

struct mica__slot {
    const mica_array *array;
    uint64_t stamp;             /* older stamps count as empty: clearing costs nothing */
    uint32_t number;
};

struct mica__frame {
    const mica_array *array;
    uint32_t next;              /* input to visit next */
};

/* First word of a record. Attributes are small structs (mica__array_from). */
#define KEY_NODE(op, attr_size, n_in) ((uint64_t)(op) | (uint64_t)(attr_size) << 16 | (uint64_t)(n_in) << 32)
#define KEY_LEAF(dtype, ndim) (UINT64_C(0xffff) | (uint64_t)(dtype) << 16 | (uint64_t)(ndim) << 32)
#define KEY_RESULTS UINT64_C(0xfffe)

/* ------------------------------------------------------------- storage ---- */

/* Grows *p to cap elements, or sets the thread's error. */
static mica_status grow(void **p, size_t cap, size_t size)
{
    void *q = cap > SIZE_MAX / size ? NULL : mica__realloc(*p, cap * size);
    if (!q) return mica__fail_memory("eval: the node list", cap > SIZE_MAX / size ? SIZE_MAX : cap * size);
    *p = q;
    return MICA_OK;
}

static uint32_t grown_capacity(uint32_t cap) { return cap ? cap > UINT32_MAX / 2 ? UINT32_MAX : cap * 2 : 64; }

static mica_status grow_nodes(mica__capture *c)
{
    if (c->n_node == UINT32_MAX) return mica__fail(MICA_ERR_SIZE, "eval: a graph of more than %u nodes", UINT32_MAX);
    const uint32_t cap = grown_capacity(c->cap_node);
    void *p = c->node;
    MICA_TRY(grow(&p, cap, sizeof *c->node));
    c->node = p;
    p = c->leaf_of;
    MICA_TRY(grow(&p, cap, sizeof *c->leaf_of));
    c->leaf_of = p;
    c->cap_node = cap;
    return MICA_OK;
}

/* Defines a function that makes room in one list of the capture. */
#define GROWS(name, list, capacity)                       \
    static mica_status name(mica__capture *c)             \
    {                                                     \
        const uint32_t cap = grown_capacity(c->capacity); \
        void *p = c->list;                                \
        MICA_TRY(grow(&p, cap, sizeof *c->list));         \
        c->list = p;                                      \
        c->capacity = cap;                                \
        return MICA_OK;                                   \
    }
GROWS(grow_leaves, leaf, cap_leaf)
GROWS(grow_updates, update, cap_update)
GROWS(grow_stack, stack, cap_stack)

static mica_status grow_key(mica__capture *c, size_t n)
{
    size_t cap = c->cap_key ? c->cap_key * 2 : 512;
    while (cap < c->key_words + n) cap *= 2;
    void *p = c->key;
    MICA_TRY(grow(&p, cap, sizeof *c->key));
    c->key = p;
    c->cap_key = cap;
    return MICA_OK;
}

/* Room for n more words of the key. */
static inline mica_status key_room(mica__capture *c, size_t n)
{
    return c->key_words + n <= c->cap_key ? MICA_OK : grow_key(c, n);
}

void mica__capture_free(mica__capture *c)
{
    if (!c) return;
    if (c->inner) {
        mica__capture_free(c->inner);
        mica__free(c->inner);
    }
    mica__free(c->node);
    mica__free(c->leaf);
    mica__free(c->update);
    mica__free(c->key);
    mica__free(c->slot);
    mica__free(c->stack);
    mica__free(c->leaf_of);
    memset(c, 0, sizeof *c);
}

/* ------------------------------------------------- pointer -> node number -- */

/* A stamp that no other capture uses: each capture has a unique number, and the
 * number of the run is added to it. */
static uint64_t next_stamp(uint64_t last)
{
    static _Atomic uint64_t captures;
    if ((last & UINT32_MAX) != UINT32_MAX && last != 0) return last + 1;
    return (atomic_fetch_add_explicit(&captures, 1, memory_order_relaxed) + 1) << 32;
}

static bool carries_number(const mica__capture *c, const mica_array *a)
{
    return !c->body && mica__array_state(a) == MICA__LAZY;
}

static uint32_t slot_home(const mica__capture *c, const mica_array *a)
{
    const uint64_t mixed = ((uint64_t)(uintptr_t)a >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32) & (c->cap_slot - 1);
}

static uint32_t slot_find(const mica__capture *c, const mica_array *a)
{
    for (uint32_t i = slot_home(c, a);; i = (i + 1) & (c->cap_slot - 1)) {
        if (c->slot[i].stamp != c->stamp) return UINT32_MAX;
        if (c->slot[i].array == a) return c->slot[i].number;
    }
}

static void slot_put(mica__capture *c, const mica_array *a, uint32_t number)
{
    uint32_t i = slot_home(c, a);
    while (c->slot[i].stamp == c->stamp) i = (i + 1) & (c->cap_slot - 1);
    c->slot[i] = (struct mica__slot){a, c->stamp, number};
}

/* Keeps the table at most half full. */
static mica_status slot_room(mica__capture *c)
{
    if (c->cap_slot && c->n_slot < c->cap_slot / 2) return MICA_OK;
    const struct mica__slot *old = c->slot;
    const uint32_t n = c->cap_slot, cap = n ? n * 2 : 256;
    struct mica__slot *fresh = mica__alloc_zero(cap, sizeof *fresh);
    if (!fresh) return mica__fail_memory("eval: the node table", cap * sizeof *fresh);
    c->slot = fresh;
    c->cap_slot = cap;
    for (uint32_t i = 0; i < n; i++)
        if (old[i].stamp == c->stamp) slot_put(c, old[i].array, old[i].number);
    mica__free((void *)(uintptr_t)old);
    return MICA_OK;
}

/* UINT32_MAX: the node has no number yet. */
static inline uint32_t number_of(const mica__capture *c, const mica_array *a)
{
    if (!carries_number(c, a)) return slot_find(c, a);
    return a->capture == c->stamp ? a->number : UINT32_MAX;
}

/* ----------------------------------------------------------------- key ---- */

static void key_bytes(mica__capture *c, const void *data, size_t n)
{
    if (n % 8) c->key[c->key_words + n / 8] = 0;
    if (n) memcpy(c->key + c->key_words, data, n);
    c->key_words += (n + 7) / 8;
}

static mica_status key_leaf(mica__capture *c, const mica_array *a, bool param)
{
    const size_t ndim = (size_t)a->spec.ndim;
    MICA_TRY(key_room(c, 1 + 2 * ndim));
    c->key[c->key_words++] = KEY_LEAF(a->spec.dtype, ndim);
    key_bytes(c, a->spec.shape, ndim * sizeof(int64_t));
    if (!param) key_bytes(c, a->strides, ndim * sizeof(int64_t)); /* else row-major: the scan passes it so */
    return MICA_OK;
}

static mica_status capture_body(mica__capture *c, const mica__body *b)
{
    if (!c->inner) {
        c->inner = mica__alloc_zero(1, sizeof *c->inner);
        if (!c->inner) return mica__fail_memory("eval: scratch for a scan", sizeof *c->inner);
        c->inner->body = true;
    }
    MICA_TRY(mica__capture_run(c->inner, b->out, b->n_out, b->param, b->n_param));
    if (c->inner->n_update)
        return mica__fail(MICA_ERR_STATE, "update: a state cannot be updated in the step of a scan");
    if (c->inner->n_leaf > b->n_param)
        return mica__fail(MICA_ERR_STATE,
                          "scan: a value of its step was evaluated by itself in a scope that has ended");
    return MICA_OK;
}

static mica_status key_scan(mica__capture *c, const mica_array *a)
{
    mica__attr_scan scan;
    memcpy(&scan, a->attr, sizeof scan);
    MICA_TRY(capture_body(c, scan.body));
    scan.body = NULL;
    MICA_TRY(key_room(c, sizeof scan / 8 + 2 + c->inner->key_words));
    key_bytes(c, &scan, sizeof scan);
    c->key[c->key_words++] = c->inner->key_words;
    key_bytes(c, c->inner->key, c->inner->key_words * sizeof *c->inner->key);
    return MICA_OK;
}

static mica_status key_node(mica__capture *c, const mica_array *a)
{
    /* only gradients use the attributes of an alias */
    const bool plain = mica__op_get(a->op)->kind == MICA__ALIAS || a->op == MICA__OP_SCAN;
    const uint32_t n_in = a->n_in, attr_size = plain ? 0 : a->attr_size;
    MICA_TRY(key_room(c, 2 + n_in / 2 + (attr_size + 7) / 8));
    c->key[c->key_words++] = KEY_NODE(a->op, attr_size, n_in);
    for (uint32_t k = 0; k < n_in; k += 2) {
        const uint64_t more = k + 1 < n_in ? number_of(c, a->in[k + 1]) : 0;
        c->key[c->key_words++] = number_of(c, a->in[k]) | more << 32;
    }
    key_bytes(c, a->attr, attr_size);
    return a->op == MICA__OP_SCAN ? key_scan(c, a) : MICA_OK;
}

/* ---------------------------------------------------------------- walk ---- */

static mica_status set_number(mica__capture *c, const mica_array *a, uint32_t number)
{
    if (carries_number(c, a)) {
        mica_array *own = (mica_array *)(uintptr_t)a;
        own->capture = c->stamp;
        own->number = number;
        return MICA_OK;
    }
    MICA_TRY(slot_room(c));
    c->n_slot++;
    slot_put(c, a, number);
    return MICA_OK;
}

static mica_status add_node(mica__capture *c, const mica_array *a, uint32_t leaf)
{
    if (c->n_node == c->cap_node) MICA_TRY(grow_nodes(c));
    const uint32_t number = c->n_node++;
    c->leaf_of[number] = leaf;
    c->node[number] = a;
    return set_number(c, a, number);
}

/* Several arrays, evaluated at different times, may hold the current value of one state.
 * They become one leaf, so that the planner sees all its reads and writes. */
static uint32_t same_state(const mica__capture *c, const mica_array *a)
{
    if (!a->buffer->changes) return UINT32_MAX;
    for (uint32_t i = 0; i < c->n_leaf; i++) {
        const mica_array *b = c->leaf[i];
        if (mica__array_state(b) == MICA__READY && b->buffer == a->buffer && b->data == a->data &&
            mica__spec_equal(&a->spec, &b->spec) && memcmp(a->strides, b->strides, sizeof a->strides) == 0)
            return slot_find(c, b);
    }
    return UINT32_MAX;
}

static mica_status add_leaf(mica__capture *c, const mica_array *a, bool param)
{
    if (!param) {
        MICA_TRY(mica__event_settle((mica_array *)(uintptr_t)a)); /* a pending array has no elements yet */
        const uint32_t same = same_state(c, a);
        if (same != UINT32_MAX) return set_number(c, a, same);
    }
    if (c->n_leaf == c->cap_leaf) MICA_TRY(grow_leaves(c));
    c->leaf[c->n_leaf] = (mica_array *)(uintptr_t)a;
    MICA_TRY(add_node(c, a, c->n_leaf++));
    return key_leaf(c, a, param);
}

static mica_status add_update(mica__capture *c, const mica_array *a)
{
    if (c->n_update == c->cap_update) MICA_TRY(grow_updates(c));
    c->update[c->n_update++] = (mica_array *)(uintptr_t)a;
    return MICA_OK;
}

/* A node of a body that was evaluated separately after the scan was built is not a
 * leaf: the body does not get it as an input. It is computed again, which is
 * possible while it has its inputs. */
static bool ends_walk(const mica__capture *c, const mica_array *a)
{
    if (mica__array_state(a) == MICA__LAZY) return false;
    const mica__op_info *info = mica__op_get(a->op);
    return !c->body || info->kind == MICA__SOURCE || (a->n_in == 0 && info->n_in != 0);
}

/* Visits a node without a number: a leaf gets one, other nodes are pushed on the stack. */
static inline mica_status visit_node(mica__capture *c, uint32_t *depth, const mica_array *a)
{
    if (ends_walk(c, a)) return add_leaf(c, a, false);
    if (a->op == MICA__OP_PARAM)
        return mica__fail(MICA_ERR_STATE,
                          "eval: a parameter of a scan step or of a traced function cannot be evaluated");
    if (*depth == c->cap_stack) MICA_TRY(grow_stack(c));
    c->stack[(*depth)++] = (struct mica__frame){a, 0};
    return MICA_OK;
}

static mica_status walk(mica__capture *c, const mica_array *from)
{
    uint32_t depth = 0;
    if (number_of(c, from) != UINT32_MAX) return MICA_OK;
    MICA_TRY(visit_node(c, &depth, from));
    while (depth) {
        const uint32_t here = depth;
        const mica_array *a = c->stack[here - 1].array;
        uint32_t next = c->stack[here - 1].next;
        while (next < a->n_in && depth == here) {
            const mica_array *in = a->in[next++];
            if (number_of(c, in) != UINT32_MAX) continue;
            c->stack[here - 1].next = next;
            MICA_TRY(visit_node(c, &depth, in));
        }
        if (depth > here) continue;
        MICA_TRY(key_node(c, a));
        MICA_TRY(add_node(c, a, UINT32_MAX));
        if (a->op == MICA__OP_UPDATE) MICA_TRY(add_update(c, a));
        depth--;
    }
    return MICA_OK;
}

mica_status mica__capture_run(mica__capture *c, mica_array *const *outs, size_t n_out, mica_array *const *params,
                              size_t n_param)
{
    c->n_node = c->n_leaf = c->n_slot = c->n_update = 0;
    c->key_words = 0;
    c->stamp = next_stamp(c->stamp);
    MICA_TRY(slot_room(c));
    for (size_t i = 0; i < n_param; i++) MICA_TRY(add_leaf(c, params[i], true));
    for (size_t i = 0; i < n_out; i++) MICA_TRY(walk(c, outs[i]));
    MICA_TRY(key_room(c, 1 + n_out)); /* the nodes already imply that updates are results */
    c->key[c->key_words++] = KEY_RESULTS;
    for (size_t i = 0; i < n_out; i++) c->key[c->key_words++] = number_of(c, outs[i]);
    return MICA_OK;
}

#undef KEY_NODE
#undef KEY_LEAF
#undef KEY_RESULTS

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
    g->out = mica__arena_array(arena, n_out + c->n_update + 1, sizeof *g->out);
    if (arena->failed) return mica__fail_memory("eval: the graph", c->n_node * sizeof *g->node);
    g->cap = c->n_node + 1;
    g->n = c->n_node;
    g->n_leaf = c->n_leaf;
    g->n_out = (uint32_t)n_out + c->n_update;
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
        for (uint32_t k = 0; k < a->n_in; k++) node->in[k] = number_of(c, a->in[k]);
        if (a->op == MICA__OP_SCAN) MICA_TRY(body_graph(c, a->attr, arena, &node->body));
    }
    for (size_t i = 0; i < n_out; i++) g->out[i] = number_of(c, outs[i]);
    for (uint32_t i = 0; i < c->n_update; i++) g->out[n_out + i] = number_of(c, c->update[i]);
    *graph = g;
    return MICA_OK;
}
