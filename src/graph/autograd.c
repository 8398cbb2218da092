/* Public gradient functions: they check the arguments, then run the reverse
 * pass. */
#include "base/alloc.h"
#include "base/text.h"
#include "graph/reverse.h"

/* ------------------------------------------------------------ arguments ---- */

/* A scope that has already failed keeps its first error. */
static mica_status autograd_begin(mica_scope *s, const char *op, mica_array *const *wrt, size_t n, mica_array **grads)
{
    if (grads)
        for (size_t i = 0; i < n; i++) grads[i] = NULL;
    MICA_TRY(mica__scope_check(s, op));
    if (s->error.status != MICA_OK) return mica__error_raise(&s->error);
    if (n && (!wrt || !grads)) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: n is %zu, but %s is NULL", op, n, wrt ? "grads" : "wrt");
        return MICA_ERR_ARGUMENT;
    }
    if (!mica__usable(s, op, wrt, n)) return s->error.status;
    for (size_t i = 0; i < n; i++) {
        const mica_dtype dtype = (mica_dtype)wrt[i]->spec.dtype;
        if (mica__is_float(dtype)) continue;
        mica__scope_fail(s, MICA_ERR_DTYPE, "%s: array %zu is %s, and only floats have gradients", op, i,
                         mica_dtype_name(dtype));
        return MICA_ERR_DTYPE;
    }
    return MICA_OK;
}

/* Checks that the result still has its inputs, so that a gradient can be computed. */
static mica_status autograd_attached(mica_scope *s, const char *op, const mica_array *out)
{
    if (mica__array_state(out) == MICA__LAZY || out->scope_id == s->id) return MICA_OK;
    mica__scope_fail(s, MICA_ERR_STATE,
                     "%s: the result of %s was evaluated in another scope and no longer has its inputs; "
                     "take its gradient before evaluating it, or in the scope that made it",
                     op, mica__op_get(out->op)->name);
    return MICA_ERR_STATE;
}

static mica_status autograd_run(mica_scope *s, mica_array *const *outs, mica_array *const *cts, size_t n_outs,
                                mica_array *const *wrt, size_t n, mica_array **grads)
{
    mica_status status = mica__reverse(s, outs, cts, n_outs, wrt, n, 0, grads);
    for (size_t i = 0; status == MICA_OK && i < n; i++) {
        if (!grads[i]) grads[i] = mica__zeros_like(s, wrt[i]);
        if (!grads[i]) status = s->error.status;
    }
    for (size_t i = 0; status != MICA_OK && i < n; i++) grads[i] = NULL;
    return status;
}

/* --------------------------------------------------------------- public ---- */

mica_status mica_grad(mica_scope *s, mica_array *loss, mica_array *const *wrt, size_t n, mica_array **grads)
{
    MICA_TRY(autograd_begin(s, "grad", wrt, n, grads));
    if (!mica__usable1(s, "grad", loss)) return s->error.status;
    if (!mica__is_float((mica_dtype)loss->spec.dtype)) {
        mica__scope_fail(s, MICA_ERR_DTYPE, "grad: the loss is %s and must be a float",
                         mica_dtype_name((mica_dtype)loss->spec.dtype));
        return MICA_ERR_DTYPE;
    }
    if (mica__spec_size(&loss->spec) != 1) {
        char shape[MICA__SHAPE_TEXT];
        mica__scope_fail(s, MICA_ERR_SHAPE,
                         "grad: the loss has shape %s and must have one element; sum it, or give mica_vjp a cotangent",
                         mica__shape_text(shape, loss->spec.ndim, loss->spec.shape));
        return MICA_ERR_SHAPE;
    }
    MICA_TRY(autograd_attached(s, "grad", loss));
    mica_array *one = mica_ones(s, (mica_dtype)loss->spec.dtype, loss->spec.ndim, loss->spec.shape);
    if (!one) return s->error.status;
    return autograd_run(s, &loss, &one, 1, wrt, n, grads);
}

/* Casts the cotangent to the dtype of the output; only weak constants may differ. */
static mica_status autograd_cotangent(mica_scope *s, size_t i, const mica_array *out, mica_array *ct, mica_array **cast)
{
    if (!mica__is_float((mica_dtype)out->spec.dtype)) {
        mica__scope_fail(s, MICA_ERR_DTYPE, "vjp: output %zu is %s, and only floats have gradients", i,
                         mica_dtype_name((mica_dtype)out->spec.dtype));
        return MICA_ERR_DTYPE;
    }
    if (!mica__shape_equal(&out->spec, &ct->spec)) {
        char a[MICA__SHAPE_TEXT], b[MICA__SHAPE_TEXT];
        mica__scope_fail(s, MICA_ERR_SHAPE, "vjp: cotangent %zu has shape %s, its output %s", i,
                         mica__shape_text(a, ct->spec.ndim, ct->spec.shape),
                         mica__shape_text(b, out->spec.ndim, out->spec.shape));
        return MICA_ERR_SHAPE;
    }
    if (!ct->weak && ct->spec.dtype != out->spec.dtype) {
        mica__scope_fail(s, MICA_ERR_DTYPE, "vjp: cotangent %zu is %s, its output %s", i,
                         mica_dtype_name((mica_dtype)ct->spec.dtype), mica_dtype_name((mica_dtype)out->spec.dtype));
        return MICA_ERR_DTYPE;
    }
    *cast = ct->weak ? mica_cast(s, ct, (mica_dtype)out->spec.dtype) : ct;
    return *cast ? MICA_OK : s->error.status;
}

mica_status mica_vjp(mica_scope *s, mica_array *const *outputs, mica_array *const *cotangents, size_t n_outputs,
                     mica_array *const *wrt, size_t n, mica_array **grads)
{
    MICA_TRY(autograd_begin(s, "vjp", wrt, n, grads));
    if (n_outputs && (!outputs || !cotangents)) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "vjp: %s is NULL", outputs ? "cotangents" : "outputs");
        return MICA_ERR_ARGUMENT;
    }
    if (!mica__usable(s, "vjp", outputs, n_outputs) || !mica__usable(s, "vjp", cotangents, n_outputs))
        return s->error.status;
    mica_array **cts = mica__alloc_zero(n_outputs + 1, sizeof *cts);
    if (!cts) {
        mica__fail_memory("vjp: the list of cotangents", n_outputs * sizeof *cts);
        mica__scope_failed(s, MICA_ERR_MEMORY);
        return MICA_ERR_MEMORY;
    }
    mica_status status = MICA_OK;
    for (size_t i = 0; status == MICA_OK && i < n_outputs; i++) {
        status = autograd_attached(s, "vjp", outputs[i]);
        if (status == MICA_OK) status = autograd_cotangent(s, i, outputs[i], cotangents[i], &cts[i]);
    }
    if (status == MICA_OK) status = autograd_run(s, outputs, cts, n_outputs, wrt, n, grads);
    mica__free(cts);
    return status;
}

mica_status mica_value_and_grad(mica_scope *s, mica_loss_fn loss, void *user, mica_array *const *params, size_t n,
                                mica_array **value, mica_array **grads)
{
    if (value) *value = NULL;
    MICA_TRY(autograd_begin(s, "value_and_grad", params, n, grads));
    if (!loss) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "value_and_grad: the loss function is NULL");
        return MICA_ERR_ARGUMENT;
    }
    mica_array *v = loss(s, params, n, user);
    if (!v && s->error.status == MICA_OK)
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "value_and_grad: the loss function returned NULL");
    if (!v) return s->error.status;
    MICA_TRY(mica_grad(s, v, params, n, grads));
    if (value) *value = v;
    return MICA_OK;
}
