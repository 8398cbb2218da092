/* Synapse kernels for CPUs with AVX-512. See synapses_body.inc. */
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#define SYNAPSES_NAME(kind) mica__synapses_##kind##_avx512
#include "kernels/synapses/synapses_body.inc"
#else
typedef int synapses_avx512_is_for_another_cpu;
#endif
