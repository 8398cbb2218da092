/* Iteration over strided tensors: sizes and strides of rows, an odometer over indices,
 * copies of elements as bytes, and distribution of rows to threads.
 *
 * A row is the last axis; a tensor without axes is one row of one element.
 * Strides count elements and may be negative or zero. */
#ifndef MICA_KERNELS_WALK_H
#define MICA_KERNELS_WALK_H

#include "base/checked.h"
#include "graph/attrs.h"
#include "kernels/launch.h"

static inline mica_dtype mica__dtype_of(const mica__tensor *t) { return (mica_dtype)t->spec.dtype; }

static inline int64_t mica__product(const int64_t *shape, int ndim)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    return n;
}

static inline int mica__outer_dims(const mica__spec *spec) { return spec->ndim > 0 ? spec->ndim - 1 : 0; }
static inline int64_t mica__row_count(const mica__spec *spec)
{
    return mica__product(spec->shape, mica__outer_dims(spec));
}
static inline int64_t mica__row_size(const mica__spec *spec)
{
    return spec->ndim > 0 ? spec->shape[spec->ndim - 1] : 1;
}
static inline int64_t mica__row_stride(const mica__tensor *t)
{
    return t->spec.ndim > 0 ? t->strides[t->spec.ndim - 1] : 0;
}

/* Address of the element `offset` elements from the first; NULL if an empty tensor has no memory. */
static inline char *mica__element(const mica__tensor *t, int64_t offset)
{
    return t->data ? t->data + offset * (int64_t)mica_dtype_size(mica__dtype_of(t)) : NULL;
}

/* The offset, in elements, of element number `flat` in row-major order. */
static inline int64_t mica__offset_at(int ndim, const int64_t *shape, const int64_t *strides, int64_t flat)
{
    int64_t offset = 0;
    for (int d = ndim - 1; flat > 0; d--) { /* flat > 0: no size is 0 */
        offset += flat % shape[d] * strides[d];
        flat /= shape[d];
    }
    return offset;
}

/* The same, incrementally for consecutive elements. */
typedef struct mica__walk {
    int ndim;
    const int64_t *shape, *strides;
    int64_t index[MICA_MAX_DIMS];
    int64_t offset;
} mica__walk;

static inline void mica__walk_begin(mica__walk *walk, int ndim, const int64_t *shape, const int64_t *strides,
                                    int64_t flat)
{
    *walk = (mica__walk){.ndim = ndim, .shape = shape, .strides = strides};
    for (int d = ndim - 1; flat > 0; d--) {
        walk->index[d] = flat % shape[d];
        walk->offset += walk->index[d] * strides[d];
        flat /= shape[d];
    }
}

/* Wraps around at the end. */
static inline void mica__walk_next(mica__walk *walk)
{
    for (int d = walk->ndim - 1; d >= 0; d--) {
        walk->offset += walk->strides[d];
        if (++walk->index[d] < walk->shape[d]) return;
        walk->offset -= walk->index[d] * walk->strides[d];
        walk->index[d] = 0;
    }
}

static inline void mica__walk_rows(mica__walk *walk, const mica__tensor *t, int64_t row)
{
    mica__walk_begin(walk, mica__outer_dims(&t->spec), t->spec.shape, t->strides, row);
}

static inline void mica__copy_element(size_t size, char *to, const char *from)
{
    switch (size) {
    case 1: memcpy(to, from, 1); break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    default: memcpy(to, from, 8); break;
    }
}

/* Copies n elements of `size` bytes (1, 2, 4, 8), each side with its stride. */
void mica__copy_row(size_t size, int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride);
/* The same for ndim axes. */
void mica__copy_block(size_t size, int ndim, const int64_t *shape, char *to, const int64_t *to_strides,
                      const char *from, const int64_t *from_strides);
/* Writes n copies of the element at `value`. */
void mica__fill_row(size_t size, int64_t n, char *to, const void *value);

/* Converts a row of any dtype to and from one type, as mica__get_ and mica__set_ do; f32 is for the float dtypes (f64
 * is rounded). stride is the tensor's. */
void mica__load_f32(mica_dtype dtype, int64_t n, float *to, const char *from, int64_t stride);
void mica__load_f64(mica_dtype dtype, int64_t n, double *to, const char *from, int64_t stride);
void mica__load_i64(mica_dtype dtype, int64_t n, int64_t *to, const char *from, int64_t stride);
void mica__store_f32(mica_dtype dtype, int64_t n, char *to, int64_t stride, const float *from);
void mica__store_f64(mica_dtype dtype, int64_t n, char *to, int64_t stride, const double *from);
void mica__store_i64(mica_dtype dtype, int64_t n, char *to, int64_t stride, const int64_t *from);

/* Calls fn for ranges of rows that cover 0 ... rows-1. The split depends on the work per row (in operations, roughly),
 * never on the number of threads. */
typedef void (*mica__rows_fn)(const void *context, int64_t begin, int64_t end);
void mica__run_rows(mica__pool *pool, int64_t rows, int64_t work, mica__rows_fn fn, const void *context);

#endif
