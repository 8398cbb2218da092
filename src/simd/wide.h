/* Lanes of 64 bits, half as many as a vf has: doubles (vf64), integers (vi64, vu64); integer ops take and return vu64,
 * whose sums wrap. And float functions that need double precision in intermediate results: pow, whose base-2 exponent
 * is a product of up to 150, and erfinv, which is steep. Within 1 ulp. */
#ifndef MICA_SIMD_WIDE_H
#define MICA_SIMD_WIDE_H

#include <math.h>
#include <string.h>

#include "simd/polynomials.h"
#include "simd/vector.h"

static inline vf64 vf64_splat(double x) { return x - (vf64){0}; }
static inline vf64 vf64_select(vi64 mask, vf64 a, vf64 b) { return (vf64)(((vi64)a & mask) | ((vi64)b & ~mask)); }

static inline vu64 vu64_select(vi64 mask, vu64 a, vu64 b) { return ((vu64)mask & a) | (~(vu64)mask & b); }

static inline vf64 vf64_abs(vf64 x) { return (vf64)((vi64)x & INT64_MAX); }
static inline vf64 vf64_relu(vf64 x) { return vf64_select((x > 0.0) | (x != x), x, (vf64){0}); }
static inline vf64 vf64_min(vf64 a, vf64 b) { return vf64_select((a < b) | (a != a), a, b); }
static inline vf64 vf64_max(vf64 a, vf64 b) { return vf64_select((a > b) | (a != a), a, b); }
static inline vf64 vf64_sqrt(vf64 x)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf64)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX__) && SIMD_BYTES == 32
    return (vf64)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__) && SIMD_BYTES == 16
    return (vf64)_mm_sqrt_pd((__m128d)x);
#elif defined(__aarch64__) && SIMD_BYTES == 16
    return (vf64)vsqrtq_f64((float64x2_t)x);
#else
    for (int i = 0; i < SIMD_LANES / 2; i++) x[i] = __builtin_sqrt(x[i]);
    return x;
#endif
}
static inline vf64 vf64_sign(vf64 x)
{
    return vf64_select(x > 0.0, (vf64){0} + 1.0, vf64_select(x < 0.0, (vf64){0} - 1.0, x));
}

static inline vu64 vi64_abs(vu64 x) { return vu64_select((vi64)x < 0, 0u - x, x); }
static inline vu64 vi64_relu(vu64 x) { return vu64_select((vi64)x > 0, x, (vu64){0}); }
static inline vu64 vi64_sign(vu64 x) { return (vu64)((vi64)x < 0) - (vu64)((vi64)x > 0); }
static inline vu64 vu64_sign(vu64 x) { return 0u - (vu64)(x != 0); }
static inline vu64 vi64_min(vu64 a, vu64 b) { return vu64_select((vi64)b < (vi64)a, b, a); }
static inline vu64 vi64_max(vu64 a, vu64 b) { return vu64_select((vi64)a < (vi64)b, b, a); }
static inline vu64 vu64_min(vu64 a, vu64 b) { return vu64_select((vi64)(b < a), b, a); }
static inline vu64 vu64_max(vu64 a, vu64 b) { return vu64_select((vi64)(a < b), b, a); }
/* A count outside 0 ... 63 shifts out all bits. */
static inline vu64 vu64_shift_left(vu64 a, vu64 b) { return (a << (b & 63u)) & (vu64)(b < 64u); }
static inline vu64 vu64_shift_right(vu64 a, vu64 b) { return (a >> (b & 63u)) & (vu64)(b < 64u); }
static inline vu64 vi64_shift_right(vu64 a, vu64 b)
{
    return (vu64)((vi64)a >> (vi64)vu64_select((vi64)(b < 64u), b, (vu64){0} + 63u));
}

/* ------------------------------------------------- floats through doubles -- */

typedef struct vf64_pair {
    vf64 low, high;
} vf64_pair;

static inline vf64_pair vf_widen(vf x)
{
    hf32 part[2];
    memcpy(part, &x, sizeof x);
    return (vf64_pair){__builtin_convertvector(part[0], vf64), __builtin_convertvector(part[1], vf64)};
}

static inline vf vf_narrow(vf64_pair x)
{
    const hf32 part[2] = {__builtin_convertvector(x.low, hf32), __builtin_convertvector(x.high, hf32)};
    vf y;
    memcpy(&y, part, sizeof y);
    return y;
}

/* a * b + c, rounded once if the CPU has FMA, otherwise twice. */
static inline vf64 vf64_mul_add(vf64 a, vf64 b, vf64 c)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__) && SIMD_BYTES == 32
    return (vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__) && SIMD_BYTES == 16
    return (vf64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b + c;
#endif
}

