/* The inner loops of convolution for CPUs with NEON: see conv_body.inc. */
#if defined(__aarch64__)
#define SIMD_BYTES 16
#define CONV_ROWS 8
#define CONV_VARIANT mica__conv_neon
#include "kernels/conv/conv_body.inc"
#else
typedef int conv_neon_is_for_another_cpu;
#endif
