/* The gradient of a scan is a scan in the opposite direction. Its step computes the
 * original step again from the carries before it and applies the reverse pass. "d x" is
 * the gradient of x. The new scan has:
 *
 *     carries   d carry (floats), and the partial sum of each d captured that is not
 *               computed after the scan (scan_terms.h)
 *     xs        the carries before each step, the original xs and the kept values, as far
 *               as the step needs them, and the d ys
 *     ys        the d xs, and the terms of the sums that are computed after the scan
 *
 * Kept values are results of expensive ops such as products, so only inexpensive ops are
 * computed again. The original scan does not return them, and often not its carries before
 * each step (a recurrence that returns its state returns them one step late). So a copy of
 * the original with more ys is built. If both are evaluated together, they are merged into
 * one (pass_scans.c). All pieces are ordinary nodes, so this gradient has a gradient too. */
#include "base/arena.h"
#include "graph/clone.h"
#include "graph/reverse.h"
#include "graph/scan_terms.h"
#include "graph/vjp_util.h"

typedef struct scan_vjp {
    mica_scope *s;
    mica_array *scan;
    const mica__attr_scan *attr;
    const mica__body *body;
    size_t n_carry, n_x, n_y, n_own, n_captured; /* n_own: carries and xs */
    mica_array *const *cts; /* of the parts; NULL: zero                                  */
    const bool *wants;      /* per input: its gradient is needed; NULL: all              */
    mica_array **before;    /* carries before each step, stacked; NULL: not used         */
    mica__arena arena;
} scan_vjp;

/* -------------------------------------------------------------- helpers ---- */

static bool scan_vjp_wants(const scan_vjp *v, size_t input)
{
    return mica__is_float(vjp_dtype(v->scan->in[input])) && (!v->wants || v->wants[input]);
}

static mica_array **scan_vjp_list(scan_vjp *v, size_t n)
{
    return mica__arena_array(&v->arena, n + 1, sizeof(mica_array *));
}

static mica_status scan_vjp_room(scan_vjp *v)
{
    if (!v->arena.failed) return MICA_OK;
    mica__fail_memory("the gradient of a scan", v->arena.total);
    mica__scope_failed(v->s, MICA_ERR_MEMORY);
    return MICA_ERR_MEMORY;
}

/* The inputs for a copy of the body: PARAM nodes for the carries and slices of the
 * original, then its captured nodes. index: parameter number of the first. */
static void scan_vjp_params(scan_vjp *v, mica_array **params, int64_t index)
{
    for (size_t i = 0; i < v->n_own; i++) params[i] = mica__param(v->s, &v->body->param[i]->spec, index + (int64_t)i);
    for (size_t i = v->n_own; i < v->body->n_param; i++) params[i] = v->body->param[i];
}

/* Collects the nodes that outs depend on; does not go past nodes that are not newer than mark. */
static mica_status scan_vjp_walk(mica__node_map *seen, mica_array *const *outs, size_t n_out, uint64_t mark)
{
    uint32_t number;
    for (size_t i = 0; i < n_out; i++) MICA_TRY(mica__node_map_add(seen, outs[i], &number));
    for (uint32_t i = 0; i < seen->n; i++) {
        const mica_array *node = seen->node[i];
        for (uint32_t k = 0; node->serial > mark && k < node->n_in; k++)
            MICA_TRY(mica__node_map_add(seen, node->in[k], &number));
    }
    return MICA_OK;
}

/* --------------------------------------------------- carries before a step -- */

/* Does the scan return this carry as a y? *y is the number of that y. */
static bool scan_carry_is_y(const scan_vjp *v, size_t carry, size_t *y)
{
    for (*y = 0; *y < v->n_y; ++*y)
        if (v->body->out[v->n_carry + *y] == v->body->out[carry]) return true;
    return false;
}

/* The carries before each step, from those after each step: adds the initial carry where
 * the scan starts (the end, if it runs in reverse) and drops the final one. */
