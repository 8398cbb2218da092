/* Synapse kernels for any CPU, NEON too: vectors of four floats. See synapses_body.inc. */
#define SIMD_BYTES 16
#define SYNAPSES_NAME(kind) mica__synapses_##kind##_portable
#include "kernels/synapses/synapses_body.inc"
