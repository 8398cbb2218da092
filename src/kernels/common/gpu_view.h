/* Helpers of lowerings: operands as views, and the number of threads per row. */
#ifndef MICA_KERNELS_GPU_VIEW_H
#define MICA_KERNELS_GPU_VIEW_H

#include "kernels/common/common_params.h"
#include "kernels/gpu.h"
#include "kernels/walk.h"

_Static_assert(MICA_MAX_DIMS == 8, "mica_view has room for as many axes");

/* Offset of the lowest element from the first: 0, or less with negative strides. An operand is bound there, so that
 * offsets in kernels are not negative. */
static inline int64_t mica__gpu_low(const mica__tensor *t)
{
    int64_t low = 0;
    for (int d = 0; d < t->spec.ndim; d++)
        if (t->strides[d] < 0 && t->spec.shape[d] > 0) low += (t->spec.shape[d] - 1) * t->strides[d];
    return low;
}

static inline int64_t mica__gpu_bytes(const mica__tensor *t, int64_t elements)
{
    return elements * (int64_t)mica_dtype_size(mica__dtype_of(t));
}

/* Binds operand i of the launch as the next buffer. */
static inline void mica__gpu_operand(mica__gpu_dispatch *d, const mica__gpu_launch *l, uint32_t i)
{
    mica__gpu_bind_in(d, i, mica__gpu_bytes(&l->in[i], mica__gpu_low(&l->in[i])));
}

/* ndim axes of the given shape with the strides of t. No size is 0 or above 2^32. */
static inline mica_view mica__gpu_axes(const mica__tensor *t, int ndim, const int64_t *shape, const int64_t *strides)
{
    mica_view v = {.start = -mica__gpu_low(t)};
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 1) continue;
        const uint32_t last = v.ndim - 1;
        if (v.ndim > 0 && v.stride[last] == shape[d] * strides[d]) {
            v.size[last] *= (uint32_t)shape[d];
            v.stride[last] = strides[d];
            continue;
        }
        v.size[v.ndim] = (uint32_t)shape[d];
        v.stride[v.ndim++] = strides[d];
    }
    return v;
}

/* All axes; all but the last. */
static inline mica_view mica__gpu_view(const mica__tensor *t)
{
    return mica__gpu_axes(t, t->spec.ndim, t->spec.shape, t->strides);
}
static inline mica_view mica__gpu_rows(const mica__tensor *t)
{
    return mica__gpu_axes(t, mica__outer_dims(&t->spec), t->spec.shape, t->strides);
}

/* Do the element counts of all operands fit in 32 bits? Larger arrays run on the CPU. */
static inline bool mica__gpu_counts(const mica__gpu_launch *l)
{
    for (uint32_t i = 0; i <= l->n_in; i++)
        if (mica__spec_size(i < l->n_in ? &l->in[i].spec : &l->out->spec) > INT32_MAX) return false;
    return true;
}
static inline bool mica__gpu_has_f64(const mica__gpu_launch *l)
{
    for (uint32_t i = 0; i < l->n_in; i++)
        if (l->in[i].spec.dtype == MICA_F64) return true;
    return l->out->spec.dtype == MICA_F64;
}

static inline uint32_t mica__gpu_parts(int64_t n, int64_t each) { return (uint32_t)((n + each - 1) / each); }

static inline uint32_t mica__gpu_cores(const mica__gpu_limits *gpu)
{
    enum { CORES_UNKNOWN = 8 };
    return gpu->cores ? gpu->cores : CORES_UNKNOWN;
}

/* Tiles of simdgroup matrices that cover m x n, and the choice among the shapes of a knob: two threadgroups per core
 * hide each other's loads. NULL: none fits the device. */
typedef struct mica__gpu_tile_work {
    int64_t m, n, batches, cores;
} mica__gpu_tile_work;

static inline int64_t mica__gpu_tiles(const mica__gpu_shape *t, int64_t m, int64_t n, int64_t batches)
{
    return (int64_t)mica__gpu_parts(m, t->m) * mica__gpu_parts(n, t->n) * batches;
}
static inline bool mica__gpu_tiles_for_all(const mica__gpu_shape *t, const void *work)
{
    const mica__gpu_tile_work *w = work;
    return mica__gpu_tiles(t, w->m, w->n, w->batches) >= 2 * w->cores;
}
/* The same, but refuses a tile that is twice as high as m, because half of its work would be wasted. */
static inline bool mica__gpu_tiles_half_full(const mica__gpu_shape *t, const void *work)
{
    return 2 * ((const mica__gpu_tile_work *)work)->m > t->m && mica__gpu_tiles_for_all(t, work);
}
static inline const mica__gpu_shape *mica__gpu_pick_tile(const mica__gpu_limits *gpu, mica__gpu_knob knob, int64_t m,
                                                         int64_t n, int64_t batches)
{
    const mica__gpu_tile_work work = {m, n, batches, mica__gpu_cores(gpu)};
    return gpu->simdgroup_matrix ? mica__gpu_pick(gpu, knob, mica__gpu_tiles_for_all, &work) : NULL;
}

/* Threads of whole simdgroups for `pieces` pieces of work of one row. */
static inline uint32_t mica__gpu_row_threads(const mica__gpu_limits *gpu, int64_t pieces)
{
    const uint32_t wide = gpu->simd_width, most = gpu->max_threads / wide * wide;
    const int64_t wish = mica__max_i64(1, (pieces + wide - 1) / wide) * wide;
    return wish < (int64_t)most ? (uint32_t)wish : most;
}

/* The same, limited to the simdgroups of the shape. */
static inline uint32_t mica__gpu_shape_threads(const mica__gpu_limits *gpu, const mica__gpu_shape *shape,
                                               int64_t pieces)
{
    return mica__gpu_row_threads(gpu, mica__min_i64(pieces, (int64_t)shape->simds * gpu->simd_width));
}

/* A grid of rows: a short row gets one simdgroup, and 4 of them share a threadgroup; a long row gets a threadgroup with
 * the shape of the knob. */
static inline mica_status mica__gpu_grid_rows(mica__gpu_list *list, mica__gpu_dispatch *d, const mica__gpu_limits *gpu,
                                              mica__gpu_knob knob, int64_t rows, int64_t n)
{
    const mica__gpu_shape *shape = mica__gpu_pick(gpu, knob, NULL, NULL);
    if (!shape) return mica__gpu_refuse(list, "threadgroups too small");
    const uint32_t threads = mica__gpu_shape_threads(gpu, shape, (n + shape->k - 1) / shape->k);
    const uint32_t share = threads == gpu->simd_width && 4 * threads <= gpu->max_threads ? 4 : 1;
    mica__gpu_grid(d, mica__gpu_parts(rows, share), 1, 1, threads, share, 1);
    return MICA_OK;
}

/* A grid of n independent threads, in threadgroups of the size that generated kernels use. */
static inline void mica__gpu_grid_flat(mica__gpu_dispatch *d, const mica__gpu_limits *gpu, int64_t n)
{
    const mica__gpu_shape *shape = mica__gpu_pick(gpu, MICA__KNOB_ELEMENTS, NULL, NULL);
    const uint32_t threads = shape ? mica__gpu_shape_threads(gpu, shape, n) : gpu->simd_width;
    mica__gpu_grid(d, mica__gpu_parts(n, threads), 1, 1, threads, 1, 1);
}

#endif
