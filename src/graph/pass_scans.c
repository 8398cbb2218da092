/* Merges scans with the same inputs and the same step: the scan with the most ys replaces
 * the others. The gradient of a scan builds such a scan (vjp_scan.c): a copy of the original
 * that also returns values of each step, as further ys after those of the original.
 *
 * Bodies are compared node by node, as they were built. This works because a copy is walked
 * in the order of its original, and further ys refer to nodes that were already reached. */
#include <string.h>

#include "base/alloc.h"
#include "graph/pass.h"
#include "graph/simplify.h"

static bool same_body(const mica__graph *a, const mica__graph *b, uint32_t n_out);

/* Compares attributes; those of a scan without its body and the number of ys. Attributes of an alias do
 * not matter here: only gradients use them. */
static bool same_attr(const mica__gnode *a, const mica__gnode *b)
{
    if (mica__op_get(a->op)->kind == MICA__ALIAS) return true;
    if (a->attr_size != b->attr_size) return false;
    if (a->op != MICA__OP_SCAN) return a->attr_size == 0 || memcmp(a->attr, b->attr, a->attr_size) == 0;
    const mica__attr_scan *p = a->attr, *q = b->attr;
    return p->n_carry == q->n_carry && p->n_x == q->n_x && p->n_captured == q->n_captured && p->length == q->length &&
           p->reverse == q->reverse;
}

static bool same_inputs(const mica__gnode *a, const mica__gnode *b)
{
    return a->n_in == b->n_in && (a->n_in == 0 || memcmp(a->in, b->in, a->n_in * sizeof *a->in) == 0);
}

static bool same_node(const mica__gnode *a, const mica__gnode *b)
{
    if (a->op != b->op || a->leaf != b->leaf || !mica__spec_equal(&a->spec, &b->spec)) return false;
    if (!same_inputs(a, b) || !same_attr(a, b)) return false;
    if (!a->body != !b->body) return false;
    return !a->body || (a->body->n_out == b->body->n_out && same_body(a->body, b->body, a->body->n_out));
}

/* Is a equal to b, if only the first n_out results are compared? */
static bool same_body(const mica__graph *a, const mica__graph *b, uint32_t n_out)
{
    if (a->n != b->n || a->n_leaf != b->n_leaf) return false;
    if (n_out && memcmp(a->out, b->out, n_out * sizeof *a->out) != 0) return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!same_node(&a->node[i], &b->node[i])) return false;
    return true;
}

/* Does scan b compute all results of scan a? */
static bool scan_covers(const mica__gnode *b, const mica__gnode *a)
{
    return b->body->n_out >= a->body->n_out && same_inputs(a, b) && same_attr(a, b) &&
           same_body(a->body, b->body, a->body->n_out);
}

/* The scan that replaces scan i: of all that cover it, the first with the most ys. */
static uint32_t scan_replacement(const mica__graph *g, uint32_t i)
{
    uint32_t best = i;
    for (uint32_t k = 0; k < g->n; k++) {
        if (k == i || g->node[k].op != MICA__OP_SCAN || !scan_covers(&g->node[k], &g->node[i])) continue;
        const uint32_t most = g->node[best].body->n_out, n = g->node[k].body->n_out;
        if (n > most || (n == most && k < best)) best = k;
    }
    return best;
}

mica_status mica__pass_scans(mica__graph *g, bool *changed)
{
    uint32_t scans = 0;
    *changed = false;
    for (uint32_t i = 0; i < g->n; i++) scans += g->node[i].op == MICA__OP_SCAN;
    if (scans < 2) return MICA_OK;
    uint32_t *map = mica__alloc_zero(g->n + 1, sizeof *map);
    if (!map) return mica__fail_memory("simplify: table", g->n * sizeof *map);
    for (uint32_t i = 0; i < g->n; i++) {
        map[i] = g->node[i].op == MICA__OP_SCAN ? scan_replacement(g, i) : i;
        *changed |= map[i] != i;
    }
    mica__graph_redirect(g, map);
    mica__free(map);
    return *changed ? mica__graph_sweep(g) : MICA_OK;
}
