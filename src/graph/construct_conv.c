/* Convolutions and pooling. A transposed convolution is a convolution whose input is
 * dilated by the stride. Pooling is a reduction over windows. */
#include <inttypes.h>
#include <math.h>

#include "graph/construct.h"

/* ------------------------------------------------------------ convolution --- */

void mica_conv_options_init(mica_conv_options *options)
{
    if (options)
        *options =
            (mica_conv_options){.struct_size = sizeof *options, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
}

/* With these bounds, sums of several options cannot overflow. */
static bool option_between(mica_scope *s, const char *op, const char *what, int64_t value, int64_t least)
{
    if (value >= least && value <= (int64_t)1 << 40) return true;
    mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: %s is %" PRId64 "; it must be %" PRId64 " to 2^40", op, what, value,
                     least);
    return false;
}

static bool conv_arguments(mica_scope *s, const char *op, mica_array **x, mica_array **w, int spatial,
                           const mica_conv_options *given, mica_conv_options *o)
{
    mica_array *in[] = {*x, *w};
    mica_conv_options_init(o);
    if (!mica__usable(s, op, in, 2) || !mica__read_options(s, op, given, o, sizeof *o)) return false;
    for (int i = 0; i < 2; i++) {
        char text[MICA__SHAPE_TEXT];
        if (in[i]->spec.ndim == spatial + 2) continue;
        mica__scope_fail(s, MICA_ERR_SHAPE, "%s: %s has shape %s instead of %d axes", op, i ? "w" : "x",
                         mica__shape_text(text, in[i]->spec.ndim, in[i]->spec.shape), spatial + 2);
        return false;
    }
    for (int i = 0; i < spatial; i++)
        if (!option_between(s, op, "stride", o->stride[i], 1) || !option_between(s, op, "padding", o->padding[i], 0) ||
            !option_between(s, op, "dilation", o->dilation[i], 1) ||
            !option_between(s, op, "output_padding", o->output_padding[i], 0))
            return false;
    if (!option_between(s, op, "groups", o->groups, 1)) return false;
    const mica_dtype dtype = mica__float_dtype(mica__promote_all(in, 2));
    *x = mica_cast(s, *x, dtype);
    *w = mica_cast(s, *w, dtype);
    return *x && *w;
}

static mica_array *conv_forward(mica_scope *s, const char *op, mica_array *x, mica_array *w, int spatial,
                                const mica_conv_options *options)
{
    mica_conv_options o;
    if (!conv_arguments(s, op, &x, &w, spatial, options, &o)) return NULL;
    mica__attr_conv attr = {
        .spatial = spatial, .groups = o.groups, .stride = {1, 1}, .dilation = {1, 1}, .input_dilation = {1, 1}};
    for (int i = 0; i < spatial; i++) {
        attr.stride[i] = o.stride[i];
        attr.pad_low[i] = attr.pad_high[i] = o.padding[i];
        attr.dilation[i] = o.dilation[i];
    }
    return mica__build2(s, MICA__OP_CONV, x, w, &attr, sizeof attr);
}

mica_array *mica_conv1d(mica_scope *s, mica_array *x, mica_array *w, const mica_conv_options *options)
{
    return conv_forward(s, "conv1d", x, w, 1, options);
}

mica_array *mica_conv2d(mica_scope *s, mica_array *x, mica_array *w, const mica_conv_options *options)
{
    return conv_forward(s, "conv2d", x, w, 2, options);
}

/* (channels, out / groups, kernel...) to (out, channels / groups, kernel...), with
 * the kernel reversed. */
static mica_array *transposed_weights(mica_scope *s, mica_array *w, int spatial, int64_t groups)
{
    const int64_t in_group = w->spec.shape[0] / groups, out_group = w->spec.shape[1];
    int64_t shape[MICA_MAX_DIMS] = {groups, in_group, out_group};
    for (int i = 0; i < spatial; i++) shape[3 + i] = w->spec.shape[2 + i];
    w = mica_permute(s, mica_reshape(s, w, spatial + 3, shape), (int[]){0, 2, 1, 3, 4});
    shape[1] = groups * out_group;
    shape[2] = in_group;
    w = mica_reshape(s, w, spatial + 2, shape + 1);
    for (int i = 0; i < spatial; i++) w = mica_flip(s, w, 2 + i);
    return w;
}

