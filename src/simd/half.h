/* Converts float vectors from and to f16 and bf16 in memory (any alignment). Rounds to
 * nearest, ties to even; a NaN becomes quiet and keeps its sign and upper payload bits.
 * Uses the conversion instructions of the CPU if it has them. */
#ifndef MICA_SIMD_HALF_H
#define MICA_SIMD_HALF_H

#include <string.h>

#include "simd/vector.h"

/* 16-bit elements, as many as a float vector has lanes. */
typedef uint16_t vh __attribute__((vector_size(SIMD_BYTES / 2)));

static inline vu vu_from_u16(const uint16_t *p)
{
    vh x;
    memcpy(&x, p, sizeof x);
    return __builtin_convertvector(x, vu);
}

static inline void vu_to_u16(uint16_t *p, vu x)
{
    const vh y = __builtin_convertvector(x, vh);
    memcpy(p, &y, sizeof y);
}

static inline vf vf_from_bf16(const uint16_t *p) { return (vf)(vu_from_u16(p) << 16); }
static inline void vf_to_bf16(uint16_t *p, vf x) { vu_to_u16(p, (vu)vf_round_bf16(x) >> 16); }

static inline vf vf_from_f16(const uint16_t *p)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)(const void *)p));
#elif defined(__F16C__) && SIMD_BYTES == 32
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(const void *)p));
#elif defined(__aarch64__) && SIMD_BYTES == 16
    return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else
    const vu half = vu_from_u16(p), sign = (half & vu_splat(0x8000)) << 16, rest = (half & vu_splat(0x7fff)) << 13;
    const vu moved = (vu)((vf)rest * vf_splat(0x1p112f)); /* adjusts the exponent bias; exact, for subnormals too */
    const vu beyond = rest | vu_splat(0x7f800000u) | ((vu)((vi)rest > vi_splat(0x0f800000)) & vu_splat(0x400000));
    return (vf)(vu_select((vi)rest >= vi_splat(0x0f800000), beyond, moved) | sign);
#endif
}

static inline void vf_to_f16(uint16_t *p, vf x)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    _mm256_storeu_si256((__m256i_u *)(void *)p, _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__) && SIMD_BYTES == 32
    _mm_storeu_si128((__m128i_u *)(void *)p, _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__) && SIMD_BYTES == 16
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)x)));
#else
    const vu bits = (vu)vf_round_f16(x), sign = bits >> 16 & vu_splat(0x8000), rest = bits & vu_splat(INT32_MAX);
    const vi tiny = (vi)rest < vi_splat(0x38800000), beyond = (vi)rest >= vi_splat(0x7f800000);
    /* below 2^-14 an f16 is a multiple of 2^-24 */
    const vf small = vf_select(tiny, (vf)rest, vf_splat(0.0f)) * vf_splat(0x1p24f);
    const vu number = vu_select(tiny, (vu) __builtin_convertvector(small, vi), (rest - vu_splat(0x38000000)) >> 13);
    vu_to_u16(p, vu_select(beyond, vu_splat(0x7c00) | (rest >> 13 & vu_splat(0x3ff)), number) | sign);
#endif
}

#endif
