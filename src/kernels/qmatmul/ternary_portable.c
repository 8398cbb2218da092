/* Ternary panels for any CPU (ternary.h). */
#define SIMD_BYTES 16
#define TERNARY_PAIRS
#define TERNARY_GROUP 2
#define TERNARY_AHEAD 512
#define TERNARY_NAME(what) mica__ternary_##what##_portable
#include "kernels/qmatmul/ternary_body.inc"
