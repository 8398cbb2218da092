/* Properties of a backend that the planner needs. The backend fills in the struct, so plan/ does
 * not depend on a backend. */
#ifndef MICA_PLAN_TARGET_H
#define MICA_PLAN_TARGET_H

#include "plan/plan.h"

/* A function pointer is required unless its comment says "optional". */
typedef struct mica__target {
    const char *name;           /* of the backend, for the text of a plan                */
    uint32_t passes;            /* mica_pass bits that the backend supports              */
    uint32_t max_operands;      /* inputs and outputs of one fused kernel                */
    uint32_t max_nodes;         /* ops of one fused kernel                               */
    bool splits_scans;          /* the batch of a scan may be split over threads (graph/batch.h) */
    /* Can a kernel of this family apply element-wise ops to its result (an epilogue)? */
    bool (*takes_epilogue)(mica__op op);
    /* Can this node be part of the epilogue of the family node, or an operand of it?
     * (optional; default: every node can) */
    bool (*can_follow)(const mica__graph *g, uint32_t family, uint32_t node);
    /* Scratch bytes of a family; SIZE_MAX: out of memory while finding out. */
    size_t (*workspace)(mica__op op, const mica__operand *in, uint32_t n_in, const void *attr, const mica__spec *out);
    /* Scratch bytes for reducing `folded` elements into each of `results` results.
     * (optional; default: 0) */
    size_t (*fold_scratch)(int64_t results, int64_t folded);
    /* Does the earlier step leave in its scratch what the later step computes there from its first
     * operand? That operand is the result of the earlier step (of_result) or also its first
     * operand. If so, both steps get the same scratch block. (optional; default: never) */
    bool (*can_share_scratch)(const mica__graph *g, const mica__step *earlier, const mica__step *later, bool of_result);
} mica__target;

#endif
