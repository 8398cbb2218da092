#!/usr/bin/env bash
# mica eval ppl and mica bench MODEL from outside. No speed is looked at.
. tests/check.sh
mica=$BUILD/mica

model=$work/random.gguf
check 'make a random model' "$mica" make-random --shape tiny --seed 5 --container tq2_0 -o "$model"
printf 'It is a truth universally acknowledged, that a test in possession of a text must be in want of a loss.\n' > "$work/text"

# ------------------------------------------------------------------- eval ----
run "$mica" eval ppl "$model" "$work/text"
check "ppl: exit code 0 ($err)" test "$status" = 0
number='[0-9.]+(e[+-][0-9]+)?'
check "ppl: prints the method ($out)" grep -qxE "perplexity $number \+/- $number \(loss $number nats per token\) over 103 tokens, window 512, stride 256" <<< "$out"
whole=$out
run "$mica" eval ppl "$model" "$work/text" --window 16 --stride 4 -t 1
check 'ppl: every token is counted once' contains "$out" 'over 103 tokens, window 16, stride 4'
check 'ppl: less is known in a small window' test "$out" != "$whole"
run "$mica" eval ppl "$model" - < "$work/text"
check 'ppl: from stdin' test "$out" = "$whole"
run "$mica" eval ppl "$model" "$work/text" --limit 10 --json
check 'ppl --json' grep -qE '^\{"perplexity": [0-9.e+]+, "error": [0-9.e+]+, "loss": [0-9.]+, "tokens": 10, "window": 512, ' <<< "$out"
check 'ppl --json: the device' contains "$out" '"device": "CPU", '
run "$mica" eval ppl "$model" "$work/text" --limit 10
check 'ppl: the device' contains "$err" 'Device: CPU'
run "$mica" eval ppl "$model" "$work/text" --limit 3 --device ref
check "ppl --device ref: says that it is the reference ($err)" contains "$err" 'Device: CPU (reference backend)'
run "$mica" eval --help
check 'eval --help: exit code 0' test "$status" = 0 -a -n "$out"
refused 2 eval
refused 2 eval kl "$model" "$work/text"
refused 2 eval ppl "$model"
refused 2 eval ppl "$model" "$work/text" --window 1
refused 2 eval ppl "$model" "$work/text" --window 513
refused 2 eval ppl "$model" "$work/text" --window 16 --stride 16
refused 3 eval ppl "$model" "$work/no-such-file"
printf 'a' > "$work/short"
refused 3 eval ppl "$model" "$work/short"
refused 3 eval ppl "$work/text" "$work/text"
refused 4 eval ppl "$model" "$work/text" --memory-limit 1K

# ------------------------------------------------------------ bench MODEL ----
quick='-p 16 -n 4 -r 2 --no-peaks'
run "$mica" bench "$model" $quick
check "bench: exit code 0 ($err)" test "$status" = 0
check 'bench: the columns of llama-bench' \
    grep -qE '^\| model +\| +size \| +params \| backend \| threads \| +test \| +t/s \|' <<< "$out"
check 'bench: a row of prefill' grep -qE '^\| bitnet-b1.58 1.3M TQ2_0 .*\| +pp16 \| +[0-9.]+ ± [0-9.]+ \|' <<< "$out"
check 'bench: a row of decoding' grep -qE '\| +tg4 \| +[0-9.]+ ± [0-9.]+ \| +[0-9.]+ \|' <<< "$out"
check 'bench: the device' contains "$err" 'Device: CPU'
run "$mica" bench "$model" -p 0 -n 1 -r 1 --device metal
if [ "$status" = 0 ]; then
    check 'bench: software is no GPU' test -z "${err##*Device: softmetal*say nothing about a GPU.*}"
    check 'bench: software in its column' grep -qE '\| soft +\| +[0-9]+ \| +tg1 \|' <<< "$out"
    run "$mica" eval ppl "$model" "$work/text" --limit 3 --device metal
    check 'ppl: software says so' contains "$err" 'Device: softmetal'
else
    skip "bench --device metal: $err"
fi
run "$mica" bench -m "$model" $quick -t 1,2 -o csv
check 'bench csv: a row for each test and number of threads' test "$(grep -c '"TQ2_0\|TQ2_0"' <<< "$out")" = 4
check 'bench csv: as many fields as titles' test "$(awk -F, '{ print NF }' <<< "$out" | sort -u | wc -l)" = 1
python=$(command -v python3 || true)
if [ -n "$python" ]; then
    run "$mica" bench "$model" -p 0 -n 4 -r 3 --no-peaks -t 1 -o json
    printf '%s' "$out" > "$work/bench.json"
    check 'bench json parses' "$python" - "$work/bench.json" << 'END'
import json, sys
rows = json.load(open(sys.argv[1]))
assert len(rows) == 1 and rows[0]["n_gen"] == 4 and rows[0]["n_prompt"] == 0 and rows[0]["n_threads"] == 1
assert len(rows[0]["samples_ns"]) == 3 and rows[0]["avg_ts"] > 0 and rows[0]["gbs"] > 0
assert rows[0]["dram_percent"] is None and rows[0]["model_n_params"] > 1000000
END
else
    skip 'bench json parses: there is no python3'
fi
run "$mica" bench "$model" -p 0 -n 4 -r 1 --no-peaks -t 1 --json
check 'bench MODEL --json is --format json' grep -q '"n_gen": 4' <<< "$out"
refused 2 bench "$model" -p 0 -n 4 -r 1 --no-peaks --json --format csv
long="$work/$(printf 'a long name %.0s' {1..15})of \"one\" model.gguf"
ln -s "$model" "$long"
run "$mica" bench "$long" -p 0 -n 1 -r 1 --no-peaks -t 1 -o csv
check 'csv: a long name with quotes in it is whole' contains "$out" ",\"${long//\"/\"\"}\","
run "$mica" bench "$model" --help
check 'bench MODEL --help: exit code 0' test "$status" = 0 -a -n "$(grep -e --runs <<< "$out")"
refused 2 bench "$model" -t 0
refused 2 bench "$model" -r 0
refused 2 bench "$model" -o xml
refused 2 bench "$model" -n 600
refused 3 bench "$work/no-such.gguf" $quick
run "$mica" bench "$model" -p 8,16 -n 2,4 -t 1,2 -r 1 --no-peaks
check 'bench: lists, exit code 0' test "$status" = 0
check 'bench: a row for each' test "$(grep -cE '\| +(pp8|pp16|tg2|tg4) \|' <<< "$out")" = 8
refused 2 bench "$model" -p 8,x
refused 2 bench "$model" -n 1,2,3,4,5,6,7,8,9
refused 4 bench "$model" $quick --memory-limit 1K
finish
