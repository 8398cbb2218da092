/* The same computation on other inputs: copies the nodes between some nodes and
 * some results. What gradients of scans and checkpoints are made of. */
#ifndef MICA_GRAPH_CLONE_H
#define MICA_GRAPH_CLONE_H

#include "graph/build.h"
#include "graph/node_map.h"

/* Nodes for which this is true are used as they are. */
typedef bool (*mica__clone_keeps)(const void *context, const mica_array *node);

typedef struct mica__clone {
    mica_array *const *from;     /* these are replaced by ...                              */
    mica_array *const *to;       /* ... these; the walk stops at them                      */
    size_t n;
    bool all;                    /* copy also what does not depend on from                 */
    mica__clone_keeps keeps;     /* may be NULL                                            */
    const void *context;
    mica__node_map *shared;      /* may be NULL: gets the nodes used as they are           */
} mica__clone;

/* copies[i] computes what outs[i] computes. Sources and what has its elements
 * are never copied. Scans inside are rebuilt with their bodies, so what a body
 * uses from outside is replaced too. A failure is the scope's. */
mica_status mica__clone_run(mica_scope *s, const mica__clone *clone, mica_array *const *outs, size_t n,
                            mica_array **copies);

/* The body of a scan on these params (carries, slices of xs, captured nodes). */
mica_status mica__clone_body(mica_scope *s, const mica__body *body, mica_array *const *params, mica_array **outs);

#endif
