#!/usr/bin/env bash
# The command mica train lm: a run of seconds, an interrupted run that continues with the
# same results, and all errors before and during a run.
. tests/check.sh
mica=$BUILD/mica
text=$work/text.txt
for i in $(seq 1 400); do
    echo "Line $i: the quick brown fox $((i * 7 % 13)) jumps over the lazy dog $((i * i % 17)) times."
done > "$text"

# train DIR OPTION...: a network of the smallest size that I2_S can hold
train()
{
    local dir=$1
    shift
    run "$mica" train lm --text "$text" --out "$dir" --dim 128 --layers 1 --heads 2 --kv-heads 1 --ffn 128 --vocab 300 \
        --seq 16 --batch 4 --threads 1 --eval-windows 8 --sample-every 20 --sample-tokens 10 "$@"
}

# wrong OPTION...: refused with one error message, no output and exit code 2
wrong()
{
    run "$mica" train "$@"
    check "mica train $*: exit code 2" test "$status" = 2
    check "mica train $*: one error message" one_line "$err"
    check "mica train $*: nothing on stdout" test -z "$out"
}

# field NAME FILE: a number of run.json
field() { sed -n "s/^  \"$1\": \([^,]*\),*$/\1/p" "$2"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 == a && a < b) }'; }

train "$work/a" --steps 40 --eval-every 10 --lr 0.01
check 'a run ends well' test "$status" = 0
check 'a run is silent on stderr' test -z "$err"
check 'a run tells the loss' contains "$out" 'validation loss'
for file in last.safetensors best.safetensors model.gguf run.json log.csv loss.svg samples.txt; do
    check "there is $file" test -s "$work/a/$file"
done
check 'nothing is left under another name' test -z "$(ls "$work/a" | grep -vE '^[a-z.]+\.(safetensors|gguf|json|csv|svg|txt)$')"
check 'the loss went down' below "$(field best_valid_loss "$work/a/run.json")" 5
check 'the log has a line for each validation' test "$(wc -l < "$work/a/log.csv")" = 6
check 'the model has a description' grep -qa 'bitnet-b1.58' "$work/a/model.gguf"
check 'the picture is one' grep -q '</svg>' "$work/a/loss.svg"

# The decoder of `mica run` reads the file and computes the same loss as training.
lines=$(head -c $(($(wc -c < "$text") * 9 / 10)) "$text" | wc -l)
tail -n +$((lines + 1)) "$text" > "$work/valid.txt"
run "$mica" eval ppl "$work/a/model.gguf" "$work/valid.txt" -w 16 -s 15 --json
loss=$(printf '%s\n' "$out" | sed -n 's/.*"loss": \([0-9.]*\),.*/\1/p')
check 'the model in the decoder: the same loss' awk -v a="$loss" -v b="$(field valid_loss "$work/a/run.json")" \
    'BEGIN { exit !(a > 0 && a < 1.03 * b && a > 0.97 * b) }'

train "$work/json" --steps 2 --json
check 'the result as JSON' contains "$out" '"valid_loss": '
if command -v python3 > /dev/null; then
    check 'JSON that others read' python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/a/run.json"
else
    skip 'run.json is read with python3, which is not there'
fi

# Interrupted in the middle and resumed: the same bytes, the same log.
"$mica" train lm --text "$text" --out "$work/b" --dim 128 --layers 1 --heads 2 --kv-heads 1 --ffn 128 --vocab 300 --seq 16 \
    --batch 4 --threads 1 --eval-windows 8 --steps 4000 --eval-every 1000 --sample-every 0 2> "$work/err" &
child=$!
for i in $(seq 1 100); do
    [ -e "$work/b/last.safetensors" ] && break
    sleep 0.1
done
sleep 0.3
kill -INT $child
status=0
wait $child || status=$?
check 'Ctrl-C: exit code 130' test "$status" = 130
check 'Ctrl-C: names the checkpoint' contains "$(cat "$work/err")" "$work/b/last.safetensors"
check 'Ctrl-C: a checkpoint' test -s "$work/b/last.safetensors"
train "$work/c" --steps 30 --eval-every 10 --minutes 0.000001 --dropout 0.1
check 'out of time: a model is written' test "$status:$(test -s "$work/c/model.gguf" && echo yes)" = 0:yes
train "$work/c" --steps 30 --eval-every 10 --dropout 0.1 --resume
check '--resume ends well' test "$status" = 0
train "$work/d" --steps 30 --eval-every 10 --dropout 0.1
check 'interrupted or not: the same model' cmp -s "$work/c/model.gguf" "$work/d/model.gguf"
check 'interrupted or not: the same losses' test "$(cut -d, -f1-4 "$work/c/log.csv")" = "$(cut -d, -f1-4 "$work/d/log.csv")"
train "$work/c" --steps 31 --eval-every 10 --dropout 0.1 --resume
check 'other options do not go on' test "$status" = 2
check 'other options are named' contains "$err" 'steps 30'

