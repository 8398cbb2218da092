#!/bin/sh
# tests/differential/run.sh RUNS SEED JOBS PROGRAM: runs one differential fuzzer.
# tests/run.sh puts this and the first three arguments before each program.
set -eu
exec "$4" --runs "$1" --seed "$2" --jobs "$3"
