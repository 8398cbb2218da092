/* Transcendental functions of float vectors, within 2 ulp (or the stated error), with
 * the special values of libm. They use single precision, because double has half the
 * lanes. All use vf_mul_add, so the last bits of results depend only on whether the
 * CPU has FMA.
 *
 * Common method: e^x = 2^n e^r with a small r; n is written into the exponent bits.
 * Where a result is small because the exponent is large and negative (the left side of
 * gelu), the exponent is computed in two floats. */
#ifndef MICA_SIMD_FUNCTIONS_H
#define MICA_SIMD_FUNCTIONS_H

#include "simd/vector.h"

/* Adding 1.5 * 2^23 leaves the rounded integer in the low bits. Adding b to the
 * constant adds b to that integer. With b = the exponent bias, a shift by 23 moves
 * the sum into the exponent field. */
#define VF_MAGIC 0x1.8p23f
#define VF_LOG2_E 0x1.715476p0f

static inline vf vf_power_of_two(vf magic) { return (vf)((vu)magic << 23); }

/* y with the sign of x; y has this sign already or is 0. Needed because sums lose the sign of 0. */
static inline vf vf_with_sign(vf y, vf x) { return (vf)((vu)y | ((vu)x & vu_splat(0x80000000u))); }

/* ---------------------------------------------------------------- exp ------ */

/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, such that e^r has a relative error of 2^-28. */
static inline vf vf_exp_near(vf r)
{
    vf p = vf_splat(0x1.6af782p-10f);
    p = vf_mul_add(p, r, vf_splat(0x1.12425ap-7f));
    p = vf_mul_add(p, r, vf_splat(0x1.555838p-5f));
    p = vf_mul_add(p, r, vf_splat(0x1.555486p-3f));
    return vf_mul_add(p, r, vf_splat(0x1.fffffcp-2f));
}
static inline vf vf_exp_of(vf r)
{
    const vf one = vf_splat(1.0f);
    return vf_mul_add(vf_mul_add(vf_exp_near(r), r, one), r, one);
}
static inline vf vf_exp_less_one(vf r) { return vf_mul_add(vf_exp_near(r), r * r, r); }

/* (2^r - 1) / r for |r| <= 1/2. Evaluated in pairs (Estrin) instead of Horner's scheme:
 * the shorter dependency chain saves more time than the extra product costs. */
static inline vf vf_exp2_slope(vf r)
{
    const vf z = r * r, low = vf_mul_add(r, vf_splat(0x1.ebfbdcp-3f), vf_splat(0x1.62e43p-1f));
    const vf middle = vf_mul_add(r, vf_splat(0x1.3b2d6p-7f), vf_splat(0x1.c6af7ap-5f));
    const vf high = vf_mul_add(r, vf_splat(0x1.420a36p-13f), vf_splat(0x1.5f0ec6p-10f));
    return vf_mul_add(vf_mul_add(high, z, middle), z, low);
}

/* x - n ln 2. ln 2 is split in two; the first part has few bits, so n times it is exact. */
static inline vf vf_less_ln2(vf x, vf n)
{
    return vf_mul_add(n, vf_splat(-0x1.7f7d1cp-20f), vf_mul_add(n, vf_splat(-0x1.62e4p-1f), x));
}

/* e^x for x from -104 to 89, or NaN. 2^n is the product of two factors, because it may
 * overflow where the result does not, and a subnormal result must be rounded only once.
 * The magic number contains both biases, so that the factors are shifts of its bits. */
static inline vf vf_exp_inside(vf x)
{
    const vf magic = vf_splat(VF_MAGIC + 254.0f);
    const vf t = vf_mul_add(x, vf_splat(VF_LOG2_E), magic), r = vf_less_ln2(x, t - magic);
    const vu half = (vu)t >> 1, rest = (vu)t - half;
    return vf_exp_of(r) * (vf)(half << 23) * (vf)(rest << 23);
}

/* e^x, 1.2 ulp. Beyond the bounds the result is 0 or infinity. */
static inline vf vf_exp(vf x) { return vf_exp_inside(vf_at_least(vf_at_most(x, 89.0f), -104.0f)); }

