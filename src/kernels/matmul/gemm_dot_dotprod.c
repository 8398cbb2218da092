/* Products of 8-bit integers with sdot, signed times signed (gemm_dot.h). */
#if defined(__ARM_FEATURE_DOTPROD)
#define SIMD_BYTES 16
#include "kernels/matmul/gemm_dot_cells.h"

#define DOT_CELL DOT_BYTES
#define DOT_A_UNSIGNED 0
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 256
#define DOT_STEP(sum, a, b) (vu) vdotq_s32((int32x4_t)(sum), (int8x16_t)(a), (int8x16_t)(b))
#define DOT_NAME(what) mica__dot_##what##_int_dotprod
#include "kernels/matmul/gemm_dot_body.inc"
#else
typedef int gemm_dot_dotprod_is_for_another_cpu;
#endif
