/* Node construction: every constructor ends in one of these functions. */
#ifndef MICA_GRAPH_BUILD_H
#define MICA_GRAPH_BUILD_H

#include "array/scope.h"
#include "graph/attrs.h"
#include "graph/op.h"

/* Makes a new node of op that the scope owns. Checks the scope, the inputs (not NULL,
 * one engine) and the shape rule. NULL on failure; the scope keeps the error. */
mica_array *mica__build(mica_scope *s, mica__op op, mica_array *const *in, size_t n_in, const void *attr,
                        size_t attr_size);
/* The same for a scope and inputs that were already checked. */
mica_array *mica__build_usable(mica_scope *s, mica__op op, mica_array *const *in, size_t n_in, const void *attr,
                               size_t attr_size);

/* Short forms for 0 to 3 inputs; attr points to an attribute struct or is NULL. */
mica_array *mica__build1(mica_scope *s, mica__op op, mica_array *x, const void *attr, size_t attr_size);
mica_array *mica__build2(mica_scope *s, mica__op op, mica_array *a, mica_array *b, const void *attr, size_t attr_size);

/* Argument checks at the start of every constructor. True if the scope and all
 * arrays are usable; otherwise records the failure, unless a NULL comes from an
 * earlier one. */
bool mica__usable(mica_scope *s, const char *op, mica_array *const *in, size_t n_in);
bool mica__usable1(mica_scope *s, const char *op, mica_array *x);

/* Maps axis from -ndim ... ndim-1 to 0 ... ndim-1; false and a recorded failure if out of range. */
bool mica__axis(mica_scope *s, const char *op, int ndim, int axis, int *out);

/* Makes a spec from the caller's dtype and shape; checks both. */
bool mica__make_spec(mica_scope *s, const char *op, mica_dtype dtype, int ndim, const int64_t *shape, mica__spec *out);

/* Broadcasts two shapes by NumPy's rule (the dtype of a is kept). */
bool mica__broadcast_spec(mica_scope *s, const char *op, const mica__spec *a, const mica__spec *b, mica__spec *out);

/* x broadcast to this shape (x itself if it has the shape). */
mica_array *mica__broadcast_like(mica_scope *s, mica_array *x, const mica__spec *spec);
/* x summed to a shape that broadcasts to x's: the transpose of the function above. */
mica_array *mica__sum_to(mica_scope *s, mica_array *x, const mica__spec *spec);
/* A constant of this dtype (shape ()). */
mica_array *mica__constant(mica_scope *s, mica_dtype dtype, double value);
mica_array *mica__zeros_like(mica_scope *s, mica_array *x);
/* Reduces over a bit mask of axes. */
mica_array *mica__reduce(mica_scope *s, mica__op op, mica_array *x, int64_t axes, bool keep);
/* Moves axis to the end, and back. */
mica_array *mica__axis_last(mica_scope *s, mica_array *x, int axis);
mica_array *mica__axis_back(mica_scope *s, mica_array *x, int axis);
/* Cumulative op over the last axis. */
mica_array *mica__cumulative(mica_scope *s, mica__op op, mica_array *x, bool reverse, bool exclusive);
/* SCATTER along an axis (see attrs.h); indices are cast to i64. */
mica_array *mica__scatter_axis(mica_scope *s, mica_array *x, mica_array *indices, mica_array *updates, int axis,
                               bool add, mica__index_caller caller);
/* The transpose of take_along_axis: zeros of shape spec with updates added at indices. */
mica_array *mica__add_along_axis(mica_scope *s, const mica__spec *spec, mica_array *indices, mica_array *updates,
                                 int axis);
/* x, computed after dep (prevents that a recomputation is merged or moved). */
mica_array *mica__after(mica_scope *s, mica_array *x, mica_array *dep);
/* A parameter of a body or of a traced function. */
mica_array *mica__param(mica_scope *s, const mica__spec *spec, int64_t index);

/* Makes a scan from a body that is already traced. in: carries and xs; params: the
 * PARAM nodes for the carries and for one slice of each x; outs: new carries, then
 * ys, of one step. The body captures nodes that are not newer than serial_mark
 * (mica__serial_now() before the params were made) and nodes that are evaluated.
 * parts gets the last carries, then the stacked ys. With length 0 these are the
 * carries themselves and empty arrays. */
mica_status mica__build_scan(mica_scope *s, size_t n_carry, size_t n_x, size_t n_y, int64_t length, bool reverse,
                             mica_array *const *in, mica_array *const *params, mica_array *const *outs,
                             uint64_t serial_mark, mica_array **parts);

#endif
