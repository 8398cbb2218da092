#!/usr/bin/env bash
# The commands mica quantize and mica convert, with typical errors of users.
. tests/check.sh
mica=$BUILD/mica
"$mica" make-random --seed 9 -o "$work/m.gguf" || exit 1
"$mica" make-random --seed 9 --container hf -o "$work/m" || exit 1
codes() { "$mica" inspect "$1" --check | sed -n '/^codes/,$p'; }
formats() { "$mica" inspect "$1" --tensors | awk '/^tensor / { list = 1; next } list { print $2 }' | sort | uniq -c | awk '{ print $2 ":" $1 }' | tr '\n' ' '; }

for type in f32 f16 bf16 q8_0 q6_k q5_k q4_k q4_0 q4_1 q5_0 q5_1 tq1_0 tq2_0 i2_s q1_0 q2_0 mica_t2 mica_t1 mica_q8; do
    run "$mica" quantize "$work/m" "$work/x.gguf" --type $type
    check "$type: exit code 0" test "$status" = 0
    check "$type: nothing on stdout" test -z "$out"
    check "$type: nothing to say" test -z "$err"
    run "$mica" inspect "$work/x.gguf" --check
    check "$type: sound" test "$status" = 0
    check "$type: the tokenizer came along" contains "$out" '288 tokens'
done

# A round trip: ternary codes and scales are the same bytes.
"$mica" quantize "$work/m.gguf" "$work/a.gguf" --type tq1_0 && "$mica" quantize "$work/a.gguf" "$work/b.gguf" --type tq2_0 &&
    "$mica" quantize "$work/b.gguf" "$work/a.gguf" --type mica_t2 && "$mica" quantize "$work/a.gguf" "$work/c.gguf" --type i2_s &&
    "$mica" quantize "$work/m.gguf" "$work/d.gguf" --type i2_s
check 'ternary to ternary loses nothing' test "$(codes "$work/c.gguf")" = "$(codes "$work/d.gguf")"

run "$mica" quantize "$work/m.gguf" "$work/x.gguf" --type tq2_0 --tensor 'token_embd=q6_k' --tensor 'ffn_down=q8_0'
check '--tensor: exit code 0' test "$status" = 0
check '--tensor' test "$(formats "$work/x.gguf")" = 'F32:9 Q6_K:1 Q8_0:2 TQ2_0:12 '
"$mica" make-random --shape tiny,hidden=128,heads=2,kv_heads=1,ffn=384 -o "$work/odd.gguf"
run "$mica" quantize "$work/odd.gguf" "$work/x.gguf" --type q6_k
check 'rows that fill no block: exit code 0' test "$status" = 0
check 'rows that are not whole blocks: reported for each' test "$(printf '%s\n' "$err" | grep -c 'is stored as Q8_0: its rows of')" = 14
run "$mica" quantize "$work/odd.gguf" "$work/x.gguf" --type q6_k --quiet
check '--quiet' test -z "$err"
run "$mica" quantize "$work/m" "$work/x.safetensors" --type bf16
check 'safetensors: exit code 0' test "$status" = 0

# refused_saying CODE PART ARGUMENT...: one error message with PART, and no output file
refused_saying()
{
    local code=$1 part=$2
    shift 2
    rm -f "$work/no.gguf"
    refused "$code" quantize "$@"
    check "quantize $*: the message has $part" contains "$err" "$part"
    check "quantize $*: nothing written" test ! -e "$work/no.gguf"
}
refused_saying 2 '--type' "$work/m.gguf" "$work/no.gguf"
refused_saying 2 "'q9_9'" "$work/m.gguf" "$work/no.gguf" --type q9_9
refused_saying 2 'one output' "$work/m.gguf" --type f16
refused_saying 2 'one output' "$work/m.gguf" "$work/no.gguf" -o "$work/no.gguf" --type f16
refused_saying 2 'regular expression' "$work/m.gguf" "$work/no.gguf" --type f16 --tensor 'a(b=q8_0'
refused_saying 2 'RE=TYPE' "$work/m.gguf" "$work/no.gguf" --type f16 --tensor q8_0
refused_saying 2 "'zip'" "$work/m.gguf" "$work/no.zip" --type f16
refused_saying 3 'cannot open' "$work/nothing.gguf" "$work/no.gguf" --type f16
refused_saying 1 'cannot create' "$work/m.gguf" "$work/nowhere/no.gguf" --type f16
head -c 300000 "$work/m.gguf" > "$work/cut.gguf"
refused_saying 3 "tensor 'blk." "$work/cut.gguf" "$work/no.gguf" --type f16
{ printf 'NOPE'; tail -c +5 "$work/m.gguf"; } > "$work/magic.gguf"
refused_saying 3 'bytes that are not' "$work/magic.gguf" "$work/no.gguf" --type f16

printf 'old' > "$work/kept.gguf"
(ulimit -f 64; trap '' XFSZ; "$mica" quantize "$work/m.gguf" "$work/kept.gguf" --type f16) 2> "$work/err"
check 'a full disk: exit code 1' test $? = 1
check 'a full disk: one error message' one_line "$(cat "$work/err")"
check 'a full disk: the old file stays' test "$(cat "$work/kept.gguf")" = old
check 'no temporary file stays' test -z "$(find "$work" -name '*.tmp')"
if mkdir "$work/small" && mount -t tmpfs -o size=1m tmpfs "$work/small" 2> /dev/null; then
    run "$mica" quantize "$work/m.gguf" "$work/small/x.gguf" --type f32
    check 'a small disk: exit code 1' test "$status" = 1
    check 'a small disk: one error message' one_line "$err"
    check 'a small disk: nothing is left' test -z "$(ls "$work/small")"
    umount "$work/small"
else
    skip 'a small disk: a tmpfs cannot be mounted here'
fi
if [ "$(id -u)" != 0 ]; then
    mkdir "$work/closed" && chmod 500 "$work/closed"
    refused_saying 1 'cannot create' "$work/m.gguf" "$work/closed/no.gguf" --type f16
fi

# llama2c MODEL TOKENIZER TOKENS: a model of llama2.c
llama2c()
{
    run "$mica" convert "$1" --tokenizer "$2" -o "$work/s.gguf"
    check "$1: exit code 0" test "$status" = 0
    run "$mica" inspect "$work/s.gguf"
    check "$1" contains "$out" "llama, $3 tokens"
    run "$mica" convert "$1" --tokenizer "$1" -o "$work/no.gguf"
    check 'a wrong tokenizer: exit code' test "$status" = 3
    check 'a wrong tokenizer: nothing written' test ! -e "$work/no.gguf"
    head -c $(($(wc -c < "$1") - 1000)) "$1" > "$work/cut.bin"
    refused_saying 3 'bytes that are not' "$work/cut.bin" "$work/no.gguf" --type f32
}
llama2c tests/fixtures/models/story.bin tests/fixtures/models/spm.bin 452
data=${MICA_TEST_DATA:-$PWD/../shared/data}/models
if [ -r "$data/stories260K.bin" ]; then llama2c "$data/stories260K.bin" "$data/tok512.bin" 512; fi
check '--help' contains "$("$mica" quantize --help)" '--tensor'
finish
