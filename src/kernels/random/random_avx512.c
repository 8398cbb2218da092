/* Random numbers for CPUs with AVX-512. See random_body.inc. */
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#define RANDOM_NAME(kind) mica__random_##kind##_avx512
#include "kernels/random/random_body.inc"
#else
typedef int random_avx512_is_for_another_cpu;
#endif
