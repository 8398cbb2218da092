/* The sum of two cotangents of one node. The cotangent of a slice is padded with zeros to
 * the size of the sliced array. If two slices are adjacent (the gates of a cell, the halves of
 * a pair), their cotangents are concatenated instead of padded and added. */
#include "graph/reverse.h"

enum { JOIN_MOST = 16 };        /* limit of parts of one concatenation                  */

/* A cotangent that is zero outside of `part`, which starts at low along axis. */
typedef struct join_piece {
    mica_array *part;
    int axis;
    int64_t low, high;          /* zeros before and after                               */
} join_piece;

static bool join_read(const mica_array *ct, join_piece *piece)
{
    if (ct->op != MICA__OP_PAD || ct->n_in != 1) return false;
    const mica__attr_pad *pad = ct->attr;
    if (pad->value.f != 0 || pad->value.i != 0) return false;
    *piece = (join_piece){.part = ct->in[0], .axis = -1};
    for (int d = 0; d < ct->spec.ndim; d++) {
        if (pad->low[d] == 0 && pad->high[d] == 0 && pad->interior[d] == 0) continue;
        if (piece->axis >= 0 || pad->interior[d] || pad->low[d] < 0 || pad->high[d] < 0) return false;
        piece->axis = d;
        piece->low = pad->low[d];
        piece->high = pad->high[d];
    }
    return piece->axis >= 0;
}

static int64_t join_size(const join_piece *p) { return p->part->spec.shape[p->axis]; }

/* Appends the part, or its own parts if it is a concatenation. */
static size_t join_parts(const join_piece *p, mica_array **list, size_t n)
{
    const mica_array *part = p->part;
    const bool joined = part->op == MICA__OP_CONCAT && part->n_in > 0 &&
                        ((const mica__attr_axis *)part->attr)->axis == p->axis && n + part->n_in <= JOIN_MOST;
    if (!joined) list[n++] = p->part;
    for (uint32_t i = 0; joined && i < part->n_in; i++) list[n++] = part->in[i];
    return n;
}

mica_array *mica__cotangent_sum(mica_scope *s, mica_array *a, mica_array *b)
{
    join_piece x, y;
    if (!a || !b || !join_read(a, &x) || !join_read(b, &y) || x.axis != y.axis) return mica_add(s, a, b);
    const bool a_first = x.low + join_size(&x) == y.low;
    if (!a_first && y.low + join_size(&y) != x.low) return mica_add(s, a, b);
    const join_piece *first = a_first ? &x : &y, *second = a_first ? &y : &x;
    mica_array *list[JOIN_MOST + 1];
    size_t n = join_parts(first, list, 0);
    n = join_parts(second, list, n);
    mica_array *both = mica_concat(s, list, n, x.axis);
    if (first->low == 0 && second->high == 0) return both;
    mica__attr_pad pad = {0};
    pad.low[x.axis] = first->low;
    pad.high[x.axis] = second->high;
    return mica__build1(s, MICA__OP_PAD, both, &pad, sizeof pad);
}
