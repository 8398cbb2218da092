/* Builds the kernel of a step: one loop nest, one access per operand, one
 * instruction per node.
 *
 * Each operand of a node is loaded at its first use. A result is stored as soon as it
 * is computed, unless this kernel also reads its memory (an in-place step): then it is
 * stored last, so that within one block of elements every read precedes every
 * write. */
#include "codegen/kernel.h"

#include <string.h>

#include "base/checked.h"

#define NO_INST UINT32_MAX

/* The kernel being built, and the instruction of each value. */
typedef struct kernel_builder {
    const mica__graph *g;
    const mica__step *step;
    mica__arena *arena;
    mica__kernel *k;
    int loop_dim[MICA_MAX_DIMS];  /* dimension of the loop space of each loop               */
    int kept;                     /* loops that are not folded                              */
    bool keep;                    /* REDUCE: folded dimensions stay in the result, size 1   */
    bool folds;
    bool after;                   /* building the instructions after the fold               */
    uint32_t *node_inst;          /* of each node of the step                               */
    uint32_t *in_inst[2];         /* of each operand, before and after the fold             */
    bool *stored;                 /* of each result                                         */
} kernel_builder;

int64_t mica__kernel_outer(const mica__kernel *k)
{
    int64_t n = 1;
    for (int d = 0; d < k->ndim - k->n_fold; d++) n *= k->size[d];
    return n;
}

int64_t mica__kernel_folded(const mica__kernel *k)
{
    int64_t n = 1;
    for (int d = k->ndim - k->n_fold; d < k->ndim; d++) n *= k->size[d];
    return n;
}

/* ------------------------------------------------------------ accesses ---- */

/* Converts strides per dimension of an operand to strides per loop. After a fold,
 * operands have the shape of the result: folded dimensions are removed or 1. */
static void strides_by_loop(const kernel_builder *b, const int64_t *by_dim, int64_t *by_loop)
{
    for (int l = 0; l < b->k->ndim; l++) {
        if (!b->after) by_loop[l] = by_dim[b->loop_dim[l]];
        else if (l >= b->kept) by_loop[l] = 0;
        else by_loop[l] = by_dim[b->keep ? b->loop_dim[l] : l];
    }
}

static uint32_t add_access(kernel_builder *b, const mica__operand *operand, uint32_t number)
{
    mica__access *a = &b->k->access[b->k->n_access];
    a->block = operand->block;
    a->operand = number;
    a->dtype = (mica_dtype)operand->spec.dtype;
    a->offset = operand->offset;
    strides_by_loop(b, operand->strides, a->strides);
    return b->k->n_access++;
}

static mica__kinst *add_inst(kernel_builder *b, mica__kcode code, mica_dtype dtype)
{
    mica__kinst *inst = &b->k->inst[b->k->n_inst++];
    inst->code = code;
    inst->dtype = dtype;
    inst->in_dtype = dtype;
    return inst;
}

static uint32_t newest_inst(const kernel_builder *b) { return b->k->n_inst - 1; }

/* Adds a FULL or IOTA with the strides of the operand (in steps of its own axis). */
static mica_status add_make(kernel_builder *b, const mica__gnode *node, const mica__operand *operand, uint32_t number)
{
    if (node->op == MICA__OP_FULL) {
        mica__kinst *inst = add_inst(b, MICA__K_CONST, (mica_dtype)node->spec.dtype);
        inst->value = ((const mica__attr_full *)node->attr)->value;
        /* round as a store to memory would */
        if (mica__is_float(inst->dtype)) inst->value.f = mica__round_f64(inst->dtype, inst->value.f);
        else inst->value.i = mica__wrap_i64(inst->dtype, inst->value.i);
        return MICA_OK;
    }
    if (node->op != MICA__OP_IOTA)
        return mica__fail(MICA_ERR_INTERNAL, "kernel: %s has no memory and is neither FULL nor IOTA",
                          mica__op_get(node->op)->name);
    const mica__attr_iota *attr = node->attr;
    mica__kinst *inst = add_inst(b, MICA__K_IOTA, (mica_dtype)node->spec.dtype);
    inst->value = attr->start;
    inst->step = attr->step;
    inst->access = add_access(b, operand, number);
    b->k->access[inst->access].block = MICA__NO_BLOCK;
    return MICA_OK;
}

