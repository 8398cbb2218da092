/* Peak loops for AVX2 with FMA. The compute loops are inline assembly, so that the compiler
 * cannot spill an accumulator to memory. */
#include <stdbool.h>

#include "profile/peak_loops.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

float mica__peak_fma_f32_avx2(int64_t rounds)
{
    const __m256 a = _mm256_set1_ps(0.9999f), b = _mm256_set1_ps(1e-4f);
#define BEGIN(i) __m256 s##i = _mm256_set1_ps((float)(i));
#define STEP(i) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+x"(s##i) : "x"(a), "x"(b));
#define TOTAL(i) all = _mm256_add_ps(all, s##i);
    PEAK_EACH_SUM(BEGIN)
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM(STEP)
    }
    __m256 all = _mm256_setzero_ps();
    PEAK_EACH_SUM(TOTAL)
#undef BEGIN
#undef STEP
#undef TOTAL
    return _mm256_cvtss_f32(all);
}

/* vpmaddubsw: pairs of 8-bit products, summed to 16 bits, without accumulation. This is the limit
 * of the multiply units. Exact 32-bit sums need a second multiply (vpmaddwd), so an exact kernel
 * reaches about half. */
float mica__peak_dot_i8_avx2(int64_t rounds)
{
    const __m256i b = _mm256_set1_epi8(-2);
#define BEGIN(i) __m256i s##i = _mm256_set1_epi16(i);
#define STEP(i) __asm__ volatile("vpmaddubsw %1, %0, %0" : "+x"(s##i) : "x"(b));
#define TOTAL(i) all = _mm256_xor_si256(all, s##i);
    PEAK_EACH_SUM(BEGIN)
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM(STEP)
    }
    __m256i all = _mm256_setzero_si256();
    PEAK_EACH_SUM(TOTAL)
#undef BEGIN
#undef STEP
#undef TOTAL
    return (float)_mm256_extract_epi32(all, 0);
}

static __m256i load8(const float *p) { return _mm256_load_si256((const __m256i *)(const void *)p); }

/* Four concurrent streams read a few percent faster from DRAM than one. */
float mica__peak_read_avx2(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    (void)y, (void)b;
    const size_t quarter = n / 4;
    __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    for (int64_t r = 0; r < rounds; r++) {
        for (const float *p = a, *end = a + quarter; p < end; p += 16) {
            s0 = _mm256_xor_si256(s0, load8(p));
            t0 = _mm256_xor_si256(t0, load8(p + 8));
            s1 = _mm256_xor_si256(s1, load8(p + quarter));
            t1 = _mm256_xor_si256(t1, load8(p + quarter + 8));
            s2 = _mm256_xor_si256(s2, load8(p + 2 * quarter));
            t2 = _mm256_xor_si256(t2, load8(p + 2 * quarter + 8));
            s3 = _mm256_xor_si256(s3, load8(p + 3 * quarter));
            t3 = _mm256_xor_si256(t3, load8(p + 3 * quarter + 8));
        }
        __asm__ volatile("" ::: "memory");
    }
    s0 = _mm256_xor_si256(_mm256_xor_si256(s0, s1), _mm256_xor_si256(s2, s3));
    t0 = _mm256_xor_si256(_mm256_xor_si256(t0, t1), _mm256_xor_si256(t2, t3));
    return (float)_mm256_extract_epi32(_mm256_xor_si256(s0, t0), 0);
}

/* Stores through the caches, or around them (stream). Streaming stores avoid reading a cache
 * line that is overwritten completely. */
static inline void store8(float *p, __m256 v, bool stream)
{
    if (stream) _mm256_stream_ps(p, v);
    else _mm256_store_ps(p, v);
}

static inline float copy_body(float *y, const float *a, size_t n, int64_t rounds, bool stream)
{
    for (int64_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < n; i += 16) {
            store8(y + i, _mm256_load_ps(a + i), stream);
            store8(y + i + 8, _mm256_load_ps(a + i + 8), stream);
        }
    _mm_sfence();
    return 0;
}

static inline float triad_body(float *y, const float *a, const float *b, size_t n, int64_t rounds, bool stream)
{
    const __m256 c = _mm256_set1_ps(3.0f);
    for (int64_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < n; i += 16) {
            store8(y + i, _mm256_fmadd_ps(c, _mm256_load_ps(b + i), _mm256_load_ps(a + i)), stream);
            store8(y + i + 8, _mm256_fmadd_ps(c, _mm256_load_ps(b + i + 8), _mm256_load_ps(a + i + 8)), stream);
        }
    _mm_sfence();
    return 0;
}

float mica__peak_copy_avx2(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    (void)b;
    return copy_body(y, a, n, rounds, false);
}

float mica__peak_copy_stream_avx2(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    (void)b;
    return copy_body(y, a, n, rounds, true);
}

float mica__peak_triad_avx2(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    return triad_body(y, a, b, n, rounds, false);
}

float mica__peak_triad_stream_avx2(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    return triad_body(y, a, b, n, rounds, true);
}

#endif
