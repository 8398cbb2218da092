/* The definition of every MAP and REDUCE op, on one element. The reference backend
 * and constant folding run this code, and every other kernel is tested against
 * it.
 *
 * Floats are computed in double and rounded once to the dtype of the result.
 * Integers are computed modulo 2^64 and wrapped to the dtype; u64 is ordered
 * and divided as unsigned. Arithmetic on bool is that of the integers 0 and 1,
 * and any result but 0 is true (BITWISE_NOT is the logical one). */
#ifndef MICA_GRAPH_SCALAR_H
#define MICA_GRAPH_SCALAR_H

#include "graph/attrs.h"
#include "graph/op.h"

/* One element of a MAP op. in: dtype of the operands (WHERE: of a and b); args
 * hold f for float operands, i for all others and for WHERE's condition. The
 * unused field of the result is 0. *bad_index (may be NULL) is set if CHECK_INDEX
 * finds an index out of range, and is otherwise unchanged.
 *
 * NaN      RELU, SIGN, MINIMUM and MAXIMUM return NaN if an operand is NaN.
 * x / 0    FLOOR_DIV and MOD of integers give 0; of floats they are Python's:
 *          MOD has the sign of b, -1 mod inf is inf.
 * POW      of integers: a negative exponent gives the exact value for 1 and -1
 *          and 0 for the rest (also for 0).
 * SHIFT_*  a count outside 0 ... bits-1 gives 0, or -1 for a negative number
 *          shifted right. bool has 1 bit.
 * CAST     the rules of array/dtype.h; 64-bit integers to floats round once.
 * GELU, GELU_TANH, SILU of -inf are -inf * 0: NaN. */
mica__number mica__scalar_map(mica__op op, mica_dtype in, mica_dtype out, const mica__number *args, const void *attr,
                              bool *bad_index);

/* Combines acc with x, for SUM PROD MAX MIN ANY ALL. dtype is that of x. Floats
 * accumulate in double, integers in 64 bits: the caller rounds or wraps once,
 * at the end. ANY and ALL accumulate in i. */
mica__number mica__scalar_fold(mica__op reduce_op, mica_dtype dtype, mica__number acc, mica__number x);
/* The initial accumulator, which is the result for no elements. */
mica__number mica__scalar_identity(mica__op reduce_op, mica_dtype dtype);

/* Reads or writes one element of memory. */
mica__number mica__scalar_load(mica_dtype dtype, const void *data, int64_t index);
void mica__scalar_store(mica_dtype dtype, void *data, int64_t index, mica__number value);

/* The inverse of erf, to about 1e-15; +-inf at +-1, NaN out of range. */
double mica__erfinv(double x);

#endif