/* e^r - 1 for |r| <= ln 2 / 2, with a relative error of 2^-26. */
static inline vf vf_expm1_near(vf r)
{
    vf p = vf_splat(0x1.f2b03ep-13f);
    p = vf_mul_add(p, r, vf_splat(0x1.6d167p-10f));
    p = vf_mul_add(p, r, vf_splat(0x1.10dca6p-7f));
    p = vf_mul_add(p, r, vf_splat(0x1.55551p-5f));
    p = vf_mul_add(p, r, vf_splat(0x1.555572p-3f));
    p = vf_mul_add(p, r, vf_splat(0.5f));
    return vf_mul_add(p, r * r, r);
}

/* e^x - 1 = 2^n (e^r - 1) + (2^n - 1). Computed with 2^(n-1) and doubled, because 2^n may overflow. */
static inline vf vf_expm1(vf given)
{
    const vf x = vf_at_least(vf_at_most(given, 89.0f), -18.0f);
    const vf magic = vf_splat(VF_MAGIC + 126.0f);
    const vf t = vf_mul_add(x, vf_splat(VF_LOG2_E), magic), n = t - magic;
    const vf q = vf_expm1_near(vf_less_ln2(x, n)), half = vf_power_of_two(t);
    const vf y = vf_mul_add(half, q, half - vf_splat(0.5f));
    return vf_with_sign(vf_select(n == vf_splat(0.0f), q, y + y), given);
}

/* ---------------------------------------------------------------- log ------ */

/* x = 2^e (1 + f) with 1 + f from sqrt 1/2 to sqrt 2, for normal positive x. The
 * constant that is subtracted makes e the nearer power of two. */
static inline vf vf_log_split(vf x, vu *field)
{
    *field = ((vu)x - vu_splat(0x3f3504f3)) & vu_splat(0xff800000);
    return (vf)((vu)x - *field) - vf_splat(1.0f);
}
static inline vf vf_log_exponent(vu field) { return __builtin_convertvector((vi)field >> 23, vf); }

/* log(1 + f) - f + more, for 1 + f from sqrt 1/2 to sqrt 2. */
static inline vf vf_log_near(vf f, vf more)
{
    const vf z = f * f;
    vf p = vf_splat(-0x1.423c0ap-4f);
    p = vf_mul_add(p, f, vf_splat(0x1.07e656p-3f));
    p = vf_mul_add(p, f, vf_splat(-0x1.0cdc7cp-3f));
    p = vf_mul_add(p, f, vf_splat(0x1.226b2cp-3f));
    p = vf_mul_add(p, f, vf_splat(-0x1.54789cp-3f));
    p = vf_mul_add(p, f, vf_splat(0x1.99a5b8p-3f));
    p = vf_mul_add(p, f, vf_splat(-0x1.00022p-2f));
    p = vf_mul_add(p, f, vf_splat(0x1.55554ap-2f));
    return vf_mul_add(z, vf_splat(-0.5f), vf_mul_add(z * f, p, more));
}

/* log of 2^e (1 + f). */
static inline vf vf_log_sum(vf e, vf f)
{
    const vf y = f + vf_log_near(f, e * vf_splat(0x1.7f7d1cp-20f));
    return vf_mul_add(e, vf_splat(0x1.62e4p-1f), y);
}

/* Corrects y, a logarithm of x, for x that is 0, negative, infinite or NaN. */
static inline vf vf_log_edges(vf x, vf y)
{
    const vf infinite = vf_splat(__builtin_inff());
    const vf edge = vf_select(x == vf_splat(0.0f), -infinite, vf_splat(__builtin_nanf("")));
    y = vf_select(x < infinite, y, x); /* NaN too */
    return vf_select(x <= vf_splat(0.0f), edge, y);
}

/* vf_log_split, also for subnormal x: scales x by 2^23 and subtracts 23 from e. */
static inline vf vf_log_parts(vf x, vf *e)
{
    const vi tiny = x < vf_splat(0x1p-126f);
    vu field;
    const vf f = vf_log_split(vf_select(tiny, x * vf_splat(0x1p23f), x), &field);
    *e = vf_log_exponent(field) - (vf)(tiny & (vi)vf_splat(23.0f));
    return f;
}

/* log x, 1 ulp. */
static inline vf vf_log(vf x)
{
    vf e;
    const vf f = vf_log_parts(x, &e);
    return vf_log_edges(x, vf_log_sum(e, f));
}