static mica_array *scan_vjp_shift_carries(scan_vjp *v, size_t carry, size_t y)
{
    const bool reverse = v->attr->reverse != 0;
    mica__attr_part part = {.index = (int64_t)(v->n_carry + y)};
    part.spec = v->scan->in[carry]->spec;
    for (int d = part.spec.ndim++; d > 0; d--) part.spec.shape[d] = part.spec.shape[d - 1];
    part.spec.shape[0] = v->attr->length;
    mica_array *after = mica__build1(v->s, MICA__OP_PART, v->scan, &part, sizeof part);
    mica_array *first = mica_expand_dims(v->s, v->scan->in[carry], 0);
    if (reverse) after = mica_slice_axis(v->s, after, 0, 1, MICA_AUTO, 1);
    else after = mica_slice_axis(v->s, after, 0, 0, v->attr->length - 1, 1);
    mica_array *both[2] = {reverse ? after : first, reverse ? first : after};
    return mica_concat(v->s, both, 2, 0);
}

/* ------------------------------------------------------- the scan backward -- */

typedef struct scan_back {
    size_t n_d, n_want, n_dy;      /* number of d carries, d captured, d ys                 */
    size_t *carry, *captured, *dy; /* number of each among the carries, captured, ys        */
    size_t n_sum;                  /* number of d captured that are carried                 */
    mica_array **sum;              /* per d captured: its carry; NULL: summed after the scan */
    mica__scan_terms terms;        /* d xs, then the terms of sums after the scan           */
    mica_array **in, **params;     /* of the new scan: d carries, sums, xs, d ys            */
    mica_array **step;             /* params of the copied body                             */
    mica_array **copy;             /* results of the copied body                            */
    mica_array **dy_params;
    size_t n_kept;
    mica_array **kept, **kept_params; /* nodes of the copied body, and their parameters     */
    uint64_t floor, top;           /* serials: nodes of the copied body are in (floor, top] */
} scan_back;

/* Lists the cotangents that exist. The initial carries of the new scan are those of the final carries. */
static mica_status scan_back_state(scan_vjp *v, scan_back *b)
{
    b->carry = mica__arena_array(&v->arena, v->n_carry + 1, sizeof *b->carry);
    b->captured = mica__arena_array(&v->arena, v->n_captured + 1, sizeof *b->captured);
    b->dy = mica__arena_array(&v->arena, v->n_y + 1, sizeof *b->dy);
    const size_t room = v->n_carry + v->n_captured + v->n_own + v->n_y;
    b->in = scan_vjp_list(v, room);
    b->params = scan_vjp_list(v, room);
    b->step = scan_vjp_list(v, v->body->n_param);
    b->copy = scan_vjp_list(v, v->body->n_out);
    b->dy_params = scan_vjp_list(v, v->n_y);
    MICA_TRY(scan_vjp_room(v));
    for (size_t i = 0; i < v->n_carry; i++) {
        if (!mica__is_float(vjp_dtype(v->scan->in[i]))) continue;
        b->in[b->n_d] = v->cts[i] ? v->cts[i] : mica__zeros_like(v->s, v->scan->in[i]);
        b->carry[b->n_d++] = i;
    }
    for (size_t i = 0; i < v->n_captured; i++)
        if (scan_vjp_wants(v, v->n_own + i)) b->captured[b->n_want++] = i;
    for (size_t i = 0; i < v->n_y; i++)
        if (v->cts[v->n_carry + i]) b->dy[b->n_dy++] = i;
    return v->s->error.status;
}

static mica_status scan_back_params(scan_vjp *v, scan_back *b)
{
    for (size_t i = 0; i < b->n_d; i++) b->params[i] = mica__param(v->s, &b->in[i]->spec, (int64_t)i);
    scan_vjp_params(v, b->step, (int64_t)b->n_d);
    for (size_t i = 0; i < b->n_dy; i++) {
        const mica__spec *slice = &v->body->out[v->n_carry + b->dy[i]]->spec;
        b->dy_params[i] = mica__param(v->s, slice, (int64_t)(b->n_d + v->n_own + i));
    }
    return v->s->error.status;
}

/* One step: the reverse pass over a copy of the body. grads gets those of the float
 * carries, of all xs (NULL: none or not wanted) and of the wanted captured arrays. */
