/* See reverse.h. Three walks over one list of nodes, none of them recursive:
 * 1. find the nodes that the results depend on;
 * 2. oldest first, mark the nodes that depend on an array of wrt;
 * 3. newest first, pass the cotangent of each marked node to its rule.
 * Creation order (the serial) is a topological order, so all users of a node are
 * done before the node. */
#include "graph/reverse.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"
#include "graph/node_map.h"

typedef struct tape_fact {
    mica_array *ct;       /* sum of the cotangents so far, or NULL             */
    mica_array **parts;   /* SCAN: cotangents of its parts; NULL: none so far  */
    bool wants;           /* it is in wrt                                      */
    bool needs;           /* it is in wrt or depends on an array of wrt        */
    bool open;            /* an input needs a cotangent: its rule runs         */
    bool reached;         /* tape_reach: a result depends on it                */
} tape_fact;

typedef struct tape_entry {
    uint64_t serial;
    uint32_t number;
} tape_entry;

struct mica__tape {
    mica_scope *s;
    uint64_t floor;       /* nodes up to this serial are constants          */
    uint64_t oldest;      /* older nodes cannot depend on an array of wrt   */
    mica__node_map map;
    tape_fact *fact;      /* by number in map                               */
    tape_entry *turn;      /* all nodes, oldest first                        */
    mica_array **grads;   /* scratch for rules                              */
    bool *wants;          /* scratch: inputs of a scan that need cotangents */
};

/* ---------------------------------------------------------------- find ---- */

static bool tape_follows(const mica__tape *t, const mica_array *node)
{
    if (node->n_in == 0 || node->serial <= t->floor || node->serial <= t->oldest) return false;
    return mica__array_state(node) == MICA__LAZY || node->scope_id == t->s->id;
}

static mica_status tape_find(mica__tape *t, mica_array *const *outs, size_t n, mica_array *const *wrt, size_t n_wrt,
                             uint32_t *max_in)
{
    uint32_t number;
    for (size_t i = 0; i < n_wrt; i++) MICA_TRY(mica__node_map_add(&t->map, wrt[i], &number));
    for (size_t i = 0; i < n; i++) MICA_TRY(mica__node_map_add(&t->map, outs[i], &number));
    for (uint32_t i = 0; i < t->map.n; i++) { /* the list grows while it is read: breadth first */
        const mica_array *node = t->map.node[i];
        if (!tape_follows(t, node)) continue;
        if (node->n_in > *max_in) *max_in = node->n_in;
        for (uint32_t k = 0; k < node->n_in; k++)
            if (node->in[k]->serial >= t->oldest) MICA_TRY(mica__node_map_add(&t->map, node->in[k], &number));
    }
    return MICA_OK;
}

static int tape_earlier(const void *a, const void *b)
{
    const uint64_t x = ((const tape_entry *)a)->serial, y = ((const tape_entry *)b)->serial;
    return (x > y) - (x < y);
}

static mica_status tape_prepare(mica__tape *t, uint32_t max_in)
{
    const size_t n = t->map.n;
    t->fact = mica__alloc_zero(n, sizeof *t->fact);
    t->turn = mica__alloc_zero(n, sizeof *t->turn);
    t->grads = mica__alloc_zero((size_t)max_in + 1, sizeof *t->grads);
    t->wants = mica__alloc_zero((size_t)max_in + 1, sizeof *t->wants);
    if (!t->fact || !t->turn || !t->grads || !t->wants)
        return mica__fail_memory("the reverse pass", n * (sizeof *t->fact + sizeof *t->turn));
    for (uint32_t i = 0; i < n; i++) t->turn[i] = (tape_entry){t->map.node[i]->serial, i};
    qsort(t->turn, n, sizeof *t->turn, tape_earlier);
    return MICA_OK;
}

/* ---------------------------------------------------------------- mark ---- */

/* Can a cotangent pass through this op? A scan always can: the dtypes that count are those of its parts. */
static bool tape_differentiable(const mica_array *node)
{
    if (node->op == MICA__OP_SCAN) return true;
    return mica__is_float((mica_dtype)node->spec.dtype) && mica__op_get(node->op)->vjp != mica__vjp_zero;
}

static void tape_mark(mica__tape *t)
{
    for (uint32_t i = 0; i < t->map.n; i++) {
        const uint32_t number = t->turn[i].number;
        const mica_array *node = t->map.node[number];
        tape_fact *f = &t->fact[number];
        f->needs = f->wants;
        f->open = false;
        if (!tape_follows(t, node) || !tape_differentiable(node)) continue;
        /* y, the first input of a custom gradient, gets no cotangent, so y alone must not cause a call of fn. */
        const uint32_t first = node->op == MICA__OP_CUSTOM_GRAD;
        for (uint32_t k = first; k < node->n_in && !f->open; k++) f->open = mica__tape_needs(t, node->in[k]);
        f->needs |= f->open;
    }
}

