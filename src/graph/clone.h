/* Copies a subgraph onto other inputs: the nodes between some nodes and some
 * results. Gradients of scans and checkpoints use it. */
#ifndef MICA_GRAPH_CLONE_H
#define MICA_GRAPH_CLONE_H

#include "graph/build.h"
#include "graph/node_map.h"

/* Nodes for which this returns true are not copied. */
typedef bool (*mica__clone_keeps)(const void *context, const mica_array *node);

typedef struct mica__clone {
    mica_array *const *from;     /* these are replaced by ...                              */
    mica_array *const *to;       /* ... these; the walk stops at them                      */
    size_t n;
    bool all;                    /* also copy nodes that do not depend on from             */
    mica__clone_keeps keeps;     /* may be NULL                                            */
    const void *context;
    mica__node_map *shared;      /* may be NULL: gets the nodes that are not copied        */
} mica__clone;

/* copies[i] computes the same as outs[i]. Sources and evaluated nodes are never
 * copied. Scans are rebuilt with their bodies, so captured nodes are replaced too.
 * The scope keeps the error. */
mica_status mica__clone_run(mica_scope *s, const mica__clone *clone, mica_array *const *outs, size_t n,
                            mica_array **copies);

/* Copies the body of a scan onto these params (carries, slices of xs, captured nodes). */
mica_status mica__clone_body(mica_scope *s, const mica__body *body, mica_array *const *params, mica_array **outs);

#endif