static inline vf vf_log2(vf x)
{
    vf e;
    const vf f = vf_log_parts(x, &e), more = vf_log_near(f, vf_splat(0.0f));
    const vf low = vf_mul_add(more, vf_splat(VF_LOG2_E), f * vf_splat(0x1.4ae0cp-26f));
    return vf_log_edges(x, e + vf_mul_add(f, vf_splat(VF_LOG2_E), low));
}

/* e log10 2 + log10(1 + f). Both factors are in two floats; e times the high part of log10 2 is exact. */
static inline vf vf_log10(vf x)
{
    const vf log10_e = vf_splat(0x1.bcb7b2p-2f);
    vf e;
    const vf f = vf_log_parts(x, &e), more = vf_log_near(f, vf_splat(0.0f));
    const vf low = vf_mul_add(f, vf_splat(-0x1.5b235ep-27f), e * vf_splat(0x1.3509f8p-18f));
    const vf y = vf_mul_add_exact(f, log10_e, vf_mul_add(more, log10_e, low));
    return vf_log_edges(x, vf_mul_add(e, vf_splat(0x1.344p-2f), y));
}

/* log(1 + x). The rounding error of 1 + x is added to f; if e is 0, the sum is
 * exactly x. */
static inline vf vf_log1p(vf x)
{
    const vf one = vf_splat(1.0f), u = one + x;
    const vf lost = (vf_greater_of(one, x) - u) + vf_lesser(one, x);
    vu field;
    const vf f = vf_log_split(u, &field);
    const vf back = (vf)(((vu)one - field) & ~(vu)(x > vf_splat(0x1p100f))); /* 2^-e; its bits are wrong for e = 128 */
    const vf y = vf_log_sum(vf_log_exponent(field), vf_mul_add(lost, back, f));
    return vf_with_sign(vf_log_edges(u, y), x);
}

/* ------------------------------------------------------------- sigmoids ---- */

/* unit (1 + 2^n (1 + q)), where the bits of magic are n plus the exponent of unit. Near
 * n = 24 the unit is half an ulp of the power, so the rounding error of their sum is
 * added to the term with q. */
static inline vf vf_one_plus_exp(vf magic, vf q, float unit)
{
    const vf one = vf_splat(unit), power = vf_power_of_two(magic), sum = power + one;
    return sum + vf_mul_add(power, q, (power - sum) + one);
}

/* unit (1 + e^x), where unit is 2^exponent. */
static inline vf vf_logistic(vf x, float unit, float exponent)
{
    const vf magic = vf_splat(VF_MAGIC + 127.0f + exponent), t = vf_mul_add(x, vf_splat(VF_LOG2_E), magic);
    return vf_one_plus_exp(t, vf_exp_less_one(vf_less_ln2(x, t - magic)), unit);
}

/* x sigmoid(u), computed as x / d with d = 2^-32 (1 + e^-u), where u has the sign of x; x
 * itself for x > top. The factor 2^-32 keeps e^-u finite where the result is not 0 yet.
 * inside is x with a lower bound, so that d is finite. -infinity gives NaN (-infinity * 0). */
static inline vf vf_times_sigmoid(vf x, vf inside, vf d, float top)
{
    const vf y = vf_mul_add(inside / d, vf_splat(0x1p-32f), -(x - x));
    return vf_select(x > vf_splat(top), x, y);
}

/* 1 / (1 + e^-x), with both sides scaled by 2^-64: otherwise e^-x overflows where the
 * result is still subnormal and not 0. */
static inline vf vf_sigmoid(vf x)
{
    const vf d = vf_logistic(vf_at_least(vf_at_most(-x, 105.0f), -40.0f), 0x1p-64f, -64.0f);
    return vf_splat(0x1p-64f) / d;
}

/* x / (1 + e^-x). */
static inline vf vf_silu(vf x)
{
    const vf inside = vf_at_least(x, -110.0f);
    return vf_times_sigmoid(x, inside, vf_logistic(-inside, 0x1p-32f, -32.0f), 30.0f);
}

/* x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3). The base-2 exponent is
 * x (A + B x^2). It is computed in two floats, because it is up to 150 and its absolute
 * error is the relative error of the result. A = a (1 + c) and B = b (1 + c); a has so
 * few bits that a - sum is exact. */
