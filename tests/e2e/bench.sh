#!/usr/bin/env bash
# The command mica bench: selection of benchmarks, output formats, errors. No speed
# is checked, because it depends on the machine.
. tests/check.sh
mica=$BUILD/mica
quick='--seconds 0.001 --threads 1 --no-peaks'

# wrong ARGUMENT...: refused with one error message, no output and exit code 2
wrong()
{
    run "$mica" bench "$@"
    check "bench $*: exit code 2" test "$status" = 2
    check "bench $*: one error message" one_line "$err"
    check "bench $*: nothing on stdout" test -z "$out"
}

# right ARGUMENT...: exit code 0, nothing on stderr
right()
{
    run "$mica" bench "$@"
    check "bench $*: exit code 0 ($err)" test "$status" = 0
    check "bench $*: nothing on stderr" test -z "$err"
}

right --list
lines=$(printf '%s\n' "$out" | wc -l)
check '--list has them all' test "$lines" -gt 50
check 'every name is there once' test "$(printf '%s\n' "$out" | awk '{ print $2 }' | sort -u | wc -l)" = "$lines"
for family in matmul linear quant fused norm reduce move sort random attention conv train graph; do
    check "--list has the family $family" grep -q "^$family " <<< "$out"
done
right --list attention --filter causal
check '--filter chooses among the names' test "$(printf '%s\n' "$out" | grep -c causal)" = "$(printf '%s\n' "$out" | wc -l)"

right $quick matmul_f32_32 tiny_1000_build
check 'md: names the commit' grep -q '^- commit: ' <<< "$out"
check 'md: names the machine' grep -q '^- cpu: ' <<< "$out"
check 'md: one row for each' test "$(grep -cE '^\| (matmul_f32_32|tiny_1000_build) ' <<< "$out")" = 2
check 'md: nodes have a cost' contains "$out" 'ns a node'

# every mode, and two thread counts
right --seconds 0.001 --threads 1,2 --no-peaks -o csv matmul_f32_32 tiny_1000_call tiny_1000_drop tiny_1000_first
check 'csv: four rows for each number of threads' test "$(grep -cE '^(matmul|tiny)' <<< "$out")" = 8
check 'csv: as many fields as titles' test "$(grep -v '^#' <<< "$out" | awk -F, '{ print NF }' | sort -u | wc -l)" = 1

right --seconds 0.001 --threads 1 --no-peaks -o json gelu_64k sum_rows_1024x1024 --output "$work/out.json"
check '--output: nothing on stdout' test -z "$out"
check '--output: no temporary file remains' test -z "$(ls "$work" | grep -E 'out\.json.*(new|tmp)')"
python=$(command -v python3 || true)
if [ -n "$python" ]; then
    check 'json: parses' "$python" - "$work/out.json" << 'END'
import json, sys
report = json.load(open(sys.argv[1]))
names = [r["name"] for r in report["results"]]
assert names == ["gelu_64k", "sum_rows_1024x1024"], names
assert report["peaks"] == [] and report["cpu"] and report["commit"]
for r in report["results"]:
    assert r["threads"] == 1 and r["runs"] >= 3 and r["gated"] == 0 and r["above_peak"] == 0
    assert 0 < r["fastest_ns"] <= r["p10_ns"] <= r["median_ns"] <= r["p90_ns"]
    assert r["gbs"] > 0 and r["bytes"] > 0 and r["compute_percent"] is None
END
else
    skip 'json parses: there is no python3'
fi

right $quick --json gelu_64k
check '--json is --format json' grep -q '"name": "gelu_64k"' <<< "$out"
right --list --json attention
check '--list --json is an array of the same cases' test "$(grep -c '"family": "attention"' <<< "$out")" = \
    "$("$mica" bench --list attention | wc -l)"
if [ -n "$python" ]; then
    check '--list --json parses' "$python" -c 'import json, sys; assert json.load(sys.stdin)[0]["name"]' <<< "$out"
fi
wrong --json --format csv gelu_64k
check 'names the two formats' contains "$err" '--json and --format csv'

# With peaks, as a user runs it. Only once, because it takes seconds. On a busy machine
# a measured peak may be too low; that is reported with exit code 5 and is not a failure here.
run "$mica" bench --seconds 0.001 --threads 1 -o json gelu_64k
check 'with peaks: exit code 0 or 5' test "$status" = 0 -o "$status" = 5
check 'with peaks: they are printed' contains "$out" '"fma_f32": '
check 'with peaks: a percentage' grep -qE '"memory_percent": [0-9]' <<< "$out"

wrong frobnicate
check 'names the unknown benchmark' contains "$err" "'frobnicate'"
wrong --frobnicate
wrong --filter frobnicate
wrong --threads
for bad in 0 -1 x 1, 1,,2 1x 257 '' 1,2,3,4,5,6,7,8,9; do wrong --threads "$bad" matmul_f32_32; done
for bad in 0 -1 x 1x nan inf 3601 ''; do wrong --seconds "$bad" matmul_f32_32; done
wrong -o xml matmul_f32_32
refused 1 bench $quick matmul_f32_32 --output "$work/no/such/folder/out.md"
check 'names the unwritable output' contains "$err" "$work/no/such/folder/out.md"
refused 1 bench $quick matmul_f32_32 --output "$work"
echo kept > "$work/kept"
wrong --seconds x --output "$work/kept"
check 'a refused run leaves the old file' test "$(cat "$work/kept")" = kept

if [ -e /dev/full ]; then
    status=0
    "$mica" bench $quick matmul_f32_32 --output /dev/full 2> "$work/err" || status=$?
    check 'a full disk: exit code 1' test "$status" = 1
    check 'a full disk: one error message' one_line "$(cat "$work/err")"
    check 'a device is written to, not replaced' test -c /dev/full
else
    skip 'output to a full disk: there is no /dev/full'
fi

if grep -q mica__cpu_check src/runtime/engine.c src/api/engine_api.c; then
    for bad in frobnicate avx1024; do
        run env MICA_CPU=$bad "$mica" bench $quick matmul_f32_32
        check "MICA_CPU=$bad: exit code 2" test "$status" = 2
        check "MICA_CPU=$bad: one error message" one_line "$err"
    done
    run env MICA_CPU=scalar "$mica" bench $quick matmul_f32_32
    check 'MICA_CPU=scalar: exit code 0' test "$status" = 0
else
    skip 'MICA_CPU: engines do not look at it yet'
fi
finish
