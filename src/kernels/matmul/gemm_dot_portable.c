/* Products of narrow operands for any CPU: vectors of 16 bytes (gemm_dot.h). */
#define SIMD_BYTES 16
#include "kernels/matmul/gemm_dot_cells.h"

#define DOT_CELL DOT_WINOGRAD
#define DOT_MR 4
#define DOT_VECS 2
#define DOT_CELLS 256
#define DOT_NAME(what) mica__dot_##what##_int_portable
#include "kernels/matmul/gemm_dot_body.inc"

#define DOT_CELL DOT_F32
#define DOT_MR 4
#define DOT_VECS 2
#define DOT_CELLS 256
#define DOT_STEP(sum, a, b) vf_mul_add((vf)(a), (vf)(b), sum)
#define DOT_NAME(what) mica__dot_##what##_half_portable
#include "kernels/matmul/gemm_dot_body.inc"

#define LINES_NAME(what) mica__lines_##what##_portable
#include "kernels/matmul/gemm_lines_body.inc"