static inline vf vf_gelu_tanh(vf given)
{
    const vf magic = vf_splat(VF_MAGIC + 127.0f - 32.0f);
    const vf a = vf_splat(-0x1.267eap1f), b = vf_splat(-0x1.a562fp-4f), c = vf_splat(0x1.4ebb7ap-11f);
    const vf x = vf_at_least(given, -10.9f), z = x * x, sum = vf_mul_add(b, z, a);
    const vf lost = vf_mul_add(sum, c, vf_mul_add_exact(b, z, a - sum));
    const vf low = vf_mul_add(b, vf_mul_add_exact(x, x, -z), lost);
    const vf t = vf_mul_add(x, sum, magic);
    const vf r = vf_mul_add(x, low, vf_mul_add_exact(x, sum, magic - t));
    const vf power = vf_power_of_two(t), d = power + vf_mul_add(power * r, vf_exp2_slope(r), vf_splat(0x1p-32f));
    return vf_times_sigmoid(given, x, d, 8.0f);
}

/* high + low times 1 - 2 / (1 + e^(k x)), for x >= 0. k log2 e is in two floats: one product would be rounded. */
static inline vf vf_far_tanh(vf x, float scale, float scale_low, float high, float low)
{
    const vf magic = vf_splat(VF_MAGIC + 127.0f), k = vf_splat(scale);
    const vf t = vf_mul_add(x, k, magic);
    const vf r = vf_mul_add(x, vf_splat(scale_low), vf_mul_add_exact(x, k, magic - t));
    const vf d = vf_one_plus_exp(t, vf_exp2_slope(r) * r, 1.0f);
    return vf_splat(high) - (vf_splat(2 * high) / d - vf_splat(low));
}

/* x + x^3 P(x^2) below 0.55; above, 1 - 2 / (1 + e^(2 x)). */
static inline vf vf_tanh(vf given)
{
    const vf x = vf_at_most(vf_abs(given), 10.0f), z = x * x;
    vf p = vf_splat(-0x1.9841bep-8f);
    p = vf_mul_add(p, z, vf_splat(0x1.58c458p-6f));
    p = vf_mul_add(p, z, vf_splat(-0x1.b91b84p-5f));
    p = vf_mul_add(p, z, vf_splat(0x1.110ce4p-3f));
    p = vf_mul_add(p, z, vf_splat(-0x1.55554ap-2f));
    const vf far = vf_far_tanh(x, 0x1.715476p1f, 0x1.4ae0cp-25f, 1.0f, 0.0f);
    return vf_copysign(vf_select(x < vf_splat(0.55f), vf_mul_add(x * z, p, x), far), given);
}

/* 1.7159 tanh(2 x / 3) by the same method, with x (1 + P(x^2)) below 1. */
static inline vf vf_lecun_tanh(vf given)
{
    const vf x = vf_at_most(vf_abs(given), 15.0f), z = x * x;
    vf p = vf_splat(-0x1.b87482p-14f);
    p = vf_mul_add(p, z, vf_splat(0x1.d9d13p-11f));
    p = vf_mul_add(p, z, vf_splat(-0x1.60d7eep-8f));
    p = vf_mul_add(p, z, vf_splat(0x1.ed7ceap-6f));
    p = vf_mul_add(p, z, vf_splat(-0x1.5b1394p-3f));
    p = vf_mul_add(p, z, vf_splat(0x1.26c684p-3f));
    const vf far = vf_far_tanh(x, 0x1.ec709ep0f, -0x1.e2fe02p-27f, 1.7159f, (float)(1.7159 - (double)1.7159f));
    return vf_copysign(vf_select(x < vf_splat(1.0f), vf_mul_add(x, p, x), far), given);
}