/* ------------------------------------------------------------- values ----- */

static bool find_step_node(const mica__step *step, uint32_t node, uint32_t *at)
{
    for (uint32_t i = 0; i < step->n_node; i++)
        if (step->node[i] == node) {
            *at = i;
            return true;
        }
    return false;
}

static bool find_step_operand(const mica__step *step, uint32_t node, uint32_t *at)
{
    for (uint32_t i = 0; i < step->n_in; i++)
        if (step->in[i].node == node) {
            *at = i;
            return true;
        }
    return false;
}

static mica_status value_of_operand(kernel_builder *b, uint32_t number, uint32_t *inst)
{
    uint32_t *known = &b->in_inst[b->after][number];
    if (*known == NO_INST) {
        const mica__operand *operand = &b->step->in[number];
        if (operand->block == MICA__NO_BLOCK) {
            MICA_TRY(add_make(b, &b->g->node[operand->make], operand, number));
        } else {
            add_inst(b, MICA__K_LOAD, (mica_dtype)operand->spec.dtype);
            b->k->inst[newest_inst(b)].access = add_access(b, operand, number);
        }
        *known = newest_inst(b);
    }
    *inst = *known;
    return MICA_OK;
}

/* The instruction that computes the value of a graph node. */
static mica_status value_of_node(kernel_builder *b, uint32_t node, uint32_t *inst)
{
    uint32_t at;
    for (;;) {
        if (find_step_node(b->step, node, &at)) {
            *inst = b->node_inst[at];
            if (*inst == NO_INST)
                return mica__fail(MICA_ERR_INTERNAL, "kernel: node %u is used before it is computed", node);
            if (b->after && *inst < b->k->fold)
                return mica__fail(MICA_ERR_INTERNAL, "kernel: node %u is used on both sides of a reduction", node);
            return MICA_OK;
        }
        if (find_step_operand(b->step, node, &at)) return value_of_operand(b, at, inst);
        const mica__gnode *n = &b->g->node[node];
        if (mica__op_get(n->op)->kind != MICA__ALIAS)
            return mica__fail(MICA_ERR_INTERNAL, "kernel: node %u (%s) is neither computed nor an operand", node,
                              mica__op_get(n->op)->name);
        node = n->in[0];
    }
}

/* Does the kernel also read this block? */
static bool block_is_read(const mica__step *step, uint32_t block)
{
    for (uint32_t i = 0; i < step->n_in; i++)
        if (step->in[i].block == block) return true;
    return step->anchor_block == block;
}

static void store_result(kernel_builder *b, uint32_t number, uint32_t inst)
{
    const mica__operand *out = &b->step->out[number];
    mica__kinst *store = add_inst(b, MICA__K_STORE, (mica_dtype)out->spec.dtype);
    store->arg[0] = inst;
    store->n_arg = 1;
    store->access = add_access(b, out, b->step->n_in + number);
    b->stored[number] = true;
}

/* Stores the computed results; `all`: also those that must be stored last. */
static void store_known(kernel_builder *b, bool all)
{
    for (uint32_t i = 0; i < b->step->n_out; i++) {
        const mica__operand *out = &b->step->out[i];
        uint32_t at;
        if (b->stored[i] || !find_step_node(b->step, out->node, &at) || b->node_inst[at] == NO_INST) continue;
        if (all || !block_is_read(b->step, out->block)) store_result(b, i, b->node_inst[at]);
    }
}

/* --------------------------------------------------------------- nodes ---- */

static mica_status build_map(kernel_builder *b, uint32_t id)
{
    const mica__gnode *node = &b->g->node[id];
    uint32_t arg[3] = {0, 0, 0};
    for (uint32_t i = 0; i < node->n_in; i++) MICA_TRY(value_of_node(b, node->in[i], &arg[i]));
    mica__kinst *inst = add_inst(b, MICA__K_MAP, (mica_dtype)node->spec.dtype);
    inst->op = (mica__op)node->op;
    inst->in_dtype = b->k->inst[arg[node->op == MICA__OP_WHERE ? 1 : 0]].dtype;
    memcpy(inst->arg, arg, sizeof arg);
    inst->n_arg = node->n_in;
    inst->attr = node->attr;
    return MICA_OK;
}

