/* The inner kernel of matrix products for CPUs with AVX-512: see gemm_body.inc. */
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#define GEMM_MR 8
#define GEMM_VECS 2
#define GEMM_NAME(kind) mica__gemm_##kind##_avx512
#include "kernels/matmul/gemm_body.inc"
#else
typedef int gemm_avx512_is_for_another_cpu;
#endif
