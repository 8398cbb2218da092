/* Functions that the public constructors share. Constructors check axes, options and
 * NULL, bring operands to one dtype and shape, and end in mica__build, whose shape
 * rule checks the rest. */
#ifndef MICA_GRAPH_CONSTRUCT_H
#define MICA_GRAPH_CONSTRUCT_H

#include "base/alloc.h"
#include "base/checked.h"
#include "base/text.h"
#include "graph/build.h"

/* FULL of a constant without a fixed dtype: its f32 value when used alone, and the
 * original number, which is converted to the dtype of the other operand. */
typedef struct mica__attr_weak {
    mica__attr_full full;
    double exact;
} mica__attr_weak;

/* "f32 (2, 3)" for messages; returns buffer. */
enum { MICA__SPEC_TEXT = MICA__SHAPE_TEXT + 8 };
const char *mica__spec_text(char buffer[MICA__SPEC_TEXT], const mica__spec *spec);

/* The value after it is stored as dtype. */
mica__number mica__number_f64(mica_dtype dtype, double value);
mica__number mica__number_i64(mica_dtype dtype, int64_t value);
/* Is value a whole number that dtype (bool or integer) can hold? */
bool mica__fits_f64(mica_dtype dtype, double value);

mica_array *mica__full(mica_scope *s, const mica__spec *spec, mica__number value);
/* start + index * step along axis, i64. */
mica_array *mica__index_iota(mica_scope *s, const mica__spec *shape, int axis, int64_t start, int64_t step);

/* Is an argument that is NULL omitted? Not if the scope has failed before: then NULL
 * may be the result of that failure. */
bool mica__is_omitted(mica_scope *s);

/* Element-wise op: converts the operands to the dtype of its rule and broadcasts
 * them to one shape. */
mica_array *mica__elementwise(mica_scope *s, mica__op op, mica_array *const *in, size_t n_in, const void *attr,
                              size_t attr_size);
/* The common dtype of the operands; weak constants adapt to the others. */
mica_dtype mica__promote_all(mica_array *const *in, size_t n_in);
/* Bool and integers become f32. */
mica_dtype mica__float_dtype(mica_dtype dtype);
mica_array *mica__to_float(mica_scope *s, mica_array *x);
/* Converts to the dtype of the accumulator: f64 stays, everything else is f32. */
mica_array *mica__widen(mica_scope *s, mica_array *x);
/* An evaluated node. Takes over the reference to buffer. */
mica_array *mica__ready_leaf(mica_scope *s, const char *op, const mica__spec *spec, mica__buffer *buffer,
                             const int64_t *strides);
/* A u64 as data instead of a constant; not counted as a copy of caller memory. */
mica_array *mica__data_u64(mica_scope *s, uint64_t value);
/* Converts integers to i64; records a failure for other dtypes. Values that i64 cannot hold become its maximum,
 * which is out of every range. */
mica_array *mica__indices(mica_scope *s, const char *op, mica_array *x);
/* The same for indices of an axis of `size`: u64 is checked here, so that the error message shows its value. */
mica_array *mica__indices_of(mica_scope *s, mica__index_caller caller, mica_array *x, int64_t size);
/* Maps i64 or u64 indices to 0 ... size - 1; invalid ones are MICA_ERR_INDEX at run time. */
mica_array *mica__checked_index(mica_scope *s, mica__index_caller caller, mica_array *indices, int64_t size);
/* take_along_axis for `caller`; axis counts from the front. */
mica_array *mica__take_along(mica_scope *s, mica__index_caller caller, mica_array *x, mica_array *indices, int axis);

/* The caller's list of axes as a bit mask; NULL with 0 means all axes. */
bool mica__axes(mica_scope *s, const char *op, const mica_array *x, const int *axes, int n_axes, int64_t *mask);
/* Number of elements that are reduced to one by reducing over mask. */
int64_t mica__folded(const mica_array *x, int64_t mask);

/* PAD without interior padding; returns x if all low and high are 0. */
mica_array *mica__pad(mica_scope *s, mica_array *x, const int64_t *low, const int64_t *high, mica__number value);

/* Copies the caller's options over the defaults already in *out: a caller built
 * against an older header passes a shorter struct. */
bool mica__read_options(mica_scope *s, const char *op, const void *options, void *out, size_t nbytes);

#endif
