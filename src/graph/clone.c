/* See clone.h. Depth first with an explicit stack: a node is copied after all
 * its inputs; only nested scans recurse. */
#include "graph/clone.h"

#include "base/alloc.h"

typedef struct clone_frame {
    mica_array *node;
    uint32_t next;         /* input to visit next */
} clone_frame;

typedef struct clone_work {
    mica_scope *s;
    const mica__clone *clone;
    uint64_t oldest;       /* no node before this serial depends on from */
    mica__node_map map;    /* nodes that have a copy     */
    mica_array **copy;     /* by number; scope owns them */
    uint32_t cap_copy;
    clone_frame *stack;
    size_t depth, cap_stack;
    mica_array **in;       /* scratch: copied inputs     */
    size_t cap_in;
} clone_work;

static mica_status clone_set(clone_work *w, const mica_array *node, mica_array *copy)
{
    uint32_t number;
    MICA_TRY(mica__node_map_add(&w->map, node, &number));
    if (number >= w->cap_copy) {
        const uint32_t cap = w->map.cap;
        mica_array **p = mica__realloc(w->copy, cap * sizeof *p);
        if (!p) return mica__fail_memory("the copy of a graph", cap * sizeof *p);
        w->copy = p;
        w->cap_copy = cap;
    }
    w->copy[number] = copy;
    return MICA_OK;
}

static mica_array *clone_of(const clone_work *w, const mica_array *node)
{
    const uint32_t number = mica__node_map_find(&w->map, node);
    return number == MICA__NODE_NONE ? NULL : w->copy[number];
}

static mica_status clone_push(clone_work *w, mica_array *node)
{
    if (w->depth == w->cap_stack) {
        const size_t cap = w->cap_stack ? w->cap_stack * 2 : 64;
        clone_frame *p = mica__realloc(w->stack, cap * sizeof *p);
        if (!p) return mica__fail_memory("the copy of a graph", cap * sizeof *p);
        w->stack = p;
        w->cap_stack = cap;
    }
    w->stack[w->depth++] = (clone_frame){node, 0};
    return MICA_OK;
}

/* ----------------------------------------------------- nodes that own more -- */

/* The original owns the user's data. The copy keeps the original alive and
 * calls its function. */
static mica_status clone_call_original(mica_scope *s, mica_array *ct, mica_array *const *inputs, size_t n,
                                       mica_array **grads, void *user)
{
    const mica__attr_custom *attr = ((const mica_array *)user)->attr;
    return attr->fn(s, ct, inputs, n, grads, attr->user);
}

static void clone_drop_original(void *data, void *user)
{
    (void)data;
    mica_drop(user);
}

static mica_array *clone_custom(mica_scope *s, mica_array *node, mica_array *const *in)
{
    return mica_custom_grad(s, in[0], in + 1, node->n_in - 1, clone_call_original, mica_keep(node),
                            clone_drop_original);
}

mica_status mica__clone_body(mica_scope *s, const mica__body *body, mica_array *const *params, mica_array **outs)
{
    const mica__clone clone = {.from = body->param, .to = params, .n = body->n_param, .all = true};
    return mica__clone_run(s, &clone, body->out, body->n_out, outs);
}

/* Rebuilds a scan around a copy of its body. The new body captures the copies of
 * the nodes that the old body captured. */
static mica_array *clone_scan(mica_scope *s, const mica_array *node, mica_array *const *in)
{
    const mica__attr_scan *attr = node->attr;
    const mica__body *body = attr->body;
    const size_t n_own = (size_t)(attr->n_carry + attr->n_x), n_out = body->n_out;
    const size_t n = body->n_param + 2 * n_out;
    mica_array **params = mica__alloc_zero(n + 1, sizeof *params);
    if (!params) {
        mica__fail_memory("the copy of a scan", n * sizeof *params);
        return mica__scope_failed(s, MICA_ERR_MEMORY);
    }
    mica_array **outs = params + body->n_param, **parts = outs + n_out, *copy = NULL;
    const uint64_t mark = mica__serial_now();
    for (size_t i = 0; i < body->n_param; i++)
        params[i] = i < n_own ? mica__param(s, &body->param[i]->spec, (int64_t)i) : in[i];
    if (s->error.status == MICA_OK && mica__clone_body(s, body, params, outs) == MICA_OK &&
        mica__build_scan(s, (size_t)attr->n_carry, (size_t)attr->n_x, (size_t)attr->n_y, attr->length,
                         attr->reverse != 0, in, params, outs, mark, parts) == MICA_OK)
        copy = parts[0]->in[0];
    mica__free(params);
    return copy;
}

