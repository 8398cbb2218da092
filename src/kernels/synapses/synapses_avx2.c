/* Synapse kernels for CPUs with AVX2 and FMA. See synapses_body.inc. */
#if defined(__AVX2__)
#define SIMD_BYTES 32
#define SYNAPSES_NAME(kind) mica__synapses_##kind##_avx2
#include "kernels/synapses/synapses_body.inc"
#else
typedef int synapses_avx2_is_for_another_cpu;
#endif
