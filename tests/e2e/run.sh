#!/usr/bin/env bash
# The commands mica run and mica chat, on small random models that are made here, on the
# fixture and, if installed, on stories260K: stdout and stderr, exit codes, reproducible text.
. tests/check.sh
mica=$BUILD/mica
data=${MICA_TEST_DATA:-$PWD/../shared/data}/models

line_of() { sed -n "s/^$1: //p" <<< "$err"; }

model=$work/random.gguf
check 'make a random model' "$mica" make-random --shape tiny --seed 5 --container i2_s -o "$model"

# ------------------------------------------------------------------ text -----
go="-n 12 --seed 7 --temp 50 --top-k 0 --top-p 1 --min-p 0 --no-peaks"
run "$mica" run "$model" -p 'Once upon' $go
check "run: exit code 0 ($err)" test "$status" = 0
check 'run: prints text' test -n "$out"
check 'run: tokens of the prompt' grep -qxE 'Prompt: [0-9]+ tokens, [0-9.]+ tokens-per-sec' <<< "$err"
check 'run: tokens it made' grep -qxE 'Generation: ([0-9]|1[012]) tokens(, [0-9.]+ tokens-per-sec|, unavailable)' <<< "$err"
check 'run: bytes, rate, and a share that was not measured' \
    grep -qxE 'Read: [0-9.]+ MB per token, ([0-9.]+ GB/s|unavailable), share of the measured DRAM bandwidth unavailable \(unavailable\)' <<< "$err"
for part in Load 'Peak memory'; do check "run: $part" grep -qxE "$part: [0-9.]+ (s|MB)" <<< "$err"; done
check 'run: the seed' test "$(line_of Seed)" = 7
hash=$(line_of Logits) text=$out
check 'run: a hash of the logits' grep -qxE '[0-9a-f]{16}' <<< "$hash"

same()
{
    run "$mica" run "$@"
    check "mica run $*: exit code 0 ($err)" test "$status" = 0
    check "mica run $*: the same text" test "$out" = "$text"
    check "mica run $*: the same logits" test "$(line_of Logits)" = "$hash"
}
printf 'Once upon' > "$work/prompt"
same "$model" -p 'Once upon' $go
same -m "$model" -f "$work/prompt" $go
same "$model" - $go < "$work/prompt"
same "$model" -p 'Once upon' $go -t 1
same "$model" -p 'Once upon' $go -t 2 -c 100
for container in tq1_0 tq2_0 mica_t2 mica_t1 hf; do
    check "make the same model as $container" "$mica" make-random --shape tiny --seed 5 --container $container -o "$work/$container"
    same "$work/$container" -p 'Once upon' $go
done
run "$mica" run "$model" -p 'Once upon' $go --seed 8
check 'another seed, another text' test "$out" != "$text"
run "$mica" run "$model" -n 4 --seed 1 --no-peaks
check 'no prompt: exit code 0' test "$status" = 0
for option in '--kv f32' '--kv q8' '--act-quant none' '--act-quant block256' '--temp 0 --repeat-penalty 1.3' '--top-k 5 --top-p 0.5 --min-p 0.1'; do
    run "$mica" run "$model" -p 'Once upon' $go $option
    check "run $option: exit code 0 ($err)" test "$status" = 0
done
for aliases in '--n-predict 12' '--max-tokens 12' '--predict=12'; do
    same --model "$model" --prompt 'Once upon' ${go/-n 12/$aliases} --threads 2 --ctx-size 100
done
same "$model" -p 'Once upon' ${go/--temp/--temperature} --repetition-penalty 1 -s 7
run "$mica" run --help
check 'run --help: exit code 0, options' test "$status" = 0 -a -n "$(grep -e --repeat-penalty <<< "$out")"

python=$(command -v python3 || true)
if [ -n "$python" ]; then
    run "$mica" run "$model" -p 'Once upon' $go --json
    check 'run --json: nothing on stderr' test -z "$err"
    printf '%s' "$out" > "$work/run.json"
    check 'run --json parses' "$python" - "$work/run.json" "$hash" << 'END'
import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8", errors="surrogateescape"))
assert r["logits_hash"] == sys.argv[2] and r["seed"] == 7 and r["arch"] == "bitnet-b1.58"
assert 0 < r["generated_tokens"] <= 12 and r["bytes_per_token"] > 100000 and r["dram_gbs"] is None
assert r["interrupted"] is False and r["peak_memory_bytes"] > 0
END
else
    skip 'run --json parses: there is no python3'
fi

