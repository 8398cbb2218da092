/* Products of bf16 with bfmmla, two rows by two columns (gemm_dot.h), which treats subnormals as 0. */
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define SIMD_BYTES 16
#include "kernels/matmul/gemm_dot_cells.h"

#define DOT_CELL DOT_BF16
#define DOT_PAIRED
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 256
#define DOT_STEP(sum, a, b) (u32x4) vbfmmlaq_f32((float32x4_t)(sum), (bfloat16x8_t)(a), (bfloat16x8_t)(b))
#define DOT_NAME(what) mica__dot_##what##_bf16_neon
#include "kernels/matmul/gemm_dot_body.inc"
#else
typedef int gemm_dot_bf16_is_for_another_cpu;
#endif
