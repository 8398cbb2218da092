/* The inner kernel of matrix products for CPUs with NEON: see gemm_body.inc. */
#if defined(__aarch64__)
#define SIMD_BYTES 16
#define GEMM_MR 8
#define GEMM_VECS 2
#define GEMM_NAME(kind) mica__gemm_##kind##_neon
#include "kernels/matmul/gemm_body.inc"
#else
typedef int gemm_neon_is_for_another_cpu;
#endif
