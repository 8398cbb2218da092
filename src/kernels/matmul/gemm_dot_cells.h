/* Building blocks of packing and kernels for narrow operands: four cells from one row (contiguous along k), a cell per
 * lane from several rows (contiguous columns), and the multiplications. Static functions for the vector width of the
 * including file (simd/vector.h). */
#ifndef MICA_KERNELS_MATMUL_GEMM_DOT_CELLS_H
#define MICA_KERNELS_MATMUL_GEMM_DOT_CELLS_H

#include <string.h>

#include "kernels/matmul/gemm_dot.h"
#include "simd/vector.h"

/* Content of a cell (gemm_dot_body.inc). */
#define DOT_F32 1
#define DOT_WINOGRAD 2
#define DOT_BYTES 3
#define DOT_BF16 4

typedef uint32_t cell4 __attribute__((vector_size(16)));
typedef uint64_t cell2 __attribute__((vector_size(16)));  /* of eight bytes */
typedef uint32_t cell4_any __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t vl __attribute__((vector_size(SIMD_BYTES)));
typedef uint32_t vu_any __attribute__((vector_size(SIMD_BYTES), aligned(1), may_alias));
/* Lanes of the width in memory, and 16-bit lanes. */
typedef int8_t lane_i8 __attribute__((vector_size(SIMD_LANES), aligned(1), may_alias));
typedef uint8_t lane_u8 __attribute__((vector_size(SIMD_LANES), aligned(1), may_alias));
typedef uint16_t lane_u16 __attribute__((vector_size(2 * SIMD_LANES), aligned(1), may_alias));
typedef int16_t vs __attribute__((vector_size(SIMD_BYTES)));
typedef uint16_t vus __attribute__((vector_size(SIMD_BYTES)));
typedef int8_t half_i8 __attribute__((vector_size(SIMD_BYTES / 2), aligned(1), may_alias));
typedef uint8_t half_u8 __attribute__((vector_size(SIMD_BYTES / 2), aligned(1), may_alias));
typedef int16_t vs_any __attribute__((vector_size(SIMD_BYTES), aligned(1), may_alias));
typedef int8_t eight_i8 __attribute__((vector_size(8), aligned(1), may_alias));
typedef uint8_t eight_u8 __attribute__((vector_size(8), aligned(1), may_alias));
typedef int16_t eight_s __attribute__((vector_size(16)));
typedef uint16_t four_u16 __attribute__((vector_size(8), aligned(1), may_alias));

/* mica_dtype_size for a constant dtype. */
SIMD_INLINE int64_t dot_size(mica_dtype dtype)
{
    return dtype == MICA_F32 ? 4 : dtype == MICA_F16 || dtype == MICA_BF16 ? 2 : 1;
}

SIMD_INLINE cell4 cells_load(const char *p) { return *(const cell4_any *)p; }
SIMD_INLINE void cells_store(char *p, cell4 x) { *(cell4_any *)p = x; }
SIMD_INLINE vu lanes_load(const char *p) { return *(const vu_any *)p; }
SIMD_INLINE void lanes_store(char *p, vu x) { *(vu_any *)p = x; }
SIMD_INLINE vu cell_splat(const char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return vu_splat(x);
}

/* Widening uses intrinsics on x86: GCC 12 splits the generic form into half vectors. */

/* 16 bits per lane. */
SIMD_INLINE vu lanes_u16(const char *p)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif defined(__AVX2__) && SIMD_BYTES == 32
    return (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    return __builtin_convertvector(*(const lane_u16 *)(const void *)p, vu);
#endif
}

/* ------------------------------------------------------------------ floats -- */

/* Reads f16 as if its exponent had the bias of f32, then scales by the difference: exact, also for subnormals. The
 * exponent of infinities and NaN is set separately. */
#define DOT_F16_BITS(type_u, type_f, type_i, half, splat_u, splat_f)                                 \
    const type_u rest = ((half) & splat_u(0x7fffu)) << 13, sign = ((half) & splat_u(0x8000u)) << 16; \
    const type_u scaled = (type_u)((type_f)rest * splat_f(0x1p112f));                                \
    const type_u odd = (type_u)((type_i)rest >= (type_i)splat_u(0x0f800000u));                       \
    const type_u nan = (type_u)((type_i)rest > (type_i)splat_u(0x0f800000u)) & splat_u(0x400000u);   \
    const type_u bits = (scaled & ~odd) | ((rest | splat_u(0x7f800000u) | nan) & odd);

