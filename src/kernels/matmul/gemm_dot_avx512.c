/* Products of narrow operands for CPUs with AVX-512 (gemm_dot.h). */
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#include "kernels/matmul/gemm_dot_cells.h"

#define DOT_CELL DOT_WINOGRAD
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 128
#define DOT_NAME(what) mica__dot_##what##_int_avx512
#include "kernels/matmul/gemm_dot_body.inc"

#define DOT_CELL DOT_F32
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 128
#define DOT_STEP(sum, a, b) vf_mul_add((vf)(a), (vf)(b), sum)
#define DOT_NAME(what) mica__dot_##what##_half_avx512
#include "kernels/matmul/gemm_dot_body.inc"

#define LINES_NAME(what) mica__lines_##what##_avx512
#include "kernels/matmul/gemm_lines_body.inc"
#else
typedef int gemm_dot_avx512_is_for_another_cpu;
#endif