static mica_status scan_back_step(scan_vjp *v, scan_back *b, mica_array **grads)
{
    mica_array *const *copy = b->copy, **outs = scan_vjp_list(v, v->body->n_out);
    mica_array **cts = scan_vjp_list(v, v->body->n_out), **wrt = scan_vjp_list(v, v->body->n_param);
    mica_array **found = scan_vjp_list(v, v->body->n_param);
    MICA_TRY(scan_vjp_room(v));
    b->floor = mica__serial_now(); /* params and captured nodes are constants */
    MICA_TRY(mica__clone_body(v->s, v->body, b->step, b->copy));
    b->top = mica__serial_now();
    size_t n = 0, n_wrt = 0, k = 0;
    for (size_t i = 0; i < b->n_d; i++) outs[n] = copy[b->carry[i]], cts[n++] = b->params[i];
    for (size_t i = 0; i < b->n_dy; i++) outs[n] = copy[v->n_carry + b->dy[i]], cts[n++] = b->dy_params[i];
    for (size_t i = 0; i < b->n_d; i++) wrt[n_wrt++] = b->step[b->carry[i]];
    for (size_t i = v->n_carry; i < v->n_own; i++)
        if (scan_vjp_wants(v, i)) wrt[n_wrt++] = b->step[i];
    for (size_t i = 0; i < b->n_want; i++) wrt[n_wrt++] = b->step[v->n_own + b->captured[i]];
    MICA_TRY(mica__reverse(v->s, outs, cts, n, wrt, n_wrt, b->floor, found));
    for (size_t i = 0; i < b->n_d; i++) grads[i] = found[k++];
    for (size_t i = v->n_carry; i < v->n_own; i++)
        if (scan_vjp_wants(v, i)) grads[b->n_d + i - v->n_carry] = found[k++];
    for (size_t i = 0; i < b->n_want; i++) grads[b->n_d + v->n_x + i] = found[k++];
    return MICA_OK;
}

/* Limit, in bytes per step, of kept values and terms: TIMES the bytes that the scan reads and
 * writes in a step anyway. Above it, the memory costs more than the time it saves. */
static uint64_t scan_back_limit(const scan_vjp *v, const scan_back *b)
{
    enum { TIMES = 8 };
    uint64_t held = 0;
    for (size_t i = 0; i < v->n_own; i++) held += mica_array_nbytes(b->step[i]);
    for (size_t i = v->n_carry; i < v->body->n_out; i++) held += mica_array_nbytes(b->copy[i]);
    return TIMES * held;
}

/* Decides which sums are computed after the scan. The others are carried, starting at 0. Two
 * rounds: a term that the first round takes costs nothing for a sum of the second. */
static mica_status scan_back_sums(scan_vjp *v, scan_back *b, mica_array *const *dx, mica_array *const *dc,
                                  uint64_t mark)
{
    mica__scan_terms *t = &b->terms;
    t->room = v->n_x + 8 * b->n_want;
    t->node = scan_vjp_list(v, t->room);
    t->stacked = scan_vjp_list(v, t->room);
    t->floor = mark;
    t->most = scan_back_limit(v, b);
    b->sum = scan_vjp_list(v, b->n_want);
    bool *collected = mica__arena_array(&v->arena, b->n_want + 1, sizeof *collected);
    MICA_TRY(scan_vjp_room(v));
    for (size_t i = 0; i < v->n_x; i++)
        if (dx[i]) t->node[t->n++] = dx[i];
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < b->n_want; i++)
            if (dc[i] && !collected[i]) collected[i] = mica__scan_terms_collect(t, dc[i]);
    for (size_t i = 0; i < b->n_want; i++) {
        if (!dc[i] || collected[i]) continue;
        const size_t n = b->n_d + b->n_sum++;
        b->in[n] = mica__zeros_like(v->s, v->scan->in[v->n_own + b->captured[i]]);
        b->params[n] = b->sum[i] = mica__param(v->s, &v->scan->in[v->n_own + b->captured[i]]->spec, (int64_t)n);
    }
    return v->s->error.status;
}

