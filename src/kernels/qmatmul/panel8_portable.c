/* Byte panels for any CPU (panel8.h). */
#define SIMD_BYTES 16
#define P8_NAME(what) mica__p8_##what##_portable
#include "kernels/qmatmul/panel8_body.inc"
