/* The inner loops of convolution for CPUs with AVX-512: see conv_body.inc. */
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#define CONV_ROWS 8
#define CONV_VARIANT mica__conv_avx512
#include "kernels/conv/conv_body.inc"
#else
typedef int conv_avx512_is_for_another_cpu;
#endif
