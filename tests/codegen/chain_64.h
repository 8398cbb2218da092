/* The chain interpreter on vectors of 64 bytes, on any CPU. This is the code that AVX-512 runs,
 * without its few intrinsics. Files that include it are compiled with -Wno-psabi. */
#ifndef TESTS_CHAIN_64_H
#define TESTS_CHAIN_64_H

#define SIMD_BYTES 64
#define CHAIN_NAME(f) f##_test64
#define CHAIN_TABLE_TITLE "512-bit vectors, emulated"
#include "codegen/chain_body.inc"
#include "codegen/chain_int.inc"
#include "codegen/chain_move.inc"
#include "codegen/chain_plain.inc"
#include "codegen/chain_wide.inc"

static inline chain_variant chain_64_variant(void)
{
    chain_variant v = *mica__chain_best_variant();
    v.table = &mica__chain_test64;
    v.ints = &mica__chain_int_test64;
    v.wide = &mica__chain_wide_test64;
    v.move = &mica__chain_move_test64;
    v.plain = &mica__chain_plain_test64;
    return v;
}

#endif
