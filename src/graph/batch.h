/* Splits the body of a scan by batch. If the first axis of the carries is a batch and no row
 * depends on another row, parts of the batch can run through all steps on separate threads
 * that never wait for each other. */
#ifndef MICA_GRAPH_BATCH_H
#define MICA_GRAPH_BATCH_H

#include "graph/graph.h"

/* Size of the batch that a body with this many carries would have; 0: no batch. */
int64_t mica__batch_size(const mica__graph *body, uint32_t n_carry);

/* The body for `rows` rows of that batch, in the arena; *out is NULL if rows of the batch depend on each
 * other. sliced[leaf]: the leaf has the batch, so each part gets a slice of it. n_own: carries and xs. */
mica_status mica__batch_cut(const mica__graph *body, uint32_t n_carry, uint32_t n_own, int64_t rows, mica__arena *arena,
                            bool *sliced, mica__graph **out);

#endif
