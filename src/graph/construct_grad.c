/* Constructors of aliases: nodes equal to their first input that matter for gradients only. */
#include "graph/construct.h"

mica_array *mica_stop_gradient(mica_scope *s, mica_array *x)
{
    if (!mica__usable1(s, "stop_gradient", x)) return NULL;
    return mica__build1(s, MICA__OP_STOP_GRADIENT, x, NULL, 0);
}

/* A node of op with y and then the caller's inputs. */
static mica_array *alias_of(mica_scope *s, mica__op op, mica_array *y, mica_array *const *inputs, size_t n,
                            const void *attr, size_t attr_size)
{
    const char *name = mica__op_get((uint16_t)op)->name;
    if (!mica__usable1(s, name, y)) return NULL;
    if (n > 0 && !inputs) return mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: inputs is NULL", name);
    size_t nbytes;
    mica_array **in = NULL;
    if (n < SIZE_MAX && mica__mul_size(n + 1, sizeof *in, &nbytes)) in = mica__alloc_zero(n + 1, sizeof *in);
    if (!in) return mica__scope_fail(s, MICA_ERR_MEMORY, "out of memory: %s of %zu inputs", name, n);
    in[0] = y;
    if (n > 0) memcpy(in + 1, inputs, n * sizeof *in);
    mica_array *x = mica__build(s, op, in, n + 1, attr, attr_size);
    mica__free(in);
    return x;
}

static void custom_grad_free(const void *attr)
{
    const mica__attr_custom *custom = attr;
    if (custom->release) custom->release(custom->user, custom->user);
}

mica_array *mica_custom_grad(mica_scope *s, mica_array *y, mica_array *const *inputs, size_t n, mica_vjp_fn fn,
                             void *user, mica_release_fn release)
{
    const mica__attr_custom attr = {fn, user, release};
    mica_array *x = NULL;
    if (mica__usable1(s, "custom_grad", y)) {
        if (fn) x = alias_of(s, MICA__OP_CUSTOM_GRAD, y, inputs, n, &attr, sizeof attr);
        else mica__scope_fail(s, MICA_ERR_ARGUMENT, "custom_grad: fn is NULL");
    }
    if (x) x->attr_free = custom_grad_free;
    else custom_grad_free(&attr);
    return x;
}

mica_array *mica_checkpoint(mica_scope *s, mica_array *y, mica_array *const *inputs, size_t n)
{
    return alias_of(s, MICA__OP_CHECKPOINT, y, inputs, n, NULL, 0);
}
