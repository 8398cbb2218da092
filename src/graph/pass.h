/* What the passes share: one walk over a graph, inputs before users, in which a
 * pass looks at a node, may append others and say what stands for it from now
 * on. Appended nodes are visited as well, after what is there. When the walk is
 * over the graph is swept, so every pass leaves a legal one.
 *
 * A node that is taken by pointer is gone after the next mica__rewrite_add: the
 * list may have moved. */
#ifndef MICA_GRAPH_PASS_H
#define MICA_GRAPH_PASS_H

#include "graph/graph.h"

typedef struct mica__rewrite {
    mica__graph *g;
    uint32_t *map;             /* what stands for a node; itself if it was not replaced   */
    uint32_t *uses;            /* inputs and results that mean this node; 0: it is dead    */
    uint8_t *mark;             /* for the pass; 0 for appended nodes                       */
    uint32_t *stack;           /* of nodes that just died                                  */
    uint32_t cap;
    bool changed;
} mica__rewrite;

/* Looks at one live node whose inputs are up to date. */
typedef mica_status (*mica__rewrite_rule)(mica__rewrite *rw, uint32_t id);

/* begin, the walk, end. */
mica_status mica__rewrite_run(mica__graph *g, mica__rewrite_rule rule, bool *changed);

/* For passes with a walk of their own. end redirects what was replaced, sweeps
 * and frees; status is how it went so far, and what end returns if it was not
 * MICA_OK. */
mica_status mica__rewrite_begin(mica__rewrite *rw, mica__graph *g);
mica_status mica__rewrite_end(mica__rewrite *rw, mica_status status, bool *changed);

static inline bool mica__rewrite_is_view(const mica__rewrite *rw, uint32_t id)
{
    return mica__op_get(rw->g->node[id].op)->kind == MICA__VIEW;
}
/* What stands for a node now. */
uint32_t mica__rewrite_find(mica__rewrite *rw, uint32_t id);
/* Append; the inputs must be up to date. */
mica_status mica__rewrite_add(mica__rewrite *rw, mica__op op, const uint32_t *in, uint32_t n_in, const void *attr,
                              size_t attr_size, uint32_t *id);
/* From now on `by`, which has the same shape and dtype, stands for id. */
void mica__rewrite_replace(mica__rewrite *rw, uint32_t id, uint32_t by);

/* Append, then replace id by it. */
mica_status mica__rewrite_by(mica__rewrite *rw, uint32_t id, mica__op op, const uint32_t *in, uint32_t n_in,
                             const void *attr, size_t attr_size);
mica_status mica__rewrite_by_full(mica__rewrite *rw, uint32_t id, mica__number value);
mica_status mica__rewrite_by_reshape(mica__rewrite *rw, uint32_t id, uint32_t of);

/* The shape rule of an op on nodes of g. */
mica_status mica__graph_infer(const mica__graph *g, const mica__op_info *info, const uint32_t *in, uint32_t n_in,
                              const void *attr, mica__spec *out);

/* COPY of what is row-major anyway vanishes. Not one of the numbered passes: it
 * comes last, because the others may turn what a copy reads into a leaf or a
 * view, and then the copy is what makes it row-major. */
mica_status mica__pass_copies(mica__graph *g, bool *changed);

/* The two halves of the movement pass: a view that changes nothing goes and a
 * view of a view becomes one (pass_movement.c); views are pushed up through
 * MAP nodes (pass_push.c). */
mica_status mica__merge_view(mica__rewrite *rw, uint32_t id);
mica_status mica__push_views(mica__graph *g, bool *changed);

#endif
