/* The reverse pass: builds the cotangents of inputs from the cotangents of results,
 * as new nodes. mica_grad and the rules of ops that contain graphs (checkpoint,
 * scan) use it. */
#ifndef MICA_GRAPH_REVERSE_H
#define MICA_GRAPH_REVERSE_H

#include "graph/build.h"

/* Limit of nested passes. One needs up to 1.3 KB of stack, and threads may have 64 KB. */
enum { MICA__REVERSE_DEPTH = 20 };

/* grads[i] = sum_j <cts[j], d outs[j] / d wrt[i]>, NULL if no cotangent reaches it.
 * cts[j] may be NULL: zero. The pass follows nodes that are not evaluated yet or
 * belong to s. Nodes up to serial floor are constants: no cotangent passes them,
 * so a gradient with respect to one is a partial derivative. With floor 0 there
 * is no limit. The scope keeps the error. */
mica_status mica__reverse(mica_scope *s, mica_array *const *outs, mica_array *const *cts, size_t n,
                          mica_array *const *wrt, size_t n_wrt, uint64_t floor, mica_array **grads);

/* A running reverse pass, for rules that pass cotangents to nodes other than their
 * inputs. */
typedef struct mica__tape mica__tape;

mica_scope *mica__tape_scope(const mica__tape *tape);
/* Does node depend on an array of wrt? */
bool mica__tape_needs(const mica__tape *tape, const mica_array *node);
/* Is this node itself in wrt? */
bool mica__tape_wants(const mica__tape *tape, const mica_array *node);
/* Adds to the cotangent of a node older than the current one. Does nothing if the
 * node does not need a cotangent or ct is NULL. */
mica_status mica__tape_add(mica__tape *tape, const mica_array *node, mica_array *ct);

/* The sum of two cotangents of one node; NULL on failure. */
mica_array *mica__cotangent_sum(mica_scope *s, mica_array *a, mica_array *b);

/* The two ops that the pass handles without a rule of the table. */

/* CHECKPOINT: computes the region again and adds the cotangents of the nodes that
 * it uses to the tape. */
mica_status mica__checkpoint_vjp(mica__tape *tape, mica_array *y, mica_array *ct);

/* SCAN: cts has one entry for each part of the result, NULL: zero; wants (NULL:
 * all) selects the inputs; grads gets one entry for each input. */
mica_status mica__scan_vjp(mica_scope *s, mica_array *scan, mica_array *const *cts, const bool *wants,
                           mica_array **grads);

#endif
