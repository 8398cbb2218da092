#!/usr/bin/env bash
# Endless and unusual input, environment variables with typing errors, and temporary files of commands that are ended.
. tests/check.sh
mica=$BUILD/mica
"$mica" make-random --seed 9 -o "$work/m.gguf" || exit 1
mkfifo "$work/pipe"

# refused_soon PART ARGUMENT...: ends within 20 seconds with one line that contains PART
refused_soon()
{
    local part=$1
    shift
    run timeout 20 "$mica" "$@" < /dev/null
    check "mica $*: refused ($status)" test "$status" -gt 0 -a "$status" -lt 100
    check "mica $*: one line ($err)" one_line "$err"
    check "mica $*: says '$part' ($err)" contains "$err" "$part"
}
device='is a device, not a file'
refused_soon "$device" train ncp --data /dev/zero --target a --out "$work/run"
refused_soon "$device" data info /dev/zero
refused_soon "$device" tokenize "$work/m.gguf" -f /dev/zero
refused_soon "$device" tokenizer train --text /dev/zero -o "$work/t.gguf"
refused_soon "$device" train lm --text /dev/zero --out "$work/run"
refused_soon "$device" eval ppl "$work/m.gguf" /dev/zero
refused_soon "$device" run "$work/m.gguf" -f /dev/zero
refused_soon "$device" inspect /dev/zero
refused_soon "$device" quantize /dev/zero "$work/x.gguf" --type f16
refused_soon 'is a pipe, not a file' quantize "$work/pipe" "$work/x.gguf" --type f16
refused_soon 'is a pipe, not a file' inspect "$work/pipe"
refused_soon 'is a pipe, not a file' run "$work/pipe" -p a
refused_soon 'is a folder, not a file' tokenize "$work/m.gguf" -f "$work"
run timeout 20 "$mica" tokenize "$work/m.gguf" -f "$work/pipe"
check "a pipe without a writer does not hang ($status)" test "$status" != 124
check 'a pipe with a writer is read' test "$("$mica" tokenize "$work/m.gguf" -f <(sleep 0.2; printf 'abc'))" = \
    "$("$mica" tokenize "$work/m.gguf" -p abc)"
check 'standard input is read' test "$(printf 'abc' | "$mica" tokenize "$work/m.gguf" -)" = "$("$mica" tokenize "$work/m.gguf" -p abc)"

# Environment.
for word in MICA_PASSES=typo MICA_DUMP=typo MICA_THREADS=0 MICA_PREPACK=no MICA_MMAP=yes MICA_DEVICE=gpu; do
    run env "$word" "$mica" run "$work/m.gguf" -p a -n 1
    check "$word: exit code 2, not $status" test "$status" = 2
    check "$word: the message names it ($err)" contains "$err" "${word%=*} is \"${word#*=}\""
done
run env MICA_PASSES=fold,lane "$mica" run "$work/m.gguf" -p a -n 1
check "did you mean ($err)" contains "$err" 'did you mean "lanes"?'
run env MICA_THREAD=2 "$mica" doctor
check 'doctor: a variable that does not exist' contains "$out" 'did you mean MICA_THREADS?'

# Read, not mapped: the same text.
run "$mica" run "$work/m.gguf" -p a -n 8 --temp 0
mapped=$out
run "$mica" run "$work/m.gguf" -p a -n 8 --temp 0 --no-mmap
check '--no-mmap: the same text' test "$status:$out" = "0:$mapped"

# Temporary files of a process that has ended are removed; those of a live process, and other names, are kept.
dead=$(sh -c 'echo $$')
touch "$work/y.gguf.$dead-3.tmp" "$work/y.gguf.$dead-0.tmp.gguf" "$work/y.gguf.$$-0.tmp" "$work/y.gguf.$dead-x.tmp" "$work/z.gguf.$dead-3.tmp"
run "$mica" quantize "$work/m.gguf" "$work/y.gguf" --type f16
check 'a file of a dead process is removed' test "$status" = 0 -a ! -e "$work/y.gguf.$dead-3.tmp" -a ! -e "$work/y.gguf.$dead-0.tmp.gguf"
check 'a file of a process that lives stays' test -e "$work/y.gguf.$$-0.tmp"
check 'other names stay' test -e "$work/y.gguf.$dead-x.tmp" -a -e "$work/z.gguf.$dead-3.tmp"
rm -f "$work"/*.tmp

# ended SIGNAL: sends it to a long command while its temporary file exists
ended()
{
    "$mica" make-random --shape tiny,hidden=2048,heads=16,kv_heads=8,ffn=8192,layers=64 -o "$work/big.gguf" > /dev/null 2>&1 &
    local pid=$! tries=0
    until ls "$work"/big.gguf.*.tmp > /dev/null 2>&1 || [ $tries -gt 400 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    check "$1: the file was being written" test $tries -le 400
    kill -"$1" $pid
    wait $pid 2> /dev/null
    check "$1: ended before it was done" test ! -e "$work/big.gguf"
}
for signal in TERM HUP; do
    ended $signal
    check "$signal: no temporary file stays" test -z "$(ls "$work" | grep tmp)"
done
ended KILL
check 'KILL: leaves its file' test -n "$(ls "$work" | grep tmp)"
run "$mica" quantize "$work/m.gguf" "$work/big.gguf" --type f16
check 'KILL: the next run removes it' test -z "$(ls "$work" | grep tmp)"
finish
