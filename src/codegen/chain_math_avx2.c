/* Functions of floats for CPUs with AVX2: 4 doubles at a time. See chain_math.inc. */
#if defined(__AVX2__)
#define MATH_LANES 4
#define MATH_NAME(f) f##_avx2
#include "codegen/chain_math.inc"
#else
typedef int chain_math_avx2_is_for_another_cpu;
#endif
