/* From the arrays a caller built to something a plan can be looked up or made
 * from: the nodes that are not evaluated yet, inputs first; the evaluated ones
 * they start from (leaves); and a key that is equal for equal structures (ops,
 * dtypes, shapes, attributes, layout of leaves; never addresses or data).
 *
 * A capture is scratch that is used again and again: after the first few runs
 * it allocates nothing. */
#ifndef MICA_GRAPH_CAPTURE_H
#define MICA_GRAPH_CAPTURE_H

#include "graph/graph.h"

typedef struct mica__capture {
    const mica_array **node;    /* inputs before users; leaves have an entry here too    */
    uint32_t *leaf_of;          /* per node: number of the leaf, or UINT32_MAX           */
    uint32_t n_node, cap_node;
    mica_array **leaf;
    uint32_t n_leaf, cap_leaf;
    mica_array **update;        /* UPDATE nodes: results too, wanted or not (adr/0008)   */
    uint32_t n_update, cap_update;
    uint64_t *key;              /* words; a record for each node, then the results       */
    size_t key_words, cap_key;
    /* A lazy node belongs to one thread, so it carries its number itself, together
     * with the stamp of the capture that gave it. Evaluated ones are shared, and
     * bodies are captured while the graph around them is: those are looked up. */
    uint64_t stamp;             /* of this run; never that of another                    */
    struct mica__slot *slot;    /* pointer -> number in node, open addressing            */
    uint32_t n_slot, cap_slot;
    struct mica__frame *stack;  /* of the walk                                           */
    uint32_t cap_stack;
    struct mica__capture *inner; /* for bodies of scans                                  */
    bool body;                  /* this is such a one                                    */
} mica__capture;

void mica__capture_free(mica__capture *c);

/* Waits for leaves that are being evaluated; one that failed is a failure here.
 * Walks from outs. params (may be NULL) are leaves 0 ... n_param-1 whether they
 * are evaluated or not; the walk stops at them. */
mica_status mica__capture_run(mica__capture *c, mica_array *const *outs, size_t n_out, mica_array *const *params,
                              size_t n_param);

/* The captured nodes as a compact graph in an arena; its results are outs, then the
 * updates. row_major: leaves are
 * taken to be row-major (bodies), else as they are. */
mica_status mica__capture_graph(mica__capture *c, mica_array *const *outs, size_t n_out, bool row_major,
                                mica__arena *arena, mica__graph **graph);

#endif
