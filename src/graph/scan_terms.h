/* Sums over the steps of a scan that need not be carried. What a step uses from outside has as
 * gradient a sum over the steps. Where its summand is a product, that sum is one product:
 *
 *     sum of A[t] B[t]  =  [A[0] A[1] ...] [B[0]; B[1]; ...]
 *
 * one large instead of many small ones, each of which would read and write the whole sum. So the
 * scan returns the factors, and the product is behind it. The same for sums over axes of what is
 * returned anyway, and for what only moves or adds such sums. */
#ifndef MICA_GRAPH_SCAN_TERMS_H
#define MICA_GRAPH_SCAN_TERMS_H

#include "graph/build.h"

typedef struct mica__scan_terms {
    mica_array **node;          /* of one step: what sums are made of, each once             */
    mica_array **stacked;       /* of all steps; whoever builds the scan fills it in         */
    size_t n, room;
    uint64_t floor;             /* nodes up to this serial are from outside: the same in every step */
    uint64_t bytes, most;       /* of a step, beyond what the scan has anyway; how many may be */
} mica__scan_terms;

/* Can the sum of `summand` be made behind the scan, for less than carrying it costs? Then t has
 * what that needs. What t->room is too small for stays in the scan. */
bool mica__scan_terms_take(mica__scan_terms *t, const mica_array *summand);

/* The sum over all steps of a summand that was taken. */
mica_array *mica__scan_terms_sum(mica_scope *s, const mica__scan_terms *t, mica_array *summand);

#endif
