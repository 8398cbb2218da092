/* Data that the planner's stages pass to each other; freed when the plan is made.
 * Stages, in order: legal (copies where memory is needed), fuse
 * (groups), order, steps, layout (blocks and offsets). */
#ifndef MICA_PLAN_WORK_H
#define MICA_PLAN_WORK_H

#include "plan/planner.h"

/* How a node is read: a position in the memory (or the numbering) of a root node
 * that is not a view. */
typedef struct mica__ref {
    uint32_t root;
    int64_t offset;
    int64_t strides[MICA_MAX_DIMS];
} mica__ref;

enum { MICA__BEFORE_FOLD = 0, MICA__AFTER_FOLD = 1 };

typedef struct mica__group {
    uint32_t root;              /* the last node: its value is used outside the group    */
    uint32_t anchor;            /* FAMILY or SCAN node, or NO_NODE                       */
    uint32_t fold;              /* REDUCE node, or NO_NODE                               */
    uint32_t n_node, n_operand; /* size; n_operand is an upper bound                     */
    uint32_t newest;            /* the member that joined last; w->joined links the others */
} mica__group;

typedef struct mica__work {
    mica__arena scratch;
    mica__arena *arena;         /* of the plan                                           */
    mica__graph *g;
    const mica__target *target;
    uint32_t passes;
    int threads;
    bool body;                  /* plan of a scan's body: each result must be a separate row-major
                                 * block (a scan writes them in place)                   */
    bool updates;               /* there are UPDATE nodes                                */
    bool *overwritten;          /* per node: an UPDATE writes over its memory            */
    mica__ref *ref;             /* per node                                              */
    bool *result;               /* per node: its memory is a result of the graph         */
    uint32_t *group;            /* per node that computes: its group, else NO_NODE       */
    uint8_t *phase;             /* per node of a group with a fold                       */
    mica__group *groups;
    uint32_t n_group;
    uint32_t *joined;           /* per node of a group: the member before it, or NO_NODE */
    uint32_t *operand_of;       /* per node: the group that last counted it as an operand */
    mica__plan **body_plan;     /* per node: plan of the body, if it is a scan           */
    uint32_t *user_start, *user; /* users of node i: user[user_start[i] ... user_start[i+1]) */
} mica__work;

static inline mica__op_kind mica__kind_of(const mica__graph *g, uint32_t i)
{
    return mica__op_get(g->node[i].op)->kind;
}
/* Is the node computed by a step? */
static inline bool mica__computes(const mica__graph *g, uint32_t i)
{
    const mica__op_kind k = mica__kind_of(g, i);
    return k == MICA__MAP || k == MICA__REDUCE || k == MICA__FAMILY || g->node[i].op == MICA__OP_SCAN;
}
/* The group that writes the memory of a root; NO_NODE for leaves. */
static inline uint32_t mica__writer(const mica__work *w, uint32_t root)
{
    return w->g->node[root].op == MICA__OP_PART ? w->group[w->g->node[root].in[0]] : w->group[root];
}
/* The root whose memory an UPDATE writes over; NO_NODE for other nodes. */
static inline uint32_t mica__overwrites(const mica__work *w, uint32_t node)
{
    return w->g->node[node].op == MICA__OP_UPDATE ? w->ref[w->g->node[node].in[0]].root : MICA__NO_NODE;
}
/* Is the node read exactly as its root is written? */
bool mica__ref_is_root(const mica__work *w, uint32_t node);

/* Copies the graph so that: every view can be expressed by strides; families
 * and scans read memory (not constants made on the fly), scans row-major;
 * results have memory. Fills w->g, w->ref, w->result. */
mica_status mica__plan_legal(mica__work *w, mica__graph *from);
mica_status mica__plan_fuse(mica__work *w);
/* Groups in the order in which they run, and the nodes of each. */
typedef struct mica__order {
    const uint32_t *group;      /* n_group of them                                       */
    const uint32_t *member_start, *member; /* nodes of each group, ascending             */
} mica__order;

/* Finds the order of the caller and, unless deep is NULL, the depth-first order;
 * *differ is set if they differ. */
mica_status mica__plan_order(mica__work *w, mica__order *built, mica__order *deep, bool *differ);
/* Makes plan->step. */
mica_status mica__plan_steps(mica__work *w, const mica__order *order, mica__plan *plan);
/* Makes plan->block and its offsets, plan->out and the sums. */
mica_status mica__plan_layout(mica__work *w, mica__plan *plan);

#endif
