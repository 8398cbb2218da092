/* Gradients of aliases: custom gradients, checkpoints, and AFTER, the ordering op
 * that checkpoints use. */
#include "base/alloc.h"
#include "base/text.h"
#include "graph/clone.h"
#include "graph/reverse.h"

MICA__VJP_RULE(after)
{
    (void)s, (void)y;
    grads[0] = ct;
    return MICA_OK;
}

/* ---------------------------------------------------------- custom_grad ---- */

static mica_status vjp_custom_check(mica_scope *s, size_t i, const mica_array *input, const mica_array *g)
{
    if (!g || mica__spec_equal(&g->spec, &input->spec)) return MICA_OK;
    char a[MICA__SHAPE_TEXT], b[MICA__SHAPE_TEXT];
    const mica_status code = mica__shape_equal(&g->spec, &input->spec) ? MICA_ERR_DTYPE : MICA_ERR_SHAPE;
    mica__scope_fail(s, code, "custom_grad: gradient %zu is %s %s, but its input is %s %s", i,
                     mica_dtype_name((mica_dtype)g->spec.dtype), mica__shape_text(a, g->spec.ndim, g->spec.shape),
                     mica_dtype_name((mica_dtype)input->spec.dtype),
                     mica__shape_text(b, input->spec.ndim, input->spec.shape));
    return code;
}

/* The caller's function gives the gradients. No cotangent is passed to y itself (grads[0]). */
MICA__VJP_RULE(custom_grad)
{
    const mica__attr_custom *attr = y->attr;
    const size_t n = y->n_in - 1;
    const mica_status status = attr->fn(s, ct, y->in + 1, n, grads + 1, attr->user);
    if (s->error.status != MICA_OK) return s->error.status;
    if (status != MICA_OK) {
        mica__scope_fail(s, status, "custom_grad: the gradient function failed: %s", mica_status_text(status));
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        if (grads[1 + i] && grads[1 + i]->weak)
            grads[1 + i] = mica_cast(s, grads[1 + i], (mica_dtype)y->in[1 + i]->spec.dtype);
        MICA_TRY(vjp_custom_check(s, i, y->in[1 + i], grads[1 + i]));
    }
    return MICA_OK;
}

/* ----------------------------------------------------------- checkpoint ---- */

/* The rule in the table is the identity: correct, but it keeps all activations. The
 * reverse pass calls mica__checkpoint_vjp instead. */
MICA__VJP_RULE(checkpoint)
{
    (void)s, (void)y;
    grads[0] = ct;
    return MICA_OK;
}

static bool checkpoint_keeps(const void *tape, const mica_array *node) { return mica__tape_wants(tape, node); }

typedef struct checkpoint_work {
    mica__node_map shared;     /* nodes that the region uses besides its inputs */
    mica_array **to;           /* the inputs of the copy                        */
    mica_array **wrt, **grads; /* of the reverse pass over the copy             */
    const mica_array **target; /* per wrt: the node that gets its cotangent     */
} checkpoint_work;

static mica_status checkpoint_backward(mica__tape *tape, checkpoint_work *w, mica_array *copy, mica_array *ct,
                                       mica_array *const *inputs, size_t n_inputs, uint64_t mark)
{
    const size_t room = n_inputs + w->shared.n + 1;
    w->wrt = mica__alloc_zero(room, sizeof *w->wrt);
    w->grads = mica__alloc_zero(room, sizeof *w->grads);
    w->target = mica__alloc_zero(room, sizeof *w->target);
    if (!w->wrt || !w->grads || !w->target) return mica__fail_memory("checkpoint: its inputs", room * sizeof *w->wrt);
    size_t n = 0;
    for (size_t i = 0; i < n_inputs; i++) {
        if (!mica__tape_needs(tape, inputs[i])) continue;
        w->target[n] = inputs[i];
        w->wrt[n++] = w->to[i];
    }
    for (uint32_t i = 0; i < w->shared.n; i++) {
        if (!mica__tape_needs(tape, w->shared.node[i])) continue;
        w->target[n] = w->shared.node[i];
        w->wrt[n++] = (mica_array *)(uintptr_t)w->shared.node[i];
    }
    MICA_TRY(mica__reverse(mica__tape_scope(tape), &copy, &ct, 1, w->wrt, n, mark, w->grads));
    for (size_t i = 0; i < n; i++) MICA_TRY(mica__tape_add(tape, w->target[i], w->grads[i]));
    return MICA_OK;
}

/* The inputs of the copy are AFTER(input, ct), so the copy cannot be merged with the
 * first computation and cannot run before ct is computed. Nodes that do not depend on
 * the inputs (weights), are evaluated or are in wrt are not copied; they get their
 * cotangents too. */
static mica_status checkpoint_run(mica__tape *tape, mica_array *y, mica_array *ct, checkpoint_work *w)
{
    mica_scope *s = mica__tape_scope(tape);
    mica_array *const *inputs = y->in + 1;
    const size_t n = y->n_in - 1;
    w->to = mica__alloc_zero(n + 1, sizeof *w->to);
    if (!w->to) return mica__fail_memory("checkpoint: its inputs", n * sizeof *w->to);
    for (size_t i = 0; i < n; i++) {
        w->to[i] = mica__after(s, inputs[i], ct);
        if (!w->to[i]) return s->error.status;
    }
    const uint64_t mark = mica__serial_now();
    const mica__clone clone = {
        .from = inputs, .to = w->to, .n = n, .keeps = checkpoint_keeps, .context = tape, .shared = &w->shared};
    mica_array *copy;
    MICA_TRY(mica__clone_run(s, &clone, y->in, 1, &copy));
    return checkpoint_backward(tape, w, copy, ct, inputs, n, mark);
}

mica_status mica__checkpoint_vjp(mica__tape *tape, mica_array *y, mica_array *ct)
{
    checkpoint_work w = {0};
    const mica_status status = checkpoint_run(tape, y, ct, &w);
    mica__node_map_free(&w.shared);
    mica__free(w.to);
    mica__free(w.wrt);
    mica__free(w.grads);
    mica__free(w.target);
    return status;
}
