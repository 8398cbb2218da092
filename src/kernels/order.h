/* The total order of elements: -inf ... -0 = 0 ... inf < NaN; integers by value; false < true. It is expressed as keys:
 * a < b in the order exactly if key(a) < key(b). */
#ifndef MICA_KERNELS_ORDER_H
#define MICA_KERNELS_ORDER_H

#include "array/dtype.h"

#define MICA__KEY_NAN UINT64_MAX /* for floats only: the largest u64 has the same key */

static inline uint64_t mica__order_key(mica_dtype dtype, const void *data, int64_t index)
{
    const uint64_t top = (uint64_t)1 << 63;
    if (!mica__is_float(dtype)) {
        const uint64_t bits = (uint64_t)mica__get_i64(dtype, data, index);
        return mica__dtype_kind(dtype) == MICA__KIND_INT ? bits ^ top : bits;
    }
    const double value = mica__get_f64(dtype, data, index) + 0.0; /* -0 becomes 0 */
    if (value != value) return MICA__KEY_NAN;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & top ? ~bits : bits | top;
}

#endif
