#!/usr/bin/env bash
# tests/fuzz/run_fuzzer.sh SECONDS FUZZER: lets libFuzzer search for so long.
# Starts from the stored corpus; what it finds stays in the build folder. An input
# that fails is left there as crash-*: mend the cause, then move the input to
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
