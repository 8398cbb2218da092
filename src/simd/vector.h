/* Vectors in GNU C, so that one source serves every instruction set (README.md has the names); used by the
 * chain interpreter and by kernels. The including file, one per instruction set, sets
 * SIMD_BYTES. A width that the CPU does not have is slower but correct. Everything is
 * static, so that variants do not conflict in the linker. */
#ifndef MICA_SIMD_VECTOR_H
#define MICA_SIMD_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "simd/fixed.h"
#include "simd/unroll.h"

#ifndef SIMD_BYTES
#error "set SIMD_BYTES before including this"
#endif

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { SIMD_LANES = SIMD_BYTES / 4 };

/* A whole register. */
SIMD_TYPE(vf, float, SIMD_BYTES)
SIMD_TYPE(vi, int32_t, SIMD_BYTES)
SIMD_TYPE(vu, uint32_t, SIMD_BYTES)
SIMD_TYPE(vf64, double, SIMD_BYTES)
SIMD_TYPE(vi64, int64_t, SIMD_BYTES)
SIMD_TYPE(vu64, uint64_t, SIMD_BYTES)
SIMD_TYPE(vi16, int16_t, SIMD_BYTES)
SIMD_TYPE(vu16, uint16_t, SIMD_BYTES)
SIMD_TYPE(vi8, int8_t, SIMD_BYTES)
SIMD_TYPE(vu8, uint8_t, SIMD_BYTES)
/* As many lanes as a vf. Those of 64 bits are two registers: never pass them to a function. */
SIMD_TYPE(lf64, double, 2 * SIMD_BYTES)
SIMD_TYPE(li64, int64_t, 2 * SIMD_BYTES)
SIMD_TYPE(lu64, uint64_t, 2 * SIMD_BYTES)
SIMD_TYPE(li16, int16_t, SIMD_BYTES / 2)
SIMD_TYPE(lu16, uint16_t, SIMD_BYTES / 2)
SIMD_TYPE(li8, int8_t, SIMD_BYTES / 4)
SIMD_TYPE(lu8, uint8_t, SIMD_BYTES / 4)
/* Half a register: what a conversion to elements of twice the size reads. */
SIMD_TYPE(hf32, float, SIMD_BYTES / 2)
SIMD_TYPE(hi8, int8_t, SIMD_BYTES / 2)
SIMD_TYPE(hu8, uint8_t, SIMD_BYTES / 2)

/* x - 0 equals x also for x = -0, so the compiler removes it; x + 0 does not. */
static inline vf vf_splat(float x) { return x - (vf){0}; }
static inline vi vi_splat(int32_t x) { return (vi){0} + x; }
static inline vu vu_splat(uint32_t x) { return (vu){0} + x; }
static inline vu64 vu64_splat(uint64_t x) { return (vu64){0} + x; }

static inline vf vf_load(const float *p) { return *(const vf_any *)p; }
static inline void vf_store(float *p, vf x) { *(vf_any *)p = x; }
static inline vu vu_load(const void *p) { return *(const vu_any *)p; }
static inline void vu_store(void *p, vu x) { *(vu_any *)p = x; }
/* The 32 bits at p in every lane. */
static inline vu vu_splat_at(const void *p)
{
    typedef uint32_t any __attribute__((aligned(1), may_alias));
    return vu_splat(*(const any *)p);
}

/* a * b + c, rounded once if the CPU has FMA, otherwise twice. */
static inline vf vf_mul_add(vf a, vf b, vf c)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__) && SIMD_BYTES == 32
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__) && SIMD_BYTES == 16
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

#if (defined(__AVX512F__) && SIMD_BYTES == 64) || (defined(__FMA__) && SIMD_BYTES == 32) || \
    (defined(__aarch64__) && SIMD_BYTES == 16)
#define VF_FUSED 1
#else
#define VF_FUSED 0
#endif

