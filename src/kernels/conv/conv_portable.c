/* The inner loops of convolution for any CPU: vectors of four floats: see conv_body.inc. */
#define SIMD_BYTES 16
#define CONV_ROWS 4
#define CONV_VARIANT mica__conv_portable
#include "kernels/conv/conv_body.inc"
