/* The passes over the compact graph. Each can be disabled (mica_pass), and each
 * alone keeps results within the guarantees of docs/NUMERICS.md. */
#ifndef MICA_GRAPH_SIMPLIFY_H
#define MICA_GRAPH_SIMPLIFY_H

#include "graph/graph.h"

/* Runs the passes of the mask to a fixed point (bounded), sweeping and, in
 * debug builds, verifying after each. Bodies of scans are simplified too. */
mica_status mica__simplify(mica__graph *g, uint32_t passes);

/* Single passes, for tests; *changed is set if anything was rewritten. */
mica_status mica__pass_alias(mica__graph *g, bool *changed);    /* always runs: removes aliases except AFTER */
mica_status mica__pass_fold(mica__graph *g, bool *changed);
mica_status mica__pass_algebra(mica__graph *g, bool *changed);
mica_status mica__pass_movement(mica__graph *g, bool *changed);
mica_status mica__pass_cse(mica__graph *g, bool *changed);
mica_status mica__pass_scans(mica__graph *g, bool *changed);    /* part of MICA_PASS_CSE */
mica_status mica__pass_narrow(mica__graph *g, bool *changed);

#endif
