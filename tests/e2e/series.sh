#!/usr/bin/env bash
# The commands mica data, mica train ncp and mica predict: the example of the help, an
# interrupted run that continues with the same results, and all errors.
. tests/check.sh
mica=$BUILD/mica
sine=$work/sine.csv

train()
{
    local dir=$1
    shift
    run "$mica" train ncp --data "$sine" --target target --out "$dir" --units 8 --backbone-units 16 --seq 16 --batch 16 \
        --threads 1 --epochs 6 "$@"
}

# field NAME FILE: a number of run.json
field() { sed -n "s/^  \"$1\": \([^,]*\),*$/\1/p" "$2"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 == a && a < b) }'; }

# ---------------------------------------------------------------- mica data --
for kind in sine spiral irregular; do
    run "$mica" data $kind -o "$work/$kind.csv" --rows 1500 --seed 3
    check "data $kind: exit code 0 and silent" test "$status:$out$err" = 0:
    "$mica" data $kind -o "$work/again.csv" --rows 1500 --seed 3
    check "data $kind: the same seed, the same file" cmp -s "$work/$kind.csv" "$work/again.csv"
    "$mica" data $kind -o "$work/again.csv" --rows 1500 --seed 4
    check "data $kind: another seed, another file" test "$(cmp -s "$work/$kind.csv" "$work/again.csv"; echo $?)" = 1
    check "data $kind: as many rows as asked for" test "$(wc -l < "$work/$kind.csv")" = 1501
done
run "$mica" data info "$work/spiral.csv"
check 'data info: tells kinds' contains "$out" 'class                    texts'
run "$mica" data info "$work/spiral.csv" --json
check 'data info --json: rows' contains "$out" '"rows": 1500'
refused 2 data
refused 2 data cube -o "$work/x.csv"
refused 2 data sine
refused 2 data sine -o "$work/x.csv" --rows 0
refused 2 data sine -o "$work/x.csv" --seed -1
refused 1 data sine -o "$work/no/x.csv"
refused 3 data info "$work/no.csv"
refused 2 data sine -o "$work/x.npy"
run "$mica" data sine -o "$work/sine.tsv" --rows 1500 --seed 3
check 'data: a TSV by its name' test "$(tr '\t' , < "$work/sine.tsv" | cmp - "$sine" && "$mica" data info "$work/sine.tsv" | grep -c numbers)" = 3

# ------------------------------------------------------- the example of the help --
run "$mica" train --help
check 'train --help: exit code 0' test "$status" = 0
printf '%s\n' "$out" | sed -n '/^Examples:/,$s/^  \(mica\|head\) /\1 /p' > "$work/example.sh"
check 'train --help has an example of five lines' test "$(wc -l < "$work/example.sh")" = 5
mkdir "$work/example"
bin=$(cd "$BUILD" && pwd)
run bash -c "cd '$work/example' && PATH='$bin':\$PATH && set -e && . ../example.sh"
check 'the example works' test "$status" = 0
check 'the example is silent on stderr' test -z "$err"
check 'the example ends with predictions' contains "$(head -n 1 "$work/example/out.csv")" 'row,speed,predicted speed'
check 'the example learns' below "$(field test_loss "$work/example/try/run.json")" 0.5

# ----------------------------------------------------------------------- runs --
train "$work/a"
check 'a run ends well' test "$status" = 0
check 'a run is silent on stderr' test -z "$err"
check 'a run tells the test metric' contains "$out" 'test: MSE'
for file in last.safetensors best.safetensors run.json log.csv loss.svg; do
    check "there is $file" test -s "$work/a/$file"
done
check 'nothing is left under another name' test -z "$(ls "$work/a" | grep -vE '^[a-z.]+\.(safetensors|json|csv|svg)$')"
check 'the log has a line for each epoch' test "$(wc -l < "$work/a/log.csv")" = 8
check 'the picture is one' grep -q '</svg>' "$work/a/loss.svg"
check 'run.json states regression' grep -q '"task": "regression"' "$work/a/run.json"
if command -v python3 > /dev/null; then
    check 'JSON that others read' python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/a/run.json"
else
    skip 'run.json is read with python3, which is not there'
fi
for cell in ltc gru lstm ctrnn node eltc ctgru; do
    train "$work/$cell" --cell $cell --epochs 1 --json
    check "--cell $cell" test "$status:$(printf '%s\n' "$out" | grep -c '"test_mse": [0-9]')" = 0:1
