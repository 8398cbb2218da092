/* Transcendental functions of vectors of floats, within 2 ulp everywhere (1 where
 * said), special values as libm has them. In single precision: a double has half
 * the lanes. Written with vf_mul_add, so that the last bit depends on whether the
 * CPU can multiply and add in one rounding, and on nothing else. */
#ifndef MICA_SIMD_FUNCTIONS_H
#define MICA_SIMD_FUNCTIONS_H

#include "simd/vector.h"

/* Adding 1.5 * 2^23 leaves the rounded integer in the low bits. */
#define VF_MAGIC 0x1.8p23f

/* ---------------------------------------------------------------- exp ------ */

/* e^r for |r| <= ln 2 / 2. */
static inline vf vf_exp_near(vf r)
{
    vf p = vf_splat(0x1.6af782p-10f);
    p = vf_mul_add(p, r, vf_splat(0x1.12425ap-7f));
    p = vf_mul_add(p, r, vf_splat(0x1.555838p-5f));
    p = vf_mul_add(p, r, vf_splat(0x1.555486p-3f));
    p = vf_mul_add(p, r, vf_splat(0x1.fffffcp-2f));
    p = vf_mul_add(p, r, vf_splat(1.0f));
    return vf_mul_add(p, r, vf_splat(1.0f));
}

/* What is left of x without n times ln 2, whose first part has few bits: n times it is exact. */
static inline vf vf_less_ln2(vf x, vf n)
{
    return vf_mul_add(n, vf_splat(-0x1.7f7d1cp-20f), vf_mul_add(n, vf_splat(-0x1.62e4p-1f), x));
}

/* e^x, 1.2 ulp: x = n ln 2 + r, a polynomial in r, and n into the exponent: in two
 * halves, because 2^n alone may overflow where the result does not, and a
 * subnormal result must be rounded once. The magic number carries the two biases,
 * 2 * 127, so that both powers are shifts of its bits. */
static inline vf vf_exp(vf given)
{
    const vf magic = vf_splat(VF_MAGIC + 254.0f);
    /* beyond these the result is 0 or infinite */
    const vf x = vf_at_least(vf_at_most(given, 89.0f), -104.0f);
    const vf t = vf_mul_add(x, vf_splat(0x1.715476p0f), magic);
    const vf p = vf_exp_near(vf_less_ln2(x, t - magic));
    const vu half = (vu)t >> 1, rest = (vu)t - half;
    return p * (vf)(half << 23) * (vf)(rest << 23);
}

/* ---------------------------------------------------------------- log ------ */

/* x = 2^e (1 + f) with 1 + f from sqrt 1/2 to sqrt 2, for normal positive x: the
 * integer that is taken off rounds to the nearer power of two. */
static inline vf vf_log_split(vf x, vf *e)
{
    const vu field = ((vu)x - vu_splat(0x3f3504f3)) & vu_splat(0xff800000);
    *e = __builtin_convertvector((vi)field >> 23, vf);
    return (vf)((vu)x - field) - vf_splat(1.0f);
}

/* (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f from sqrt 1/2 to sqrt 2. */
static inline vf vf_log_near(vf f)
{
    vf p = vf_splat(-0x1.423c0ap-4f);
    p = vf_mul_add(p, f, vf_splat(0x1.07e656p-3f));
    p = vf_mul_add(p, f, vf_splat(-0x1.0cdc7cp-3f));
    p = vf_mul_add(p, f, vf_splat(0x1.226b2cp-3f));
    p = vf_mul_add(p, f, vf_splat(-0x1.54789cp-3f));
    p = vf_mul_add(p, f, vf_splat(0x1.99a5b8p-3f));
    p = vf_mul_add(p, f, vf_splat(-0x1.00022p-2f));
    return vf_mul_add(p, f, vf_splat(0x1.55554ap-2f));
}

/* log of 2^e (1 + f). */
static inline vf vf_log_sum(vf e, vf f)
{
    const vf z = f * f;
    vf y = vf_mul_add(e, vf_splat(0x1.7f7d1cp-20f), z * f * vf_log_near(f));
    y = vf_mul_add(z, vf_splat(-0.5f), y) + f;
    return vf_mul_add(e, vf_splat(0x1.62e4p-1f), y);
}

/* y = f(x) where f has the poles, zeros and gaps of a logarithm. */
static inline vf vf_log_edges(vf x, vf y)
{
    const vf infinite = vf_splat(__builtin_inff());
    y = vf_select(x < infinite, y, x); /* NaN too */
    const vf edge = vf_select(x == vf_splat(0.0f), -infinite, vf_splat(__builtin_nanf("")));
    return vf_select(x <= vf_splat(0.0f), edge, y);
}

/* log x, 1 ulp. */
static inline vf vf_log(vf x)
{
    const vi tiny = x < vf_splat(0x1p-126f); /* subnormal, or an edge */
    vf e;
    const vf f = vf_log_split(vf_select(tiny, x * vf_splat(0x1p23f), x), &e);
    e = e - (vf)(tiny & (vi)vf_splat(23.0f));
    return vf_log_edges(x, vf_log_sum(e, f));
}

#endif
