/* Products of 8-bit integers with smmla: two rows by two columns (gemm_dot.h). */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define SIMD_BYTES 16
#include "kernels/matmul/gemm_dot_cells.h"

#define DOT_CELL DOT_BYTES
#define DOT_PAIRED
#define DOT_A_UNSIGNED 0
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 256
#define DOT_STEP(sum, a, b) (u32x4) vmmlaq_s32((int32x4_t)(sum), (int8x16_t)(a), (int8x16_t)(b))
#define DOT_NAME(what) mica__dot_##what##_int_i8mm
#include "kernels/matmul/gemm_dot_body.inc"
#else
typedef int gemm_dot_i8mm_is_for_another_cpu;
#endif