done
train "$work/wired" --wiring autoncp:12,2 --mode no_gate --epochs 1 --mixed-memory
check '--wiring: a picture of it' grep -q '</svg>' "$work/wired/wiring.svg"
check '--wiring: the names of ncps' grep -qa 'rnn_cell.layer_0.ff1.weight' "$work/wired/best.safetensors"
check '--wiring: and its masks' grep -qa 'rnn_cell.layer_0.sparsity_mask' "$work/wired/best.safetensors"
train "$work/patient" --epochs 200 --patience 2 --lr 0 --optimizer sgd
check 'no better for so long: it stops' contains "$out" 'stopped early: cfc'
train "$work/plan" --plan
check '--plan prints a plan' contains "$out" 'kernels'
check '--plan writes nothing' test ! -e "$work/plan"

# Interrupted or not: the same bytes.
train "$work/b" --minutes 0.0000001 --dropout 0.1 --backbone-layers 2
check 'out of time: a model is written' test "$status:$(test -s "$work/b/best.safetensors" && echo yes)" = 0:yes
echo '7,0.1,0.2,0.3,1,1' >> "$work/b/log.csv" # as after a run that was killed before its checkpoint
train "$work/b" --dropout 0.1 --backbone-layers 2 --resume
check '--resume ends well' test "$status" = 0
train "$work/c" --dropout 0.1 --backbone-layers 2
check 'interrupted or not: the same model' cmp -s "$work/b/best.safetensors" "$work/c/best.safetensors"
check 'interrupted or not: the same losses' test "$(cut -d, -f1-4 "$work/b/log.csv")" = "$(cut -d, -f1-4 "$work/c/log.csv")"
train "$work/b" --dropout 0.1 --backbone-layers 2 --lr 0.004 --resume
check 'other options do not go on' test "$status:$(one_line "$err" && echo one)" = 2:one
check 'the option that differs is named' contains "$err" 'lr 0.005, not 0.004'
train "$work/b" --dropout 0.1 --backbone-layers 2 --units 9 --resume
check 'a checkpoint of another shape: exit code 2' test "$status:$(one_line "$err" && echo one)" = 2:one
train "$work/a"
check 'a checkpoint is not written over' test "$status" = 2

# Options of training: the same for every training command.
for options in '--optimiser lion --lr 0.001 --clip-value 0.1' '--optimizer sgd --momentum 0.9 --nesterov' '--compute bf16'; do
    train "$work/learn" $options --epochs 1 --json
    check "$options" test "$status:$(printf '%s\n' "$out" | grep -c '"test_mse": [0-9]')" = 0:1
    rm -r "$work/learn"
done
for cell in ltc gru lstm ctrnn eltc ctgru; do
    train "$work/half" --cell $cell --compute f16 --accumulate 2 --epochs 1
    check "--compute f16 --cell $cell" test "$status" = 0
    rm -r "$work/half"
done
train "$work/f" --minutes 0.0000001 --accumulate 3 --compute f16
train "$work/f" --accumulate 3 --compute f16 --resume
train "$work/g" --accumulate 3 --compute f16
check 'interrupted or not, several batches a step, f16: the same model' cmp -s "$work/f/best.safetensors" "$work/g/best.safetensors"
train "$work/f" --accumulate 2 --compute f16 --resume
check 'other batches a step do not go on' test "$status" = 2

interrupt() # DIR OPTION...: Ctrl-C after the first epochs
{
    local dir=$1
    shift
    "$mica" train ncp --data "$sine" --target target --out "$dir" --units 8 --backbone-units 16 --seq 16 --batch 4 \
        --threads 1 --epochs 2000 --patience 0 "$@" 2> "$work/err" &
    local child=$!
    for i in $(seq 1 100); do
        [ -e "$dir/last.safetensors" ] && break
        sleep 0.1
    done
    sleep 0.2
    kill -INT $child
    status=0
    wait $child || status=$?
}
interrupt "$work/ctrlc"
check 'Ctrl-C: exit code 130' test "$status" = 130
check 'Ctrl-C: names the checkpoint' contains "$(cat "$work/err")" "$work/ctrlc/last.safetensors"
check 'Ctrl-C: run.json states it' grep -q '"state": "interrupted"' "$work/ctrlc/run.json"
before=$(field step "$work/ctrlc/run.json")
interrupt "$work/ctrlc" --resume
check 'Ctrl-C, on, Ctrl-C: further than before' below "$before" "$(field step "$work/ctrlc/run.json")"

