/* Peak loops for ARM dot products and small matrix products. The compiler flags of this file
 * enable all of them; each function runs only if the CPU has its instruction. */
#include "profile/peak_loops.h"

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>

#define BEGIN(i) int32x4_t s##i = vdupq_n_s32(i);
#define TOTAL(i) all = veorq_s32(all, s##i);
#define DOT(i, text) __asm__ volatile(text : "+w"(s##i) : "w"(a), "w"(b));

float mica__peak_sdot_neon(int64_t rounds)
{
    const int8x16_t a = vdupq_n_s8(1), b = vdupq_n_s8(2);
    PEAK_EACH_SUM_NEON(BEGIN)
#define STEP(i) DOT(i, "sdot %0.4s, %1.16b, %2.16b")
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM_NEON(STEP)
    }
#undef STEP
    int32x4_t all = vdupq_n_s32(0);
    PEAK_EACH_SUM_NEON(TOTAL)
    return (float)vaddvq_s32(all);
}

float mica__peak_smmla_neon(int64_t rounds)
{
    const int8x16_t a = vdupq_n_s8(1), b = vdupq_n_s8(2);
    PEAK_EACH_SUM_NEON(BEGIN)
#define STEP(i) DOT(i, "smmla %0.4s, %1.16b, %2.16b")
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM_NEON(STEP)
    }
#undef STEP
    int32x4_t all = vdupq_n_s32(0);
    PEAK_EACH_SUM_NEON(TOTAL)
    return (float)vaddvq_s32(all);
}

float mica__peak_bfdot_neon(int64_t rounds)
{
    const int8x16_t a = vdupq_n_s8(1), b = vdupq_n_s8(2);
    PEAK_EACH_SUM_NEON(BEGIN)
#define STEP(i) DOT(i, "bfdot %0.4s, %1.8h, %2.8h")
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM_NEON(STEP)
    }
#undef STEP
    int32x4_t all = vdupq_n_s32(0);
    PEAK_EACH_SUM_NEON(TOTAL)
    return (float)vaddvq_s32(all);
}

float mica__peak_bfmmla_neon(int64_t rounds)
{
    const int8x16_t a = vdupq_n_s8(1), b = vdupq_n_s8(2);
    PEAK_EACH_SUM_NEON(BEGIN)
#define STEP(i) DOT(i, "bfmmla %0.4s, %1.8h, %2.8h")
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM_NEON(STEP)
    }
#undef STEP
    int32x4_t all = vdupq_n_s32(0);
    PEAK_EACH_SUM_NEON(TOTAL)
    return (float)vaddvq_s32(all);
}

#undef BEGIN
#undef TOTAL
#undef DOT

#endif
