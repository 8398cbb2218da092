/* Products of 8-bit integers with vpdpbusd, unsigned times signed (gemm_dot.h). */
#if defined(__AVX512VNNI__)
#define SIMD_BYTES 64
#include "kernels/matmul/gemm_dot_cells.h"

/* Inline assembly: GCC 12 copies the accumulator before each use of the intrinsic. */
SIMD_INLINE vu dot_step_vnni(vu sum, vu a, vu b)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}

#define DOT_CELL DOT_BYTES
#define DOT_A_UNSIGNED 1
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 128
#define DOT_STEP(sum, a, b) dot_step_vnni(sum, a, b)
#define DOT_NAME(what) mica__dot_##what##_int_vnni
#include "kernels/matmul/gemm_dot_body.inc"
#else
typedef int gemm_dot_avx512vnni_is_for_another_cpu;
#endif
