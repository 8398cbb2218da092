/* Vectors of a fixed number of elements, for code that is compiled once for all CPUs and for parts of wider vectors.
 * SSE2 and NEON have registers of 16 bytes; GNU C splits or joins other sizes. README.md has the rule of the names. */
#ifndef MICA_SIMD_FIXED_H
#define MICA_SIMD_FIXED_H

#include <stdint.h>

/* name, and name_any: in memory, any alignment, any declared type. */
#define SIMD_TYPE(name, element, bytes)                       \
    typedef element name __attribute__((vector_size(bytes))); \
    typedef element name##_any __attribute__((vector_size(bytes), aligned(1), may_alias));

SIMD_TYPE(f32x4, float, 16)
SIMD_TYPE(i32x4, int32_t, 16)
SIMD_TYPE(u32x4, uint32_t, 16)
SIMD_TYPE(u64x2, uint64_t, 16)
SIMD_TYPE(i16x8, int16_t, 16)
SIMD_TYPE(f64x4, double, 32) /* never pass it to a function: AVX changes how */
SIMD_TYPE(u16x4, uint16_t, 8)
SIMD_TYPE(i8x8, int8_t, 8)
SIMD_TYPE(u8x8, uint8_t, 8)

static inline f32x4 f32x4_load(const float *p) { return *(const f32x4_any *)p; }
static inline void f32x4_store(float *p, f32x4 x) { *(f32x4_any *)p = x; }
static inline f32x4 f32x4_splat(float x) { return (f32x4){x, x, x, x}; }
static inline float f32x4_total(f32x4 x) { return (x[0] + x[2]) + (x[1] + x[3]); }

static inline u32x4 u32x4_load(const void *p) { return *(const u32x4_any *)p; }
static inline void u32x4_store(void *p, u32x4 x) { *(u32x4_any *)p = x; }
static inline u32x4 u32x4_splat(uint32_t x) { return (u32x4){x, x, x, x}; }

/* a0 b0 a1 b1, and a2 b2 a3 b3. */
static inline f32x4 f32x4_low_pairs(f32x4 a, f32x4 b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
static inline f32x4 f32x4_high_pairs(f32x4 a, f32x4 b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }

/* f32x4_total of a, b, c and d. */
static inline f32x4 f32x4_totals(f32x4 a, f32x4 b, f32x4 c, f32x4 d)
{
    const f32x4 ab = f32x4_low_pairs(a, b) + f32x4_high_pairs(a, b);
    const f32x4 cd = f32x4_low_pairs(c, d) + f32x4_high_pairs(c, d);
    return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

#endif