/* log(1 + e^x): for |x| < 1 log 2 + x / 2 + x^2 P(x^2), else max(x, 0) + log(1 + e^-|x|). */
static inline vf vf_softplus(vf x)
{
    const vf a = vf_abs(x), z = x * x, e = vf_exp_inside(vf_at_least(-a, -104.0f));
    vf p = vf_splat(0x1.ca0dp-20f);
    p = vf_mul_add(p, z, vf_splat(-0x1.b35e6cp-16f));
    p = vf_mul_add(p, z, vf_splat(0x1.6beba8p-12f));
    p = vf_mul_add(p, z, vf_splat(-0x1.5554f6p-8f));
    p = vf_mul_add(p, z, vf_splat(0.125f));
    const vf near = vf_mul_add(x, vf_splat(0.5f), vf_mul_add(z, p, vf_splat(0x1.62e43p-1f)));
    vf q = vf_splat(0x1.b1392ep-5f); /* log(1 + e) / e */
    q = vf_mul_add(q, e, vf_splat(-0x1.0b77fp-3f));
    q = vf_mul_add(q, e, vf_splat(0x1.895082p-3f));
    q = vf_mul_add(q, e, vf_splat(-0x1.fe18fp-3f));
    q = vf_mul_add(q, e, vf_splat(0x1.5547fp-2f));
    q = vf_mul_add(q, e, vf_splat(-0x1.ffffcp-2f));
    q = vf_mul_add(q, e, vf_splat(1.0f));
    return vf_select(a < vf_splat(1.0f), near, vf_mul_add(q, e, vf_relu(x)));
}

/* ----------------------------------------------------------- erf, gelu ----- */

/* x (1 + P(x^2)) for |x| < 0.9, else 1 - e^Q(|x|). */
static inline vf vf_erf(vf given)
{
    const vf x = vf_at_most(vf_abs(given), 4.0f), z = x * x;
    vf p = vf_splat(0x1.6f247cp-14f);
    p = vf_mul_add(p, z, vf_splat(-0x1.af208ep-11f));
    p = vf_mul_add(p, z, vf_splat(0x1.553c56p-8f));
    p = vf_mul_add(p, z, vf_splat(-0x1.b8171ap-6f));
    p = vf_mul_add(p, z, vf_splat(0x1.ce2e32p-4f));
    p = vf_mul_add(p, z, vf_splat(-0x1.812742p-2f));
    p = vf_mul_add(p, z, vf_splat(0x1.06eba8p-3f));
    vf q = vf_splat(0x1.9d84fep-13f);
    q = vf_mul_add(q, x, vf_splat(-0x1.908118p-9f));
    q = vf_mul_add(q, x, vf_splat(0x1.6cfcd6p-6f));
    q = vf_mul_add(q, x, vf_splat(-0x1.aa231p-4f));
    q = vf_mul_add(q, x, vf_splat(-0x1.462cb2p-1f));
    q = vf_mul_add(q, x, vf_splat(-0x1.20b432p0f));
    q = vf_mul_add(q, x, vf_splat(-0x1.743d12p-13f));
    const vf magic = vf_splat(VF_MAGIC + 127.0f), t = vf_mul_add(q, vf_splat(VF_LOG2_E), magic);
    const vf r = vf_less_ln2(q, t - magic), power = vf_power_of_two(t);
    const vf far = vf_mul_add(-power, vf_exp_less_one(r), vf_splat(1.0f) - power);
    return vf_copysign(vf_select(x < vf_splat(0.9f), vf_mul_add(x, p, x), far), given);
}

/* max(x, 0) - a N(-a), a = |x|, where N is the normal cumulative distribution function:
 * a N(-a) = e^(-a^2/2) a t R(t) with t = 1 / (1 + a / 4) and a smooth R. The rounding
 * error of a^2 is added to the exponent. So is the relative error of t, multiplied by
 * 1 + 1.9 t, because t R(t) behaves like t^(1 + 1.9 t). */
