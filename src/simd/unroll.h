/* Inlining and unrolling of kernel code, for each compiler. Kernels hold their accumulators in arrays, and an array
 * stays in registers only if the loops over it are unrolled, inside functions that are inlined with constant counts.
 * The optimiser decides otherwise for large bodies, so both are forced. */
#ifndef MICA_SIMD_UNROLL_H
#define MICA_SIMD_UNROLL_H

/* Starts the definition of a function that is inlined at every call. */
#define SIMD_INLINE static inline __attribute__((always_inline))

/* for (int i = 0; i < n; i++), unrolled completely. n: a constant after inlining, at most 16. */
#if defined(__clang__)
#define SIMD_EACH(i, n) _Pragma("clang loop unroll(full)") for (int i = 0; i < (n); i++)
#else
#define SIMD_EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#endif

/* Before a loop that the compiler must not unroll: its body already fills the registers. */
#if defined(__clang__)
#define SIMD_ROLLED _Pragma("clang loop unroll_count(1)")
#else
#define SIMD_ROLLED _Pragma("GCC unroll 1")
#endif

#endif
