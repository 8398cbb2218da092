/* Random numbers for any CPU, NEON too: four at a time. See random_body.inc. */
#define SIMD_BYTES 16
#define RANDOM_NAME(kind) mica__random_##kind##_portable
#include "kernels/random/random_body.inc"
