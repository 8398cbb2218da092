/* Functions of floats for any CPU: two doubles at a time. See chain_math.inc. */
#define MATH_LANES 2
#define MATH_NAME(f) f##_portable
#include "codegen/chain_math.inc"
