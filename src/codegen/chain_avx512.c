/* The chain interpreter for CPUs with AVX-512. See chain_body.inc. */
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#define CHAIN_NAME(f) f##_avx512
#define CHAIN_TABLE_TITLE "512-bit vectors"
#include "codegen/chain_body.inc"
#include "codegen/chain_int.inc"
#include "codegen/chain_move.inc"
#include "codegen/chain_plain.inc"
#include "codegen/chain_wide.inc"
#else
typedef int chain_avx512_is_for_another_cpu;
#endif