# NaN: numbers whose squares overflow.
awk -F, 'NR == 1 { print } NR > 1 { printf "%s,%s,%se30\n", $1, $2, NR == 400 ? 1 : $3 }' "$sine" > "$work/huge.csv"
run "$mica" train ncp --data "$work/huge.csv" --target target --raw --out "$work/nan" --epochs 2 --threads 1
check 'NaN: exit code 1' test "$status" = 1
check 'NaN: one error message' one_line "$err"
check 'NaN: names the step' contains "$err" 'step '
check 'NaN: names the last good checkpoint' contains "$err" "$work/nan/last.safetensors, of step 0"
check 'NaN: run.json states it' grep -q '"state": "not finite"' "$work/nan/run.json"

# A full disk: existing files do not change.
run bash -c "ulimit -f 4; '$mica' train ncp --data '$sine' --target target --out '$work/none' --units 16 --threads 1 --epochs 6"
check 'no room: exit code 1' test "$status" = 1
check 'no room: one error message' one_line "$err"
check 'no room: no incomplete file' test "$(ls "$work/none")" = log.csv

# ---------------------------------------------------------------- classes, predict --
run "$mica" train ncp --data "$work/spiral.csv" --target class --group series --cell gru --units 16 --seq 24 --threads 1 \
    --epochs 15 --out "$work/spiral"
check 'classes are inferred' contains "$out" 'test: accuracy'
run "$mica" predict "$work/spiral" "$work/spiral.csv" -o "$work/out.csv"
check 'predict: exit code 0' test "$status" = 0
check 'predict: tells the accuracy' contains "$out" '1500 rows predicted, accuracy'
check 'predict: a header' test "$(head -n 1 "$work/out.csv")" = 'row,class,predicted class,p(left),p(right)'
check 'predict: a line for each row' test "$(wc -l < "$work/out.csv")" = 1501
check 'predict: probabilities add up' awk -F, 'NR > 1 && ($4 + $5 < 0.999 || $4 + $5 > 1.001) { bad = 1 } END { exit bad }' "$work/out.csv"
cut -d, -f1-3 "$work/spiral.csv" > "$work/blind.csv"
run "$mica" predict "$work/spiral/best.safetensors" "$work/blind.csv" -o "$work/blind_out.csv" --json
check 'predict without the target: no score' contains "$out" '"scored": 0'
check 'predict without the target: the same predictions' test "$(cut -d, -f3- "$work/out.csv" | md5sum)" = "$(cut -d, -f3- "$work/blind_out.csv" | md5sum)"
# Series a and b of 40 rows each, predicted one row ahead: after the last row of a there is no target.
awk 'BEGIN { print "who,x"; for (i = 0; i < 80; i++) printf "%s,%g\n", i < 40 ? "a" : "b", sin(i / 3) + 0.001 * i }' > "$work/two.csv"
run "$mica" train ncp --data "$work/two.csv" --target x --group who --seq 8 --valid 0 --test 0 --epochs 1 --threads 1 --units 4 --out "$work/two"
run "$mica" predict "$work/two" "$work/two.csv" -o "$work/two_out.csv"
check 'predict ahead: no target after the end of a series' test "$(grep -c ',,' "$work/two_out.csv"):$(grep -E '^(41|81),,' "$work/two_out.csv" | wc -l)" = 2:2
run "$mica" predict "$work/a" "$sine" --seq 0
check 'predict: to stdout without -o' test "$(printf '%s\n' "$out" | wc -l)" = 1501

refused 2 predict
refused 2 predict "$work/a"
refused 3 predict "$work/a" "$work/no.csv" -o "$work/p.csv"
refused 2 predict "$work/a" "$work/spiral.csv" -o "$work/p.csv"
check 'predict: names file and column' contains "$err" "$work/spiral.csv, line 1: there is no column 'sin'"
refused 2 predict "$work/a" "$sine" --json
refused 2 predict "$work/a" "$sine" -o - --json
run "$mica" predict "$work/a" "$sine" -o "$work/out.tsv"
check 'predict: a TSV by its name' test "$(head -n 1 "$work/out.tsv")" = "$(printf 'row\ttarget\tpredicted target')"
refused 2 predict "$work/a" "$sine" --seq 8 --context 8 -o "$work/p.csv"
refused 3 predict "$work/no" "$sine" -o "$work/p.csv"
refused 3 predict "$work/a/run.json" "$sine" -o "$work/p.csv"
refused 3 predict "$work/a/last.safetensors" "$sine" -o "$work/p.csv"
refused 1 predict "$work/a" "$sine" -o "$work/no/p.csv"
check 'predict: nothing is written when refused' test ! -e "$work/p.csv"
refused 2 predict "$work/a" "$sine" --device cat -o "$work/p.csv"
ln -s /dev/null "$work/null"
run "$mica" predict "$work/a" "$sine" -o "$work/null"
check 'predict -o /dev/null: the device stays one' test "$status:$(readlink "$work/null")" = 0:/dev/null
run "$mica" data sine -o "$work/null"
check 'data -o /dev/null: the device stays one' test "$status:$(readlink "$work/null")" = 0:/dev/null

