/* Byte panels with AVX2, FMA and F16C (panel8.h). */
#if defined(__AVX2__)
#define SIMD_BYTES 32
#define P8_NAME(what) mica__p8_##what##_avx2
#include "kernels/qmatmul/panel8_body.inc"
#else
typedef int panel8_avx2_is_for_another_cpu;
#endif
