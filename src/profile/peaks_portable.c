/* Peak loops in plain C for any machine: 16-byte vectors, separate multiply and add. */
#include <string.h>

#include "profile/peak_loops.h"

typedef float vec4 __attribute__((vector_size(16)));
typedef uint64_t vec2u __attribute__((vector_size(16)));

float mica__peak_fma_f32_portable(int64_t rounds)
{
    const vec4 a = {0.9999f, 0.9998f, 0.9997f, 0.9996f}, b = {1e-4f, 2e-4f, 3e-4f, 4e-4f};
#define BEGIN(i) vec4 s##i = {(float)(i), 1, 2, 3};
#define STEP(i) s##i = s##i * a + b;
#define TOTAL(i) all += s##i;
    PEAK_EACH_SUM(BEGIN)
    for (int64_t r = 0; r < rounds; r++) {
        PEAK_EACH_SUM(STEP)
    }
    vec4 all = {0};
    PEAK_EACH_SUM(TOTAL)
#undef BEGIN
#undef STEP
#undef TOTAL
    return all[0] + all[1] + all[2] + all[3];
}

float mica__peak_read_portable(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    (void)y, (void)b;
    vec2u s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (int64_t r = 0; r < rounds; r++) {
        const vec2u *p = (const vec2u *)(const void *)a, *end = (const vec2u *)(const void *)(a + n);
        for (; p < end; p += 4) {
            s0 ^= p[0];
            s1 ^= p[1];
            s2 ^= p[2];
            s3 ^= p[3];
        }
        /* prevents the compiler from reading once for all rounds */
        __asm__ volatile("" ::: "memory");
    }
    s0 ^= s1 ^ s2 ^ s3;
    return (float)(s0[0] ^ s0[1]);
}

float mica__peak_copy_portable(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    (void)b;
    for (int64_t r = 0; r < rounds; r++) memcpy(y, a, n * sizeof *y);
    return y[0];
}

float mica__peak_triad_portable(float *y, const float *a, const float *b, size_t n, int64_t rounds)
{
    for (int64_t r = 0; r < rounds; r++) {
        vec4 *to = (vec4 *)(void *)y;
        const vec4 *p = (const vec4 *)(const void *)a, *q = (const vec4 *)(const void *)b;
        for (size_t i = 0; i < n / 4; i++) to[i] = p[i] + 3.0f * q[i];
    }
    return y[0];
}
