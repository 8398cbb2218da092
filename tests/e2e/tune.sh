#!/usr/bin/env bash
# The command mica tune: its output, the file that it writes, the commands that read it, and a damaged file.
. tests/check.sh
mica=$BUILD/mica

refused 2 tune --seconds -1
refused 2 tune --dry --forget
refused 2 tune now
MICA_METAL_LIB=/nowhere.so refused 2 tune --dry
check 'without a GPU: why' contains "$err" '/nowhere.so'

# Without a GPU, with or without the software Metal device: the command of the README reports it and succeeds.
software=''
if [ "$(uname -s)" = Linux ]; then
    software=--software
    run env -u MICA_CACHE "$mica" tune
    check "no GPU: exit code 0 ($err)" test "$status" = 0
    check 'its help states it' grep -q 'On a machine without a GPU there is nothing to tune' docs/CLI.md
    check 'no GPU: reported' contains "$out" 'There is no GPU on this machine'
    run env -u MICA_CACHE "$mica" tune --json
    check 'no GPU: JSON' contains "$out" '{"device": null, "software": '
fi

run "$mica" doctor
if grep -q '^backend metal: .*not available' <<< "$out"; then
    skip "no Metal: $(grep '^backend metal' <<< "$out")"
    finish
fi

# the rules use the properties that the device reports
if [ "$(uname -s)" = Linux ]; then
    run env SM_FAMILY=9 SM_CORES=40 "$mica" doctor
    check "family and cores ($out)" contains "$out" 'Apple family 9, 40 cores'
fi

MICA_CACHE=off refused 2 tune $software
check 'nowhere to keep it: the variable' contains "$err" MICA_CACHE

export MICA_CACHE=$work/cache
run "$mica" tune $software --seconds 0 --json
check "tune ($err)" test "$status" = 0
file=$(sed -n 's/^], "file": "\(.*\)"}$/\1/p' <<< "$out")
check 'the file is there' test -s "$file"
check 'nothing else is left beside it' test -z "$(find "$MICA_CACHE" -name '*.tmp*')"
python=$(command -v python3 || true)
if [ -n "$python" ]; then
    check 'JSON parses' "$python" -c '
import json, sys
report = json.loads(sys.argv[1])
assert report["device"] and report["choices"] and all(c["wrong"] == 0 for c in report["choices"])
assert {"matmul_f32", "qmatvec_panel", "attention_128", "elements", "fold"} <= {c["choice"] for c in report["choices"]}' "$out"
else
    skip 'JSON parses: there is no python3'
fi
[ "$(uname -s)" != Linux ] || check 'JSON reports the software device' contains "$out" '"software": true'

# A hand-written file, so that its effect is visible.
choices='softmax=16_each norm=8_each'
echo "$choices" > "$file"
run "$mica" doctor
check 'a file without its hash is not used' contains "$out" 'measured shapes of kernels: incomplete, not used'
run "$mica" tune --forget
check "--forget ($err)" test "$status" = 0 -a ! -e "$file"
run "$mica" tune --forget
check '--forget: no file is not an error' test "$status" = 0
run "$mica" doctor
check 'doctor reports no file' contains "$out" 'measured shapes of kernels: none yet'

run "$mica" tune $software --seconds 0 --dry
check "--dry ($err)" test "$status" = 0
check '--dry keeps nothing' test ! -e "$file"
check 'a table' grep -qE '^matmul_f32 .* matmul_float_' <<< "$out"
[ "$(uname -s)" != Linux ] || check 'it explains the times' contains "$out" 'say nothing about a GPU'

run "$mica" tune $software --seconds 0
check "kept ($err)" contains "$out" "kept in $file"
run "$mica" doctor
check 'doctor shows it' grep -q "measured shapes of kernels: .*($file)" <<< "$out"
run "$mica" selftest --device metal
check "with it every kernel is right ($out $err)" test "$status" = 0
finish
