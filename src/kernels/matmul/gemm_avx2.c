/* The inner kernel of matrix products for CPUs with AVX2 and FMA: see gemm_body.inc. */
#if defined(__AVX2__)
#define SIMD_BYTES 32
#define GEMM_MR 6
#define GEMM_VECS 2
#define GEMM_NAME(kind) mica__gemm_##kind##_avx2
#include "kernels/matmul/gemm_body.inc"
#else
typedef int gemm_avx2_is_for_another_cpu;
#endif