/* The results of the new body: d carries, sums, terms. The first terms are the d xs. */
static mica_status scan_back_outs(scan_vjp *v, const scan_back *b, mica_array *const *step, mica_array **outs)
{
    mica_array *const *dc = step + b->n_d + v->n_x;
    size_t n = 0;
    for (size_t i = 0; i < b->n_d; i++) outs[n++] = step[i] ? step[i] : mica__zeros_like(v->s, b->params[i]);
    for (size_t i = 0; i < b->n_want; i++)
        if (b->sum[i]) outs[n++] = mica_add(v->s, b->sum[i], dc[i]);
    for (size_t i = 0; i < b->terms.n; i++) outs[n++] = b->terms.node[i];
    return v->s->error.status;
}

/* ------------------------------------------------------ kept values of a step --- */

/* Is computing the node again slower than writing and reading 4 bytes per element once? */
static bool scan_is_expensive(const scan_back *b, const mica_array *node)
{
    enum { FLOPS = 32 };
    const mica__op_info *info = mica__op_get(node->op);
    const mica__spec *in[8];
    if (node->serial <= b->floor || node->serial > b->top || info->kind != MICA__FAMILY || node->n_in > 8) return false;
    for (uint32_t k = 0; k < node->n_in; k++) in[k] = &node->in[k]->spec;
    return info->cost(info, in, node->n_in, node->attr, &node->spec) >= FLOPS * (uint64_t)mica__spec_size(&node->spec);
}

/* Finds b->kept: the expensive nodes of the copied body that outs need; none if they exceed the limit. */
static mica_status scan_keep_find(scan_vjp *v, scan_back *b, mica_array *const *outs, size_t n_out,
                                  mica__node_map *seen)
{
    uint32_t number;
    uint64_t kept = b->terms.bytes;
    for (size_t i = 0; i < n_out; i++) MICA_TRY(mica__node_map_add(seen, outs[i], &number));
    for (uint32_t i = 0; i < seen->n; i++) {
        const mica_array *node = seen->node[i];
        if (node->serial <= b->floor) continue;
        if (scan_is_expensive(b, node)) b->n_kept++, kept += mica_array_nbytes(node);
        else
            for (uint32_t k = 0; k < node->n_in; k++) MICA_TRY(mica__node_map_add(seen, node->in[k], &number));
    }
    if (kept > scan_back_limit(v, b)) b->n_kept = 0;
    b->kept = scan_vjp_list(v, b->n_kept);
    b->kept_params = scan_vjp_list(v, b->n_kept);
    MICA_TRY(scan_vjp_room(v));
    for (uint32_t i = 0, n = 0; n < b->n_kept; i++)
        if (scan_is_expensive(b, seen->node[i])) b->kept[n++] = (mica_array *)(uintptr_t)seen->node[i];
    return MICA_OK;
}

/* Rebuilds outs so that they read kept values as parameters instead of computing them. */
static mica_status scan_back_keep(scan_vjp *v, scan_back *b, mica_array **outs, size_t n_out)
{
    mica__node_map seen = {0};
    const mica_status status = scan_keep_find(v, b, outs, n_out, &seen);
    mica__node_map_free(&seen);
    MICA_TRY(status);
    if (b->n_kept == 0) return MICA_OK;
    const size_t n_state = b->n_d + b->n_sum, room = n_state + v->n_own + v->n_y + b->n_kept;
    mica_array **const from[2] = {b->in, b->params}, **to[2];
    for (int k = 0; k < 2; k++) {
        to[k] = scan_vjp_list(v, room);
        for (size_t i = 0; to[k] && i < n_state; i++) to[k][i] = from[k][i];
    }
    b->in = to[0];
    b->params = to[1];
    for (size_t i = 0; i < b->n_kept; i++) b->kept_params[i] = mica__param(v->s, &b->kept[i]->spec, (int64_t)i);
    if (v->s->error.status != MICA_OK) return v->s->error.status;
    mica_array **copies = scan_vjp_list(v, n_out);
    MICA_TRY(scan_vjp_room(v));
    const mica__clone clone = {.from = b->kept, .to = b->kept_params, .n = b->n_kept};
    MICA_TRY(mica__clone_run(v->s, &clone, outs, n_out, copies));
    for (size_t i = 0; i < n_out; i++) outs[i] = copies[i];
    return MICA_OK;
}

/* Builds the original again with the missing carries and the kept values as further ys. Their
 * stacked values go to v->before and b->kept. */
