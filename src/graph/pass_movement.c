/* Simplifies views: removes those that change nothing, merges a view of a view into one,
 * replaces a transposed product by a product of transposed operands, and pushes some views
 * up through element-wise ops (pass_push.c). Views that only add or remove axes of size 1
 * become RESHAPE, so that equal ones can be merged. */
#include <string.h>

#include "graph/pass.h"
#include "graph/simplify.h"

/* Stores the sizes that are not 1, in order; returns their number. */
static int movement_core(const mica__spec *spec, int64_t *sizes)
{
    int n = 0;
    for (int d = 0; d < spec->ndim; d++)
        if (spec->shape[d] != 1) sizes[n++] = spec->shape[d];
    return n;
}

static bool movement_same_core(const mica__spec *a, const mica__spec *b)
{
    int64_t x[MICA_MAX_DIMS], y[MICA_MAX_DIMS];
    const int n = movement_core(a, x);
    return n == movement_core(b, y) && memcmp(x, y, (size_t)n * sizeof *x) == 0;
}

/* Does the view keep the row-major order of all elements? */
static bool movement_keeps_order(const mica__gnode *view, const mica__spec *in)
{
    switch ((int)view->op) {
    case MICA__OP_RESHAPE: return true;
    case MICA__OP_BROADCAST: return movement_same_core(in, &view->spec);
    case MICA__OP_PERMUTE: {
        int64_t last = -1;
        for (int d = 0; d < in->ndim; d++) {
            const int64_t axis = ((const mica__attr_permute *)view->attr)->axes[d];
            if (in->shape[axis] == 1) continue;
            if (axis < last) return false;
            last = axis;
        }
        return true;
    }
    case MICA__OP_SLICE: {
        const mica__attr_slice *a = view->attr;
        for (int d = 0; d < in->ndim; d++)
            if (a->size[d] != in->shape[d] || (a->size[d] > 1 && a->step[d] != 1)) return false;
        return true;
    }
    case MICA__OP_WINDOW: {
        const mica__attr_window *w = view->attr;
        return w->size == 1 && w->stride == 1;
    }
    default: return false;
    }
}

/* slice(slice(x)): start and step of the outer slice count in steps of the inner one. */
static mica_status movement_slices(mica__rewrite *rw, uint32_t id, uint32_t inner)
{
    const mica__gnode *node = &rw->g->node[id], *below = &rw->g->node[inner];
    const mica__attr_slice *a = below->attr;
    const uint32_t x = below->in[0];
    mica__attr_slice both = *(const mica__attr_slice *)node->attr;
    for (int d = 0; d < node->spec.ndim; d++) {
        if (both.size[d] == 0) {
            both.start[d] = 0;
            both.step[d] = 1;
            continue;
        }
        both.start[d] = a->start[d] + both.start[d] * a->step[d]; /* inside x: cannot overflow */
        if (both.size[d] == 1) both.step[d] = 1;
        else both.step[d] *= a->step[d];
    }
    return mica__rewrite_by(rw, id, MICA__OP_SLICE, &x, 1, &both, sizeof both);
}

static mica_status movement_permutes(mica__rewrite *rw, uint32_t id, uint32_t inner)
{
    const mica__gnode *node = &rw->g->node[id], *below = &rw->g->node[inner];
    const mica__attr_permute *first = below->attr, *second = node->attr;
    const uint32_t x = below->in[0];
    mica__attr_permute both = {{0}};
    for (int d = 0; d < node->spec.ndim; d++) both.axes[d] = first->axes[second->axes[d]];
    return mica__rewrite_by(rw, id, MICA__OP_PERMUTE, &x, 1, &both, sizeof both);
}

/* (a b)^T = b^T a^T: the users then read a row-major result. Not for inner sizes above LONG,
 * where the shape of the product matters more. */