SIMD_INLINE vf lanes_f16(const char *p)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif defined(__F16C__) && SIMD_BYTES == 32
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif defined(__aarch64__) && SIMD_BYTES == 16
    return (vf)vcvt_f32_f16(vld1_f16((const float16_t *)(const void *)p));
#else
    const vu half = lanes_u16(p);
    DOT_F16_BITS(vu, vf, vi, half, vu_splat, vf_splat)
    return (vf)(bits | sign);
#endif
}

/* One float per lane, from any float dtype except f64. */
SIMD_INLINE vf lanes_float(mica_dtype dtype, const char *p)
{
    if (dtype == MICA_F32) return *(const vf_any *)(const void *)p;
    if (dtype == MICA_F16) return lanes_f16(p);
    return (vf)(lanes_u16(p) << 16);
}

typedef float four_f __attribute__((vector_size(16)));
typedef int32_t four_i __attribute__((vector_size(16)));
SIMD_INLINE cell4 four_splat_u(uint32_t x) { return (cell4){x, x, x, x}; }
SIMD_INLINE four_f four_splat_f(float x) { return (four_f){x, x, x, x}; }

SIMD_INLINE cell4 cells_float(mica_dtype dtype, const char *p)
{
    if (dtype == MICA_F32) return cells_load(p);
    if (dtype == MICA_F16) {
#if defined(__F16C__)
        return (cell4)_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)p));
#else
        const cell4 half = __builtin_convertvector(*(const four_u16 *)(const void *)p, cell4);
        DOT_F16_BITS(cell4, four_f, four_i, half, four_splat_u, four_splat_f)
        return bits | sign;
#endif
    }
#if defined(__SSE4_1__)
    return (cell4)_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)) << 16;
#else
    return __builtin_convertvector(*(const four_u16 *)(const void *)p, cell4) << 16;
#endif
}

/* ---------------------------------------------------------------- integers -- */

/* Products of 16-bit lanes, added per cell: they fit 32 bits. */
SIMD_INLINE vu dot_pairs(vs a, vs b)
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
#if defined(__AVX512F__) && SIMD_BYTES == 64
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    return dtype == MICA_I8 ? (vu)_mm512_cvtepi8_epi32(x) : (vu)_mm512_cvtepu8_epi32(x);
#elif defined(__AVX2__) && SIMD_BYTES == 32
    const __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return dtype == MICA_I8 ? (vu)_mm256_cvtepi8_epi32(x) : (vu)_mm256_cvtepu8_epi32(x);
#else
    if (dtype == MICA_I8) return (vu) __builtin_convertvector(*(const lane_i8 *)(const void *)p, vi);
    return __builtin_convertvector(*(const lane_u8 *)(const void *)p, vu);
#endif
}

/* Adjacent bytes as 16-bit lanes. */
SIMD_INLINE vs lanes_short(mica_dtype dtype, const char *p)
{
#if defined(__AVX512BW__) && SIMD_BYTES == 64
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return dtype == MICA_I8 ? (vs)_mm512_cvtepi8_epi16(x) : (vs)_mm512_cvtepu8_epi16(x);
#elif defined(__AVX2__) && SIMD_BYTES == 32
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    return dtype == MICA_I8 ? (vs)_mm256_cvtepi8_epi16(x) : (vs)_mm256_cvtepu8_epi16(x);
#else
    if (dtype == MICA_I8) return __builtin_convertvector(*(const half_i8 *)(const void *)p, vs);
    return (vs) __builtin_convertvector(*(const half_u8 *)(const void *)p, vus);
#endif
}

SIMD_INLINE eight_s eight_shorts(mica_dtype dtype, const char *p)
{
#if defined(__SSE4_1__)
    const __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return dtype == MICA_I8 ? (eight_s)_mm_cvtepi8_epi16(x) : (eight_s)_mm_cvtepu8_epi16(x);
#else
    if (dtype == MICA_I8) return __builtin_convertvector(*(const eight_i8 *)(const void *)p, eight_s);
    return __builtin_convertvector(*(const eight_u8 *)(const void *)p, eight_s);
#endif
}

/* --------------------------------------------------------------- transpose -- */

/* Rows of four cells to columns. */
SIMD_INLINE void cells_transpose(cell4 x[4])
{
    const cell4 a = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5),
                b = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
    const cell4 c = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7),
                d = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
    x[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    x[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    x[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    x[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

/* Gathers n elements, `step` bytes apart. */
SIMD_INLINE void cells_gather(int64_t size, int64_t n, const char *from, int64_t step, char *to)
{
    for (int64_t i = 0; i < n; i++) memcpy(to + i * size, from + i * step, (size_t)size);
}

#endif