# ------------------------------------------------------- the model inside ----
if ls models/builtin/*.gguf > /dev/null 2>&1; then
    run "$mica" run -p 'First Citizen:' -n 20 --seed 1 --no-peaks
    check "the model inside: exit code 0 ($err)" test "$status" = 0
    check 'the built-in model: prints text' test -n "$out"
    inside=$out
    run "$mica" run builtin -p 'First Citizen:' -n 20 --seed 1 --no-peaks
    check 'the model inside by its name: the same' test "$out" = "$inside"
else
    refused 3 run -p a
fi

# --------------------------------------------------------------- refusals ----
refused 2 run "$model" --frobnicate
refused 2 run "$model" -n
for bad in x 1.5 -2 ''; do refused 2 run "$model" -n "$bad"; done
for bad in -1 nan x; do refused 2 run "$model" --temp "$bad"; done
refused 2 run "$model" --top-p 0
refused 2 run "$model" --kv f64
refused 2 run "$model" --act-quant some
refused 2 run "$model" --memory-limit 3X
refused 2 run "$model" -p a -f b
refused 2 run "$model" other.gguf -p a
refused 2 run "$model" -p a -n 4 --ctx 1000000
check 'a context that is too large names both' contains "$err" 512
refused 1 run "$model" -p a -n 511
check 'too many tokens: names all three' test -n "$(grep -e 511 <<< "$err" | grep -e 512)"
refused 1 run "$model" -p 'Once upon a time' -n 4 --ctx 8
refused 3 run "$model" -f "$work/no-such-file"
refused 3 run "$work/no-such-model.gguf" -p a
echo 'no model' > "$work/text.gguf"
refused 3 run "$work/text.gguf" -p a
head -c 100000 "$model" > "$work/short.gguf"
refused 3 run "$work/short.gguf" -p a
refused 4 run "$model" -p a --memory-limit 100K
check 'over the budget: both numbers' grep -qE '[0-9]{6} bytes, the limit is 102400' <<< "$err"
size=$(wc -c < "$model")
refused 4 run "$model" -p a -n 500 --memory-limit "$size"
if [ -e /dev/full ]; then
    status=0
    "$mica" run "$model" -p 'Once upon' $go > /dev/full 2> "$work/err" || status=$?
    check 'a full disk: exit code 1' test "$status" = 1
else
    skip 'output to a full disk: there is no /dev/full'
fi

# -------------------------------------------------------------- interrupt ----
check 'make a slower model' "$mica" make-random --shape tiny,layers=4,hidden=1024,ffn=2048,context=20000 --container tq2_0 -o "$work/slow.gguf"
"$mica" run "$work/slow.gguf" -p a -n -1 --no-peaks -t 1 > "$work/out" 2> "$work/err" &
pid=$!
for _ in $(seq 300); do
    test -s "$work/out" && break
    sleep 0.1
done
kill -INT $pid
status=0
wait $pid || status=$?
check "Ctrl-C: exit code 130, not $status" test "$status" = 130
check 'Ctrl-C: the figures come' grep -q '^Generation: [0-9]' "$work/err"

for signal in INT TERM; do
    "$mica" make-random --shape tiny,layers=8,hidden=2048,ffn=8192 --container f16 -o "$work/killed.gguf" > /dev/null 2>&1 &
    pid=$!
    for _ in $(seq 200); do
        ls "$work"/killed.gguf* > /dev/null 2>&1 && break
        sleep 0.02
    done
    kill -$signal $pid
    status=0
    wait $pid || status=$?
    check "SIG$signal: exit code, not $status" test "$status" = "$([ $signal = INT ] && echo 130 || echo 143)"
    check "SIG$signal: no temporary file" test -z "$(ls "$work"/killed.gguf* 2> /dev/null)"
done

# ------------------------------------------------------------------ peaks ----
# Measured once: the second run reads the file, which is replaced if it is not complete.
export MICA_CACHE=$work/peaks
run "$mica" run "$model" -p a -n 4 --seed 1
check "peaks: exit code 0 ($err)" test "$status" = 0
check 'peaks: a small model is in cache' grep -qE '^Read: [0-9.]+ MB per token, [0-9.]+ GB/s, in cache \(DRAM [0-9.]+ GB/s\)$' <<< "$err"
kept=$(ls "$MICA_CACHE"/peaks-*.txt)
check 'peaks: one file' test -s "$kept"
sed -i 's/^dram_read .*/dram_read 1.5 2.5/' "$kept"
run "$mica" run "$model" -p a -n 4 --seed 1
check 'peaks: the second run reads the file' contains "$err" '(DRAM 2.50 GB/s)'
sed -i '$d' "$kept"
run "$mica" run "$model" -p a -n 4 --seed 1 --json
check 'peaks: a file that is cut off is measured again' test "$(tail -n 1 "$kept")" = end
check 'peaks: JSON reports the cache' grep -q '"dram_percent": null, "in_cache": true' <<< "$out"
unset MICA_CACHE

# ------------------------------------------------------------------- chat ----
run "$mica" chat "$model" -n 6 --seed 1 --template chatml < <(printf 'hello\nmore\n/reset\nhello\n')
check "chat: exit code 0 ($err)" test "$status" = 0
check 'chat: figures' grep -qE '^Generation: [0-9]+ tokens' <<< "$err"
run "$mica" chat "$model" --template chatml < /dev/null
check 'chat: no input is not an error' test "$status" = 0
refused 2 chat "$model" --frobnicate
run "$mica" chat "$model" -c 16 --template chatml < <(printf 'a text that has more tokens than the context\n')
check 'chat: a full context is reported, exit code 1' test "$status" = 1
check 'chat: with both numbers' contains "$err" 'context of 16'

# ---------------------------------------------------------------- stories ----
# story MODEL TOKENIZER TEXT: a model of llama2.c whose greedy text is known
story()
{
    check "convert $1" "$mica" convert "$1" "$work/stories.gguf" --tokenizer "$2"
    run "$mica" run "$work/stories.gguf" --temp 0 -n 200 --no-peaks
    check "$1 gives the known text" test "$out" = "$(cat "$3")"
    run "$mica" chat "$work/stories.gguf" -n 12 --temp 0 --template chatml < <(printf 'hello\n/exit\nhello\n')
    once=$out
    check 'chat: prints text' test -n "$once"
    run "$mica" chat "$work/stories.gguf" -n 12 --temp 0 --template chatml < <(printf 'hello\n/reset\nhello\n')
    check 'chat: /reset clears the conversation, /exit ends' test "$out" = "$once
$once"
    refused 3 chat "$work/stories.gguf"
    check 'chat without a template lists the known ones' contains "$err" chatml
}
story tests/fixtures/models/story.bin tests/fixtures/models/spm.bin tests/fixtures/models/story.greedy200.txt
if [ -e "$data/stories260K.bin" ]; then
    story "$data/stories260K.bin" "$data/tok512.bin" "$data/stories260K.greedy200.txt"
fi
finish
