/* Products of bf16 with vdpbf16ps (gemm_dot.h), which treats subnormals as 0. */
#if defined(__AVX512BF16__)
#define SIMD_BYTES 64
#include "kernels/matmul/gemm_dot_cells.h"

/* Inline assembly, as in gemm_dot_avx512vnni.c. */
SIMD_INLINE vf dot_step_bf16(vf sum, vu a, vu b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}

#define DOT_CELL DOT_BF16
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 128
#define DOT_STEP(sum, a, b) dot_step_bf16(sum, a, b)
#define DOT_NAME(what) mica__dot_##what##_bf16_avx512
#include "kernels/matmul/gemm_dot_body.inc"
#else
typedef int gemm_dot_avx512bf16_is_for_another_cpu;
#endif