static inline vf vf_gelu_far(vf given)
{
    const vf magic = vf_splat(VF_MAGIC + 127.0f + 32.0f), one = vf_splat(1.0f), k = vf_splat(0.25f);
    const vf size = vf_abs(given), a = vf_at_most(size, 14.5f), z = a * a;
    const vf d = vf_mul_add(a, k, one), t = one / d, w = t - vf_splat(0.5f);
    vf rest = vf_splat(0x1.737564p-6f); /* R = first + low + rest w */
    rest = vf_mul_add(rest, w, vf_splat(0x1.1efc4cp-7f));
    rest = vf_mul_add(rest, w, vf_splat(-0x1.a3d69cp-5f));
    rest = vf_mul_add(rest, w, vf_splat(-0x1.c868cap-5f));
    rest = vf_mul_add(rest, w, vf_splat(0x1.edb692p-5f));
    rest = vf_mul_add(rest, w, vf_splat(0x1.eec5acp-3f));
    rest = vf_mul_add(rest, w, vf_splat(0x1.7dff8p-2f));
    rest = vf_mul_add(rest, w, vf_splat(0x1.8c6dbep-2f));
    rest = vf_mul_add(rest, w, vf_splat(0x1.373e3ap-2f));
    const vf first = vf_splat(0x1.82b4cp-3f), p = vf_mul_add(rest, w, first); /* first has few bits, so first - p is exact */
    const vf p_lost = vf_mul_add_exact(rest, w, first - p) - vf_splat(0x1.1cc83p-25f);
    const vf wrong = vf_mul_add(-t, vf_mul_add(a, k, one - d), vf_mul_add_exact(-d, t, one));
    const vf s = vf_mul_add(z, vf_splat(-0x1.715476p-1f), magic), n = s - magic;
    const vf twice = vf_mul_add(t, vf_splat(-3.8f), vf_splat(-2.0f)),
             low = vf_mul_add(wrong, twice, vf_mul_add_exact(a, a, -z));
    /* the exponent is -y / 2 */
    const vf y = vf_mul_add(n, vf_splat(0x1.62e4p0f), z) + vf_mul_add(n, vf_splat(0x1.7f7d1cp-19f), low);
    const vf u = a * t, m = u * p, q = vf_exp_less_one(y * vf_splat(-0.5f));
    vf lost = vf_mul_add(vf_mul_add_exact(a, t, -u), p, vf_mul_add_exact(u, p, -m));
    lost = vf_mul_add(p_lost, u, lost);
    const vf left = (m + vf_mul_add(m, q, vf_mul_add(lost, q, lost))) * vf_power_of_two(s);
    const vf half = vf_splat(0.5f), right = vf_mul_add(given, half, size * half); /* -infinity gives NaN */
    const vf sum = vf_mul_add(left, vf_splat(-0x1p-32f), right);
    return VF_FUSED ? sum : vf_with_sign(sum, given); /* without FMA an underflowing product is 0 */
}

/* x (1/2 + x P(x^2)) for |x| < 1/2, else vf_gelu_far. */
static inline vf vf_gelu(vf x)
{
    const vf z = x * x;
    vf p = vf_splat(-0x1.2c5738p-10f);
    p = vf_mul_add(p, z, vf_splat(0x1.46bbbcp-7f));
    p = vf_mul_add(p, z, vf_splat(-0x1.105882p-4f));
    p = vf_mul_add(p, z, vf_splat(0x1.988454p-2f));
    const vf near = x * vf_mul_add(p, x, vf_splat(0.5f));
    return vf_select(vf_abs(x) < vf_splat(0.5f), near, vf_gelu_far(x));
}

/* -------------------------------------------------------- sinh and cosh ---- */

/* e^x / 4 for x >= 0; e^x / 2 could overflow in an intermediate result. */
static inline vf vf_quarter_exp(vf given)
{
    const vf x = vf_at_most(given, 89.6f), magic = vf_splat(VF_MAGIC + 125.0f);
    const vf t = vf_mul_add(x, vf_splat(VF_LOG2_E), magic), r = vf_less_ln2(x, t - magic);
    return vf_exp_of(r) * vf_power_of_two(t);
}

static inline vf vf_sinh(vf given)
{
    const vf x = vf_abs(given), z = x * x, e = vf_quarter_exp(x);
    vf p = vf_splat(0x1.75abep-19f);
    p = vf_mul_add(p, z, vf_splat(0x1.a02136p-13f));
    p = vf_mul_add(p, z, vf_splat(0x1.1110e2p-7f));
    p = vf_mul_add(p, z, vf_splat(0x1.555556p-3f));
    const vf far = e - vf_splat(0.0625f) / e;
    return vf_copysign(vf_select(x < vf_splat(1.0f), vf_mul_add(z * x, p, x), far + far), given);
}

static inline vf vf_cosh(vf x)
{
    const vf e = vf_quarter_exp(vf_abs(x)), y = e + vf_splat(0.0625f) / e;
    return y + y;
}

#endif