# Tabs, dates, texts, gaps.
{
    printf 'colour\twhen\tx\ty\n'
    for i in $(seq 1 300); do
        printf '%s\t2020-01-01 00:%02d:00\t%s\t%s\n' "$([ $((i % 3)) = 0 ] && echo red || echo blue)" $((i % 60)) \
            "$([ $((i % 7)) = 0 ] && echo NA || echo $((i % 10)))" $((i % 10 * 2)).5
    done
} > "$work/gaps.tsv"
run "$mica" train ncp --data "$work/gaps.tsv" --target y --seq 8 --epochs 1 --out "$work/gaps" --threads 1
check 'TSV ends well' test "$status" = 0
check 'dates are left out, with a message' contains "$out" 'columns left out: when'
check 'gaps are filled, with a message' contains "$out" 'missing values filled: 42'
check 'a text is as many inputs as it has values' test "$(field inputs "$work/gaps/run.json")" = 3
sed 1d "$sine" > "$work/bare.csv"
run "$mica" train ncp --data "$work/bare.csv" --target -1 --epochs 1 --out "$work/bare" --threads 1
check 'no header, a target by number' test "$status" = 0

# ------------------------------------------------------------------- bad input --
# bad PART ARGUMENT...: refused with an error message that contains PART; exit code 2, wrong usage
# bad_file PART ARGUMENT...: the same for a file that cannot be used, exit code 3
bad_code()
{
    local code=$1 part=$2
    shift 2
    refused "$code" train ncp --out "$work/bad" "$@"
    check "mica train ncp $*: says '$part'" contains "$err" "$part"
}
bad() { bad_code 2 "$@"; }
bad_file() { bad_code 3 "$@"; }
bad --data --target x
bad --target --data "$sine"
bad_file "no.csv" --data "$work/no.csv" --target x
bad "no column 'x'" --data "$sine" --target x
bad '--seq 0 is out of range (1 to 1000000)' --data "$sine" --target target --seq 0
bad 'line 1501' --data "$sine" --target target --seq 5000
bad '--seed' --data "$sine" --target target --seed -1
bad '--cell' --data "$sine" --target target --cell cat
bad 'wiring' --data "$sine" --target target --wiring cat:3
bad 'wiring' --data "$sine" --target target --cell gru --wiring full:8
bad 'activation' --data "$sine" --target target --activation cat
for options in '--mixed-memory --cell gru' '--mode pure --cell ltc' '--convention keras --cell lstm' '--activation relu --cell ltc' \
    '--dropout 0.1 --wiring autoncp:8,2' '--unfolds 3 --cell cfc' '--solver rk4 --cell ltc'; do
    bad "${options%% *} needs" --data "$sine" --target target $options
done
bad 'of 1 whole series none is left' --data "$sine" --target target --split whole
bad 'leave nothing' --data "$sine" --target target --valid 0.6 --test 0.6
mkdir "$work/nothing"
bad_file 'no file in it' --data "$sine,$work/nothing" --target target
printf 'a,b\n1,2\n3\n' > "$work/ragged.csv"
bad_file "ragged.csv, line 3, column 2 ('b') is missing" --data "$work/ragged.csv" --target b
printf 'a,b\n1,2\n3,"4\n' > "$work/quote.csv"
bad_file 'quote.csv, line 3, column 2' --data "$work/quote.csv" --target b
: > "$work/empty.csv"
bad_file 'empty.csv, line 1' --data "$work/empty.csv" --target b
awk -F, 'NR == 7 { $3 = "" } { print $1 "," $2 "," $3 }' "$sine" > "$work/hole.csv"
bad_file "hole.csv, line 7, column 3 ('target'): the target is missing" --data "$work/hole.csv" --target target
awk -F, 'NR == 9 { $2 = "oops" } { print $1 "," $2 "," $3 }' "$sine" > "$work/stray.csv"
bad_file "stray.csv, line 9, column 2 ('cos')" --data "$work/stray.csv" --target target
awk -F, 'NR == 9 { $2 = "caf\351" } { print $1 "," $2 "," $3 }' "$sine" > "$work/latin.csv"
bad_file 'latin.csv, line 9, column 2: the text is not UTF-8' --data "$work/latin.csv" --target target
printf 'x' > "$work/bad.npy"
bad_file 'bad.npy' --data "$work/bad.npy" --target 1
check 'what is refused writes nothing' test ! -e "$work/bad"
refused 1 train ncp --data "$sine" --target target --out "$work/no/where"
refused 2 train ncp --data "$sine" --target target --out "$work/fresh" --resume
check '--resume of nothing makes no folder' test ! -e "$work/fresh"