mica_scope *mica__tape_scope(const mica__tape *t) { return t->s; }

bool mica__tape_needs(const mica__tape *t, const mica_array *node)
{
    const uint32_t number = mica__node_map_find(&t->map, node);
    return number != MICA__NODE_NONE && t->fact[number].needs;
}

bool mica__tape_wants(const mica__tape *t, const mica_array *node)
{
    const uint32_t number = mica__node_map_find(&t->map, node);
    return number != MICA__NODE_NONE && t->fact[number].wants;
}

/* ----------------------------------------------------------- accumulate ---- */

/* Checked here because a cotangent with the wrong dtype or shape would otherwise fail far from the rule
 * that built it. */
static mica_status tape_check(mica_scope *s, const mica__spec *want, const mica_array *ct, const char *op)
{
    if (mica__spec_equal(want, &ct->spec)) return MICA_OK;
    char a[MICA__SHAPE_TEXT], b[MICA__SHAPE_TEXT];
    mica__scope_fail(s, MICA_ERR_INTERNAL, "grad: cotangent %s %s does not match the result %s %s of %s",
                     mica_dtype_name((mica_dtype)ct->spec.dtype), mica__shape_text(a, ct->spec.ndim, ct->spec.shape),
                     mica_dtype_name((mica_dtype)want->dtype), mica__shape_text(b, want->ndim, want->shape), op);
    return MICA_ERR_INTERNAL;
}

static mica_status tape_sum(mica_scope *s, mica_array **sum, mica_array *ct)
{
    *sum = *sum ? mica__cotangent_sum(s, *sum, ct) : ct;
    return *sum ? MICA_OK : s->error.status;
}

mica_status mica__tape_add(mica__tape *t, const mica_array *node, mica_array *ct)
{
    const uint32_t number = mica__node_map_find(&t->map, node);
    if (!ct || number == MICA__NODE_NONE || !t->fact[number].needs) return MICA_OK;
    MICA_TRY(tape_check(t->s, &node->spec, ct, mica__op_get(node->op)->name));
    return tape_sum(t->s, &t->fact[number].ct, ct);
}

/* ---------------------------------------------------------- node rules ---- */

/* Stores the cotangent of the part with its scan, which is handled later. */
static mica_status tape_part(mica__tape *t, mica_array *part, mica_array *ct)
{
    const mica_array *scan = part->in[0];
    const mica__attr_scan *attr = scan->attr;
    const mica__attr_part *which = part->attr;
    tape_fact *f = &t->fact[mica__node_map_find(&t->map, scan)];
    if (!f->parts) {
        const size_t n = (size_t)(attr->n_carry + attr->n_y);
        f->parts = mica__alloc_zero(n, sizeof *f->parts);
        if (!f->parts) return mica__fail_memory("the reverse pass of a scan", n * sizeof *f->parts);
    }
    return tape_sum(t->s, &f->parts[which->index], ct);
}

static mica_status tape_inputs(mica__tape *t, mica_array *node, mica_status status)
{
    /* A constructor that failed inside a rule left NULL, which otherwise means
     * "no gradient". */
    if (t->s->error.status != MICA_OK) return t->s->error.status;
    MICA_TRY(status);
    for (uint32_t k = 0; k < node->n_in; k++) MICA_TRY(mica__tape_add(t, node->in[k], t->grads[k]));
    return MICA_OK;
}

static mica_status tape_node(mica__tape *t, mica_array *node, tape_fact *f)
{
    if (node->op == MICA__OP_PART) return tape_part(t, node, f->ct);
    if (node->op == MICA__OP_CHECKPOINT) return mica__checkpoint_vjp(t, node, f->ct);
    for (uint32_t k = 0; k < node->n_in; k++) t->grads[k] = NULL;
    if (node->op != MICA__OP_SCAN)
        return tape_inputs(t, node, mica__op_get(node->op)->vjp(t->s, node, f->ct, t->grads));
    for (uint32_t k = 0; k < node->n_in; k++) t->wants[k] = mica__tape_needs(t, node->in[k]);
    return tape_inputs(t, node, mica__scan_vjp(t->s, node, f->parts, t->wants, t->grads));
}

/* ------------------------------------------------------ lost inputs ---- */

/* An evaluated array of another scope: the pass treats it as a constant, because its inputs are
 * dropped when that scope ends. Arrays that were made from data have no inputs to lose. */
static bool tape_lost_inputs(const mica__tape *t, const mica_array *node)
{
    return mica__array_state(node) != MICA__LAZY && node->scope_id != t->s->id && node->oldest < node->serial &&
           tape_differentiable(node);
}

