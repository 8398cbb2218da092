/* The images of a convolution as planes of floats in which everything that the kernel
 * meets lies side by side: padding and the zeros of input dilation are written out, and
 * where steps are wider than 1, elements that many apart become neighbours in a plane
 * of their own.
 *
 * Element `p` of the long axis and `t` of the short one meet at p * step + t * skip. In
 * the plane of phase (t * skip) % step that is element p + (t * skip) / step. Usually
 * the long axis is that of the result and the short one the kernel's; where the kernel
 * is the larger one, as in gradients of weights, they change places. */
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

/* Where, in the planes of one channel, element (t0, t1) of the short axes begins. */
static inline int64_t mica__conv_offset(const mica__conv_planes *p, int64_t t0, int64_t t1)
{
    const int64_t a = t0 * p->skip[0], b = t1 * p->skip[1];
    const int64_t phase = a % p->step[0] * p->phases[1] + b % p->step[1];
    return phase * p->size[0] * p->size[1] + a / p->step[0] * p->size[1] + b / p->step[1];
}

/* One channel of an image, given its first element. */
void mica__conv_fill(const mica__conv_planes *p, const mica__conv_sizes *s, mica_dtype dtype, const char *x, float *to);

#endif