/* The same for one number. */
static inline float f32_mul_add(float a, float b, float c)
{
#if VF_FUSED
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* a * b + c for sums that cancel, where all bits of the product matter. Without FMA,
 * operands are split into halves of 12 bits, whose products are exact. */
static inline vf vf_mul_add_exact(vf a, vf b, vf c)
{
#if VF_FUSED
    return vf_mul_add(a, b, c);
#else
    const vf p = a * b;
    const vf ah = (vf)((vu)a & vu_splat(0xfffff000u)), al = a - ah;
    const vf bh = (vf)((vu)b & vu_splat(0xfffff000u)), bl = b - bh;
    return (p + c) + (((ah * bh - p) + ah * bl + al * bh) + al * bl);
#endif
}

/* a in lanes where all mask bits are set, b where none is. */
static inline vf vf_select(vi mask, vf a, vf b)
{
#if defined(__AVX__) && SIMD_BYTES == 32
    return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
#endif
}
static inline vu vu_select(vi mask, vu a, vu b) { return (a & (vu)mask) | (b & ~(vu)mask); }
/* Is any lane of the mask set? */
static inline bool vi_some(vi mask)
{
#if defined(__AVX__) && SIMD_BYTES == 32
    return _mm256_movemask_ps((__m256)mask) != 0;
#elif defined(__SSE2__) && SIMD_BYTES == 16
    return _mm_movemask_ps((__m128)mask) != 0;
#elif defined(__aarch64__) && SIMD_BYTES == 16
    return vmaxvq_u32((uint32x4_t)mask) != 0;
#else
    int32_t any = 0;
    for (int i = 0; i < SIMD_LANES; i++) any |= mask[i];
    return any != 0;
#endif
}
/* Converts a mask to 0.0 or 1.0. */
static inline vf vf_bool(vi mask) { return (vf)(mask & (vi)vf_splat(1.0f)); }

/* The lesser (greater) operand; the second if either is NaN or both are 0. */
static inline vf vf_lesser(vf a, vf b)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX__) && SIMD_BYTES == 32
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__) && SIMD_BYTES == 16
    return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
    return vf_select(a < b, a, b);
#endif
}
static inline vf vf_greater_of(vf a, vf b)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX__) && SIMD_BYTES == 32
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__) && SIMD_BYTES == 16
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
    return vf_select(a > b, a, b);
#endif
}
/* Clamp x; a NaN stays NaN. */
static inline vf vf_at_most(vf x, float high) { return vf_lesser(vf_splat(high), x); }
static inline vf vf_at_least(vf x, float low) { return vf_greater_of(vf_splat(low), x); }

/* ------------------------------------------------------------ one operand -- */

static inline vf vf_neg(vf x) { return -x; }
static inline vf vf_abs(vf x) { return (vf)((vi)x & vi_splat(INT32_MAX)); }
static inline vf vf_copysign(vf x, vf sign)
{
    return (vf)(((vi)x & vi_splat(INT32_MAX)) | ((vi)sign & vi_splat(INT32_MIN)));
}
static inline vf vf_square(vf x) { return x * x; }
static inline vf vf_reciprocal(vf x) { return vf_splat(1.0f) / x; }

static inline vf vf_sign(vf x)
{
    const vf zero = vf_splat(0.0f);
    return vf_select(x > zero, vf_splat(1.0f), vf_select(x < zero, vf_splat(-1.0f), x));
}

/* From 2^23 on every float is an integer. False for NaN, which is returned unchanged. */
static inline vi vf_has_fraction(vf x) { return vf_abs(x) < vf_splat(0x1p23f); }

static inline vf vf_floor(vf x)
{
    const vi small = vf_has_fraction(x);
    const vf y = vf_select(small, x, vf_splat(0.0f));
    const vf cut = __builtin_convertvector(__builtin_convertvector(y, vi), vf);
    return vf_select(small, vf_copysign(cut - vf_bool(cut > y), x), x);
}

static inline vf vf_ceil(vf x)
{
    const vi small = vf_has_fraction(x);
    const vf y = vf_select(small, x, vf_splat(0.0f));
    const vf cut = __builtin_convertvector(__builtin_convertvector(y, vi), vf);
    return vf_select(small, vf_copysign(cut + vf_bool(cut < y), x), x);
}

static inline vf vf_trunc(vf x)
{
    const vi small = vf_has_fraction(x);
    const vf y = vf_select(small, x, vf_splat(0.0f));
    return vf_select(small, vf_copysign(__builtin_convertvector(__builtin_convertvector(y, vi), vf), x), x);
}

/* Adding 2^23 leaves no bits for a fraction: the addition rounds, ties to even. */
static inline vf vf_round(vf x)
{
    const vf whole = (vf_abs(x) + vf_splat(0x1p23f)) - vf_splat(0x1p23f);
    return vf_select(vf_has_fraction(x), vf_copysign(whole, x), x);
}

