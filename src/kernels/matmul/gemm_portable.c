/* The inner kernel of matrix products for any CPU: vectors of four floats: see gemm_body.inc. */
#define SIMD_BYTES 16
#define GEMM_MR 4
#define GEMM_VECS 2
#define GEMM_NAME(kind) mica__gemm_##kind##_portable
#include "kernels/matmul/gemm_body.inc"
