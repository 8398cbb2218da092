/* Float functions that need double precision in intermediate results: pow, whose
 * base-2 exponent is a product of up to 150, and erfinv, which is steep. A vector has
 * half as many doubles as floats. Within 1 ulp. */
#ifndef MICA_SIMD_WIDE_H
#define MICA_SIMD_WIDE_H

#include <math.h>
#include <string.h>

#include "simd/polynomials.h"
#include "simd/vector.h"

typedef double vx __attribute__((vector_size(SIMD_BYTES)));
typedef int64_t vxi __attribute__((vector_size(SIMD_BYTES)));
typedef uint64_t vxu __attribute__((vector_size(SIMD_BYTES)));
typedef float vf_half __attribute__((vector_size(SIMD_BYTES / 2)));

static inline vx vx_splat(double x) { return x - (vx){0}; }
static inline vx vx_select(vxi mask, vx a, vx b) { return (vx)(((vxi)a & mask) | ((vxi)b & ~mask)); }

typedef struct vx_pair {
    vx low, high;
} vx_pair;

static inline vx_pair vf_widen(vf x)
{
    vf_half part[2];
    memcpy(part, &x, sizeof x);
    return (vx_pair){__builtin_convertvector(part[0], vx), __builtin_convertvector(part[1], vx)};
}

static inline vf vf_narrow(vx_pair x)
{
    const vf_half part[2] = {__builtin_convertvector(x.low, vf_half), __builtin_convertvector(x.high, vf_half)};
    vf y;
    memcpy(&y, part, sizeof y);
    return y;
}

/* a * b + c, rounded once if the CPU has FMA, otherwise twice. */
static inline vx vx_mul_add(vx a, vx b, vx c)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vx)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__) && SIMD_BYTES == 32
    return (vx)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__) && SIMD_BYTES == 16
    return (vx)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b + c;
#endif
}

/* log2 of a positive normal number, relative error 2^-38: log(1 + f) = 2 atanh(f / (2 + f)). */
static inline vx vx_log2(vx x)
{
    const vxu bias = (vxu){0} + 1023, bits = (vxu)x;
    const vxu field = (bits + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu)) >> 52;
    const vx e = (vx)(field | (vxu)vx_splat(0x1p52)) - vx_splat(0x1p52 + 1023);
    const vx f = (vx)(bits - ((field - bias) << 52)) - vx_splat(1.0), s = f / (f + vx_splat(2.0)), z = s * s;
    vx p = vx_splat(2.0 / 13);
    p = vx_mul_add(p, z, vx_splat(2.0 / 11));
    p = vx_mul_add(p, z, vx_splat(2.0 / 9));
    p = vx_mul_add(p, z, vx_splat(2.0 / 7));
    p = vx_mul_add(p, z, vx_splat(2.0 / 5));
    p = vx_mul_add(p, z, vx_splat(2.0 / 3));
    p = vx_mul_add(p, z, vx_splat(2.0));
    return vx_mul_add(p * s, vx_splat(0x1.71547652b82fep0), e);
}

/* 2^x, relative error 2^-34; x is clamped to a range whose ends become 0 or infinity as a float. */
static inline vx vx_exp2(vx x)
{
    const vx low = vx_splat(-200.0), high = vx_splat(200.0), magic = vx_splat(0x1.8p52);
    x = vx_select(x < low, low, vx_select(x > high, high, x));
    const vx t = x + magic, r = x - (t - magic);
    vx p = vx_splat(0x1.62c0223a5c824p-20); /* coefficients (ln 2)^k / k! */
    p = vx_mul_add(p, r, vx_splat(0x1.ffcbfc588b0c7p-17));
    p = vx_mul_add(p, r, vx_splat(0x1.430912f86c787p-13));
    p = vx_mul_add(p, r, vx_splat(0x1.5d87fe78a6731p-10));
    p = vx_mul_add(p, r, vx_splat(0x1.3b2ab6fba4e77p-7));
    p = vx_mul_add(p, r, vx_splat(0x1.c6b08d704a0c0p-5));
    p = vx_mul_add(p, r, vx_splat(0x1.ebfbdff82c58fp-3));
    p = vx_mul_add(p, r, vx_splat(0x1.62e42fefa39efp-1));
    p = vx_mul_add(p, r, vx_splat(1.0));
    const vxu power = ((vxu)t - (vxu)magic + (vxu){0} + 1023) << 52;
    return p * (vx)power;
}

/* ----------------------------------------------------------------- pow ----- */

/* a^b. For b = 2 the result is a * a, because the algebra pass may rewrite it so. Lanes
 * with zeros, infinities or NaN call powf; the other lanes do not. */
static inline vf vf_pow(vf a, vf b)
{
    const vf size = vf_abs(a), two = vf_splat(2.0f), limit = vf_splat(__builtin_inff());
    const vi special = ~((size > vf_splat(0.0f)) & (size < limit) & (vf_abs(b) < limit));
    const vx_pair x = vf_widen(size), e = vf_widen(b);
    vf y = vf_narrow((vx_pair){vx_exp2(e.low * vx_log2(x.low)), vx_exp2(e.high * vx_log2(x.high))});
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
static inline vx vx_erfinv(vx x)
{
    const vx one = vx_splat(1.0), w = vx_log2((one - x) * (one + x)) * vx_splat(-0x1.62e42fefa39efp-1);
    vx root = w;
    for (int i = 0; i < SIMD_LANES / 2; i++) root[i] = sqrt(w[i]);
    const vx u = w - vx_splat(2.5), v = root - vx_splat(3.0);
    const vx p = POLY(10, vx_mul_add, vx_splat, u, POLY_ERFINV);
    const vx q = POLY(12, vx_mul_add, vx_splat, v, POLY_ERFINV_FAR);
    return x * vx_select(w < vx_splat(4.5), p, q);
}

static inline vf vf_erfinv(vf x)
{
    const vf one = vf_splat(1.0f), size = vf_abs(x);
    const vx_pair wide = vf_widen(x);
    const vf y = vf_narrow((vx_pair){vx_erfinv(wide.low), vx_erfinv(wide.high)});
    const vf edge = vf_copysign(vf_select(size == one, vf_splat(__builtin_inff()), vf_splat(__builtin_nanf(""))), x);
    return vf_select(size < one, y, edge);
}

#endif
