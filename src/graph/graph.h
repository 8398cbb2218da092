/* The compact graph a plan is made from: nodes by number in an arena, inputs
 * before users. A copy of what the caller built, so passes may rewrite it.
 *
 * Passes never change a node's meaning in place: they append nodes and redirect
 * uses (mica__graph_replace), then mica__graph_sweep renumbers what is still
 * reachable. */
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

/* What a plan may assume about a leaf: its layout. */
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
/* Append a node; attributes are copied. The shape rule gives its spec. */
mica_status mica__graph_add(mica__graph *g, mica__op op, const uint32_t *in, uint32_t n_in, const void *attr,
                            uint32_t attr_size, uint32_t *id);
/* Drop what no result needs and renumber so that inputs come before users
 * (depth-first from the results, the order of the caller kept otherwise).
 * LEAF nodes stay known by their leaf number. */
mica_status mica__graph_sweep(mica__graph *g);
/* Redirect every use of node `from` (inputs and results) through map[]: helper
 * for passes: map has g->n entries, map[i] = what to use instead of i. */
void mica__graph_redirect(mica__graph *g, const uint32_t *map);

/* Legal? Inputs before users, arity, shape rule agrees with the stored spec,
 * leaf numbers, results. MICA_ERR_INTERNAL with the node if not. `after` names
 * the pass that ran. */
mica_status mica__graph_verify(const mica__graph *g, const char *after);

void mica__graph_print(const mica__graph *g, mica__text *text);

/* The constant every element of a FULL (or a view of one) has. */
bool mica__graph_constant(const mica__graph *g, uint32_t id, mica__number *value);

/* How a VIEW op changes strides and offset (in elements): from the input's to
 * the result's. false if strides cannot express it (some reshapes). */
bool mica__view_apply(const mica__gnode *view, const mica__spec *in, const int64_t *in_strides, int64_t in_offset,
                      int64_t *strides, int64_t *offset);

#endif
