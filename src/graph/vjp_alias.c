/* Gradients of ops that are their first input: custom gradients, checkpoints,
 * and the ordering op checkpoints use. */
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
    mica__scope_fail(s, code, "custom_grad: gradient %zu is %s %s, its input %s %s", i,
                     mica_dtype_name((mica_dtype)g->spec.dtype), mica__shape_text(a, g->spec.ndim, g->spec.shape),
                     mica_dtype_name((mica_dtype)input->spec.dtype),
                     mica__shape_text(b, input->spec.ndim, input->spec.shape));
    return code;
}

/* What the caller says; y's own way to its inputs (grads[0]) is not taken. */
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

/* By the table alone a checkpoint is the identity, which is right but keeps
 * everything; the reverse pass calls mica__checkpoint_vjp instead. */
MICA__VJP_RULE(checkpoint)
{
    (void)s, (void)y;
    grads[0] = ct;
    return MICA_OK;
}

static bool checkpoint_keeps(const void *tape, const mica_array *node) { return mica__tape_wants(tape, node); }

typedef struct checkpoint_work {
    mica__node_map shared;     /* what the region uses besides its inputs     */
    mica_array **to;           /* inputs, as the copy sees them               */
    mica_array **wrt, **grads; /* of the copy                                 */
    const mica_array **target; /* for each wrt: whose cotangent it is         */
} checkpoint_work;

static mica_status checkpoint_spread(mica__tape *tape, checkpoint_work *w, mica_array *copy, mica_array *ct,
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

/* The copy starts from the inputs "after ct": it cannot be merged with the
 * first computation, nor begin before the cotangent is there. What does not
 * depend on the inputs (weights), has its elements already, or is asked for
 * itself is not copied; it gets its cotangent too. */
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
    return checkpoint_spread(tape, w, copy, ct, inputs, n, mark);
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
