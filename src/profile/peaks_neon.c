/* Peak loops for NEON, which every 64-bit ARM CPU has. */
#include "profile/peak_loops.h"

#if defined(__aarch64__)
#include <arm_neon.h>

float mica__peak_fma_f32_neon(int64_t rounds)
{
    const float32x4_t a = vdupq_n_f32(0.9999f), b = vdupq_n_f32(1e-4f);
#define BEGIN(i) float32x4_t s##i = vdupq_n_f32((float)(i));
#define STEP(i) __asm__ volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(s##i) : "w"(a), "w"(b));
#define TOTAL(i) all = vaddq_f32(all, s##i);
    PEAK_EACH_SUM_NEON(BEGIN)
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM_NEON(STEP)
    }
    float32x4_t all = vdupq_n_f32(0);
    PEAK_EACH_SUM_NEON(TOTAL)
#undef BEGIN
#undef STEP
#undef TOTAL
    return vaddvq_f32(all);
}

float mica__peak_read_neon(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    (void)y, (void)b;
    uint32x4_t s0 = vdupq_n_u32(0), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t r = 0; r < rounds; r++) {
        const uint32_t *p = (const uint32_t *)(const void *)a;
        for (size_t i = 0; i < n; i += 16) {
            s0 = veorq_u32(s0, vld1q_u32(p + i));
            s1 = veorq_u32(s1, vld1q_u32(p + i + 4));
            s2 = veorq_u32(s2, vld1q_u32(p + i + 8));
            s3 = veorq_u32(s3, vld1q_u32(p + i + 12));
        }
        __asm__ volatile("" ::: "memory");
    }
    return (float)vaddvq_u32(veorq_u32(veorq_u32(s0, s1), veorq_u32(s2, s3)));
}

float mica__peak_copy_neon(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    (void)b;
    for (int64_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < n; i += 8) {
            const float32x4_t low = vld1q_f32(a + i), high = vld1q_f32(a + i + 4);
            vst1q_f32(y + i, low);
            vst1q_f32(y + i + 4, high);
        }
    return 0;
}

float mica__peak_triad_neon(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    for (int64_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < n; i += 8) {
            vst1q_f32(y + i, vfmaq_n_f32(vld1q_f32(a + i), vld1q_f32(b + i), 3.0f));
            vst1q_f32(y + i + 4, vfmaq_n_f32(vld1q_f32(a + i + 4), vld1q_f32(b + i + 4), 3.0f));
        }
    return 0;
}

#endif