static mica_array *clone_node(mica_scope *s, mica_array *node, mica_array *const *in)
{
    if (node->op == MICA__OP_SCAN) return clone_scan(s, node, in);
    if (node->op == MICA__OP_CUSTOM_GRAD) return clone_custom(s, node, in);
    if (node->op == MICA__OP_UPDATE)
        return mica__scope_fail(s, MICA_ERR_UNSUPPORTED,
                                "update: a state cannot be updated a second time to compute "
                                "gradients");
    return mica__build(s, (mica__op)node->op, in, node->n_in, node->attr, node->attr_size);
}

/* ----------------------------------------------------------------- walk ---- */

static bool clone_is_shared(const clone_work *w, const mica_array *node)
{
    if (mica__array_state(node) != MICA__LAZY || mica__op_get(node->op)->kind == MICA__SOURCE) return true;
    if (!w->clone->all && node->serial < w->oldest) return true;
    return w->clone->keeps && w->clone->keeps(w->clone->context, node);
}

static mica_status clone_share(clone_work *w, mica_array *node)
{
    uint32_t number;
    if (w->clone->shared) MICA_TRY(mica__node_map_add(w->clone->shared, node, &number));
    return clone_set(w, node, node);
}

static mica_status clone_finish(clone_work *w, mica_array *node)
{
    if (node->n_in > w->cap_in) {
        mica_array **p = mica__realloc(w->in, node->n_in * sizeof *p);
        if (!p) return mica__fail_memory("the copy of a graph", node->n_in * sizeof *p);
        w->in = p;
        w->cap_in = node->n_in;
    }
    bool changed = w->clone->all;
    for (uint32_t k = 0; k < node->n_in; k++) {
        w->in[k] = clone_of(w, node->in[k]);
        changed |= w->in[k] != node->in[k];
    }
    if (!changed) return clone_share(w, node);
    mica_array *copy = clone_node(w->s, node, w->in);
    return copy ? clone_set(w, node, copy) : w->s->error.status;
}

static mica_status clone_walk(clone_work *w, mica_array *from)
{
    MICA_TRY(clone_push(w, from));
    while (w->depth) {
        clone_frame *top = &w->stack[w->depth - 1];
        mica_array *node = top->node;
        if (clone_of(w, node)) {
            w->depth--;
        } else if (clone_is_shared(w, node)) {
            MICA_TRY(clone_share(w, node));
        } else if (top->next < node->n_in) {
            mica_array *in = node->in[top->next++];
            if (!clone_of(w, in)) MICA_TRY(clone_push(w, in));
        } else {
            MICA_TRY(clone_finish(w, node));
        }
    }
    return MICA_OK;
}

mica_status mica__clone_run(mica_scope *s, const mica__clone *clone, mica_array *const *outs, size_t n,
                            mica_array **copies)
{
    clone_work w = {.s = s, .clone = clone, .oldest = UINT64_MAX};
    mica_status status = MICA_OK;
    for (size_t i = 0; i < clone->n; i++)
        if (clone->from[i]->serial < w.oldest) w.oldest = clone->from[i]->serial;
    for (size_t i = 0; status == MICA_OK && i < clone->n; i++) status = clone_set(&w, clone->from[i], clone->to[i]);
    for (size_t i = 0; status == MICA_OK && i < n; i++) {
        status = clone_walk(&w, outs[i]);
        copies[i] = status == MICA_OK ? clone_of(&w, outs[i]) : NULL;
    }
    mica__node_map_free(&w.map);
    mica__free(w.copy);
    mica__free(w.stack);
    mica__free(w.in);
    if (status != MICA_OK) mica__scope_failed(s, status);
    return status;
}
