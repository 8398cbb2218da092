/* See pass.h. The use counts stay exact while nodes are replaced and die, so a rule can
 * check whether a node has a single user. The total work is linear in the number of
 * nodes and inputs. */
#include <string.h>

#include "base/alloc.h"
#include "graph/pass.h"

static void rewrite_free(mica__rewrite *rw)
{
    mica__free(rw->map);
    mica__free(rw->uses);
    mica__free(rw->stack);
    mica__free(rw->mark);
}

static bool rewrite_grow_u32(uint32_t **list, size_t cap)
{
    void *p = mica__realloc(*list, cap * sizeof **list);
    if (p) *list = p;
    return p != NULL;
}

static mica_status rewrite_room(mica__rewrite *rw, uint32_t n)
{
    if (n <= rw->cap) return MICA_OK;
    const size_t cap = n < UINT32_MAX / 2 ? 2 * (size_t)n : UINT32_MAX;
    uint8_t *mark = mica__realloc(rw->mark, cap);
    if (mark) rw->mark = mark;
    if (!mark || !rewrite_grow_u32(&rw->map, cap) || !rewrite_grow_u32(&rw->uses, cap) ||
        !rewrite_grow_u32(&rw->stack, cap))
        return mica__fail_memory("simplify: scratch", cap * (3 * sizeof *rw->map + 1));
    rw->cap = (uint32_t)cap;
    return MICA_OK;
}

static void rewrite_track(mica__rewrite *rw, uint32_t id)
{
    rw->map[id] = id;
    rw->uses[id] = 0;
    rw->mark[id] = 0;
}

mica_status mica__rewrite_begin(mica__rewrite *rw, mica__graph *g)
{
    *rw = (mica__rewrite){.g = g};
    if (rewrite_room(rw, g->n + 1) != MICA_OK) {
        rewrite_free(rw);
        return MICA_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < g->n; i++) {
        rewrite_track(rw, i);
        for (uint32_t k = 0; k < g->node[i].n_in; k++) rw->uses[g->node[i].in[k]]++;
    }
    for (uint32_t i = 0; i < g->n_out; i++) rw->uses[g->out[i]]++;
    return MICA_OK;
}

uint32_t mica__rewrite_find(mica__rewrite *rw, uint32_t id)
{
    uint32_t to = id;
    while (rw->map[to] != to) to = rw->map[to];
    while (rw->map[id] != to) {
        const uint32_t next = rw->map[id];
        rw->map[id] = to;
        id = next;
    }
    return to;
}

mica_status mica__rewrite_add(mica__rewrite *rw, mica__op op, const uint32_t *in, uint32_t n_in, const void *attr,
                              size_t attr_size, uint32_t *id)
{
    MICA_TRY(rewrite_room(rw, rw->g->n + 1));
    MICA_TRY(mica__graph_add(rw->g, op, in, n_in, attr, (uint32_t)attr_size, id));
    rewrite_track(rw, *id);
    for (uint32_t k = 0; k < n_in; k++) rw->uses[in[k]]++;
    return MICA_OK;
}

void mica__rewrite_replace(mica__rewrite *rw, uint32_t id, uint32_t by)
{
    rw->map[id] = by;
    rw->uses[by] += rw->uses[id];
    rw->uses[id] = 0;
    rw->changed = true;
    uint32_t depth = 0;
    rw->stack[depth++] = id;
    while (depth > 0) {
        const mica__gnode *dead = &rw->g->node[rw->stack[--depth]];
        for (uint32_t k = 0; k < dead->n_in; k++) {
            const uint32_t in = mica__rewrite_find(rw, dead->in[k]);
            if (--rw->uses[in] == 0) rw->stack[depth++] = in;
        }
    }
}

mica_status mica__rewrite_by(mica__rewrite *rw, uint32_t id, mica__op op, const uint32_t *in, uint32_t n_in,
                             const void *attr, size_t attr_size)
{
    uint32_t by;
    MICA_TRY(mica__rewrite_add(rw, op, in, n_in, attr, attr_size, &by));
    rw->mark[by] = rw->mark[id];
    mica__rewrite_replace(rw, id, by);
    return MICA_OK;
}

mica_status mica__rewrite_by_full(mica__rewrite *rw, uint32_t id, mica__number value)
{
    const mica__attr_full attr = {rw->g->node[id].spec, value};
    return mica__rewrite_by(rw, id, MICA__OP_FULL, NULL, 0, &attr, sizeof attr);
}

mica_status mica__rewrite_by_reshape(mica__rewrite *rw, uint32_t id, uint32_t of)
{
    const mica__spec *to = &rw->g->node[id].spec;
    mica__attr_shape attr = {.ndim = to->ndim};
    memcpy(attr.shape, to->shape, (size_t)to->ndim * sizeof *attr.shape);
    return mica__rewrite_by(rw, id, MICA__OP_RESHAPE, &of, 1, &attr, sizeof attr);
}

mica_status mica__rewrite_end(mica__rewrite *rw, mica_status status, bool *changed)
{
    mica__graph *g = rw->g;
    *changed = rw->changed;
    if (status == MICA_OK && rw->changed) {
        for (uint32_t i = 0; i < g->n; i++) mica__rewrite_find(rw, i); /* compresses paths: every entry is final */
        mica__graph_redirect(g, rw->map);
        status = mica__graph_sweep(g);
    }
    rewrite_free(rw);
    return status;
}

mica_status mica__rewrite_run(mica__graph *g, mica__rewrite_rule rule, bool *changed)
{
    mica__rewrite rw;
    mica_status status = MICA_OK;
    *changed = false;
    MICA_TRY(mica__rewrite_begin(&rw, g));
    for (uint32_t i = 0; i < g->n && status == MICA_OK; i++) {
        if (rw.uses[i] == 0) continue;
        const mica__gnode *node = &g->node[i];
        for (uint32_t k = 0; k < node->n_in; k++) node->in[k] = mica__rewrite_find(&rw, node->in[k]);
        status = rule(&rw, i);
    }
    return mica__rewrite_end(&rw, status, changed);
}
