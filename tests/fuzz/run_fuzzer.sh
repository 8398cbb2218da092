#!/usr/bin/env bash
# tests/fuzz/run_fuzzer.sh SECONDS FUZZER: runs libFuzzer for this time.
# Starts from the stored corpus; new inputs stay in the build folder. A failing input is
# stored there as crash-*: fix the cause, then move the input to
# tests/fuzz/corpus/NAME/, where every `make test` replays it.
set -eu
seconds=$1 fuzzer=$2
name=$(basename "$fuzzer")
found=$(dirname "$fuzzer")/found/$name
stored=tests/fuzz/corpus/${name#fuzz_}
mkdir -p "$found"
[ -d "$stored" ] || stored=''
exec "$fuzzer" -max_total_time="$seconds" -max_len=4096 -timeout=25 -print_final_stats=1 \
    -artifact_prefix="$found/" "$found" $stored
