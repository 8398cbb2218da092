/* ROPE: x (..., D) floats, positions f32 of x's shape without the last axis, or 1
 * where they are the same along an axis.
 * The first `dims` elements are rotated in pairs by the angle
 *
 *   position * scale * base^(-2i / dims)        of pair i
 *
 * (x, y) -> (x cos - y sin, y cos + x sin), the other way if inverse; the rest
 * is copied. Pairs are (2i, 2i + 1) if interleaved, else (i, i + dims / 2).
 * Angles and rotations are in double on every path: positions reach millions,
 * where f32 angles would be off by radians. */
#ifndef MICA_KERNELS_ROPE_H
#define MICA_KERNELS_ROPE_H

#include "kernels/launch.h"

/* The stride of axis d of the positions; 0 where they repeat. */
static inline int64_t mica__rope_stride(const mica__tensor *positions, int d)
{
    return positions->spec.shape[d] == 1 ? 0 : positions->strides[d];
}

mica_status mica__rope_ref(const mica__launch *launch);
mica_status mica__rope_cpu(const mica__launch *launch);
size_t mica__rope_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);

#endif