static inline vf vf_relu(vf x) { return (vf)((vi)x & ~(x <= vf_splat(0.0f))); } /* NaN stays NaN */
static inline vf vf_relu2(vf x) { return vf_relu(x) * vf_relu(x); }

static inline vf vf_sqrt(vf x)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX__) && SIMD_BYTES == 32
    return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__) && SIMD_BYTES == 16
    return (vf)_mm_sqrt_ps((__m128)x);
#elif defined(__aarch64__) && SIMD_BYTES == 16
    return (vf)vsqrtq_f32((float32x4_t)x);
#else
    for (int i = 0; i < SIMD_LANES; i++) x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

static inline vf vf_rsqrt(vf x) { return vf_splat(1.0f) / vf_sqrt(x); }

static inline vf vf_truth(vf x) { return vf_bool(x != vf_splat(0.0f)); }
static inline vf vf_not(vf x) { return vf_bool(x == vf_splat(0.0f)); }
static inline vf vf_isnan(vf x) { return vf_bool(x != x); }
static inline vf vf_isinf(vf x) { return vf_bool(vf_abs(x) == vf_splat(__builtin_inff())); }
static inline vf vf_isfinite(vf x) { return vf_bool(vf_abs(x) < vf_splat(__builtin_inff())); }

/* To the nearest bf16, ties to even: the upper 16 bits of a float. */
static inline vf vf_round_bf16(vf x)
{
    const vu bits = (vu)x;
    const vu rounded = bits + vu_splat(0x7fff) + ((bits >> 16) & vu_splat(1));
    return (vf)(vu_select(x != x, bits | vu_splat(0x400000), rounded) & vu_splat(0xffff0000u));
}

/* To the nearest f16, ties to even. */
static inline vf vf_round_f16(vf x)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf)_mm512_cvtph_ps(_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__) && SIMD_BYTES == 32
    return (vf)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__) && SIMD_BYTES == 16
    return (vf)vcvt_f32_f16(vcvt_f16_f32((float32x4_t)x));
#else
    const vu bits = (vu)vf_abs(x), sign = (vu)x & vu_splat(0x80000000u);
    const vu rounded = (bits + vu_splat(0xfff) + ((bits >> 13) & vu_splat(1))) & ~vu_splat(0x1fff);
    const vu finite = vu_select((vi)rounded >= vi_splat(0x47800000), vu_splat(0x7f800000), rounded);
    /* below 2^-14 the ulp of f16 is 2^-24, like that of f32 from 1/2 to 1 */
    const vu tiny = (vu)((vf_abs(x) + vf_splat(0.5f)) - vf_splat(0.5f));
    const vu number = vu_select((vi)bits < vi_splat(0x38800000), tiny, finite);
    const vu nan = (bits | vu_splat(0x400000)) & ~vu_splat(0x1fff);
    return (vf)(vu_select(x != x, nan, number) | sign);
#endif
}

/* ----------------------------------------------------------- two operands -- */

static inline vf vf_add(vf a, vf b) { return a + b; }
static inline vf vf_sub(vf a, vf b) { return a - b; }
static inline vf vf_mul(vf a, vf b) { return a * b; }
static inline vf vf_div(vf a, vf b) { return a / b; }
/* NaN if either operand is NaN. */
static inline vf vf_min(vf a, vf b) { return vf_select(a != a, a, vf_lesser(a, b)); }
static inline vf vf_max(vf a, vf b) { return vf_select(a != a, a, vf_greater_of(a, b)); }
static inline vf vf_equal(vf a, vf b) { return vf_bool(a == b); }
static inline vf vf_not_equal(vf a, vf b) { return vf_bool(a != b); }
static inline vf vf_less(vf a, vf b) { return vf_bool(a < b); }
static inline vf vf_less_equal(vf a, vf b) { return vf_bool(a <= b); }
static inline vf vf_greater(vf a, vf b) { return vf_bool(a > b); }
static inline vf vf_greater_equal(vf a, vf b) { return vf_bool(a >= b); }
static inline vf vf_and(vf a, vf b) { return vf_bool((a != vf_splat(0.0f)) & (b != vf_splat(0.0f))); }
static inline vf vf_or(vf a, vf b) { return vf_bool((a != vf_splat(0.0f)) | (b != vf_splat(0.0f))); }
static inline vf vf_xor(vf a, vf b) { return vf_bool((a != vf_splat(0.0f)) ^ (b != vf_splat(0.0f))); }

#endif
