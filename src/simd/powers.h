/* e^(x - base) for the numbers of a row with a known upper bound, as softmax needs it.
 * base is near the bound, so results are at most about 1. Results below 1e-38 are 0; a
 * NaN stays NaN.
 *
 * If the CPU can look up eight floats in a register (AVX2, AVX-512), base is N ln 2:
 * x = (n / 8) ln 2 + r. 2^(n/8) is read from a table that includes 2^-N, and r is so small
 * that a cubic polynomial is enough. Nothing is subtracted from x, so no difference is
 * rounded: the error is 2 ulp down to e^-22 of the largest result, and 5 ulp at the small
 * end. Other CPUs compute exp(x - top), 1 ulp, but rounding x - top costs up to 50 ulp there. */
#ifndef MICA_SIMD_POWERS_H
#define MICA_SIMD_POWERS_H

#include <math.h>
#include <string.h>

#include "simd/functions.h"

#if (SIMD_BYTES == 32 && defined(__AVX2__) && defined(__FMA__)) || (SIMD_BYTES == 64 && defined(__AVX512F__))
#define VF_HAS_TABLE 1
#else
#define VF_HAS_TABLE 0
#endif

/* (e^r - 1 - r) / r^2: the expf of Cephes, one term more than POLY_EXP. */
#define POWERS_EXP \
    1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f

/* The largest |top|. Callers must scale larger numbers down first, because n must fit. */
#define VF_POWERS_MOST 1e4f

typedef struct vf_powers {
    vf low;                     /* the result is 0 below this x (x - top without a table) */
#if VF_HAS_TABLE
    vu table;
#else
    vf top;
#endif
    double base;
} vf_powers;

/* top: the upper bound; |top| <= VF_POWERS_MOST. */
static inline vf_powers vf_powers_below(float top)
{
    vf_powers k;
#if VF_HAS_TABLE
    static const float eighth[8] = {0x1p0f,        0x1.172b84p0f, 0x1.306fep0f,  0x1.4bfdaep0f,
                                    0x1.6a09e6p0f, 0x1.8ace54p0f, 0x1.ae89fap0f, 0x1.d5818ep0f};
    const int32_t n = (int32_t)ceilf(top * POLY_LOG2_E);
    uint32_t lane[SIMD_LANES];
    for (int j = 0; j < SIMD_LANES; j++) {
        memcpy(&lane[j], &eighth[j % 8], sizeof *lane);
        /* vf_power adds n << 20 to the bits, which includes j: subtract j here, and N too */
        lane[j] -= ((uint32_t)j % 8 << 20) + ((uint32_t)n << 23);
    }
    memcpy(&k.table, lane, sizeof k.table);
    /* r is x minus a multiple of this float, which is slightly larger than ln 2 / 8 */
    k.base = (double)n * 8 * (double)0x1.62e43p-4f;
    k.low = vf_splat((float)(k.base - 87.33));
#else
    k.top = vf_splat(top);
    k.base = (double)top;
    k.low = vf_splat(-87.33f);
#endif
    return k;
}

static inline vf vf_power(const vf_powers *k, vf x)
{
#if VF_HAS_TABLE
    const vf t = vf_mul_add(x, vf_splat(8 * POLY_LOG2_E), vf_splat(POLY_MAGIC)), n = t - vf_splat(POLY_MAGIC);
    const vf r = vf_mul_add(n, vf_splat(-0x1.62e43p-4f), x);
    const vf p = vf_mul_add(vf_mul_add(r, vf_splat(0x1.556598p-3f), vf_splat(0x1.00089ap-1f)), r * r, r);
#if SIMD_BYTES == 64
    const vu found = (vu)_mm512_permutexvar_epi32((__m512i)t, (__m512i)k->table);
#else
    const vu found = (vu)_mm256_permutevar8x32_epi32((__m256i)k->table, (__m256i)t);
#endif
    const vf scale = (vf)(found + ((vu)t << 20));
#else
    x -= k->top;
    const vf t = vf_mul_add(x, vf_splat(POLY_LOG2_E), vf_splat(POLY_MAGIC)), n = t - vf_splat(POLY_MAGIC);
    vf r = vf_mul_add(n, vf_splat(-POLY_LN2_HIGH), x);
    r = vf_mul_add(n, vf_splat(-POLY_LN2_LOW), r);
    vf p = POLY(6, vf_mul_add, vf_splat, r, POWERS_EXP);
    p = vf_mul_add(p, r * r, r);
    const vf scale = (vf)(((vu)t << 23) + vu_splat(0x3f800000u));
#endif
    /* scale has the exponent and is never NaN; results for x < low are invalid and are set to 0 */
    return (vf)((vu)vf_mul_add(scale, p, scale) & ~(vu)(x < k->low));
}

#endif
