/* Peak loops for AVX-512. The compute loops are inline assembly, so that the compiler cannot
 * spill an accumulator, and so that this file is compiled without the flags for VNNI and BF16,
 * which the plain AVX-512 loops must not use. */
#include "profile/peak_loops.h"

#if defined(__AVX512F__)
#include <immintrin.h>

/* The sum of the lanes, modulo 2^32. It only keeps the compiler from removing the loop. */
static float total16(__m512i x)
{
    uint32_t lane[16], sum = 0;
    _mm512_storeu_si512(lane, x);
    for (int i = 0; i < 16; i++) sum += lane[i];
    return (float)sum;
}

float mica__peak_fma_f32_avx512(int64_t rounds)
{
    const __m512 a = _mm512_set1_ps(0.9999f), b = _mm512_set1_ps(1e-4f);
#define BEGIN(i) __m512 s##i = _mm512_set1_ps((float)(i));
#define STEP(i) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(s##i) : "v"(a), "v"(b));
#define TOTAL(i) all = _mm512_add_ps(all, s##i);
    PEAK_EACH_SUM(BEGIN)
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM(STEP)
    }
    __m512 all = _mm512_setzero_ps();
    PEAK_EACH_SUM(TOTAL)
#undef STEP
    return _mm512_cvtss_f32(all);
}

float mica__peak_dot_bf16_avx512(int64_t rounds)
{
    const __m512i a = _mm512_set1_epi16(0x3f80), b = _mm512_set1_epi16(0x3400); /* 1 and 2^-23 */
#define STEP(i) __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(s##i) : "v"(a), "v"(b));
    PEAK_EACH_SUM(BEGIN)
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM(STEP)
    }
    __m512 all = _mm512_setzero_ps();
    PEAK_EACH_SUM(TOTAL)
#undef BEGIN
#undef STEP
#undef TOTAL
    return _mm512_cvtss_f32(all);
}

float mica__peak_dot_i8_avx512(int64_t rounds)
{
    const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-2);
#define BEGIN(i) __m512i s##i = _mm512_set1_epi32(i);
#define STEP(i) __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(s##i) : "v"(a), "v"(b));
#define TOTAL(i) all = _mm512_xor_si512(all, s##i);
    PEAK_EACH_SUM(BEGIN)
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM(STEP)
    }
    __m512i all = _mm512_setzero_si512();
    PEAK_EACH_SUM(TOTAL)
#undef BEGIN
#undef STEP
#undef TOTAL
    return total16(all);
}

static __m512i load16(const float *p) { return _mm512_load_si512((const void *)p); }

float mica__peak_read_avx512(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    (void)y, (void)b;
    const size_t quarter = n / 4;
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t r = 0; r < rounds; r++) {
        for (const float *p = a, *end = a + quarter; p < end; p += 16) {
            s0 = _mm512_xor_si512(s0, load16(p));
            s1 = _mm512_xor_si512(s1, load16(p + quarter));
            s2 = _mm512_xor_si512(s2, load16(p + 2 * quarter));
            s3 = _mm512_xor_si512(s3, load16(p + 3 * quarter));
        }
        __asm__ volatile("" ::: "memory");
    }
    s0 = _mm512_xor_si512(_mm512_xor_si512(s0, s1), _mm512_xor_si512(s2, s3));
    return total16(s0);
}

#endif