static mica_status build_fold(kernel_builder *b, uint32_t id)
{
    const mica__gnode *node = &b->g->node[id];
    uint32_t arg;
    MICA_TRY(value_of_node(b, node->in[0], &arg));
    store_known(b, true);
    mica__kinst *inst = add_inst(b, MICA__K_FOLD, (mica_dtype)node->spec.dtype);
    inst->op = (mica__op)node->op;
    inst->in_dtype = b->k->inst[arg].dtype;
    inst->arg[0] = arg;
    inst->n_arg = 1;
    b->k->fold = newest_inst(b);
    b->after = true;
    return MICA_OK;
}

static mica_status build_node(kernel_builder *b, uint32_t at)
{
    const uint32_t id = b->step->node[at];
    const mica__gnode *node = &b->g->node[id];
    switch (mica__op_get(node->op)->kind) {
    case MICA__MAP: MICA_TRY(build_map(b, id)); break;
    case MICA__REDUCE:
        if (b->after) return mica__fail(MICA_ERR_INTERNAL, "kernel: two reductions in one step");
        MICA_TRY(build_fold(b, id));
        break;
    case MICA__MAKE: {
        /* The step writes a FULL or IOTA to memory: use its own row-major order. */
        mica__operand own = {.node = id, .block = MICA__NO_BLOCK, .make = id, .spec = node->spec};
        if (node->op == MICA__OP_IOTA) own.strides[((const mica__attr_iota *)node->attr)->axis] = 1;
        MICA_TRY(add_make(b, node, &own, MICA__NO_NODE));
        break;
    }
    default: return mica__fail(MICA_ERR_INTERNAL, "kernel: %s is not element-wise", mica__op_get(node->op)->name);
    }
    b->node_inst[at] = newest_inst(b);
    store_known(b, false);
    return MICA_OK;
}

/* The anchor of a family step: its result is in memory before the epilogue runs. */
static mica_status build_anchor(kernel_builder *b)
{
    const mica__step *step = b->step;
    if (step->anchor_block == MICA__NO_BLOCK)
        return mica__fail(MICA_ERR_INTERNAL, "kernel: the anchor of an epilogue has no block");
    mica__operand anchor = {.node = step->node[0], .block = step->anchor_block, .spec = b->g->node[step->node[0]].spec};
    mica__row_major(&anchor.spec, anchor.strides);
    add_inst(b, MICA__K_LOAD, (mica_dtype)anchor.spec.dtype);
    b->k->inst[newest_inst(b)].access = add_access(b, &anchor, step->n_in + step->n_out);
    b->node_inst[0] = newest_inst(b);
    for (uint32_t i = 0; i < step->n_out; i++)
        if (step->out[i].node == step->node[0] && step->out[i].block == step->anchor_block) b->stored[i] = true;
    return MICA_OK;
}

/* --------------------------------------------------------------- loops ---- */

static void init_loops(kernel_builder *b)
{
    const mica__step *step = b->step;
    const mica__spec *space = &b->g->node[step->node[0]].spec;
    uint64_t folded = 0;
    for (uint32_t i = 0; i < step->n_node && step->kind == MICA__STEP_REDUCE; i++) {
        const mica__gnode *node = &b->g->node[step->node[i]];
        if (mica__op_get(node->op)->kind != MICA__REDUCE) continue;
        const mica__attr_reduce *attr = node->attr;
        space = &b->g->node[node->in[0]].spec;
        folded = (uint64_t)attr->axes;
        b->keep = attr->keep != 0;
        b->folds = true;
        break;
    }
    int n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int d = 0; d < space->ndim; d++)
            if ((int)(folded >> d & 1) == pass) b->loop_dim[n++] = d;
        if (pass == 0) b->kept = n;
    }
    b->k->ndim = n;
    b->k->n_fold = n - b->kept;
    for (int l = 0; l < n; l++) b->k->size[l] = space->shape[b->loop_dim[l]];
}