static mica_status scan_vjp_rebuild(scan_vjp *v, scan_back *b, const size_t *missing, size_t n_missing, uint64_t mark)
{
    const size_t n_out = v->body->n_out, n_y = v->n_y + n_missing + b->n_kept;
    mica_array **outs = scan_vjp_list(v, n_out + n_missing + b->n_kept), **parts = scan_vjp_list(v, v->n_carry + n_y);
    MICA_TRY(scan_vjp_room(v));
    size_t n = 0;
    for (size_t i = 0; i < n_out; i++) outs[n++] = b->copy[i];
    for (size_t i = 0; i < n_missing; i++) outs[n++] = b->step[missing[i]];
    for (size_t i = 0; i < b->n_kept; i++) outs[n++] = b->kept[i];
    MICA_TRY(mica__build_scan(v->s, v->n_carry, v->n_x, n_y, v->attr->length, v->attr->reverse != 0, v->scan->in,
                              b->step, outs, mark, parts));
    for (size_t i = 0; i < n_missing; i++) v->before[missing[i]] = parts[n_out + i];
    for (size_t i = 0; i < b->n_kept; i++) b->kept[i] = parts[n_out + n_missing + i];
    return MICA_OK;
}

/* Fills v->before[] for the carries that are used, and b->kept[]. */
static mica_status scan_vjp_before(scan_vjp *v, scan_back *b, const bool *used, uint64_t mark)
{
    v->before = scan_vjp_list(v, v->n_carry);
    size_t *missing = mica__arena_array(&v->arena, v->n_carry + 1, sizeof *missing), n = 0, y;
    MICA_TRY(scan_vjp_room(v));
    for (size_t i = 0; i < v->n_carry; i++) {
        if (!used[i]) continue;
        if (scan_carry_is_y(v, i, &y)) v->before[i] = scan_vjp_shift_carries(v, i, y);
        else missing[n++] = i;
    }
    return n + b->n_kept ? scan_vjp_rebuild(v, b, missing, n, mark) : MICA_OK;
}

/* The xs of the new scan. A linear step needs no carry, and many steps need no x. Values
 * that the results do not use are neither stacked nor computed again. */
static mica_status scan_back_xs(scan_vjp *v, scan_back *b, mica_array *const *outs, size_t n_out, uint64_t mark,
                                size_t *n)
{
    mica__node_map seen = {0};
    mica_status status = scan_vjp_walk(&seen, outs, n_out, mark);
    bool *used = mica__arena_array(&v->arena, v->n_own + 1, sizeof *used);
    if (status == MICA_OK) status = scan_vjp_room(v);
    for (size_t i = 0; status == MICA_OK && i < v->n_own; i++)
        used[i] = mica__node_map_find(&seen, b->step[i]) != MICA__NODE_NONE;
    mica__node_map_free(&seen);
    if (status == MICA_OK) status = scan_vjp_before(v, b, used, mark);
    for (size_t i = 0; status == MICA_OK && i < v->n_own; i++) {
        if (!used[i]) continue;
        b->in[*n] = i < v->n_carry ? v->before[i] : v->scan->in[i];
        b->params[(*n)++] = b->step[i];
    }
    for (size_t i = 0; i < b->n_kept; i++) {
        b->in[*n] = b->kept[i];
        b->params[(*n)++] = b->kept_params[i];
    }
    for (size_t i = 0; i < b->n_dy; i++) {
        b->in[*n] = v->cts[v->n_carry + b->dy[i]];
        b->params[(*n)++] = b->dy_params[i];
    }
    return status;
}

/* Terms that are parameters of the new body are already stacked; the others become ys.
 * outs starts with the new carries. Returns the number of ys. */
static size_t scan_back_ys(scan_back *b, size_t n_dx, size_t n, mica_array **outs)
{
    const size_t n_state = b->n_d + b->n_sum;
    size_t n_y = n_dx;
    for (size_t i = n_dx; i < b->terms.n; i++) {
        for (size_t k = n_state; k < n && !b->terms.stacked[i]; k++)
            if (b->params[k] == outs[n_state + i]) b->terms.stacked[i] = b->in[k];
        if (!b->terms.stacked[i]) outs[n_state + n_y++] = outs[n_state + i];
    }
    return n_y;
}

