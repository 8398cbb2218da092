#!/usr/bin/env bash
# The command mica selftest: every backend is correct, the file that it writes can be checked
# on another machine, and a file with one wrong number is detected.
. tests/check.sh
mica=$BUILD/mica

run "$mica" selftest
check "the default device is right ($err)" test "$status" = 0
check 'it prints the counts' grep -qE '^[0-9]+ right, 0 wrong$' <<< "$out"
run "$mica" selftest --device ref --json
check "ref is right ($err)" test "$status" = 0
check 'JSON names the device' contains "$out" '{"device": "ref", "right": '

run "$mica" selftest --device cpu --dump "$work/cpu.safetensors"
check "--dump ($err)" test "$status" = 0
run "$mica" selftest --compare "$work/cpu.safetensors"
check "--compare finds it right ($out $err)" test "$status" = 0
run "$mica" inspect "$work/cpu.safetensors" --tensors
check 'the file has inputs and results' contains "$out" 'matmul/out'

# Metal, on a Mac's GPU or on the software device; if there is neither, doctor prints why
run "$mica" doctor
if contains "$out" 'backend metal: ' && ! grep -q '^backend metal: .*not available' <<< "$out"; then
    run "$mica" selftest --device metal
    check "metal is right ($out $err)" test "$status" = 0
    if [ "$(uname -s)" = Linux ]; then
        check 'no time of a software device is shown' grep -qE '^matmul .* -$' <<< "$out"
        # devices and systems that are not supported: the reason is printed, and no other backend is used
        while IFS='|' read -r setting words; do
            run env "$setting" "$mica" doctor
            check "doctor with $setting: $words" grep -q "^backend metal: .*not available: .*$words" <<< "$out"
            run env "$setting" "$mica" selftest --device metal
            check "$setting: refused ($err)" test "$status" != 0
            check "$setting: why ($err)" contains "$err" "$words"
        done << 'END'
SM_FAMILY=6|is older than Apple's family 7
SM_FAULT=device=1+|no Metal device
SM_FAULT=compile=1+|macOS 13 or later is needed
END
        # Metal 3.0 has no bfloat: the first compilation fails
        run env SM_FAULT=compile=1 "$mica" doctor
        check 'Metal 3.0: doctor reports what is missing' contains "$out" 'bfloat no'
        run env SM_FAULT=compile=1 "$mica" selftest --device metal
        check "Metal 3.0 is right ($out $err)" test "$status" = 0
    fi
else
    skip "no Metal: $(grep '^backend metal' <<< "$out")"
fi

# changes the highest byte of one number of a result
cp "$work/cpu.safetensors" "$work/other.safetensors"
run "$mica" inspect "$work/cpu.safetensors" --tensors --json
at=$(tr '{' '\n' <<< "$out" | sed -n 's|.*"softmax/out".*"offset": \([0-9]*\).*|\1|p')
printf '\177' | dd of="$work/other.safetensors" bs=1 seek=$((at + 4 * 77 + 3)) conv=notrunc 2> /dev/null
run "$mica" selftest --compare "$work/other.safetensors"
check 'a wrong number: exit code 1' test "$status" = 1
check "a wrong number: which" grep -q '^softmax .* WRONG: element 77 is ' <<< "$out"
check "a changed number: by the digest too" grep -q '^softmax .*; the digest in the file does not match its numbers$' <<< "$out"
check 'a wrong number: only that' grep -qE '^[0-9]+ right, 1 wrong$' <<< "$out"

refused 2 selftest --device nothing
refused 2 selftest --device cpu --compare "$work/cpu.safetensors"
refused 3 selftest --compare "$work/none.safetensors"
head -c 100 "$work/cpu.safetensors" > "$work/cut.safetensors"
refused 3 selftest --compare "$work/cut.safetensors"
run "$mica" selftest --dump /nowhere/x.safetensors
check 'a folder that is not there: exit code 1' test "$status" = 1
check 'a folder that is not there: one error message' one_line "$err"
finish
