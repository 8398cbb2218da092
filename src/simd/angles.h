/* Trigonometric functions of float vectors, within 2 ulp, and hypot. See
 * functions.h. */
#ifndef MICA_SIMD_ANGLES_H
#define MICA_SIMD_ANGLES_H

#include <math.h>

#include "simd/functions.h"

#define VF_HALF_PI 0x1.921fb6p0f
#define VF_HALF_PI_LOW -0x1.777a5cp-25f

/* ------------------------------------------------------ sin, cos, tan ------ */

/* Below this limit the reduction by multiples of pi/2 is exact: their number has at most 13 bits. */
#define VF_ANGLE_LIMIT 8192.0f

/* x - n pi/2 in two floats, |x - n pi/2| <= pi/4; n is in the low bits of turn. Without FMA,
 * pi/2 is split into parts such that n times each part is exact. */
static inline vf vf_less_turns(vf x, vf *low, vu *turn)
{
    const vf magic = vf_splat(POLY_MAGIC), t = vf_mul_add(x, vf_splat(0x1.45f306p-1f), magic), n = magic - t;
    *turn = (vu)t;
#if VF_FUSED
    const vf a = vf_mul_add(n, vf_splat(VF_HALF_PI), x);
    const vf r = vf_mul_add(n, vf_splat(VF_HALF_PI_LOW), a);
    *low = vf_mul_add(n, vf_splat(-0x1.ee59dap-50f), vf_mul_add(n, vf_splat(VF_HALF_PI_LOW), a - r));
#else
    const vf a = (x + n * vf_splat(0x1.92p0f)) + n * vf_splat(0x1.fbp-12f), part = n * vf_splat(0x1.51p-22f);
    const vf b = a + part, rest = ((a - b) + part) + n * vf_splat(0x1.0b4612p-34f), r = b + rest;
    *low = (b - r) + rest;
#endif
    return r;
}

/* sin(x + quarters pi/2). */
static inline vf vf_sine(vf x, uint32_t quarters)
{
    vf low;
    vu turn;
    const vf r = vf_less_turns(x, &low, &turn), z = r * r;
    turn = turn + vu_splat(quarters);
    vf s = vf_splat(-0x1.99523p-13f);
    s = vf_mul_add(s, z, vf_splat(0x1.110776p-7f));
    s = vf_mul_add(s, z, vf_splat(-0x1.555546p-3f));
    s = r + vf_mul_add(s, z * r, low);
    vf c = vf_splat(0x1.99dea2p-16f);
    c = vf_mul_add(c, z, vf_splat(-0x1.6c0c16p-10f));
    c = vf_mul_add(c, z, vf_splat(0x1.55554ap-5f));
    c = vf_mul_add(c, z * z, vf_mul_add(z, vf_splat(-0.5f), vf_splat(1.0f)));
    const vf y = vf_select((vi)(turn << 31) < vi_splat(0), c, s);
    return (vf)((vu)y ^ ((turn << 30) & vu_splat(0x80000000u)));
}

/* Replaces y by f(x) of the C library in lanes beyond the limit. They are too rare for a vector
 * version. The other lanes keep y; otherwise a result would depend on its neighbours. */
static inline vf vf_far_by_lane(vf x, vf y, float (*f)(float))
{
    const vi far = vf_abs(x) >= vf_splat(VF_ANGLE_LIMIT);
    if (vi_some(far))
        for (int i = 0; i < SIMD_LANES; i++)
            if (far[i]) y[i] = f(x[i]);
    return y;
}

static inline vf vf_sin(vf x) { return vf_far_by_lane(x, vf_select(x == vf_splat(0.0f), x, vf_sine(x, 0)), sinf); }

static inline vf vf_cos(vf x) { return vf_far_by_lane(x, vf_sine(x, 1), cosf); }

static inline vf vf_tan(vf x)
{
    vf low;
    vu turn;
    const vf r = vf_less_turns(x, &low, &turn), z = r * r;
    vf p = vf_splat(0x1.2403cep-8f);
    p = vf_mul_add(p, z, vf_splat(-0x1.3096a4p-14f));
    p = vf_mul_add(p, z, vf_splat(0x1.67497ep-7f));
    p = vf_mul_add(p, z, vf_splat(0x1.5bde34p-6f));
    p = vf_mul_add(p, z, vf_splat(0x1.baf04ap-5f));
    p = vf_mul_add(p, z, vf_splat(0x1.110d1ap-3f));
    p = vf_mul_add(p, z, vf_splat(0x1.555562p-2f));
    const vf y = r + vf_mul_add(p, z * r, vf_mul_add(low, z, low));
    const vf tangent = vf_select((vi)(turn << 31) < vi_splat(0), vf_splat(-1.0f) / y, y);
    return vf_far_by_lane(x, vf_select(x == vf_splat(0.0f), x, tangent), tanf);
}

/* --------------------------------------------------------- asin, acos ------ */

