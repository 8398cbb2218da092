#!/usr/bin/env bash
# mica make-random: the same model in every container, and invalid calls.
. tests/check.sh
mica=$BUILD/mica

# fails CODE PART ARGUMENT...: exit code CODE, one error message with PART, nothing written
fails()
{
    local code=$1 part=$2
    shift 2
    run "$mica" make-random "$@"
    check "make-random $*: exit code $code" test "$status" = "$code"
    check "make-random $*: one error message" one_line "$err"
    check "make-random $*: says $part" contains "$err" "$part"
    check "make-random $*: nothing on stdout" test -z "$out"
}

for container in i2_s tq1_0 tq2_0 q2_0 mica_t2 mica_t1 f16; do
    run "$mica" make-random --container $container --seed 4 -o "$work/$container.gguf"
    check "$container: exit code 0" test "$status" = 0
    check "$container: nothing is printed" test -z "$out$err"
    run "$mica" inspect "$work/$container.gguf" --check
    check "$container: sound" test "$status" = 0
done
run "$mica" make-random --container hf --seed 4 -o "$work/folder"
check 'hf: exit code 0' test "$status" = 0
check 'hf: nothing is printed' test -z "$out$err"
for file in config.json generation_config.json tokenizer.json tokenizer_config.json model.safetensors; do
    check "hf: $file" test -s "$work/folder/$file"
done
check 'hf: nothing else' test "$(ls "$work/folder" | wc -l)" = 5

# The distribution of codes is the same in every container.
codes() { "$mica" inspect "$1" --check | sed -n '/^codes/,$p' | awk 'NR > 1 { print $2, $3, $4, $5 }' | sort; }
codes "$work/folder" > "$work/codes"
for container in i2_s tq1_0 tq2_0 mica_t2 mica_t1; do
    check "$container: the codes of hf" test "$(codes "$work/$container.gguf")" = "$(cat "$work/codes")"
done

run "$mica" make-random --seed 4 -o "$work/again.gguf"
check 'the same call writes the same bytes' cmp "$work/again.gguf" "$work/i2_s.gguf"

# A model much larger than the available memory.
if [ -z "${SANITIZE:-}" ] && [ -z "${RUN:-}" ]; then
    (ulimit -v 60000; "$mica" make-random --shape tiny,layers=6,hidden=1024,heads=8,kv_heads=4,ffn=4096,vocab=16384 \
        -o "$work/large.gguf") 2> "$work/err"
    check 'a model of 130 million parameters with 60 MB of address space' test -s "$work/large.gguf"
    rm -f "$work/large.gguf"
fi

before=$(ls "$work" | wc -l)
fails 2 '-o OUT' --seed 1
fails 2 "'giant'" --shape giant -o "$work/no.gguf"
fails 2 'rows of 200' --shape tiny,ffn=200 -o "$work/no.gguf"
fails 2 'go together' --shape tiny,heads=3 -o "$work/no.gguf"
fails 2 'llama' --arch llama -o "$work/no.gguf"
fails 2 'zip' --container zip -o "$work/no.gguf"
fails 2 'vocab' --vocab 3 -o "$work/no.gguf"
fails 2 'frobnicate' --frobnicate -o "$work/no.gguf"
fails 1 'cannot create' -o "$work/nowhere/no.gguf"
fails 1 'cannot make the folder' --container hf -o "$work/nowhere/no"
fails 1 'cannot make the folder' --container hf -o "$work/i2_s.gguf"
(ulimit -f 64; trap '' XFSZ; "$mica" make-random -o "$work/no.gguf") 2> "$work/err"
check 'a full disk: exit code 1' test $? = 1
check 'a full disk: one error message' one_line "$(cat "$work/err")"
"$mica" make-random --shape 2b4t -o "$work/no.gguf" 2> "$work/err" &
for i in 1 2 3 4 5 6 7 8 9 10; do ls "$work" | grep -q tmp && break || sleep 0.2; done
kill -INT $!
status=0
wait $! || status=$?
check 'interrupted: exit code 130' test "$status" = 130
check 'interrupted: one error message' one_line "$(cat "$work/err")"
rm -f "$work/err"
check 'nothing is left behind' test "$(ls "$work" | wc -l)" -le "$before"
check '--help' contains "$("$mica" make-random --help)" '--container'
finish
