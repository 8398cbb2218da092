/* The chain interpreter on 16-byte vectors, which every x86-64 (SSE2) and
 * every 64-bit Arm (NEON) has; elsewhere the compiler emulates them. */
#define SIMD_BYTES 16
#define CHAIN_NAME(f) f##_portable
#define CHAIN_TABLE_TITLE "128-bit vectors"
#include "codegen/chain_body.inc"
#include "codegen/chain_int.inc"
#include "codegen/chain_move.inc"
#include "codegen/chain_plain.inc"
#include "codegen/chain_wide.inc"
