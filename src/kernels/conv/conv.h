/* CONV: x (batch, channels, size...) with w (outs, channels / groups, kernel...)
 * into (batch, outs, size...), floats, one or two spatial axes.
 *
 *   out[b, o, p] = sum over c, t of w[o, c, t] * x[b, group's c, p * stride + t * dilation - pad_low]
 *
 * where x has input_dilation - 1 zeros between neighbours and zeros outside.
 * Negative padding removes elements. Padding is not multiplied with weights.
 *
 * ref   adds in double.
 * cpu   f32, f16, bf16 in f32: the matrix product of w with the patches of x
 *       (conv_cpu.c); f64 runs ref's loops on many threads. In the product
 *       padding is multiplied as 0: infinite weights give NaN there. Runs the
 *       epilogue. */
#ifndef MICA_KERNELS_CONV_H
#define MICA_KERNELS_CONV_H

#include "kernels/launch.h"
#include "kernels/walk.h"

mica_status mica__conv_ref(const mica__launch *launch);
mica_status mica__conv_cpu(const mica__launch *launch);
mica_status mica__conv_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
size_t mica__conv_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);

/* The sizes of a convolution; one spatial axis is written as two, the first
 * trivial. Strides in elements. */
typedef struct mica__conv_sizes {
    int64_t batch, groups, channels, outs;  /* channels and outs of one group              */
    int64_t size[2], kernel[2], out[2];
    int64_t stride[2], pad[2], dilation[2], input_dilation[2];
    int64_t x_batch, x_channel, x_step[2];
    int64_t w_out, w_channel, w_step[2];
} mica__conv_sizes;

static inline mica__conv_sizes mica__conv_sizes_of(const mica__tensor *x, const mica__tensor *w, const void *attr,
                                                   const mica__spec *out)
{
    const mica__attr_conv *a = attr;
    mica__conv_sizes s = {.batch = x->spec.shape[0],
                          .groups = a->groups,
                          .channels = w->spec.shape[1],
                          .outs = w->spec.shape[0] / a->groups,
                          .x_batch = x->strides[0],
                          .x_channel = x->strides[1],
                          .w_out = w->strides[0],
                          .w_channel = w->strides[1]};
    const int first = 2 - (int)a->spatial;
    for (int i = 0; i < 2; i++) {
        const int d = i - first; /* the axis as attributes count it; -1: the trivial one */
        s.size[i] = d < 0 ? 1 : x->spec.shape[2 + d];
        s.kernel[i] = d < 0 ? 1 : w->spec.shape[2 + d];
        s.out[i] = d < 0 ? 1 : out->shape[2 + d];
        s.stride[i] = d < 0 ? 1 : a->stride[d];
        s.pad[i] = d < 0 ? 0 : a->pad_low[d];
        s.dilation[i] = d < 0 ? 1 : a->dilation[d];
        s.input_dilation[i] = d < 0 ? 1 : a->input_dilation[d];
        s.x_step[i] = d < 0 ? 0 : x->strides[2 + d];
        s.w_step[i] = d < 0 ? 0 : w->strides[2 + d];
    }
    return s;
}

/* The element of x that position p of the result multiplies with element t of the
 * kernel on spatial axis i; -1 if it is padding. */
static inline int64_t mica__conv_source(const mica__conv_sizes *s, int i, int64_t p, int64_t t)
{
    const int64_t at = p * s->stride[i] + t * s->dilation[i] - s->pad[i];
    const int64_t spread = s->input_dilation[i];
    if (spread == 1) return at >= 0 && at < s->size[i] ? at : -1;
    return at >= 0 && at % spread == 0 && at / spread < s->size[i] ? at / spread : -1;
}

/* Rows begin ... end-1 of the batch * outs * out[0] of the result, in double. */
void mica__conv_rows(const void *launch, int64_t begin, int64_t end);

#endif
