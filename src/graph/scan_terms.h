/* Sums over the steps of a scan that are computed after the scan. The gradient of an array
 * that a step captures is a sum over the steps. If its summand is a product, that sum is
 * one product:
 *
 *     sum of A[t] B[t]  =  [A[0] A[1] ...] [B[0]; B[1]; ...]
 *
 * This replaces many small products, each of which would read and write the whole sum. The
 * scan returns the factors, and the product follows it. The same works for sums over axes of
 * arrays that the scan returns anyway, and for ops that only move or add such sums. */
#ifndef MICA_GRAPH_SCAN_TERMS_H
#define MICA_GRAPH_SCAN_TERMS_H

#include "graph/build.h"

typedef struct mica__scan_terms {
    mica_array **node;          /* values of one step that the sums need, without duplicates */
    mica_array **stacked;       /* the same for all steps; the builder of the scan fills it in */
    size_t n, room;
    uint64_t floor;             /* nodes up to this serial are captured: equal in every step */
    uint64_t bytes, most;       /* per step, in addition to what the scan returns anyway; limit of bytes */
} mica__scan_terms;

/* Can the sum of `summand` be computed after the scan at less cost than carrying it? If so, adds
 * the values that it needs to t. A sum that does not fit into t->room stays in the scan. */
bool mica__scan_terms_collect(mica__scan_terms *t, const mica_array *summand);

/* The sum over all steps of a summand that was taken. */
mica_array *mica__scan_terms_sum(mica_scope *s, const mica__scan_terms *t, mica_array *summand);

#endif
