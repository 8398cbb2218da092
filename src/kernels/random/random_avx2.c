/* Random numbers for CPUs with AVX2. See random_body.inc. */
#if defined(__AVX2__)
#define SIMD_BYTES 32
#define RANDOM_NAME(kind) mica__random_##kind##_avx2
#include "kernels/random/random_body.inc"
#else
typedef int random_avx2_is_for_another_cpu;
#endif
