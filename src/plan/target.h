/* What the planner asks about the backend it plans for; filled in by the
 * backend, so that plan/ need not know any. */
#ifndef MICA_PLAN_TARGET_H
#define MICA_PLAN_TARGET_H

#include "plan/plan.h"

typedef struct mica__target {
    const char *name;
    uint32_t passes;            /* mica_pass bits this backend can make use of          */
    uint32_t max_operands;      /* inputs and outputs of one fused kernel               */
    uint32_t max_nodes;         /* ops of one fused kernel                              */
    /* May element-wise ops run inside the launch of this family? */
    bool (*takes_epilogue)(mica__op op);
    /* May it run this node, one of these or what one reads, there? NULL: any. */
    bool (*behind)(const mica__graph *g, uint32_t family, uint32_t node);
    /* Scratch bytes a family needs; SIZE_MAX: there is no memory to find out. */
    size_t (*workspace)(mica__op op, const mica__operand *in, uint32_t n_in, const void *attr, const mica__spec *out);
    /* Scratch for folding so many elements into each of so many results. NULL: none. */
    size_t (*fold_scratch)(int64_t results, int64_t folded);
    /* Do parts of a scan's batch go through its steps on threads of their own (graph/batch.h)? */
    bool lanes;
    /* May a family make of its first operand, in its scratch, what a later one makes of the same (of
     * its result: of what it is the first to have)? Then both get one block. NULL: never. */
    bool (*leaves)(const mica__graph *g, const mica__step *earlier, const mica__step *later, bool of_result);
} mica__target;

#endif
