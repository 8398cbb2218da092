/* Turns the arrays that a caller built into the input of the planner: the nodes that
 * are not evaluated yet, inputs first; the evaluated nodes that they start from
 * (leaves); and a key that is equal for equal structures (ops, dtypes, shapes,
 * attributes, layout of leaves; never addresses or data).
 *
 * A capture is reused: after the first few runs it allocates nothing. */
#ifndef MICA_GRAPH_CAPTURE_H
#define MICA_GRAPH_CAPTURE_H

#include "graph/graph.h"

typedef struct mica__capture {
    const mica_array **node;    /* inputs before users; includes the leaves              */
    uint32_t *leaf_of;          /* per node: number of the leaf, or UINT32_MAX           */
    uint32_t n_node, cap_node;
    mica_array **leaf;
    uint32_t n_leaf, cap_leaf;
    mica_array **update;        /* UPDATE nodes: always results (adr/0008)               */
    uint32_t n_update, cap_update;
    uint64_t *key;              /* words; a record for each node, then the results       */
    size_t key_words, cap_key;
    /* A lazy node belongs to one thread, so it stores its number itself, with the
     * stamp of the capture that assigned it. Evaluated nodes are shared, and bodies
     * are captured during the capture of the outer graph: both use the hash table. */
    uint64_t stamp;             /* of this run; unique                                   */
    struct mica__slot *slot;    /* pointer -> number in node, open addressing            */
    uint32_t n_slot, cap_slot;
    struct mica__frame *stack;  /* of the walk                                           */
    uint32_t cap_stack;
    struct mica__capture *inner; /* for bodies of scans                                  */
    bool body;                  /* this capture is for a body                            */
} mica__capture;

void mica__capture_free(mica__capture *c);

/* Walks from outs. Waits for leaves that are being evaluated and fails if one of them
 * failed. params (may be NULL) are leaves 0 ... n_param-1, evaluated or not; the walk
 * stops at them. */
mica_status mica__capture_run(mica__capture *c, mica_array *const *outs, size_t n_out, mica_array *const *params,
                              size_t n_param);

/* The captured nodes as a compact graph in an arena. Its results are outs, then the
 * updates. row_major: leaves are assumed to be row-major (bodies); else their own
 * layout is used. */
mica_status mica__capture_graph(mica__capture *c, mica_array *const *outs, size_t n_out, bool row_major,
                                mica__arena *arena, mica__graph **graph);

#endif
