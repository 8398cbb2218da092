/* Parity cases of sources, creation ops, views and aliases. Each view is tested alone, where it
 * only sets strides, and below a copy, where a kernel reads through it. */
#include <math.h>

#include "parity_cases.h"

#define ANY PARITY_OPERAND(-100, 100, 0, 0, PARITY_SPECIAL)

static mica_array *build_node(mica_scope *s, mica__op op, mica_array *x, const void *attr, size_t attr_size)
{
    return mica__build1(s, op, x, attr, attr_size);
}

/* Variant v is view v / 2; odd variants are read by a copy. */
static mica_array *maybe_read(mica_scope *s, mica_array *view, int variant)
{
    return variant % 2 ? build_node(s, MICA__OP_COPY, view, NULL, 0) : view;
}

/* --------------------------------------------------- sources and makers --- */

static mica_array *build_leaf(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    (void)s;
    (void)call;
    return x[0];
}

static mica_status trace_copy(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                              void *user)
{
    (void)n_in;
    (void)n_out;
    (void)user;
    out[0] = mica__build1(s, MICA__OP_COPY, in[0], NULL, 0);
    return mica_scope_status(s);
}

/* Parameters exist only in traced functions. */
static mica_array *build_param(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    (void)call;
    mica_function *f;
    mica_array *y = NULL;
    if (mica_compile(x[0]->engine, trace_copy, NULL, &f) != MICA_OK) return NULL;
    if (mica_call(s, f, x, 1, &y, 1) != MICA_OK) y = NULL;
    mica_function_free(f);
    return y;
}

static const parity_shape make_shapes[] = {{0, {0}},     {1, {1}},    {1, {33}},      {1, {130}},
                                           {2, {5, 17}}, {2, {0, 5}}, {3, {2, 3, 65}}};

static mica_array *build_full(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    static const double values[] = {0, 1, -1, 2.5, -0.0, 1e30, INFINITY, NAN};
    (void)x;
    const parity_shape *shape = &make_shapes[call->variant % PARITY_COUNT(make_shapes)];
    return mica_full(s, call->dtype, shape->ndim, shape->size, values[call->variant / PARITY_COUNT(make_shapes)]);
}

static mica_array *build_iota(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    static const struct {
        double start, step;
    } rows[] = {{0, 1}, {-3, 0.1}, {5, -2}, {0, 0}, {100, 1e4}};
    (void)x;
    const int per_row = PARITY_COUNT(make_shapes) * 2, row = call->variant / per_row;
    const parity_shape *shape = &make_shapes[call->variant % per_row / 2];
    mica__attr_iota attr = {.spec = {.dtype = (int32_t)call->dtype, .ndim = shape->ndim},
                            .axis = call->variant % 2 ? shape->ndim - 1 : 0};
    if (shape->ndim == 0) return NULL;
    for (int d = 0; d < shape->ndim; d++) attr.spec.shape[d] = shape->size[d];
    /* sets only the float or only the integer fields, as the constructors do */
    if (mica__is_float(call->dtype)) attr.start.f = rows[row].start, attr.step.f = rows[row].step;
    else attr.start.i = (int64_t)rows[row].start, attr.step.i = (int64_t)rows[row].step;
    return mica__build(s, MICA__OP_IOTA, NULL, 0, &attr, sizeof attr);
}

/* ---------------------------------------------------------------- views --- */

static const parity_shape view_shapes[] = {
    {0, {0}},     {1, {1}},    {1, {17}},       {1, {130}},        {2, {1, 1}},
    {2, {5, 33}}, {2, {0, 5}}, {3, {3, 2, 17}}, {4, {2, 3, 1, 5}},
};

static mica_array *build_reshape(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const int64_t *shape = mica_array_shape(x[0]);
    const int ndim = mica_array_ndim(x[0]);
    mica__attr_shape to = {0};
    switch (call->variant / 2) {
    case 0: /* flat */
        to.ndim = 1;
        to.shape[0] = mica_array_size(x[0]);
        break;
    case 1: /* axes in reverse */
        to.ndim = ndim;
        for (int d = 0; d < ndim; d++) to.shape[d] = shape[ndim - 1 - d];
        break;
    default: /* axes of size 1 added */
        to.ndim = ndim + 2;
        to.shape[0] = to.shape[ndim + 1] = 1;
        for (int d = 0; d < ndim; d++) to.shape[d + 1] = shape[d];
    }
    return maybe_read(s, build_node(s, MICA__OP_RESHAPE, x[0], &to, sizeof to), call->variant);
}

