/* Ternary panels with sdot (ternary.h): signed bytes are enough, because no byte of a weight is above 48. */
#if defined(__ARM_FEATURE_DOTPROD)
#define SIMD_BYTES 16
#include "simd/vector.h"
#define TERNARY_DOT(sum, w, x) (vu) vdotq_s32((int32x4_t)(sum), (int8x16_t)(w), (int8x16_t)(x))
#define TERNARY_GROUP 4
#define TERNARY_AHEAD 512
#define TERNARY_NAME(what) mica__ternary_##what##_dotprod
#include "kernels/qmatmul/ternary_body.inc"
#else
typedef int ternary_dotprod_is_for_another_cpu;
#endif
