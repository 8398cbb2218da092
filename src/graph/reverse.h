/* The reverse pass: from cotangents of results to cotangents of what they were
 * computed from, as new nodes. mica_grad and the rules of ops that contain
 * graphs (checkpoint, scan) are built on it. */
#ifndef MICA_GRAPH_REVERSE_H
#define MICA_GRAPH_REVERSE_H

#include "graph/build.h"

/* Passes inside each other. One takes up to 1.3 KB of stack, and threads may have 64 KB. */
enum { MICA__REVERSE_DEPTH = 20 };

/* grads[i] = sum_j <cts[j], d outs[j] / d wrt[i]>, NULL where there is none.
 * cts[j] may be NULL: zero. Goes through nodes that are not evaluated yet or
 * belong to s. Nodes up to serial floor are taken as given: nothing flows past
 * them, so a gradient with respect to one is a partial derivative. With floor 0
 * everything counts. A failure is the scope's. */
mica_status mica__reverse(mica_scope *s, mica_array *const *outs, mica_array *const *cts, size_t n,
                          mica_array *const *wrt, size_t n_wrt, uint64_t floor, mica_array **grads);

/* One reverse pass under way, for rules whose cotangents go to other nodes than
 * their inputs. */
typedef struct mica__tape mica__tape;

mica_scope *mica__tape_scope(const mica__tape *tape);
/* Is there a way from node to an array the gradient is asked for? */
bool mica__tape_needs(const mica__tape *tape, const mica_array *node);
/* Is the gradient asked for with respect to this very node? */
bool mica__tape_wants(const mica__tape *tape, const mica_array *node);
/* Add to the cotangent of a node older than the one being processed; nothing
 * happens if it does not need one, or if ct is NULL. */
mica_status mica__tape_add(mica__tape *tape, const mica_array *node, mica_array *ct);

/* The sum of two cotangents of one node; NULL if that failed. */
mica_array *mica__cotangent_sum(mica_scope *s, mica_array *a, mica_array *b);

/* The two ops the pass does not leave to a rule of the table. */

/* CHECKPOINT: computes the region again and spreads the cotangents of what it
 * uses over the tape. */
mica_status mica__checkpoint_vjp(mica__tape *tape, mica_array *y, mica_array *ct);

/* SCAN: cts has one entry for each part of the result, NULL: zero; wants (NULL:
 * all) says which inputs are worth it; grads gets one entry for each input. */
mica_status mica__scan_vjp(mica_scope *s, mica_array *scan, mica_array *const *cts, const bool *wants,
                           mica_array **grads);

#endif
