/* ROPE_TABLE: positions (...) of any dtype and, optionally, factors (dims / 2). The result is
 * f64 (..., dims): cosines, then sines, of the angle
 *
 *   position * scale * base^(-2i / dims) / factor[i]        of pair i
 *
 * times the magnitude. Angles are double: for positions in the millions f32 angles would
 * be wrong by radians.
 *
 * ROPE: x (..., D) floats and a table of the same shape except for the last axis; axes of
 * size 1 are broadcast. The first `dims` elements are rotated in pairs,
 * (x, y) -> (x cos - y sin, y cos + x sin), in the other direction if inverse, in double;
 * the rest is copied. Pairs are (2i, 2i + 1) if interleaved, else (i, i + dims / 2). */
#ifndef MICA_KERNELS_ROPE_H
#define MICA_KERNELS_ROPE_H

#include "kernels/launch.h"

mica_status mica__rope_table_ref(const mica__launch *launch);
mica_status mica__rope_table_cpu(const mica__launch *launch);
mica_status mica__rope_table_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

mica_status mica__rope_ref(const mica__launch *launch);
mica_status mica__rope_cpu(const mica__launch *launch);
mica_status mica__rope_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

/* The stride of axis d of the table; 0 if the axis is broadcast. */
static inline int64_t mica__rope_stride(const mica__tensor *table, int d)
{
    return table->spec.shape[d] == 1 ? 0 : table->strides[d];
}

#endif
