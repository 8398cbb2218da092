/* Ternary panels with smmla, and with sdot for one row of x (ternary.h). */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define SIMD_BYTES 16
#include "simd/vector.h"
#define TERNARY_DOT(sum, w, x) (vu) vdotq_s32((int32x4_t)(sum), (int8x16_t)(w), (int8x16_t)(x))
#define TERNARY_PAIRED
#define TERNARY_GROUP 4
#define TERNARY_AHEAD 512
#define TERNARY_NAME(what) mica__ternary_##what##_i8mm
#include "kernels/qmatmul/ternary_body.inc"
#else
typedef int ternary_i8mm_is_for_another_cpu;
#endif
