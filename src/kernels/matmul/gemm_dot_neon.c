/* Products of narrow operands for CPUs with NEON (gemm_dot.h). */
#if defined(__aarch64__)
#define SIMD_BYTES 16
#include "kernels/matmul/gemm_dot_cells.h"

#define DOT_CELL DOT_WINOGRAD
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 256
#define DOT_NAME(what) mica__dot_##what##_int_neon
#include "kernels/matmul/gemm_dot_body.inc"

#define DOT_CELL DOT_F32
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 256
#define DOT_STEP(sum, a, b) vf_mul_add((vf)(a), (vf)(b), sum)
#define DOT_NAME(what) mica__dot_##what##_half_neon
#include "kernels/matmul/gemm_dot_body.inc"

#define LINES_NAME(what) mica__lines_##what##_neon
#include "kernels/matmul/gemm_lines_body.inc"
#else
typedef int gemm_dot_neon_is_for_another_cpu;
#endif