static mica_array *conv_backward(mica_scope *s, const char *op, mica_array *x, mica_array *w, int spatial,
                                 const mica_conv_options *options)
{
    mica_conv_options o;
    if (!conv_arguments(s, op, &x, &w, spatial, options, &o)) return NULL;
    const int64_t channels = x->spec.shape[1];
    if (w->spec.shape[0] != channels)
        return mica__scope_fail(s, MICA_ERR_SHAPE, "%s: channels of x and w differ: %" PRId64 " and %" PRId64, op,
                                channels, w->spec.shape[0]);
    if (channels % o.groups)
        return mica__scope_fail(s, MICA_ERR_SHAPE, "%s: %" PRId64 " groups do not divide %" PRId64 " channels", op,
                                o.groups, channels);
    mica__attr_conv attr = {
        .spatial = spatial, .groups = o.groups, .stride = {1, 1}, .dilation = {1, 1}, .input_dilation = {1, 1}};
    for (int i = 0; i < spatial; i++) {
        const int64_t kernel = w->spec.shape[2 + i];
        int64_t reach;
        if (kernel < 1 || !mica__mul_i64(kernel - 1, o.dilation[i], &reach) || reach > INT64_MAX / 4)
            return mica__scope_fail(s, MICA_ERR_SHAPE,
                                    "%s: a kernel of size %" PRId64 " with dilation %" PRId64 " is out of range", op,
                                    kernel, o.dilation[i]);
        if (o.output_padding[i] >= mica__max_i64(o.stride[i], o.dilation[i]))
            return mica__scope_fail(s, MICA_ERR_ARGUMENT,
                                    "%s: output_padding %" PRId64 " is not smaller than stride %" PRId64
                                    " or dilation %" PRId64,
                                    op, o.output_padding[i], o.stride[i], o.dilation[i]);
        attr.input_dilation[i] = o.stride[i];
        attr.dilation[i] = o.dilation[i];
        attr.pad_low[i] = reach - o.padding[i];
        attr.pad_high[i] = reach - o.padding[i] + o.output_padding[i];
    }
    return mica__build2(s, MICA__OP_CONV, x, transposed_weights(s, w, spatial, o.groups), &attr, sizeof attr);
}

mica_array *mica_conv_transpose1d(mica_scope *s, mica_array *x, mica_array *w, const mica_conv_options *options)
{
    return conv_backward(s, "conv_transpose1d", x, w, 1, options);
}

mica_array *mica_conv_transpose2d(mica_scope *s, mica_array *x, mica_array *w, const mica_conv_options *options)
{
    return conv_backward(s, "conv_transpose2d", x, w, 2, options);
}

/* ---------------------------------------------------------------- pooling --- */

void mica_pool_options_init(mica_pool_options *options)
{
    if (options) *options = (mica_pool_options){.struct_size = sizeof *options, .kernel = {2, 2}};
}

static bool pool_arguments(mica_scope *s, const char *op, mica_array *x, int spatial, const mica_pool_options *given,
                           mica_pool_options *o)
{
    mica_pool_options_init(o);
    if (!mica__usable1(s, op, x) || !mica__read_options(s, op, given, o, sizeof *o)) return false;
    if (x->spec.ndim != spatial + 2) {
        char text[MICA__SHAPE_TEXT];
        mica__scope_fail(s, MICA_ERR_SHAPE, "%s: x has shape %s instead of %d axes", op,
                         mica__shape_text(text, x->spec.ndim, x->spec.shape), spatial + 2);
        return false;
    }
    for (int i = 0; i < spatial; i++) {
        if (o->stride[i] == 0) o->stride[i] = o->kernel[i];
        if (!option_between(s, op, "kernel", o->kernel[i], 1) || !option_between(s, op, "stride", o->stride[i], 1) ||
            !option_between(s, op, "padding", o->padding[i], 0))
            return false;
        /* Otherwise a window could contain nothing but padding. */
        if (o->padding[i] >= o->kernel[i]) {
            mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: padding %" PRId64 " is not smaller than kernel %" PRId64, op,
                             o->padding[i], o->kernel[i]);
            return false;
        }
        const int64_t size = x->spec.shape[2 + i];
        if (size > INT64_MAX / 2 || size + 2 * o->padding[i] < o->kernel[i]) {
            mica__scope_fail(s, MICA_ERR_SHAPE,
                             "%s: kernel %" PRId64 " does not fit size %" PRId64 " padded by %" PRId64, op,
                             o->kernel[i], size, o->padding[i]);
            return false;
        }
    }
    return true;
}

