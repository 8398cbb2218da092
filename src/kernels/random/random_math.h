/* The arithmetic of random numbers in f32: integer operations and single IEEE
 * additions, multiplications, divisions and square roots in a fixed order, so
 * that every machine gets the same bits (compile without contraction). The
 * functions use u32 and f32 only and can be pasted into a shader that has
 * `uint`, `sqrt` and a bit cast. */
#ifndef MICA_KERNELS_RANDOM_MATH_H
#define MICA_KERNELS_RANDOM_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "simd/polynomials.h"

static inline float mica__f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t mica__bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The largest number below x; x finite. */
static inline float mica__below_f32(float x)
{
    const uint32_t bits = mica__bits_of_f32(x);
    if ((bits & 0x7fffffffu) == 0) return mica__f32_of_bits(0x80000001u);
    return mica__f32_of_bits(bits >> 31 ? bits + 1 : bits - 1);
}

/* In [a, b). */
static inline float mica__uniform_f32(uint32_t bits, float a, float b)
{
    const float u = (float)(bits >> 8) * 0x1p-24f;
    const float width = b - a;
    float x = a + u * width;
    if (width > 3.4028234e38f) x = a * (1.0f - u) + b * u; /* b - a is infinite */
    return x >= b && a < b ? mica__below_f32(b) : x;
}

/* (bits + 1/2) / 2^32 as the distance from the nearer end of (0, 1): in
 * [2^-33, 1/2], with *upper set if that end is 1. */
static inline float mica__tail_f32(uint32_t bits, uint32_t *upper)
{
    *upper = bits >> 31;
    const uint32_t n = *upper ? ~bits : bits;
    return ((float)n + 0.5f) * 0x1p-32f;
}

/* log(1 + x) for sqrt(1/2) <= 1 + x <= sqrt(2), without the term x: Cephes' logf. */
static inline float mica__log_rest_f32(float x)
{
    const float z = x * x;
    return POLY(9, POLY_MUL_ADD, POLY_SCALAR, x, POLY_LOG_CEPHES) * x * z - 0.5f * z;
}

/* log(x), x positive, finite and normal. */
static inline float mica__log_f32(float x)
{
    const uint32_t bits = mica__bits_of_f32(x);
    /* The fraction between sqrt(1/2) and sqrt(2): 0x3f3504f3 is sqrt(1/2). */
    const uint32_t shifted = bits - 0x3f3504f3u;
    const int32_t e = (int32_t)(shifted & 0xff800000u) / 0x800000;
    const float m = mica__f32_of_bits((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const float n = (float)e;
    /* log(2) in two parts: n times the first is exact. */
    const float low = mica__log_rest_f32(m) + n * POLY_CEPHES_LN2_LOW;
    return (m + low) + n * POLY_CEPHES_LN2_HIGH;
}

/* The x >= 0 that a standard normal number exceeds with probability p, p in
 * (0, 1/2]: PPND7 of Wichura, "Algorithm AS 241", 1988, to about 1e-7. */
static inline float mica__normal_tail_f32(float p)
{
    const float q = 0.5f - p;
    if (q <= 0.425f) {
        const float r = 0.180625f - q * q;
        const float a = POLY(4, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_MIDDLE_TOP);
        const float b = POLY(4, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_MIDDLE_BOTTOM);
        return q * a / b;
    }
    float r = sqrtf(-mica__log_f32(p));
    if (r <= 5.0f) {
        r = r - 1.6f;
        const float c = POLY(4, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_TAIL_TOP);
        const float d = POLY(3, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_TAIL_BOTTOM);
        return c / d;
    }
    r = r - 5.0f;
    const float e = POLY(4, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_END_TOP);
    const float f = POLY(3, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_END_BOTTOM);
    return e / f;
}

/* A normal number between a and b. low = P(x < a), high = P(x > b), middle is
 * the rest; side: -1 if b <= 0, 1 if a >= 0, else 0. Intervals that begin
 * MICA__FAR_F32 or more from 0 are for mica__normal_far_f32. Without bounds: low =
 * high = 0, middle = 1, a = -inf, b = inf. */
static inline float mica__normal_f32(uint32_t bits, float low, float middle, float high, int32_t side, float a, float b)
{
    uint32_t upper;
    float p = mica__tail_f32(bits, &upper);
    if (side < 0) {
        if (upper) p = 1.0f - p;
        upper = 0;
    } else if (side > 0) {
        if (!upper) p = 1.0f - p;
        upper = 1;
    }
    float t = (upper ? high : low) + p * middle;
    if (t > 0.5f) {
        t = 1.0f - t;
        upper = 1 - upper;
    }
    if (t < 1.17549435e-38f) t = 1.17549435e-38f;
    const float magnitude = mica__normal_tail_f32(t);
    float x = upper ? magnitude : -magnitude;
    if (x < a) x = a;
    if (x > b) x = b;
    return x;
}

/* Far from 0 the probabilities underflow f32, so only their ratios are used. The interval goes from `end` to a farther
 * `other`, both as distances from 0, and Q(x) is the probability of a number above x. */
#define MICA__FAR_F32 8.0
typedef struct mica__normal_far {
    float end;            /* 0: the interval is not far from 0  */
    float square;         /* 1 / end^2                          */
    float log_end;        /* mica__far_log_f32(square)          */
    float inside, beyond; /* 1 - Q(other) / Q(end), and Q(other) / Q(end) */
} mica__normal_far;

/* log(x Q(x) / phi(x)), t = 1 / x^2: the asymptotic series, to 1e-6 where x >= MICA__FAR_F32. */
static inline float mica__far_log_f32(float t) { return t * POLY(4, POLY_MUL_ADD, POLY_SCALAR, t, POLY_NORMAL_BEYOND); }

/* The x = end * (1 + r) with Q(x) / Q(end) = exp(-e), where e is exponentially distributed and cut to the interval.
 * From Q(x) = phi(x) / x * exp(far_log(1 / x^2)): r + r^2 / 2 = square * (e - log(1 + r) + far_log(x) -
 * far_log(end)). Each step of the iteration gains a factor of end^2 >= 64. */
static inline float mica__normal_far_f32(uint32_t bits, const mica__normal_far *f, int32_t side, float a, float b)
{
    uint32_t upper;
    const float p = mica__tail_f32(bits, &upper);
    if (side < 0) upper = 1 - upper; /* the far end of the interval is the lower one */
    const float u = upper ? 1.0f - p : p, w = u * f->inside;
    const float e =
        w < 0.25f ? w - mica__log_rest_f32(-w) : -mica__log_f32(f->beyond + (upper ? p : 1.0f - p) * f->inside);
    float rest = e, r = 0.0f;
    for (int i = 0; i < 4; i++) {
        const float c = f->square * rest;
        r = 2.0f * c / (1.0f + sqrtf(1.0f + 2.0f * c));
        const float ratio = 1.0f + r, t = f->square / (ratio * ratio);
        rest = (e - (r + mica__log_rest_f32(r))) + (mica__far_log_f32(t) - f->log_end);
    }
    const float magnitude = f->end + f->end * r;
    float x = side < 0 ? -magnitude : magnitude;
    if (x < a) x = a;
    if (x > b) x = b;
    return x;
}

/* -log(-log(u)) */
static inline float mica__gumbel_f32(uint32_t bits)
{
    uint32_t upper;
    const float p = mica__tail_f32(bits, &upper);
    float e; /* -log(u) */
    if (!upper) e = -mica__log_f32(p);
    else if (p < 0.25f) e = p - mica__log_rest_f32(-p);
    else e = -mica__log_f32(1.0f - p);
    return -mica__log_f32(e);
}

#endif
