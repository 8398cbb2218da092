/* Ternary panels on ARM without dot products (ternary.h). */
#if defined(__aarch64__)
#define SIMD_BYTES 16
#define TERNARY_PAIRS
#define TERNARY_GROUP 4
#define TERNARY_AHEAD 512
#define TERNARY_NAME(what) mica__ternary_##what##_neon
#include "kernels/qmatmul/ternary_body.inc"
#else
typedef int ternary_neon_is_for_another_cpu;
#endif
