/* Byte panels with AVX-512 (panel8.h). */
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#define P8_NAME(what) mica__p8_##what##_avx512
#include "kernels/qmatmul/panel8_body.inc"
#else
typedef int panel8_avx512_is_for_another_cpu;
#endif