static void remove_loop(mica__kernel *k, int loop)
{
    if (loop >= k->ndim - k->n_fold) k->n_fold--;
    k->ndim--;
    const size_t tail = (size_t)(k->ndim - loop) * sizeof k->size[0];
    memmove(&k->size[loop], &k->size[loop + 1], tail);
    k->size[k->ndim] = 0;
    for (uint32_t i = 0; i < k->n_access; i++) {
        int64_t *strides = k->access[i].strides;
        memmove(&strides[loop], &strides[loop + 1], tail);
        strides[k->ndim] = 0;
    }
}

/* Can loop and loop + 1 be replaced by one loop of both sizes? */
static bool loops_merge(const mica__kernel *k, int loop)
{
    for (uint32_t i = 0; i < k->n_access; i++) {
        const int64_t *s = k->access[i].strides;
        int64_t whole;
        if (!mica__mul_i64(s[loop + 1], k->size[loop + 1], &whole) || s[loop] != whole) return false;
    }
    return true;
}

static void collapse_loops(mica__kernel *k)
{
    for (int l = k->ndim; l-- > 0;)
        if (k->size[l] == 1) remove_loop(k, l);
    for (int l = k->ndim - 1; l-- > 0;) {
        if (l + 1 == k->ndim - k->n_fold || !loops_merge(k, l)) continue;
        k->size[l + 1] *= k->size[l];
        remove_loop(k, l);
    }
}

/* ---------------------------------------------------------------- build --- */

static mica_status init_builder(kernel_builder *b)
{
    const mica__step *step = b->step;
    /* One instruction for every node and result, two for an operand that is read
     * before and after the fold. */
    const size_t most = (size_t)step->n_node + 2 * (size_t)step->n_in + step->n_out;
    b->k = mica__arena_alloc(b->arena, sizeof *b->k);
    mica__kinst *inst = mica__arena_array(b->arena, most, sizeof *inst);
    mica__access *access = mica__arena_array(b->arena, most, sizeof *access);
    b->node_inst = mica__arena_array(b->arena, (size_t)step->n_node, sizeof *b->node_inst);
    b->in_inst[0] = mica__arena_array(b->arena, (size_t)step->n_in + 1, sizeof *b->in_inst[0]);
    b->in_inst[1] = mica__arena_array(b->arena, (size_t)step->n_in + 1, sizeof *b->in_inst[1]);
    b->stored = mica__arena_array(b->arena, (size_t)step->n_out + 1, sizeof *b->stored);
    if (b->arena->failed) return mica__fail_memory("a kernel", most * sizeof *inst);
    b->k->inst = inst;
    b->k->access = access;
    for (uint32_t i = 0; i < step->n_node; i++) b->node_inst[i] = NO_INST;
    for (uint32_t i = 0; i < step->n_in; i++) b->in_inst[0][i] = b->in_inst[1][i] = NO_INST;
    return MICA_OK;
}

mica_status mica__kernel_build(const mica__plan *plan, const mica__step *step, mica__arena *arena, mica__kernel **out)
{
    *out = NULL;
    const bool family = step->kind == MICA__STEP_FAMILY;
    if (step->kind == MICA__STEP_SCAN || step->n_node == 0 || (family && step->n_node == 1)) return MICA_OK;

    kernel_builder b = {.g = plan->graph, .step = step, .arena = arena};
    MICA_TRY(init_builder(&b));
    init_loops(&b);
    b.k->fold = UINT32_MAX;
    if (family) MICA_TRY(build_anchor(&b));
    for (uint32_t i = family ? 1 : 0; i < step->n_node; i++) MICA_TRY(build_node(&b, i));
    store_known(&b, true);
    for (uint32_t i = 0; i < step->n_out; i++)
        if (!b.stored[i]) return mica__fail(MICA_ERR_INTERNAL, "kernel: no node computes result %u", step->out[i].node);
    if (!b.folds) b.k->fold = b.k->n_inst;
    collapse_loops(b.k);
    *out = b.k;
    return MICA_OK;
}