/* log2 of a positive normal number, relative error 2^-38: log(1 + f) = 2 atanh(f / (2 + f)). */
static inline vf64 vf64_log2(vf64 x)
{
    const vu64 bias = (vu64){0} + 1023, bits = (vu64)x;
    const vu64 field = (bits + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu)) >> 52;
    const vf64 e = (vf64)(field | (vu64)vf64_splat(0x1p52)) - vf64_splat(0x1p52 + 1023);
    const vf64 f = (vf64)(bits - ((field - bias) << 52)) - vf64_splat(1.0), s = f / (f + vf64_splat(2.0)), z = s * s;
    vf64 p = vf64_splat(2.0 / 13);
    p = vf64_mul_add(p, z, vf64_splat(2.0 / 11));
    p = vf64_mul_add(p, z, vf64_splat(2.0 / 9));
    p = vf64_mul_add(p, z, vf64_splat(2.0 / 7));
    p = vf64_mul_add(p, z, vf64_splat(2.0 / 5));
    p = vf64_mul_add(p, z, vf64_splat(2.0 / 3));
    p = vf64_mul_add(p, z, vf64_splat(2.0));
    return vf64_mul_add(p * s, vf64_splat(0x1.71547652b82fep0), e);
}

/* 2^x, relative error 2^-34; x is clamped to a range whose ends become 0 or infinity as a float. */
static inline vf64 vf64_exp2(vf64 x)
{
    const vf64 low = vf64_splat(-200.0), high = vf64_splat(200.0), magic = vf64_splat(0x1.8p52);
    x = vf64_select(x < low, low, vf64_select(x > high, high, x));
    const vf64 t = x + magic, r = x - (t - magic);
    vf64 p = vf64_splat(0x1.62c0223a5c824p-20); /* coefficients (ln 2)^k / k! */
    p = vf64_mul_add(p, r, vf64_splat(0x1.ffcbfc588b0c7p-17));
    p = vf64_mul_add(p, r, vf64_splat(0x1.430912f86c787p-13));
    p = vf64_mul_add(p, r, vf64_splat(0x1.5d87fe78a6731p-10));
    p = vf64_mul_add(p, r, vf64_splat(0x1.3b2ab6fba4e77p-7));
    p = vf64_mul_add(p, r, vf64_splat(0x1.c6b08d704a0c0p-5));
    p = vf64_mul_add(p, r, vf64_splat(0x1.ebfbdff82c58fp-3));
    p = vf64_mul_add(p, r, vf64_splat(0x1.62e42fefa39efp-1));
    p = vf64_mul_add(p, r, vf64_splat(1.0));
    const vu64 power = ((vu64)t - (vu64)magic + (vu64){0} + 1023) << 52;
    return p * (vf64)power;
}

/* ----------------------------------------------------------------- pow ----- */

/* a^b. For b = 2 the result is a * a, because the algebra pass may rewrite it so. Lanes
 * with zeros, infinities or NaN call powf; the other lanes do not. */
static inline vf vf_pow(vf a, vf b)
{
    const vf size = vf_abs(a), two = vf_splat(2.0f), limit = vf_splat(__builtin_inff());
    const vi special = ~((size > vf_splat(0.0f)) & (size < limit) & (vf_abs(b) < limit));
    const vf64_pair x = vf_widen(size), e = vf_widen(b);
    vf y = vf_narrow((vf64_pair){vf64_exp2(e.low * vf64_log2(x.low)), vf64_exp2(e.high * vf64_log2(x.high))});
    const vi whole = vf_round(b) == b, even = vf_round(b / two) == b / two, negative = a < vf_splat(0.0f);
    y = (vf)((vu)y ^ ((vu)(negative & whole & ~even) & vu_splat(0x80000000u)));
    y = vf_select(negative & ~whole, vf_splat(__builtin_nanf("")), y);
    if (vi_some(special))
        for (int i = 0; i < SIMD_LANES; i++)
            if (special[i]) y[i] = powf(a[i], b[i]);
    return vf_select(b == two, a * a, y);
}

/* -------------------------------------------------------------- erfinv ----- */

/* x P(w) with w = -log(1 - x^2); for w >= 4.5, x Q(sqrt w). */
static inline vf64 vf64_erfinv(vf64 x)
{
    const vf64 one = vf64_splat(1.0), w = vf64_log2((one - x) * (one + x)) * vf64_splat(-0x1.62e42fefa39efp-1);
    vf64 root = w;
    for (int i = 0; i < SIMD_LANES / 2; i++) root[i] = sqrt(w[i]);
    const vf64 u = w - vf64_splat(2.5), v = root - vf64_splat(3.0);
    const vf64 p = POLY(10, vf64_mul_add, vf64_splat, u, POLY_ERFINV);
    const vf64 q = POLY(12, vf64_mul_add, vf64_splat, v, POLY_ERFINV_FAR);
    return x * vf64_select(w < vf64_splat(4.5), p, q);
}

static inline vf vf_erfinv(vf x)
{
    const vf one = vf_splat(1.0f), size = vf_abs(x);
    const vf64_pair wide = vf_widen(x);
    const vf y = vf_narrow((vf64_pair){vf64_erfinv(wide.low), vf64_erfinv(wide.high)});
    const vf edge = vf_copysign(vf_select(size == one, vf_splat(__builtin_inff()), vf_splat(__builtin_nanf(""))), x);
    return vf_select(size < one, y, edge);
}

#endif
