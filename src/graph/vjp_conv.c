/* Gradients of convolution. They are convolutions again, so gradients of any order
 * exist.
 *
 * In one dimension, with stride S, dilation D, input dilation E and pad_low P:
 *
 *     y[o] = sum_k w[k] x[i],   E i = S o + D k - P
 *
 * The index equation has the same form whichever of i, o and k it is solved for. So the
 * gradient of x is a convolution of ct (input dilation S) with w reversed (dilation D)
 * at stride E, and the gradient of w is a convolution of x (input dilation E) with ct
 * as the kernel (dilation S) at stride D. pad_high is chosen so that the result has the
 * right length; it is negative where the stride left the end of x unused. */
#include "graph/vjp_util.h"

typedef struct vjp_conv_sizes {
    int64_t n, groups, in, out; /* in and out: channels of one group */
    int64_t size[2], kernel[2], result[2];
    int spatial;
} vjp_conv_sizes;

static vjp_conv_sizes vjp_conv_sizes_of(const mica_array *y)
{
    const mica__attr_conv *attr = y->attr;
    const mica__spec *x = &y->in[0]->spec, *w = &y->in[1]->spec;
    vjp_conv_sizes z = {x->shape[0], attr->groups, w->shape[1], w->shape[0] / attr->groups,
                        {1, 1},      {1, 1},       {1, 1},      (int)attr->spatial};
    for (int d = 0; d < z.spatial; d++) {
        z.size[d] = x->shape[2 + d];
        z.kernel[d] = w->shape[2 + d];
        z.result[d] = y->spec.shape[2 + d];
    }
    return z;
}

/* Splits x into (split[0], split[1], split[2], size...), permutes the first three axes by
 * order, and joins axes `joined` and `joined` + 1. */
static mica_array *vjp_conv_shuffle(mica_scope *s, mica_array *x, const int64_t *split, const int *order, int joined,
                                    int spatial, const int64_t *size)
{
    int64_t shape[5] = {split[0], split[1], split[2], size[0], size[1]};
    int axes[5] = {order[0], order[1], order[2], 3, 4};
    x = mica_permute(s, mica_reshape(s, x, 3 + spatial, shape), axes);
    const int64_t q[3] = {split[order[0]], split[order[1]], split[order[2]]};
    int64_t result[4] = {joined == 0 ? q[0] * q[1] : q[0], joined == 0 ? q[2] : q[1] * q[2], size[0], size[1]};
    return mica_reshape(s, x, 2 + spatial, result);
}

static mica_array *vjp_conv_input(mica_scope *s, mica_array *y, mica_array *ct, const vjp_conv_sizes *z)
{
    const mica__attr_conv *a = y->attr;
    /* w (groups out, in, k) -> (groups in, out, k), reversed */
    mica_array *w = vjp_conv_shuffle(s, y->in[1], (const int64_t[]){z->groups, z->out, z->in}, (const int[]){0, 2, 1},
                                     0, z->spatial, z->kernel);
    mica__attr_conv g = *a;
    for (int d = 0; d < z->spatial; d++) {
        w = mica_flip(s, w, 2 + d);
        g.stride[d] = a->input_dilation[d];
        g.dilation[d] = a->dilation[d];
        g.input_dilation[d] = a->stride[d];
        g.pad_low[d] = (z->kernel[d] - 1) * a->dilation[d] - a->pad_low[d];
        g.pad_high[d] = (z->size[d] - 1) * a->input_dilation[d] - (z->result[d] - 1) * a->stride[d] + a->pad_low[d];
    }
    return mica__build2(s, MICA__OP_CONV, ct, w, &g, sizeof g);
}

static mica_array *vjp_conv_weight(mica_scope *s, mica_array *y, mica_array *ct, const vjp_conv_sizes *z)
{
    const mica__attr_conv *a = y->attr;
    const int swap[4] = {1, 0, 2, 3};
    /* x (n, groups in, size) -> (in, groups n, size); ct (n, groups out, o) -> (groups out, n, o) */
    mica_array *x = vjp_conv_shuffle(s, y->in[0], (const int64_t[]){z->n, z->groups, z->in}, (const int[]){2, 1, 0}, 1,
                                     z->spatial, z->size);
    mica_array *kernel = mica_permute(s, ct, swap);
    mica__attr_conv g = *a;
    for (int d = 0; d < z->spatial; d++) {
        g.stride[d] = a->dilation[d];
        g.dilation[d] = a->stride[d];
        g.input_dilation[d] = a->input_dilation[d];
        g.pad_low[d] = a->pad_low[d];
        const int64_t used = (z->kernel[d] - 1) * a->dilation[d] + (z->result[d] - 1) * a->stride[d] + 1;
        g.pad_high[d] = used - a->pad_low[d] - ((z->size[d] - 1) * a->input_dilation[d] + 1);
    }
    mica_array *dw = mica__build2(s, MICA__OP_CONV, x, kernel, &g, sizeof g); /* (in, groups out, k) */
    return mica_permute(s, dw, swap);
}

MICA__VJP_RULE(conv)
{
    /* no products: the gradients are zeros, which the caller fills in for NULL */
    if (mica__spec_size(&y->spec) == 0 || mica__spec_size(&y->in[0]->spec) == 0 ||
        mica__spec_size(&y->in[1]->spec) == 0)
        return MICA_OK;
    const vjp_conv_sizes z = vjp_conv_sizes_of(y);
    grads[0] = vjp_conv_input(s, y, ct, &z);
    grads[1] = vjp_conv_weight(s, y, ct, &z);
    return MICA_OK;
}
