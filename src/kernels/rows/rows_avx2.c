/* Row kernels for CPUs with AVX2 and FMA. See rows_body.inc. */
#if defined(__AVX2__)
#define SIMD_BYTES 32
#define ROWS_NAME(kind) mica__rows_##kind##_avx2
#include "kernels/rows/rows_body.inc"
#else
typedef int rows_avx2_is_for_another_cpu;
#endif
