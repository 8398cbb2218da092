/* Building blocks of packing and kernels for narrow operands: four cells from one row (contiguous along k), a cell per
 * lane from several rows (contiguous columns), and the multiplications. Static functions for the vector width of the
 * including file (simd/vector.h). */
#ifndef MICA_KERNELS_MATMUL_GEMM_DOT_CELLS_H
#define MICA_KERNELS_MATMUL_GEMM_DOT_CELLS_H

#include <string.h>

#include "kernels/matmul/gemm_dot.h"
#include "simd/narrow.h"

/* Content of a cell (gemm_dot_body.inc). */
#define DOT_F32 1
#define DOT_WINOGRAD 2
#define DOT_BYTES 3
#define DOT_BF16 4

/* mica_dtype_size for a constant dtype. */
SIMD_INLINE int64_t dot_size(mica_dtype dtype)
{
    return dtype == MICA_F32 ? 4 : dtype == MICA_F16 || dtype == MICA_BF16 ? 2 : 1;
}

/* ------------------------------------------------------------------ floats -- */

/* One float per lane, from any float dtype except f64. */
SIMD_INLINE vf lanes_float(mica_dtype dtype, const char *p)
{
    if (dtype == MICA_F32) return *(const vf_any *)(const void *)p;
    if (dtype == MICA_F16) return vf_from_f16(p);
    return vf_from_bf16(p);
}

SIMD_INLINE u32x4 cells_float(mica_dtype dtype, const char *p)
{
    if (dtype == MICA_F32) return u32x4_load(p);
    if (dtype == MICA_F16) {
#if defined(__F16C__)
        return (u32x4)_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)p));
#else
        /* the portable part of vf_from_f16, four lanes wide */
        const u32x4 half = __builtin_convertvector(*(const u16x4_any *)(const void *)p, u32x4);
        const u32x4 rest = (half & 0x7fff) << 13, sign = (half & 0x8000) << 16, odd = (u32x4)(rest >= 0x0f800000);
        const u32x4 beyond = rest | 0x7f800000 | ((u32x4)(rest > 0x0f800000) & 0x400000);
        return (((u32x4)((f32x4)rest * 0x1p112f) & ~odd) | (beyond & odd)) | sign;
#endif
    }
#if defined(__SSE4_1__)
    return (u32x4)_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)) << 16;
#else
    return __builtin_convertvector(*(const u16x4_any *)(const void *)p, u32x4) << 16;
#endif
}

/* ---------------------------------------------------------------- integers -- */

/* Products of 16-bit lanes, added per cell: they fit 32 bits. */
SIMD_INLINE vu dot_pairs(vi16 a, vi16 b)
{
#if defined(__AVX512BW__) && SIMD_BYTES == 64
    return (vu)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && SIMD_BYTES == 32
    return (vu)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && SIMD_BYTES == 16
    return (vu)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined(__aarch64__) && SIMD_BYTES == 16
    const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)a), vget_low_s16((int16x8_t)b));
    return (vu)vpaddq_s32(low, vmull_high_s16((int16x8_t)a, (int16x8_t)b));
#else
    const vi low_a = (vi)((vu)a << 16) >> 16, low_b = (vi)((vu)b << 16) >> 16;
    return (vu)low_a * (vu)low_b + (vu)((vi)a >> 16) * (vu)((vi)b >> 16);
#endif
}

/* A byte per lane, sign-extended if the dtype is signed. */
SIMD_INLINE vu lanes_byte(mica_dtype dtype, const char *p)
{
    return dtype == MICA_I8 ? (vu)vi_from_i8(p) : vu_from_u8(p);
}

/* Adjacent bytes as 16-bit lanes. */
SIMD_INLINE vi16 lanes_short(mica_dtype dtype, const char *p)
{
#if defined(__AVX512BW__) && SIMD_BYTES == 64
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return dtype == MICA_I8 ? (vi16)_mm512_cvtepi8_epi16(x) : (vi16)_mm512_cvtepu8_epi16(x);
#elif defined(__AVX2__) && SIMD_BYTES == 32
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    return dtype == MICA_I8 ? (vi16)_mm256_cvtepi8_epi16(x) : (vi16)_mm256_cvtepu8_epi16(x);
#else
    if (dtype == MICA_I8) return __builtin_convertvector(*(const hi8_any *)(const void *)p, vi16);
    return (vi16) __builtin_convertvector(*(const hu8_any *)(const void *)p, vu16);
#endif
}

SIMD_INLINE i16x8 eight_shorts(mica_dtype dtype, const char *p)
{
#if defined(__SSE4_1__)
    const __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return dtype == MICA_I8 ? (i16x8)_mm_cvtepi8_epi16(x) : (i16x8)_mm_cvtepu8_epi16(x);
#else
    if (dtype == MICA_I8) return __builtin_convertvector(*(const i8x8_any *)(const void *)p, i16x8);
    return __builtin_convertvector(*(const u8x8_any *)(const void *)p, i16x8);
#endif
}

/* --------------------------------------------------------------- transpose -- */

/* Rows of four cells to columns. */
SIMD_INLINE void cells_transpose(u32x4 x[4])
{
    const u32x4 a = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5),
                b = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
    const u32x4 c = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7),
                d = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
    x[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    x[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    x[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    x[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

/* Gathers n elements with a stride of `step` bytes. */
SIMD_INLINE void cells_gather(int64_t size, int64_t n, const char *from, int64_t step, char *to)
{
    for (int64_t i = 0; i < n; i++) memcpy(to + i * size, from + i * step, (size_t)size);
}

#endif
