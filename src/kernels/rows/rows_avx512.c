/* Row kernels for CPUs with AVX-512. See rows_body.inc. */
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#define ROWS_NAME(kind) mica__rows_##kind##_avx512
#include "kernels/rows/rows_body.inc"
#else
typedef int rows_avx512_is_for_another_cpu;
#endif
