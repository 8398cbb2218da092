/* The step of a scan whose rows have nothing to do with each other: the first axis of its carries
 * is a batch, and so is the first axis of all that is made of them. Then parts of the batch can go
 * through all steps on threads of their own, which never wait for each other. */
#ifndef MICA_GRAPH_BATCH_H
#define MICA_GRAPH_BATCH_H

#include "graph/graph.h"

/* Size of the batch that a body with this many carries would have; 0: none. */
int64_t mica__batch_size(const mica__graph *body, uint32_t n_carry);

/* The body for `rows` rows of that batch, in the arena; *out is NULL if its rows do not go alone.
 * sliced[leaf]: does the leaf have the batch, so that a part of it is given? n_own: carries and xs. */
mica_status mica__batch_cut(const mica__graph *body, uint32_t n_carry, uint32_t n_own, int64_t rows, mica__arena *arena,
                            bool *sliced, mica__graph **out);

#endif
