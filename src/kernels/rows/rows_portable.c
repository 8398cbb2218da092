/* Row kernels for any CPU, NEON too: vectors of four floats. See rows_body.inc. */
#define SIMD_BYTES 16
#define ROWS_NAME(kind) mica__rows_##kind##_portable
#include "kernels/rows/rows_body.inc"
