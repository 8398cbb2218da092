/* Transcendental functions of vectors of floats, within 2 ulp everywhere (1 where
 * said), special values as libm has them. In single precision: a double has half
 * the lanes. Written with vf_mul_add, so that the last bit depends on whether the
 * CPU can multiply and add in one rounding, and on nothing else. */
#ifndef MICA_SIMD_FUNCTIONS_H
#define MICA_SIMD_FUNCTIONS_H

#include "simd/vector.h"

/* Adding 1.5 * 2^23 leaves the rounded integer in the low bits. */
#define VF_MAGIC 0x1.8p23f

/* x * 2^n for n in -252 ... 254, in two steps: results may be
 * subnormal or the largest, where the power alone would overflow. */
static inline vf vf_scale(vf x, vi n)
{
    const vi half = n >> 1;
    const vf first = (vf)((vu)(half + vi_splat(127)) << 23), second = (vf)((vu)(n - half + vi_splat(127)) << 23);
    return x * first * second;
}

/* e^x, 1 ulp: x = n ln 2 + r, a polynomial in r, and n into the exponent. */
static inline vf vf_exp(vf given)
{
    /* beyond these the result is 0 or infinite; NaN compares false and passes */
    const vf low = vf_splat(-104.0f), high = vf_splat(89.0f);
    const vf x = vf_select(given < low, low, vf_select(given > high, high, given));
    const vf t = vf_mul_add(x, vf_splat(0x1.715476p0f), vf_splat(VF_MAGIC)), n = t - vf_splat(VF_MAGIC);
    vf r = vf_mul_add(n, vf_splat(-0x1.62e4p-1f), x);
    r = vf_mul_add(n, vf_splat(-0x1.7f7d1cp-20f), r);
    vf p = vf_splat(1.9875691500e-4f);
    p = vf_mul_add(p, r, vf_splat(1.3981999507e-3f));
    p = vf_mul_add(p, r, vf_splat(8.3334519073e-3f));
    p = vf_mul_add(p, r, vf_splat(4.1665795894e-2f));
    p = vf_mul_add(p, r, vf_splat(1.6666665459e-1f));
    p = vf_mul_add(p, r, vf_splat(5.0000001201e-1f));
    p = vf_mul_add(p, r * r, r) + vf_splat(1.0f);
    return vf_scale(p, (vi)((vu)t - (vu)vf_splat(VF_MAGIC)));
}

#endif
