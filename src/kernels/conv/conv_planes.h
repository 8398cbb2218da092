/* The images of a convolution as planes of floats in which the elements that the kernel
 * reads are contiguous. Padding and the zeros of input dilation are stored. For a step
 * above 1, elements at that distance become neighbours in a separate plane.
 *
 * Element `p` of the long axis and `t` of the short axis read element p * step + t * skip of
 * the image. In the plane of phase (t * skip) % step that is element p + (t * skip) / step.
 * Usually the long axis is that of the result and the short axis that of the kernel. If the
 * kernel is larger than the result, as in gradients of weights, they are swapped. */
#ifndef MICA_KERNELS_CONV_PLANES_H
#define MICA_KERNELS_CONV_PLANES_H

#include "kernels/conv/conv.h"
#include "kernels/conv/conv_kernels.h"

typedef struct mica__conv_planes {
    int64_t longer[2], step[2], shorter[2], skip[2];
    int64_t phases[2];
    int64_t size[2];        /* of a plane                                                  */
    int64_t channel;        /* elements of all phases of a channel; of the image if in_place */
    bool in_place;          /* the image is such a plane already                           */
} mica__conv_planes;

mica__conv_planes mica__conv_planes_of(const mica__conv_sizes *s, mica_dtype dtype, bool swapped, int strip);

/* The offset in the planes of one channel at which the elements for (t0, t1) of the short axes begin. */
static inline int64_t mica__conv_offset(const mica__conv_planes *p, int64_t t0, int64_t t1)
{
    const int64_t a = t0 * p->skip[0], b = t1 * p->skip[1];
    const int64_t phase = a % p->step[0] * p->phases[1] + b % p->step[1];
    return phase * p->size[0] * p->size[1] + a / p->step[0] * p->size[1] + b / p->step[1];
}

/* Writes the planes of one channel of an image; x is its first element. */
void mica__conv_fill(const mica__conv_planes *p, const mica__conv_sizes *s, mica_dtype dtype, const char *x, float *to);

#endif
