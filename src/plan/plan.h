/* A plan: the steps that evaluate a graph, in order, and the memory of every
 * value. It is made once for the structure of a graph, kept in the plan cache and
 * replayed without planning or allocating. It is immutable while it runs, so many
 * threads may run the same plan at once.
 *
 * Memory is a list of blocks: a leaf's memory (given by the caller), a piece
 * of the arena (one buffer for all temporaries of a run; offsets are planned so
 * that blocks alive at the same time do not overlap), or an output's memory (a
 * separate buffer, because it outlives the run). */
#ifndef MICA_PLAN_PLAN_H
#define MICA_PLAN_PLAN_H

#include "graph/graph.h"

#define MICA__NO_BLOCK UINT32_MAX
#define MICA__NO_NODE UINT32_MAX

typedef enum mica__place { MICA__AT_LEAF, MICA__AT_ARENA, MICA__AT_OUTPUT } mica__place;

typedef struct mica__block {
    mica__place place;
    uint32_t index;             /* number of the leaf or of the output buffer           */
    size_t offset;              /* in the arena                                         */
    size_t nbytes;
    uint32_t first, last;       /* first and last step that use it                      */
} mica__block;

/* A value that a step reads or writes. */
typedef struct mica__operand {
    uint32_t node;              /* the graph node of this value                         */
    uint32_t block;             /* MICA__NO_BLOCK: no memory, computed on the fly       */
    uint32_t make;              /* ... from this FULL or IOTA node; offset and strides
                                 * then count along the IOTA's axis                     */
    mica__spec spec;
    int64_t offset;             /* of the first element, in elements from the block     */
    int64_t strides[MICA_MAX_DIMS];
} mica__operand;

typedef enum mica__step_kind {
    MICA__STEP_MAP,             /* a fused element-wise group                           */
    MICA__STEP_REDUCE,          /* element-wise, then one reduction, then element-wise  */
    MICA__STEP_FAMILY,          /* a kernel family, then an optional epilogue           */
    MICA__STEP_SCAN             /* a body run many times                                */
} mica__step_kind;

typedef struct mica__plan mica__plan;

typedef struct mica__step {
    mica__step_kind kind;
    /* The nodes it computes, inputs before users. FAMILY and SCAN: the first is
     * the anchor, the rest its epilogue (of the anchor's shape). REDUCE: one of
     * them is the reduction; those before it have the shape of its input, those
     * after it the shape of its result. An input of a node is either another
     * node of the list or the operand with that node number. */
    uint32_t *node;
    uint32_t n_node;
    mica__operand *in;
    uint32_t n_in;
    uint32_t n_anchor_in;       /* FAMILY, SCAN: in[0 ... n_anchor_in) are the anchor's
                                 * inputs in its order; the rest belongs to the epilogue */
    mica__operand *out;         /* row-major from offset 0 of their blocks              */
    uint32_t n_out;
    uint32_t anchor_block;      /* FAMILY with epilogue: the block of the anchor's own
                                 * result (may be that of out[0]); else NO_BLOCK        */
    size_t workspace_bytes;     /* scratch of this kernel, or of a later one that shares it */
    uint32_t workspace;         /* its block, or NO_BLOCK                               */
    uint32_t scratch_from;      /* an earlier step with the same block, which may leave
                                 * there what this step needs; NO_NODE: none            */
    uint64_t flops, bytes_read, bytes_written;
    mica__plan *body;           /* SCAN                                                 */
    void *code;                 /* the backend's own form, made by its prepare()        */
    const char *note;           /* printed with the plan: where the step runs; may be NULL */
} mica__step;

typedef struct mica__result {
    uint32_t block;
    bool last;                  /* the last result in this output buffer                */
    mica__spec spec;
    int64_t offset;
    int64_t strides[MICA_MAX_DIMS];
} mica__result;

struct mica__plan {
    mica__arena arena;          /* owns everything below; of a body: the prepared code of its steps */
    mica__graph *graph;         /* after the passes                                     */
    mica__step *step;
    uint32_t n_step;
    mica__block *block;
    uint32_t n_block;
    mica__result *out;          /* one for each result of the graph                     */
    uint32_t n_out;
    uint32_t n_output;          /* output buffers                                       */
    size_t *output_bytes;       /* of each, unrounded                                   */
    uint32_t *written;          /* leaves that an UPDATE writes                         */
    uint32_t n_written;
    size_t arena_bytes;         /* of the temporaries                                   */
    uint32_t max_in;            /* largest number of inputs of a step, bodies included  */
    uint32_t n_slot;            /* blocks, plus those of the bodies that run at the same time */
    uint32_t lanes;             /* of a body: parts of the batch that run at the same time;
                                 * else 1                                               */
    uint32_t max_lanes;         /* largest of all bodies, at least 1                    */
    bool *sliced;               /* of a body with lanes: per leaf, it has the batch     */
    uint64_t n_kernels;         /* launches, steps of bodies times their length         */
    uint64_t flops, bytes_read, bytes_written, peak_bytes, sum_output_bytes;
    uint64_t copies, copy_bytes; /* steps that only move data, and the bytes they write */
    void (*release)(mica__plan *plan); /* optional: the backend frees its data; not for bodies */
};

#endif