static mica_array *build_permute(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const int ndim = mica_array_ndim(x[0]);
    mica__attr_permute p = {{0}};
    for (int d = 0; d < ndim; d++) p.axes[d] = call->variant / 2 ? (d + 1) % ndim : ndim - 1 - d;
    return maybe_read(s, build_node(s, MICA__OP_PERMUTE, x[0], &p, sizeof p), call->variant);
}

static mica_array *build_broadcast(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const int ndim = mica_array_ndim(x[0]), more = call->variant / 2;
    mica__attr_shape to = {.ndim = ndim + more};
    for (int d = 0; d < more; d++) to.shape[d] = 3 - d;
    for (int d = 0; d < ndim; d++) {
        const int64_t n = mica_array_shape(x[0])[d];
        to.shape[d + more] = n == 1 ? 4 : n;
    }
    return maybe_read(s, build_node(s, MICA__OP_BROADCAST, x[0], &to, sizeof to), call->variant);
}

static mica_array *build_slice(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    static const int64_t steps[] = {1, 2, -1, -3, 5};
    const int64_t step = steps[call->variant / 2];
    mica__attr_slice a = {{0}, {0}, {0}};
    for (int d = 0; d < mica_array_ndim(x[0]); d++) {
        const int64_t n = mica_array_shape(x[0])[d], cut = n > 3 ? 1 : 0, room = n - cut;
        a.step[d] = step;
        a.size[d] = room == 0 ? 0 : (room - 1) / (step < 0 ? -step : step) + 1;
        a.start[d] = step < 0 ? n - 1 - cut : cut;
        if (a.size[d] == 0) a.start[d] = 0;
    }
    return maybe_read(s, build_node(s, MICA__OP_SLICE, x[0], &a, sizeof a), call->variant);
}

static mica_array *build_window(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    static const mica__attr_window windows[] = {{0, 1, 1, 1, 0}, {0, 3, 1, 1, 0}, {0, 3, 2, 1, 0}, {0, 2, 3, 2, 0}};
    mica__attr_window w = windows[call->variant / 2];
    w.axis = mica_array_ndim(x[0]) - 1;
    if (w.axis < 0) return NULL;
    return maybe_read(s, build_node(s, MICA__OP_WINDOW, x[0], &w, sizeof w), call->variant);
}

/* -------------------------------------------------------------- aliases --- */

static mica_status no_gradient(mica_scope *s, mica_array *ct, mica_array *const *in, size_t n, mica_array **grads,
                               void *user)
{
    (void)s, (void)ct, (void)in, (void)n, (void)user;
    grads[0] = NULL;
    return MICA_OK;
}

static mica_array *build_alias(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    mica_array *y = build_node(s, MICA__OP_NEG, x[0], NULL, 0), *z;
    switch ((int)call->c->op) {
    case MICA__OP_STOP_GRADIENT: z = mica_stop_gradient(s, y); break;
    case MICA__OP_CUSTOM_GRAD: z = mica_custom_grad(s, y, x, 1, no_gradient, NULL, NULL); break;
    case MICA__OP_CHECKPOINT: z = mica_checkpoint(s, y, x, 1); break;
    default: z = mica__after(s, y, build_node(s, MICA__OP_SQUARE, x[0], NULL, 0)); break;
    }
    return call->variant ? build_node(s, MICA__OP_NEG, z, NULL, 0) : z;
}

#define VIEW(OP, name, variants) PARITY_CASE(OP, #name, build_##name, variants, 1, view_shapes, 1, 0, ANY)
#define ALIAS(OP, name) PARITY_CASE(OP, #name, build_alias, 2, 1, view_shapes, 1, 0, ANY)

const parity_case parity_cases_view[] = {
    VIEW(LEAF, leaf, 1),
    VIEW(PARAM, param, 1),
    {MICA__OP_FULL, "full", build_full, 8 * PARITY_COUNT(make_shapes), 0, {ANY}, NULL, 1, 1, 0},
    {MICA__OP_IOTA, "iota", build_iota, 10 * PARITY_COUNT(make_shapes), 0, {ANY}, NULL, 1, 1, 0},
    VIEW(RESHAPE, reshape, 6),
    VIEW(PERMUTE, permute, 4),
    VIEW(BROADCAST, broadcast, 6),
    VIEW(SLICE, slice, 10),
    VIEW(WINDOW, window, 8),
    ALIAS(STOP_GRADIENT, stop_gradient),
    ALIAS(CUSTOM_GRAD, custom_grad),
    ALIAS(CHECKPOINT, checkpoint),
    ALIAS(AFTER, after),
    {0},
};
