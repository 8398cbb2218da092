/* Four floats as GNU C vectors: one source without intrinsics for SSE2, NEON and other 16-byte SIMD. */
#ifndef MICA_KERNELS_VEC4_H
#define MICA_KERNELS_VEC4_H

#include <stdint.h>
#include <string.h>

#include "simd/polynomials.h"

typedef float mica__v4 __attribute__((vector_size(16)));
typedef int32_t mica__i4 __attribute__((vector_size(16)));
typedef uint32_t mica__u4 __attribute__((vector_size(16)));

static inline mica__v4 mica__v4_load(const float *p)
{
    mica__v4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void mica__v4_store(float *p, mica__v4 v) { memcpy(p, &v, sizeof v); }
static inline mica__v4 mica__v4_all(float x) { return (mica__v4){x, x, x, x}; }
static inline float mica__v4_sum(mica__v4 v) { return (v[0] + v[2]) + (v[1] + v[3]); }

/* a where all bits of the mask are set, b where none is. */
static inline mica__v4 mica__v4_select(mica__i4 mask, mica__v4 a, mica__v4 b)
{
    return (mica__v4)((mask & (mica__i4)a) | (~mask & (mica__i4)b));
}

/* The larger of a and b; b if either is NaN. */
static inline mica__v4 mica__v4_max(mica__v4 a, mica__v4 b) { return mica__v4_select(a > b, a, b); }

/* exp(x) for x <= 88, to about 1.5 ulp; 0 below -87, where results would be subnormal; NaN for NaN. Algorithm of
 * Cephes' expf. */
static inline mica__v4 mica__v4_exp(mica__v4 x)
{
    /* Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits of the sum. */
    const mica__v4 magic = mica__v4_all(POLY_MAGIC);
    const mica__v4 shifted = x * 1.44269504f + magic, n = shifted - magic;
    const mica__v4 r = (x - n * POLY_CEPHES_LN2_HIGH) - n * POLY_CEPHES_LN2_LOW;
    const mica__v4 y = POLY(6, POLY_MUL_ADD, POLY_SCALAR, r, POLY_EXP_CEPHES) * (r * r) + r + 1.0f;
    /* unsigned: the subtraction may overflow in NaN lanes */
    const mica__u4 power = ((mica__u4)shifted - (mica__u4)magic + 127) << 23;
    return mica__v4_select(x < -87.0f, mica__v4_all(0.0f), y * (mica__v4)power);
}

static inline float mica__exp_f32(float x) { return mica__v4_exp(mica__v4_all(x))[0]; }

#endif