static mica_status movement_product(mica__rewrite *rw, uint32_t id, uint32_t inner)
{
    const mica__gnode *node = &rw->g->node[id], *below = &rw->g->node[inner];
    const mica__attr_permute turn = *(const mica__attr_permute *)node->attr;
    const int ndim = node->spec.ndim;
    const uint32_t a = below->in[0], b = below->in[1];
    enum { LONG = 64 };
    if (rw->uses[inner] != 1 || below->attr_size || ndim < 2) return MICA_OK;
    if (rw->g->node[a].spec.ndim != ndim || rw->g->node[b].spec.ndim != ndim) return MICA_OK;
    if (rw->g->node[a].spec.shape[ndim - 1] > LONG) return MICA_OK;
    for (int d = 0; d < ndim; d++)
        if (turn.axes[d] != (d < ndim - 2 ? d : d == ndim - 2 ? ndim - 1 : ndim - 2)) return MICA_OK;
    uint32_t turned[2];
    MICA_TRY(mica__rewrite_add(rw, MICA__OP_PERMUTE, &b, 1, &turn, sizeof turn, &turned[0]));
    MICA_TRY(mica__rewrite_add(rw, MICA__OP_PERMUTE, &a, 1, &turn, sizeof turn, &turned[1]));
    return mica__rewrite_by(rw, id, MICA__OP_MATMUL, turned, 2, NULL, 0);
}

/* Broadcasting aligns on the right, so a reshape before it that only adds or
 * removes leading axes of size 1 is not needed. */
static bool movement_leading_only(const mica__spec *a, const mica__spec *b, int ndim)
{
    for (int i = 1; i <= MICA_MAX_DIMS; i++) {
        const int64_t m = i <= a->ndim ? a->shape[a->ndim - i] : 1, n = i <= b->ndim ? b->shape[b->ndim - i] : 1;
        if (m != n) return false;
    }
    return a->ndim <= ndim;
}

static mica_status movement_compose(mica__rewrite *rw, uint32_t id, uint32_t inner)
{
    const mica__gnode *node = &rw->g->node[id], *below = &rw->g->node[inner];
    const uint16_t op = node->op;
    if (op == MICA__OP_RESHAPE && below->op == op) return mica__rewrite_by_reshape(rw, id, below->in[0]);
    if (op == MICA__OP_PERMUTE && below->op == op) return movement_permutes(rw, id, inner);
    if (op == MICA__OP_PERMUTE && below->op == MICA__OP_MATMUL) return movement_product(rw, id, inner);
    if (op == MICA__OP_SLICE && below->op == op) return movement_slices(rw, id, inner);
    if (op == MICA__OP_BROADCAST && (below->op == op || below->op == MICA__OP_RESHAPE)) {
        const uint32_t x = below->in[0];
        if (below->op == op || movement_leading_only(&rw->g->node[x].spec, &below->spec, node->spec.ndim))
            return mica__rewrite_by(rw, id, op, &x, 1, node->attr, node->attr_size);
    }
    return MICA_OK;
}

mica_status mica__merge_view(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *node = &rw->g->node[id];
    if (mica__op_get(node->op)->kind != MICA__VIEW) return MICA_OK;
    const uint32_t inner = node->in[0];
    const mica__spec *in = &rw->g->node[inner].spec;
    if (movement_keeps_order(node, in)) {
        if (mica__shape_equal(in, &node->spec)) {
            mica__rewrite_replace(rw, id, inner);
            return MICA_OK;
        }
        if (node->op != MICA__OP_RESHAPE) return mica__rewrite_by_reshape(rw, id, inner);
    }
    return movement_compose(rw, id, inner);
}

mica_status mica__pass_movement(mica__graph *g, bool *changed)
{
    bool pushed = false;
    MICA_TRY(mica__rewrite_run(g, mica__merge_view, changed));
    MICA_TRY(mica__push_views(g, &pushed));
    *changed |= pushed;
    return MICA_OK;
}