train "$work/learn" --steps 4 --eval-every 2 --optimiser lion --lr 0.0005 --accumulate 2 --compute bf16 --clip-value 1
check 'another optimiser, several batches a step, bf16' test "$status:$(test -s "$work/learn/model.gguf" && echo yes)" = 0:yes
check 'and it learns' below "$(field best_valid_loss "$work/learn/run.json")" 6

# Trained without quantisation, and quantised afterwards.
train "$work/f" --f32 --steps 40 --eval-every 10 --lr 0.01
check '--f32 ends well' test "$status" = 0
check '--f32 writes no packed model' test ! -e "$work/f/model.gguf"
full=$(field valid_loss "$work/f/run.json")
train "$work/none" --init "$work/f/best.safetensors" --steps 0 --json
check '--steps 0 evaluates' test "$status" = 0
check '--steps 0 writes nothing' test ! -e "$work/none"
check 'rounding after training costs' below "$full" "$(printf '%s\n' "$out" | sed -n 's/^  "valid_loss": \([^,]*\),*$/\1/p')"

# NaN: a learning rate that makes the loss diverge.
train "$work/nan" --f32 --steps 50 --eval-every 1 --lr 10 --decay 10 --warmup 0
if [ "$status" = 1 ]; then
    check 'NaN: names the step' contains "$err" 'step '
    check 'NaN: names the last good checkpoint' contains "$err" "$work/nan/last.safetensors"
else
    skip 'the network survived a learning rate of 10'
fi

train "$work/a" --steps 40
check 'a checkpoint is not written over' test "$status:$(test -s "$work/a/last.safetensors" && echo yes)" = 2:yes

train "$work/plan" --plan
check '--plan prints a plan' contains "$out" 'kernels'
check '--plan writes nothing' test ! -e "$work/plan"
run "$mica" train lm --help
check '--help: exit code 0' test "$status" = 0
check '--help lists the options' contains "$out" '--eval-every'

wrong
wrong cat
wrong lm
wrong lm --text
refused 3 train lm --text "$work/no.txt" --out "$work/refused"
check 'names the text' contains "$err" "$work/no.txt"
refused 3 train lm --text "$work" --out "$work/refused"
wrong lm --text "$text" --out "$work/refused" --frobnicate
wrong lm --text "$text" --out "$work/refused" --dim x
wrong lm --text "$text" --out "$work/refused" --lr -1
wrong lm --text "$text" --out "$work/refused" --preset huge
wrong lm --text "$text" --out "$work/refused" --heads 3
wrong lm --text "$text" --out "$work/refused" --dim 130 --heads 1 --kv-heads 1
check 'names the format' contains "$err" 'I2_S'
wrong lm --text "$text" --out "$work/refused" --seq 60000
check 'names the tokens' contains "$err" '--seq 60000'
refused 1 train lm --text "$text" --out "$work/no/where"
refused 1 train lm --text "$text" --out "$text"
wrong lm --text "$text" --out "$work/empty" --resume
refused 3 train lm --text "$text" --out "$work/refused" --init "$work/no.safetensors"
check 'a refused run leaves no folder' test ! -e "$work/refused"
echo nonsense > "$work/bad.safetensors"
run "$mica" train lm --text "$text" --out "$work/refused" --init "$work/bad.safetensors" --steps 0
check 'a file that is not a checkpoint: exit code 3' test "$status" = 3
run "$mica" train lm --text "$text" --out "$work/refused" --init "$work/a/best.safetensors" --steps 0
check 'a checkpoint of another shape: exit code 3' test "$status" = 3
check 'a checkpoint of another shape: one error message' one_line "$err"

if [ "$(id -u)" != 0 ]; then
    mkdir "$work/closed" && chmod 500 "$work/closed"
    train "$work/closed" --steps 2
    check 'a folder that cannot be written to: exit code 1' test "$status" = 1
    check 'a folder that cannot be written to: one error message' one_line "$err"
fi
# A full disk, simulated by a limit on the size of files.
(
    ulimit -f 64
    trap '' XFSZ
    exec "$mica" train lm --text "$text" -o "$work/full" --dim 128 --layers 1 --heads 2 --kv-heads 1 --ffn 128 --vocab 300 \
        --seq 16 --batch 4 --threads 1 --eval-windows 8 --steps 10
) > "$work/out" 2> "$work/err"
status=$?
check 'a full disk: exit code 1' test "$status" = 1
check 'a full disk: one error message' one_line "$(cat "$work/err")"
check 'a full disk: nothing half-written' test -z "$(ls "$work/full" 2> /dev/null | grep -v log.csv)"
finish
