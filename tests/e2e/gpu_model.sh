#!/usr/bin/env bash
# The constants of the GPU cost model are those that the calibration gives, and so are the figures in its document.
cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh

if ! command -v python3 > /dev/null; then
    skip 'there is no python3'
    finish
fi
run python3 tools/calibrate_gpu_model.py --svg "$work/model.svg"
check "the calibration runs ($err)" test "$status" = 0
fit=$(sed -n 's/^fitted to all [0-9]* rows: //p' <<< "$out")
read -r alu memory launch < <(sed 's/[^0-9. ]//g' <<< "$fit")
check 'the library has the fitted constants' \
    grep -qF "{.alu = $alu, .memory = $memory, .launch = ${launch}e-6}" src/cost/gpu_model.c
check 'the document has the fitted constants' grep -qF "$fit" docs/GPU-MODEL.md
median=$(sed -n 's/.*not fitted: median error \([0-9.]*\) %.*/\1/p' <<< "$out")
check 'the document has the median error' grep -qF "the median error is $median %" docs/GPU-MODEL.md
check 'the picture is the one in the document' cmp -s "$work/model.svg" docs/images/gpu-model.svg
finish