/* Pads x (batch, channels, size...) and reduces each window to one element. */
static mica_array *fold_windows(mica_scope *s, mica__op op, mica_array *x, int spatial, const mica_pool_options *o,
                                mica__number outside)
{
    int64_t pad[MICA_MAX_DIMS] = {0}, axes = 0;
    for (int i = 0; i < spatial; i++) pad[2 + i] = o->padding[i];
    x = mica__pad(s, x, pad, pad, outside);
    for (int i = 0; i < spatial; i++) {
        const mica__attr_window w = {.axis = 2 + i, .size = o->kernel[i], .stride = o->stride[i], .dilation = 1};
        axes |= (int64_t)1 << (spatial + 2 + i);
        x = mica__build1(s, MICA__OP_WINDOW, x, &w, sizeof w);
    }
    return mica__reduce(s, op, x, axes, false);
}

static mica_array *max_pool(mica_scope *s, const char *op, mica_array *x, int spatial, const mica_pool_options *options)
{
    mica_pool_options o;
    if (!pool_arguments(s, op, x, spatial, options, &o)) return NULL;
    /* Minus infinity saturates to the lowest integer; the lowest bool is false. */
    const mica_dtype dtype = (mica_dtype)x->spec.dtype;
    const mica__number lowest = dtype == MICA_BOOL ? (mica__number){0} : mica__number_f64(dtype, -INFINITY);
    return fold_windows(s, MICA__OP_MAX, x, spatial, &o, lowest);
}

static mica_array *avg_pool(mica_scope *s, const char *op, mica_array *x, int spatial, const mica_pool_options *options)
{
    mica_pool_options o;
    if (!pool_arguments(s, op, x, spatial, options, &o)) return NULL;
    const mica_dtype result = mica__float_dtype((mica_dtype)x->spec.dtype);
    x = mica__widen(s, x);
    if (!x) return NULL;
    mica__spec inside = x->spec;
    double count = 1;
    bool padded = false;
    for (int i = 0; i < spatial; i++) {
        count *= (double)o.kernel[i];
        padded |= o.padding[i] > 0;
    }
    mica_array *divisor;
    if (o.exclude_padding && padded) {
        inside.shape[0] = inside.shape[1] = 1;
        mica_array *ones = mica__full(s, &inside, mica__number_f64((mica_dtype)inside.dtype, 1));
        divisor = fold_windows(s, MICA__OP_SUM, ones, spatial, &o, (mica__number){0});
    } else {
        divisor = mica__constant(s, (mica_dtype)inside.dtype, count);
    }
    mica_array *sum = fold_windows(s, MICA__OP_SUM, x, spatial, &o, (mica__number){0});
    return mica_cast(s, mica_div(s, sum, divisor), result);
}

mica_array *mica_max_pool1d(mica_scope *s, mica_array *x, const mica_pool_options *options)
{
    return max_pool(s, "max_pool1d", x, 1, options);
}

mica_array *mica_max_pool2d(mica_scope *s, mica_array *x, const mica_pool_options *options)
{
    return max_pool(s, "max_pool2d", x, 2, options);
}

mica_array *mica_avg_pool1d(mica_scope *s, mica_array *x, const mica_pool_options *options)
{
    return avg_pool(s, "avg_pool1d", x, 1, options);
}

mica_array *mica_avg_pool2d(mica_scope *s, mica_array *x, const mica_pool_options *options)
{
    return avg_pool(s, "avg_pool2d", x, 2, options);
}
