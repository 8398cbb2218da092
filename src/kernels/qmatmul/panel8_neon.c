/* Byte panels with NEON (panel8.h). */
#if defined(__aarch64__)
#define SIMD_BYTES 16
#define P8_NAME(what) mica__p8_##what##_neon
#include "kernels/qmatmul/panel8_body.inc"
#else
typedef int panel8_neon_is_for_another_cpu;
#endif