# ------------------------------------------------------------------- files of other programs --
# A row number without a name in the header, quoted texts, and dates; a second file to test with.
rooms()
{
    awk -v from="$1" -v to="$2" 'BEGIN {
        print "\"date\",\"Temperature\",\"Light\",\"Occupancy\""
        for (i = from; i < to; i++)
            printf "\"%d\",\"2015-02-%02d %02d:%02d:00\",%.2f,%.1f,%d\n", i, 4 + int(i / 1440), int(i / 60) % 24, i % 60,
                20 + 3 * sin(i / 40), (sin(i / 40) > 0 ? 430 : 0), (sin(i / 40) > 0)
    }'
}
rooms 1 1200 > "$work/rooms.txt"
rooms 1200 1700 > "$work/rooms_test.txt"
run "$mica" train ncp --data "$work/rooms.txt" --test-data "$work/rooms_test.txt" --target Occupancy --seq 16 --epochs 3 \
    --threads 1 --out "$work/rooms" --json
check "rows with numbers, and dates: accuracy above 85 % ($err)" below 0.85 \
    "$(printf '%s\n' "$out" | sed -n 's/^  "test_accuracy": \([^,]*\),*$/\1/p')"
run "$mica" train ncp --data tests/fixtures/timeseries --target all --ahead 1 --seq 8 --epochs 1 --threads 1 --out "$work/folder"
check "a folder of npy files ($err)" test "$status" = 0
awk 'BEGIN { for (i = 0; i < 800; i++) printf "%d/%d/1998,%s,%.2f,%d.\n", i % 12 + 1, i % 28 + 1, i % 7 ? sin(i / 9) : "?",
    cos(i / 9), (sin(i / 9) > 0) }' > "$work/holes.data"
run "$mica" train ncp --data "$work/holes.data" --target -1 --epochs 1 --threads 1 --out "$work/holes"
check "a file without names, and with holes ($err)" contains "$out" 'test: accuracy'
awk 'BEGIN { print "holiday,temp,weather,date_time,volume"
    for (i = 0; i < 800; i++) printf "%s,%.2f,%s,2012-10-%02d %02d:00:00,%d\n", i % 50 ? "None" : "Columbus Day", 280 + i % 9,
        i % 3 ? "Clouds" : "Clear sky", 1 + int(i / 24) % 28, i % 24, 3000 + 2000 * sin(i / 4) }' > "$work/traffic.csv"
run "$mica" train ncp --data "$work/traffic.csv" --target volume --epochs 1 --threads 1 --stride 32 --out "$work/volume"
check "texts and dates ($err)" contains "$out" 'test: MSE'

# ------------------------------------------------------------------- real data --
shared=../shared/data/timeseries
if [ -d $shared ]; then
    run "$mica" train ncp --data $shared/occupancy/datatraining.txt --test-data $shared/occupancy/datatest.txt \
        --target Occupancy --seq 16 --epochs 2 --threads 1 --out "$work/occupancy" --json
    check 'occupancy as it is: accuracy above 85 %' below 0.85 "$(printf '%s\n' "$out" | sed -n 's/^  "test_accuracy": \([^,]*\),*$/\1/p')"
    run "$mica" train ncp --data $shared/cheetah --target all --ahead 1 --epochs 1 --threads 1 --out "$work/cheetah"
    check 'a folder of npy files as it is' test "$status" = 0
    run "$mica" train ncp --data $shared/ozone-eighthr.data --target -1 --epochs 1 --threads 1 --out "$work/ozone"
    check 'a file without names, and with holes' contains "$out" 'test: accuracy'
    run "$mica" train ncp --data $shared/Metro_Interstate_Traffic_Volume.csv --target traffic_volume --epochs 1 \
        --threads 1 --stride 32 --out "$work/traffic"
    check 'texts and dates' contains "$out" 'test: MSE'
fi
finish
