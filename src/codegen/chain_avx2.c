/* The chain interpreter for CPUs with AVX2. See chain_body.inc. */
#if defined(__AVX2__)
#define SIMD_BYTES 32
#define CHAIN_NAME(f) f##_avx2
#define CHAIN_TABLE_TITLE "256-bit vectors"
#include "codegen/chain_body.inc"
#include "codegen/chain_int.inc"
#include "codegen/chain_move.inc"
#include "codegen/chain_plain.inc"
#include "codegen/chain_wide.inc"
#else
typedef int chain_avx2_is_for_another_cpu;
#endif
