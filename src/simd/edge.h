/* Helpers for the ends of vector loops: loads and stores of the tail of an array,
 * horizontal sums and maxima, and stores that bypass the caches. */
#ifndef MICA_SIMD_EDGE_H
#define MICA_SIMD_EDGE_H

#include <string.h>

#include "simd/vector.h"

/* Lane i is i. */
static inline vi vi_count(void)
{
    vi x;
    for (int i = 0; i < SIMD_LANES; i++) x[i] = i;
    return x;
}

/* Loads n floats, n < SIMD_LANES; the other lanes are those of fill. */
static inline vf vf_load_some(const float *p, int64_t n, vf fill)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    return (vf)_mm512_mask_loadu_ps((__m512)fill, (__mmask16)((1u << n) - 1), p);
#elif defined(__AVX2__) && SIMD_BYTES == 32
    const vi mask = vi_count() < vi_splat((int32_t)n);
    return vf_select(mask, (vf)_mm256_maskload_ps(p, (__m256i)mask), fill);
#else
    memcpy(&fill, p, (size_t)n * sizeof *p);
    return fill;
#endif
}

static inline void vf_store_some(float *p, int64_t n, vf x)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)x);
#elif defined(__AVX2__) && SIMD_BYTES == 32
    _mm256_maskstore_ps(p, (__m256i)(vi_count() < vi_splat((int32_t)n)), (__m256)x);
#else
    memcpy(p, &x, (size_t)n * sizeof *p);
#endif
}

/* Lanes 4 i ... 4 i + 3; i is a constant. */
SIMD_INLINE f32x4 vf_quad(vf x, const int i)
{
    f32x4 part;
    memcpy(&part, (const char *)&x + 16 * i, sizeof part);
    return part;
}

/* Adds the upper half to the lower half until four sums are left. */
SIMD_INLINE f32x4 vf_fold(vf x)
{
#if SIMD_BYTES == 64
    return (vf_quad(x, 0) + vf_quad(x, 2)) + (vf_quad(x, 1) + vf_quad(x, 3));
#elif SIMD_BYTES == 32
    return vf_quad(x, 0) + vf_quad(x, 1);
#else
    return vf_quad(x, 0);
#endif
}

/* The sum of all lanes. The order of the additions depends only on SIMD_BYTES. */
static inline float vf_total(vf x) { return f32x4_total(vf_fold(x)); }

/* vf_total of each of four vectors. */
static inline f32x4 vf_totals(const vf x[4])
{
    return f32x4_totals(vf_fold(x[0]), vf_fold(x[1]), vf_fold(x[2]), vf_fold(x[3]));
}

/* As vf_fold, but adds quads in their order, which differs from 64 bytes on. */
SIMD_INLINE f32x4 vf_fold_in_order(vf x)
{
    f32x4 sum = vf_quad(x, 0);
    SIMD_EACH(i, SIMD_BYTES / 16 - 1) sum += vf_quad(x, i + 1);
    return sum;
}

static inline float vf_largest(vf x)
{
    float lane[SIMD_LANES];
    memcpy(lane, &x, sizeof lane);
    float top = lane[0];
    for (int i = 1; i < SIMD_LANES; i++) top = lane[i] > top ? lane[i] : top;
    return top;
}

/* Stores to an address aligned to the vector size; bypasses the caches if the CPU can.
 * Call vf_stream_end before another thread reads the data. */
static inline void vf_stream(float *p, vf x)
{
#if defined(__AVX512F__) && SIMD_BYTES == 64
    _mm512_stream_ps(p, (__m512)x);
#elif defined(__AVX__) && SIMD_BYTES == 32
    _mm256_stream_ps(p, (__m256)x);
#elif defined(__SSE2__) && SIMD_BYTES == 16
    _mm_stream_ps(p, (__m128)x);
#else
    vf_store(p, x);
#endif
}

static inline void vf_stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
