/* Functions of floats for CPUs with AVX-512: 8 doubles at a time. See chain_math.inc. */
#if defined(__AVX512F__)
#define MATH_LANES 8
#define MATH_NAME(f) f##_avx512
#include "codegen/chain_math.inc"
#else
typedef int chain_math_avx512_is_for_another_cpu;
#endif
