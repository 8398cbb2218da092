#!/usr/bin/env bash
# Every kernel variant: the programs that compare kernels with the reference, once
# for each level below the best that this CPU has (which every other test uses).
. tests/check.sh

levels='scalar avx2 avx512 avx512_vnni avx512_bf16 neon dotprod i8mm bf16'
for level in $levels; do
    if ! MICA_CPU=$level "$BUILD/mica" doctor > /dev/null 2>&1 || ! MICA_CPU=$level "$BUILD/examples/01_tour" > /dev/null 2>&1; then
        skip "MICA_CPU=$level: this CPU lacks it"
        continue
    fi
    for program in codegen/test_chain unit/test_kernels unit/test_kernels_attention unit/test_kernels_conv \
        parity/test_golden api/test_narrow; do
        run env MICA_CPU=$level "$BUILD/tests/$program"
        check "$program with MICA_CPU=$level: $(tail -n 3 <<< "$out")" test "$status" -eq 0
    done
done
finish
