/* A plan: the steps that evaluate a graph, in order, and where every value
 * lives. Made once for a graph's structure, kept in the plan cache, replayed
 * without planning or allocating; immutable while it runs, so many threads may
 * run the same plan at once.
 *
 * Storage is a list of blocks: a leaf's memory (given by the caller), a piece
 * of the arena (one buffer for all temporaries of a run; offsets are planned so
 * that blocks alive at the same time do not overlap), or an output's memory (a
 * buffer of its own, because it outlives the run). */
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
    uint32_t first, last;       /* steps between which it is alive                      */
} mica__block;

/* A value as a step reads or writes it. */
typedef struct mica__operand {
    uint32_t node;              /* the graph node it stands for                         */
    uint32_t block;             /* MICA__NO_BLOCK: has no memory, is made on the fly    */
    uint32_t make;              /* ... from this FULL or IOTA node; offset and strides
                                 * then count along the IOTA's axis                     */
    mica__spec spec;
    int64_t offset;             /* of the first element, in elements from the block     */
    int64_t strides[MICA_MAX_DIMS];
} mica__operand;

typedef enum mica__step_kind {
    MICA__STEP_MAP,             /* a fused element-wise group                           */
    MICA__STEP_REDUCE,          /* element-wise, then one reduction, then element-wise  */
    MICA__STEP_FAMILY,          /* a kernel family, then (maybe) element-wise           */
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
    uint32_t anchor_block;      /* FAMILY with epilogue: where the anchor's own result
                                 * goes (may be the block of out[0]); else NO_BLOCK     */
    size_t workspace_bytes;     /* scratch the kernel asked for, or a later one of it   */
    uint32_t workspace;         /* its block, or NO_BLOCK                               */
    uint32_t scratch_from;      /* the step before that has the same block and may leave
                                 * there what this one needs; NO_NODE: none             */
    uint64_t flops, bytes_read, bytes_written;
    mica__plan *body;           /* SCAN                                                 */
    void *code;                 /* the backend's own form, made by its prepare()        */
    const char *note;           /* what its text says about where it runs; NULL: nothing */
} mica__step;

typedef struct mica__result {
    uint32_t block;
    bool last;                  /* of the results in this output buffer                 */
    mica__spec spec;
    int64_t offset;
    int64_t strides[MICA_MAX_DIMS];
} mica__result;

struct mica__plan {
    mica__arena arena;          /* owns everything below; a body's: what its steps were prepared to */
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
    uint32_t max_in;            /* most inputs a step has, bodies included              */
    uint32_t n_slot;            /* blocks, and those of the bodies that run at one time */
    uint32_t lanes;             /* a body's: parts of the batch that go through all steps at one
                                 * time; else 1                                         */
    uint32_t max_lanes;         /* of all bodies, 1 or more                             */
    bool *sliced;               /* a body's with lanes: per leaf, it has the batch      */
    uint64_t n_kernels;         /* launches, steps of bodies times their length         */
    uint64_t flops, bytes_read, bytes_written, peak_bytes, sum_output_bytes;
    uint64_t copies, copy_bytes; /* steps that only move data, and what they write      */
    void (*release)(mica__plan *plan); /* NULL, or what a backend does before it goes; not of bodies */
};

#endif