static mica_status scan_vjp_backward(scan_vjp *v, mica_array **grads)
{
    scan_back b = {0};
    MICA_TRY(scan_back_state(v, &b));
    mica_array **step = scan_vjp_list(v, b.n_d + v->n_x + b.n_want);
    mica_array *const *dx = step + b.n_d, *const *dc = dx + v->n_x;
    MICA_TRY(scan_vjp_room(v));
    const uint64_t mark = mica__serial_now();
    MICA_TRY(scan_back_params(v, &b));
    MICA_TRY(scan_back_step(v, &b, step));
    MICA_TRY(scan_back_sums(v, &b, dx, dc, mark));
    const size_t n_state = b.n_d + b.n_sum, n_out = n_state + b.terms.n;
    mica_array **outs = scan_vjp_list(v, n_out), **parts = scan_vjp_list(v, n_out);
    size_t n = n_state, n_dx = 0, k = n_state;
    MICA_TRY(scan_vjp_room(v));
    MICA_TRY(scan_back_outs(v, &b, step, outs));
    MICA_TRY(scan_back_keep(v, &b, outs, n_out));
    MICA_TRY(scan_back_xs(v, &b, outs, n_out, mark, &n));
    for (size_t i = 0; i < v->n_x; i++) n_dx += dx[i] != NULL;
    const size_t n_y = scan_back_ys(&b, n_dx, n, outs);
    MICA_TRY(mica__build_scan(v->s, n_state, n - n_state, n_y, v->attr->length, !v->attr->reverse, b.in, b.params, outs,
                              mark, parts));
    for (size_t i = 0; i < b.terms.n; i++)
        if (!b.terms.stacked[i]) b.terms.stacked[i] = parts[k++];
    for (size_t i = 0; i < b.n_d; i++) grads[b.carry[i]] = parts[i];
    k = b.n_d;
    for (size_t i = 0; i < b.n_want; i++) {
        if (!dc[i]) continue;
        mica_array **grad = &grads[v->n_own + b.captured[i]];
        *grad = b.sum[i] ? parts[k++] : mica__scan_terms_sum(v->s, &b.terms, dc[i]);
    }
    k = 0;
    for (size_t i = 0; i < v->n_x; i++)
        if (dx[i]) grads[v->n_carry + i] = b.terms.stacked[k++];
    return v->s->error.status;
}

mica_status mica__scan_vjp(mica_scope *s, mica_array *scan, mica_array *const *cts, const bool *wants,
                           mica_array **grads)
{
    const mica__attr_scan *attr = scan->attr;
    scan_vjp v = {.s = s, .scan = scan, .attr = attr, .body = attr->body, .cts = cts, .wants = wants};
    v.n_carry = (size_t)attr->n_carry;
    v.n_x = (size_t)attr->n_x;
    v.n_y = (size_t)attr->n_y;
    v.n_own = v.n_carry + v.n_x;
    v.n_captured = (size_t)attr->n_captured;
    mica__arena_init(&v.arena);
    const mica_status status = scan_vjp_backward(&v, grads);
    mica__arena_free(&v.arena);
    return status;
}

/* ---------------------------------------------------------------- table ---- */

/* A part passes its cotangent on unchanged. The reverse pass stores it under the
 * number of the part instead of calling this rule (tape_part in reverse.c). */
MICA__VJP_RULE(part)
{
    (void)s, (void)y;
    grads[0] = ct;
    return MICA_OK;
}

/* A scan has many results, so ct is not used. By convention grads holds the cotangents
 * of the parts on entry and those of all float inputs on return; it has room for the
 * larger number of the two. */
MICA__VJP_RULE(scan)
{
    (void)ct;
    const mica__attr_scan *attr = y->attr;
    const size_t n = (size_t)(attr->n_carry + attr->n_y);
    mica__arena arena;
    mica__arena_init(&arena);
    mica_array **cts = mica__arena_copy(&arena, grads, n * sizeof *cts);
    for (size_t i = 0; i < y->n_in; i++) grads[i] = NULL;
    const mica_status status =
        cts ? mica__scan_vjp(s, y, cts, NULL, grads) : mica__fail_memory("the gradient of a scan", n * sizeof *cts);
    mica__arena_free(&arena);
    return status;
}