/* Marks what the results depend on through differentiable ops. */
static void tape_reach(mica__tape *t, mica_array *const *outs, size_t n)
{
    for (size_t i = 0; i < n; i++) t->fact[mica__node_map_find(&t->map, outs[i])].reached = true;
    for (uint32_t i = t->map.n; i-- > 0;) {
        const mica_array *node = t->map.node[t->turn[i].number];
        if (!t->fact[t->turn[i].number].reached || !tape_follows(t, node) || !tape_differentiable(node)) continue;
        for (uint32_t k = node->op == MICA__OP_CUSTOM_GRAD; k < node->n_in; k++) {
            const uint32_t number = mica__node_map_find(&t->map, node->in[k]);
            if (number != MICA__NODE_NONE) t->fact[number].reached = true;
        }
    }
}

/* No cotangent arrived at wrt[i]. Its gradient is zero if the results do not depend on it. It is
 * not known if they depend on an array that may be computed from wrt[i] and lost its inputs. */
static mica_status tape_check_unreached(mica__tape *t, const mica_array *wrt, size_t i)
{
    for (uint32_t k = 0; k < t->map.n; k++) {
        const mica_array *node = t->map.node[k];
        if (!t->fact[k].reached || t->fact[k].wants || !mica__is_float((mica_dtype)node->spec.dtype)) continue;
        if (!tape_lost_inputs(t, node) || wrt->serial < node->oldest || wrt->serial >= node->serial) continue;
        char shape[MICA__SHAPE_TEXT];
        return mica__fail(MICA_ERR_STATE,
                          "grad: the gradient of array %zu is unknown: the result uses an array %s of op %s that was "
                          "evaluated in another scope and no longer has its inputs; take the gradient in that scope, "
                          "or use mica_stop_gradient of the array if it is a constant",
                          i, mica__shape_text(shape, node->spec.ndim, node->spec.shape), mica__op_get(node->op)->name);
    }
    return MICA_OK;
}

static mica_status tape_check_lost(mica__tape *t, mica_array *const *outs, size_t n, mica_array *const *wrt,
                                   size_t n_wrt, mica_array *const *grads)
{
    bool walked = false;
    for (size_t i = 0; i < n_wrt; i++) {
        if (grads[i]) continue;
        if (!walked) tape_reach(t, outs, n);
        walked = true;
        MICA_TRY(tape_check_unreached(t, wrt[i], i));
    }
    return MICA_OK;
}

/* ----------------------------------------------------------------- run ---- */

static mica_status tape_run(mica__tape *t, mica_array *const *outs, mica_array *const *cts, size_t n,
                            mica_array *const *wrt, size_t n_wrt, mica_array **grads)
{
    uint32_t max_in = 0;
    MICA_TRY(tape_find(t, outs, n, wrt, n_wrt, &max_in));
    MICA_TRY(tape_prepare(t, max_in));
    for (size_t i = 0; i < n_wrt; i++) t->fact[mica__node_map_find(&t->map, wrt[i])].wants = true;
    tape_mark(t);
    for (size_t i = 0; i < n; i++) MICA_TRY(mica__tape_add(t, outs[i], cts[i]));
    for (uint32_t i = t->map.n; i-- > 0;) {
        const uint32_t number = t->turn[i].number;
        tape_fact *f = &t->fact[number];
        if (!f->open || (!f->ct && !f->parts)) continue;
        MICA_TRY(tape_node(t, (mica_array *)(uintptr_t)t->map.node[number], f));
    }
    for (size_t i = 0; i < n_wrt; i++) grads[i] = t->fact[mica__node_map_find(&t->map, wrt[i])].ct;
    return t->floor ? MICA_OK : tape_check_lost(t, outs, n, wrt, n_wrt, grads);
}

mica_status mica__reverse(mica_scope *s, mica_array *const *outs, mica_array *const *cts, size_t n,
                          mica_array *const *wrt, size_t n_wrt, uint64_t floor, mica_array **grads)
{
    for (size_t i = 0; i < n_wrt; i++) grads[i] = NULL;
    if (n_wrt == 0) return MICA_OK;
    if (s->reverses >= MICA__REVERSE_DEPTH) {
        mica__scope_fail(s, MICA_ERR_UNSUPPORTED,
                         "grad: checkpoints, scans and custom gradients nested more than %d deep", MICA__REVERSE_DEPTH);
        return MICA_ERR_UNSUPPORTED;
    }
    s->reverses++;
    mica__tape t = {.s = s, .floor = floor, .oldest = UINT64_MAX};
    for (size_t i = 0; i < n_wrt; i++)
        if (wrt[i]->serial < t.oldest) t.oldest = wrt[i]->serial;
    const mica_status status = tape_run(&t, outs, cts, n, wrt, n_wrt, grads);
    s->reverses--;
    for (uint32_t i = 0; t.fact && i < t.map.n; i++) mica__free(t.fact[i].parts);
    mica__free(t.fact);
    mica__free(t.turn);
    mica__free(t.grads);
    mica__free(t.wants);
    mica__node_map_free(&t.map);
    if (status != MICA_OK) mica__scope_failed(s, status);
    return status;
}
