/* What the public constructors share. They check what only they can see (axes,
 * options, NULL), bring operands to one dtype and shape, and end in
 * mica__build, whose shape rule checks the rest. */
#ifndef MICA_GRAPH_CONSTRUCT_H
#define MICA_GRAPH_CONSTRUCT_H

#include "base/alloc.h"
#include "base/checked.h"
#include "base/text.h"
#include "graph/build.h"

/* FULL of a constant without a dtype of its own: the f32 it is when alone, and
 * the number it was, for the dtype it meets. */
typedef struct mica__attr_weak {
    mica__attr_full full;
    double exact;
} mica__attr_weak;

/* "f32 (2, 3)" for messages; returns buffer. */
enum { MICA__SPEC_TEXT = MICA__SHAPE_TEXT + 8 };
const char *mica__spec_text(char buffer[MICA__SPEC_TEXT], const mica__spec *spec);

/* A value as it is after being stored as dtype. */
mica__number mica__number_f64(mica_dtype dtype, double value);
mica__number mica__number_i64(mica_dtype dtype, int64_t value);
/* Is value a whole number that dtype (bool or integer) can hold? */
bool mica__fits_f64(mica_dtype dtype, double value);

mica_array *mica__full(mica_scope *s, const mica__spec *spec, mica__number value);
/* start + index * step along axis, i64. */
mica_array *mica__index_iota(mica_scope *s, const mica__spec *shape, int axis, int64_t start, int64_t step);

/* An optional argument that is NULL was left out, unless something failed
 * before: then the NULL may be that failure. */
bool mica__left_out(mica_scope *s);

/* Element-wise op: brings the operands to the dtype its rule wants and to one
 * shape. */
mica_array *mica__elementwise(mica_scope *s, mica__op op, mica_array *const *in, size_t n_in, const void *attr,
                              size_t attr_size);
/* The dtype operands come to together; weak ones adapt to the others. */
mica_dtype mica__promote_all(mica_array *const *in, size_t n_in);
/* Bool and integers as f32. */
mica_dtype mica__float_dtype(mica_dtype dtype);
mica_array *mica__to_float(mica_scope *s, mica_array *x);
/* The float sums are taken in: f64 stays, everything else is f32. */
mica_array *mica__widen(mica_scope *s, mica_array *x);
/* A node that has its elements. Takes over the reference to buffer. */
mica_array *mica__ready_leaf(mica_scope *s, const char *op, const mica__spec *spec, mica__buffer *buffer,
                             const int64_t *strides);
/* A u64 as data, not as a constant, and not counted as a copy of the caller's. */
mica_array *mica__data_u64(mica_scope *s, uint64_t value);
/* Must be integers (a recorded failure if not); as i64. What i64 cannot hold becomes its largest number, which is outside
 * every range. */
mica_array *mica__indices(mica_scope *s, const char *op, mica_array *x);
/* The same for indices of an axis of `size`: u64 are checked here, with their own value in the error message. */
mica_array *mica__indices_of(mica_scope *s, mica__index_caller caller, mica_array *x, int64_t size);
/* 0 ... size - 1, from i64 or u64; others are MICA_ERR_INDEX at run time. */
mica_array *mica__checked_index(mica_scope *s, mica__index_caller caller, mica_array *indices, int64_t size);
/* take_along_axis for `caller`; axis counts from the front. */
mica_array *mica__take_along(mica_scope *s, mica__index_caller caller, mica_array *x, mica_array *indices, int axis);

/* The caller's list of axes as a bit mask; NULL with 0: all. */
bool mica__axes(mica_scope *s, const char *op, const mica_array *x, const int *axes, int n_axes, int64_t *mask);
/* Elements folded into one by reducing over mask. */
int64_t mica__folded(const mica_array *x, int64_t mask);

/* PAD with zeros interior; all low and high 0: x itself. */
mica_array *mica__pad(mica_scope *s, mica_array *x, const int64_t *low, const int64_t *high, mica__number value);

/* Copies the caller's options over the defaults already in *out: a caller built
 * against an older header passes a shorter struct. */
bool mica__read_options(mica_scope *s, const char *op, const void *options, void *out, size_t nbytes);

#endif
