/* matmul(cast(a), cast(b)) becomes a product of a and b with the dtype of the casts:
 * 8-bit integers into 32 bits, f16 and bf16 into f32. If nothing else reads the casts,
 * they need no memory, and the kernel reads a quarter or half of the bytes. There may be
 * views between a cast and the product (the transposed weights of a layer): they are
 * then applied to the operand of the cast.
 *
 * Integer results are equal bit for bit. Floats are converted exactly in both cases and
 * summed in f32, in another order. */
#include "graph/pass.h"
#include "graph/simplify.h"

enum { NARROW_VIEWS = 8 }; /* limit of views between a cast and the product */

/* Can a matmul with results of dtype `to` read operands of dtype `from`? */
static bool narrow_accepts(int32_t from, int32_t to)
{
    if (to == MICA_I32 || to == MICA_U32) return from == MICA_I8 || from == MICA_U8;
    return to == MICA_F32 && (from == MICA_F16 || from == MICA_BF16);
}

/* Finds the cast before the views of an operand; false if there is none that can be left out. */
static bool narrow_find(const mica__graph *g, uint32_t id, uint32_t *cast)
{
    for (int n = 0; n <= NARROW_VIEWS; n++) {
        const mica__gnode *node = &g->node[id];
        if (node->op == MICA__OP_CAST) {
            *cast = id;
            return narrow_accepts(g->node[node->in[0]].spec.dtype, node->spec.dtype);
        }
        if (mica__op_get(node->op)->kind != MICA__VIEW) return false;
        id = node->in[0];
    }
    return false;
}

/* Applies the views between cast and id to the operand of the cast. */
static mica_status narrow_views(mica__rewrite *rw, uint32_t id, uint32_t cast, uint32_t *out)
{
    uint32_t chain[NARROW_VIEWS];
    int n = 0;
    for (; id != cast; id = rw->g->node[id].in[0]) chain[n++] = id;
    *out = rw->g->node[cast].in[0];
    while (n > 0) {
        const mica__gnode view = rw->g->node[chain[--n]];
        const uint32_t in = *out;
        MICA_TRY(mica__rewrite_add(rw, (mica__op)view.op, &in, 1, view.attr, view.attr_size, out));
    }
    return MICA_OK;
}

static mica_status narrow_rule(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode node = rw->g->node[id];
    uint32_t cast[2], in[2] = {0};
    if (node.op != MICA__OP_MATMUL || node.attr_size) return MICA_OK;
    const bool a = narrow_find(rw->g, node.in[0], &cast[0]), b = narrow_find(rw->g, node.in[1], &cast[1]);
    /* One operand may stay f32, but not i32 or u32. */
    if (node.spec.dtype == MICA_F32 ? !a && !b : !a || !b) return MICA_OK;
    for (int k = 0; k < 2; k++) {
        in[k] = node.in[k];
        if (k ? b : a) MICA_TRY(narrow_views(rw, node.in[k], cast[k], &in[k]));
    }
    const mica__attr_cast attr = {node.spec.dtype};
    return mica__rewrite_by(rw, id, MICA__OP_MATMUL, in, 2, &attr, sizeof attr);
}

mica_status mica__pass_narrow(mica__graph *g, bool *changed) { return mica__rewrite_run(g, narrow_rule, changed); }