/* asin s - s for s from 0 to 1/2, z = s^2. */
static inline vf vf_asin_near(vf s, vf z)
{
    vf p = vf_splat(0x1.3604a8p-5f);
    p = vf_mul_add(p, z, vf_splat(0x1.d200a8p-7f));
    p = vf_mul_add(p, z, vf_splat(0x1.04ffbep-5f));
    p = vf_mul_add(p, z, vf_splat(0x1.6ca32ap-5f));
    p = vf_mul_add(p, z, vf_splat(0x1.3338bep-4f));
    p = vf_mul_add(p, z, vf_splat(0x1.55554cp-3f));
    return p * (z * s);
}

/* For x > 1/2: asin x = pi/2 - 2 asin sqrt((1 - x) / 2). */
static inline vf vf_asin(vf x)
{
    const vf a = vf_abs(x), two = vf_splat(2.0f), half = vf_splat(0.5f);
    const vi far = a > half;
    const vf z = vf_select(far, vf_mul_add(a, -half, half), a * a), s = vf_select(far, vf_sqrt(z), a);
    const vf w = vf_asin_near(s, z);
    const vf right = vf_splat(VF_HALF_PI), sum = vf_mul_add(s, -two, right), lost = vf_mul_add(s, -two, right - sum);
    const vf other = sum + (vf_mul_add(w, -two, vf_splat(VF_HALF_PI_LOW)) + lost);
    return vf_copysign(vf_select(far, other, s + w), x);
}

static inline vf vf_acos(vf x)
{
    const vf a = vf_abs(x), half = vf_splat(0.5f);
    const vi far = a > half, below = x < -half;
    const vf z = vf_select(far, vf_mul_add(a, -half, half), a * a), s = vf_select(far, vf_sqrt(z), x);
    const vf w = vf_asin_near(s, z), twice = vf_mul_add(w, vf_splat(2.0f), s + s);
    const vf high = vf_splat(VF_HALF_PI), low = vf_splat(VF_HALF_PI_LOW);
    const vf middle = (high - s) - (w - low), left = (high + high - twice) + (low + low);
    return vf_select(far, vf_select(below, left, twice), middle);
}

/* -------------------------------------------------------- atan, atan2 ------ */

/* atan(y / x) for x, y >= 0; the result is in [0, pi/2]. */
static inline vf vf_atan_ratio(vf y, vf x)
{
    const vi steep = y > x;
    const vf ratio = vf_select(steep, -x, y) / vf_select(steep, y, x);
    /* x == y: the ratio is 1, also for two infinities, and 0 for 0 / 0 */
    const vf t = vf_select(x == y, vf_truth(x), ratio), z = t * t;
    vf p = vf_splat(-0x1.d81aa6p-10f);
    p = vf_mul_add(p, z, vf_splat(0x1.670808p-7f));
    p = vf_mul_add(p, z, vf_splat(-0x1.0032ep-5f));
    p = vf_mul_add(p, z, vf_splat(0x1.dbbafap-5f));
    p = vf_mul_add(p, z, vf_splat(-0x1.588644p-4f));
    p = vf_mul_add(p, z, vf_splat(0x1.c0b9d8p-4f));
    p = vf_mul_add(p, z, vf_splat(-0x1.24252p-3f));
    p = vf_mul_add(p, z, vf_splat(0x1.999258p-3f));
    p = vf_mul_add(p, z, vf_splat(-0x1.55554p-2f));
    const vf w = vf_mul_add(p, z * t, (vf)(steep & (vi)vf_splat(VF_HALF_PI_LOW)));
    return (vf)(steep & (vi)vf_splat(VF_HALF_PI)) + (t + w);
}

static inline vf vf_atan(vf x) { return vf_copysign(vf_atan_ratio(vf_abs(x), vf_splat(1.0f)), x); }

static inline vf vf_atan2(vf y, vf x)
{
    const vf a = vf_atan_ratio(vf_abs(y), vf_abs(x));
    const vf left = (vf_splat(2 * VF_HALF_PI) - a) + vf_splat(2 * VF_HALF_PI_LOW);
    return vf_copysign(vf_select((vi)x < vi_splat(0), left, a), y); /* by the sign bit, so x = -0 counts as negative */
}

/* --------------------------------------------------------------- hypot ----- */

/* Scaled by a power of two near the larger operand, so that squares neither overflow nor underflow. */
static inline vf vf_hypot(vf x, vf y)
{
    const vf a = vf_abs(x), b = vf_abs(y), infinite = vf_splat(__builtin_inff());
    const vf top = vf_at_most(vf_at_least(vf_max(a, b), 0x1p-126f), 0x1p126f);
    const vu power = (vu)top & vu_splat(0x7f800000);
    const vf down = (vf)(vu_splat(0x7f000000) - power), u = a * down, v = b * down;
    const vf y0 = vf_sqrt(vf_mul_add(u, u, v * v)) * (vf)power;
    return vf_select((a == infinite) | (b == infinite), infinite, y0);
}

#endif
