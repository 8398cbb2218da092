/* Vectors of 32-bit lanes from and to narrower elements in memory (any alignment): 8-bit and 16-bit integers, f16,
 * bf16. Floats are rounded to nearest, ties to even; a NaN becomes quiet, keeps sign and upper payload bits. Uses
 * the conversion instructions of the CPU if it has them: gcc 12 converts vectors of 16 bytes and less in many steps. */
#ifndef MICA_SIMD_NARROW_H
#define MICA_SIMD_NARROW_H

#include "simd/vector.h"

/* ---------------------------------------------------------------- integers -- */

SIMD_INLINE vu vu_from_u8(const void *p)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vu)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i_u *)p));
#elif defined(__AVX2__) && SIMD_BYTES == 32
    return (vu)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)p));
#else
    return __builtin_convertvector(*(const lu8_any *)p, vu);
#endif
}

SIMD_INLINE vi vi_from_i8(const void *p)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vi)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i_u *)p));
#elif defined(__AVX2__) && SIMD_BYTES == 32
    return (vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i_u *)p));
#else
    return __builtin_convertvector(*(const li8_any *)p, vi);
#endif
}

SIMD_INLINE vu vu_from_u16(const void *p)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)p));
#elif defined(__AVX2__) && SIMD_BYTES == 32
    return (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)p));
#else
    return __builtin_convertvector(*(const lu16_any *)p, vu);
#endif
}

SIMD_INLINE vi vi_from_i16(const void *p)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vi)_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i_u *)p));
#elif defined(__AVX2__) && SIMD_BYTES == 32
    return (vi)_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i_u *)p));
#else
    return __builtin_convertvector(*(const li16_any *)p, vi);
#endif
}

/* The low 16 bits of each lane. */
SIMD_INLINE void vu_to_u16(void *p, vu x) { *(lu16_any *)p = __builtin_convertvector(x & vu_splat(0xffff), lu16); }

/* ------------------------------------------------------------------ floats -- */

SIMD_INLINE vf vf_from_bf16(const void *p) { return (vf)(vu_from_u16(p) << 16); }
SIMD_INLINE void vf_to_bf16(void *p, vf x) { vu_to_u16(p, (vu)vf_round_bf16(x) >> 16); }

SIMD_INLINE vf vf_from_f16(const void *p)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)p));
#elif defined(__F16C__) && SIMD_BYTES == 32
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)p));
#elif defined(__aarch64__) && SIMD_BYTES == 16
    return (vf)vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
#else
    const vu half = vu_from_u16(p), sign = (half & vu_splat(0x8000)) << 16, rest = (half & vu_splat(0x7fff)) << 13;
    const vu moved = (vu)((vf)rest * vf_splat(0x1p112f)); /* adjusts the exponent bias; exact, for subnormals too */
    const vu beyond = rest | vu_splat(0x7f800000u) | ((vu)((vi)rest > vi_splat(0x0f800000)) & vu_splat(0x400000));
    return (vf)(vu_select((vi)rest >= vi_splat(0x0f800000), beyond, moved) | sign);
#endif
}

SIMD_INLINE void vf_to_f16(void *p, vf x)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    _mm256_storeu_si256((__m256i_u *)p, _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__) && SIMD_BYTES == 32
    _mm_storeu_si128((__m128i_u *)p, _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__) && SIMD_BYTES == 16
    vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32((float32x4_t)x)));
#else
    const vu bits = (vu)vf_round_f16(x), sign = bits >> 16 & vu_splat(0x8000), rest = bits & vu_splat(INT32_MAX);
    /* below 2^-14 an f16 is a multiple of 2^-24, the last place of a float between 1/2 and 1 */
    const vu tiny = (vu)((vf)rest + vf_splat(0.5f)) - vu_splat(0x3f000000);
    const vu number = vu_select((vi)rest < vi_splat(0x38800000), tiny, (rest - vu_splat(0x38000000)) >> 13);
    const vu beyond = vu_splat(0x7c00) | (rest >> 13 & vu_splat(0x3ff));
    vu_to_u16(p, vu_select((vi)rest >= vi_splat(0x7f800000), beyond, number) | sign);
#endif
}

#endif
