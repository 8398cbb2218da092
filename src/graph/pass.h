/* Shared by the passes: one walk over a graph, inputs before users. For each node a
 * pass may append nodes and replace the node by another. Appended nodes are visited
 * too, after the existing ones. The walk ends with a sweep, so every pass leaves a
 * legal graph.
 *
 * A pointer to a node is invalid after the next mica__rewrite_add: the list may
 * have moved. */
#ifndef MICA_GRAPH_PASS_H
#define MICA_GRAPH_PASS_H

#include "graph/graph.h"

typedef struct mica__rewrite {
    mica__graph *g;
    uint32_t *map;             /* replacement of each node; the node itself if not replaced */
    uint32_t *uses;            /* number of inputs and results that use this node; 0: dead */
    uint8_t *mark;             /* for the pass; 0 for appended nodes                       */
    uint32_t *stack;           /* nodes that just became dead                              */
    uint32_t cap;
    bool changed;
} mica__rewrite;

/* Handles one live node whose inputs are up to date. */
typedef mica_status (*mica__rewrite_rule)(mica__rewrite *rw, uint32_t id);

/* begin, the walk, end. */
mica_status mica__rewrite_run(mica__graph *g, mica__rewrite_rule rule, bool *changed);

/* For passes with a different walk. end redirects the uses of replaced nodes, sweeps
 * and frees. status is the result so far; end returns it if it is not MICA_OK. */
mica_status mica__rewrite_begin(mica__rewrite *rw, mica__graph *g);
mica_status mica__rewrite_end(mica__rewrite *rw, mica_status status, bool *changed);

static inline bool mica__rewrite_is_view(const mica__rewrite *rw, uint32_t id)
{
    return mica__op_get(rw->g->node[id].op)->kind == MICA__VIEW;
}
/* The current replacement of a node. */
uint32_t mica__rewrite_find(mica__rewrite *rw, uint32_t id);
/* Appends a node; its inputs must be up to date. */
mica_status mica__rewrite_add(mica__rewrite *rw, mica__op op, const uint32_t *in, uint32_t n_in, const void *attr,
                              size_t attr_size, uint32_t *id);
/* Replaces id by `by`, which has the same shape and dtype. */
void mica__rewrite_replace(mica__rewrite *rw, uint32_t id, uint32_t by);

/* Appends a node, then replaces id by it. */
mica_status mica__rewrite_by(mica__rewrite *rw, uint32_t id, mica__op op, const uint32_t *in, uint32_t n_in,
                             const void *attr, size_t attr_size);
mica_status mica__rewrite_by_full(mica__rewrite *rw, uint32_t id, mica__number value);
mica_status mica__rewrite_by_reshape(mica__rewrite *rw, uint32_t id, uint32_t of);

/* Runs the shape rule of an op on nodes of g. */
mica_status mica__graph_infer(const mica__graph *g, const mica__op_info *info, const uint32_t *in, uint32_t n_in,
                              const void *attr, mica__spec *out);

/* Removes a COPY of a node that is row-major anyway. Not one of the numbered passes:
 * it runs last, because the others may turn the input of a copy into a leaf or a
 * view, and then the copy is needed to make it row-major. */
mica_status mica__pass_copies(mica__graph *g, bool *changed);

/* The two halves of the movement pass: views that change nothing are removed and a
 * view of a view becomes one view (pass_movement.c); views are pushed up through
 * MAP nodes (pass_push.c). */
mica_status mica__merge_view(mica__rewrite *rw, uint32_t id);
mica_status mica__push_views(mica__graph *g, bool *changed);

#endif
