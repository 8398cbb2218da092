/* The inner loops of convolution for CPUs with AVX2 and FMA: see conv_body.inc. */
#if defined(__AVX2__)
#define SIMD_BYTES 32
#define CONV_ROWS 6
#define CONV_VARIANT mica__conv_avx2
#include "kernels/conv/conv_body.inc"
#else
typedef int conv_avx2_is_for_another_cpu;
#endif
