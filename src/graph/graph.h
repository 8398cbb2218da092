/* The compact graph that a plan is made from: numbered nodes in an arena, inputs
 * before users. It is a copy of the caller's graph, so passes may rewrite it.
 *
 * Passes never change the meaning of a node in place: they append nodes and redirect
 * uses (mica__graph_redirect). mica__graph_sweep then renumbers the reachable
 * nodes. */
#ifndef MICA_GRAPH_GRAPH_H
#define MICA_GRAPH_GRAPH_H

#include "array/array.h"
#include "base/arena.h"
#include "base/text.h"
#include "graph/attrs.h"
#include "graph/op.h"

typedef struct mica__graph mica__graph;

typedef struct mica__gnode {
    uint16_t op;
    uint32_t n_in;
    uint32_t *in;              /* node numbers                                        */
    const void *attr;
    uint32_t attr_size;
    mica__spec spec;
    int32_t leaf;              /* LEAF, PARAM: number of the leaf; else -1            */
    mica__graph *body;         /* SCAN: the graph of one step                         */
} mica__gnode;

/* What a plan may assume about a leaf. */
typedef struct mica__leaf_layout {
    mica__spec spec;
    int64_t strides[MICA_MAX_DIMS];
} mica__leaf_layout;

struct mica__graph {
    mica__arena *arena;
    mica__gnode *node;
    uint32_t n, cap;
    uint32_t *out;             /* results                                             */
    uint32_t n_out;
    mica__leaf_layout *leaf;
    uint32_t n_leaf;
};

mica_status mica__graph_new(mica__arena *arena, mica__graph **out);
/* Appends a node; attributes are copied. The shape rule computes its spec. */
mica_status mica__graph_add(mica__graph *g, mica__op op, const uint32_t *in, uint32_t n_in, const void *attr,
                            uint32_t attr_size, uint32_t *id);
/* Removes nodes that no result needs and renumbers the others: inputs before users,
 * otherwise in their old order. LEAF nodes keep their leaf number. */
mica_status mica__graph_sweep(mica__graph *g);
/* Redirects every use of a node (inputs and results) through map, which has g->n
 * entries: map[i] is used instead of i. */
void mica__graph_redirect(mica__graph *g, const uint32_t *map);

/* Checks that the graph is legal: inputs before users, arity, stored spec equal to
 * the shape rule's, leaf numbers, results. MICA_ERR_INTERNAL names the node and
 * `after`, the pass that ran last. */
mica_status mica__graph_verify(const mica__graph *g, const char *after);

void mica__graph_print(const mica__graph *g, mica__text *text);

/* The value of all elements of a FULL node (or a view of one); false for other nodes. */
bool mica__graph_constant(const mica__graph *g, uint32_t id, mica__number *value);

/* Computes the strides and offset (in elements) of the result of a VIEW op from those
 * of its input. false if strides cannot express it (some reshapes). */
bool mica__view_apply(const mica__gnode *view, const mica__spec *in, const int64_t *in_strides, int64_t in_offset,
                      int64_t *strides, int64_t *offset);

#endif
