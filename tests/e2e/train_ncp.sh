#!/usr/bin/env bash
# mica data, train ncp, predict and ncp draw from outside: runs of seconds, one that is
# interrupted and goes on as if it had not been, files of each kind, and what is refused.
. tests/check.sh
mica=$BUILD/mica

# train DIR OPTION...: a small network for a few epochs
train()
{
    local dir=$1
    shift
    run "$mica" train ncp --out "$dir" --units 10 --seq 16 --batch 16 --threads 1 "$@"
}
# number KEY FILE: of run.json
number() { sed -n "s/^  \"$1\": \([^,]*\),*$/\1/p" "$2"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 == a && a < b) }'; }

# ------------------------------------------------------------------- data -------
for kind in sine spiral irregular; do
    run "$mica" data $kind -n 1200 -o "$work/$kind.csv"
    check "data $kind ends well" test "$status:$err" = 0:
    check "data $kind has its rows" test "$(wc -l < "$work/$kind.csv")" = 1201
    "$mica" data $kind -n 1200 > "$work/again.csv"
    check "data $kind is the same again" cmp -s "$work/$kind.csv" "$work/again.csv"
done
refused 2 data
refused 2 data circle
refused 2 data sine -n 0
refused 1 data sine -o "$work/no/where.csv"

# ----------------------------------------------------------------- regression ---
train "$work/a" --data "$work/irregular.csv" --target y --time t --epochs 6 --lr 0.02
check 'a run ends well' test "$status" = 0
check 'a run is silent on stderr' test -z "$err"
check 'a run tells its test score' contains "$out" 'test, '
for file in last.safetensors best.safetensors run.json log.csv loss.svg wiring.svg; do
    check "there is $file" test -s "$work/a/$file"
done
check 'the loss went down' below "$(number best_valid_loss "$work/a/run.json")" 0.9
check 'a line of the log for each epoch' test "$(wc -l < "$work/a/log.csv")" = 8
check 'pictures are whole' test "$(tail -qn 1 "$work/a/loss.svg" "$work/a/wiring.svg" | sort -u)" = '</svg>'
check 'the names of ncps' grep -qa 'rnn_cell.layer_0.ff1.weight' "$work/a/best.safetensors"
check 'and its masks' grep -qa 'rnn_cell.layer_0.sparsity_mask' "$work/a/best.safetensors"
if command -v python3 > /dev/null; then
    check 'run.json is JSON' python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/a/run.json"
else
    skip 'run.json is read with python3, which is not there'
fi

run "$mica" predict "$work/a" "$work/irregular.csv" -o "$work/out.csv"
check 'predict ends well' test "$status:$err" = 0:
check 'predict: a line a row' test "$(wc -l < "$work/out.csv")" = 1201
check 'predict: names its columns' test "$(head -n 1 "$work/out.csv")" = 'row,y,target y'
run "$mica" predict "$work/a/best.safetensors" "$work/irregular.csv"
check 'predict: the same to stdout' test "$out" = "$(cat "$work/out.csv")"
cut -d, -f1,2 "$work/irregular.csv" > "$work/unknown.csv"
run "$mica" predict "$work/a" "$work/unknown.csv"
check 'predict: without a target' test "$(printf '%s\n' "$out" | head -n 1)" = row,y
check 'predict: the same predictions' test "$(printf '%s\n' "$out")" = "$(cut -d, -f1,2 "$work/out.csv")"
run "$mica" predict "$work/a" "$work/irregular.csv" -o "$work/out.csv" --json
check 'predict --json' contains "$out" '"mse": '

# -------------------------------------------------- every cell, and how it ends ---
for cell in cfc ltc ctrnn node eltc ctgru gru lstm; do
    train "$work/cell-$cell" --data "$work/sine.csv" --target y --cell $cell --epochs 1 --json
    check "--cell $cell ends well ($err)" test "$status" = 0
    check "--cell $cell has a finite score" below "$(number test_mse "$work/cell-$cell/run.json")" 1000
    run "$mica" predict "$work/cell-$cell" "$work/sine.csv" -o "$work/out.csv"
    check "--cell $cell predicts ($err)" test "$status" = 0
done
train "$work/more" --data "$work/sine.csv" --target y --cell cfc --wiring none --layers 2 --bidirectional --mixed-memory \
    --backbone-layers 2 --dropout 0.2 --mode no_gate --convention keras --epochs 1 --optimiser lion --schedule cosine --lr 0.001
check 'everything at once ends well' test "$status" = 0
run "$mica" predict "$work/more" "$work/sine.csv" -o "$work/out.csv"
check 'everything at once predicts' test "$status" = 0

# ------------------------------------------------------------- classification ---
train "$work/s" --data "$work/spiral.csv" --target way --epochs 4 --lr 0.02 --split seed
check 'classes are found' contains "$out" 'accuracy'
check 'classes are learned' below 0.6 "$(number test_accuracy "$work/s/run.json")"
run "$mica" predict "$work/s" "$work/spiral.csv"
check 'classes and their shares' test "$(printf '%s\n' "$out" | head -n 1)" = 'row,way,p(left),p(right),target way'

# ----------------------------------------------------- TSV, npy, folders, gaps ---
{
    printf 'colour\twhen\tx\ty\n'
    for i in $(seq 1 300); do
        printf '%s\t2020-01-01 00:%02d:00\t%s\t%s\n' "$([ $((i % 3)) = 0 ] && echo red || echo blue)" $((i % 60)) \
            "$([ $((i % 7)) = 0 ] && echo NA || echo $((i % 10)))" $((i % 10 * 2)).5
    done
} > "$work/gaps.tsv"
train "$work/g" --data "$work/gaps.tsv" --target y --task regression --epochs 1
check 'TSV ends well' test "$status" = 0
check 'TSV: dates are left out, and that is said' contains "$out" 'columns left out: when'
check 'TSV: gaps are filled, and that is said' contains "$out" 'missing values filled: 42'
check 'TSV: a text is as many inputs as it has values' test "$(number inputs "$work/g/run.json")" = 3
if command -v python3 > /dev/null; then
    mkdir "$work/many"
    python3 - "$work/many" << 'PY'
import struct, sys, math
for n in range(6):
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (120, 2), }"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open("%s/s%d.npy" % (sys.argv[1], n), "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for i in range(120):
            f.write(struct.pack("<dd", math.sin(0.3 * i + n), math.cos(0.3 * i + n)))
PY
    train "$work/m" --data "$work/many" --target all --ahead 1 --split files --valid 0.2 --test 0.2 --epochs 2
    check 'a folder of npy ends well' test "$status" = 0
    check 'its target is its input, later' test "$(number outputs "$work/m/run.json"):$(number inputs "$work/m/run.json")" = 2:2
    run "$mica" predict "$work/m" "$work/many/s0.npy"
    check 'predictions name what is ahead' test "$(printf '%s\n' "$out" | head -n 1)" = 'row,c0+1,c1+1,target c0,target c1'
else
    skip 'npy files are made with python3, which is not there'
fi
sed 1d "$work/sine.csv" > "$work/bare.csv"
train "$work/bare" --data "$work/bare.csv" --target -1 --epochs 1
check 'no header, a target by number' test "$status" = 0

# ---------------------------------------------- early, interrupted, resumed -----
train "$work/early" --data "$work/sine.csv" --target y --epochs 50 --patience 1 --lr 0
check 'no better: stopped early' contains "$out" 'stopped early'
train "$work/b" --data "$work/sine.csv" --target y --epochs 5
train "$work/c" --data "$work/sine.csv" --target y --epochs 5 --minutes 0.00001
check 'out of time: a model all the same' contains "$out" 'out of time'
train "$work/c" --data "$work/sine.csv" --target y --epochs 5 --resume
check '--resume ends well' test "$status" = 0
check 'interrupted or not: the same model' cmp -s "$work/b/best.safetensors" "$work/c/best.safetensors"
check 'interrupted or not: the same log' test "$(cut -d, -f1-6 "$work/b/log.csv")" = "$(cut -d, -f1-6 "$work/c/log.csv")"
train "$work/c" --data "$work/sine.csv" --target y --epochs 6 --resume
check 'other options do not go on' test "$status" = 2
train "$work/c" --data "$work/sine.csv" --target y --epochs 5 --resume --cell ltc
check 'nor does another network' test "$status" = 2
check 'which is said' contains "$err" 'another network'
"$mica" train ncp --data "$work/sine.csv" --target y --out "$work/int" --epochs 100000 --threads 1 2> "$work/err" &
child=$!
for i in $(seq 1 100); do
    [ -e "$work/int/last.safetensors" ] && break
    sleep 0.1
done
sleep 0.3
kill -INT $child
status=0
wait $child || status=$?
check 'Ctrl-C: exit code 130' test "$status" = 130
check 'Ctrl-C: says where' contains "$(cat "$work/err")" "$work/int/last.safetensors"
train "$work/a" --data "$work/sine.csv" --target y
check 'a checkpoint is not written over' test "$status" = 2

# NaN: a rate that no network survives.
train "$work/nan" --data "$work/sine.csv" --target y --cell cfc --epochs 50 --lr 10 --clip 0 --optimiser adamw --decay 10
if [ "$status" = 1 ]; then
    check 'NaN: names the step' contains "$err" 'step '
    check 'NaN: names where it begins' contains "$err" 'not finite'
    check 'NaN: names the last good checkpoint' contains "$err" "$work/nan/last.safetensors"
else
    skip 'the network survived a learning rate of 10'
fi

# --------------------------------------------------------------------- wirings ---
run "$mica" ncp draw --units 32 --output-size 4 --sparsity 0.5 -o "$work/w.svg" --json
check 'ncp draw ends well' test "$status:$err" = 0:
check 'ncp draw: a picture' grep -q '</svg>' "$work/w.svg"
check 'ncp draw: figures' contains "$out" '"synapses": 116'
run "$mica" ncp draw --wiring random:8,8,0.5 --inputs 4
check 'ncp draw: any wiring' contains "$out" 'synapses           32'
refused 2 ncp
refused 2 ncp paint
refused 2 ncp draw --wiring circle:3
refused 2 ncp draw --units 3
refused 2 ncp draw --seed 4294967296
refused 1 ncp draw -o "$work/no/where.svg"

# ------------------------------------------------------------------ bad input ----
run "$mica" train --help
check 'train --help: five lines that work' contains "$out" 'mica data irregular -o series.csv'
run "$mica" train ncp --help
check 'train ncp --help lists its options' contains "$out" '--patience'
printf 'a,b\n1,2\n3\n' > "$work/ragged.csv"
printf 'a,b\n1,2\n3,4\n5,six\n' > "$work/word.csv"
: > "$work/empty.csv"
printf 'a,b\n' > "$work/header.csv"
printf 'a,b\n1,2\n\0' > "$work/binary.csv"
refused 2 train ncp
refused 2 train ncp --data "$work/sine.csv"
refused 2 train ncp --data "$work/no.csv" --target y
refused 2 train ncp --data "$work/empty.csv" --target y
refused 2 train ncp --data "$work/header.csv" --target b
refused 2 train ncp --data "$work/binary.csv" --target b
refused 2 train ncp --data "$work/ragged.csv" --target b --out "$work/x"
check 'ragged: file and line' contains "$err" "$work/ragged.csv:3: 1 columns, not 2"
refused 2 train ncp --data "$work/word.csv" --target b --task regression --out "$work/x"
check 'no number: file, line and column' contains "$err" "$work/word.csv:4: column 'b': 'six'"
refused 2 train ncp --data "$work/sine.csv" --target z --out "$work/x"
check 'no such target: which there are' contains "$err" "'z' for --target among sin cos y"
refused 2 train ncp --data "$work/sine.csv" --target y --inputs sin,tan --out "$work/x"
refused 2 train ncp --data "$work/sine.csv" --target y --seq 5000 --out "$work/x"
check 'too long: both numbers' contains "$err" '1200 rows: no sequence of --seq 5000'
refused 2 train ncp --data "$work/sine.csv" --target y --task classification --out "$work/x"
refused 2 train ncp --data "$work/sine.csv" --target y --time y --out "$work/x"
check 'time that runs back: file and line' contains "$err" "$work/sine.csv:"
refused 2 train ncp --data "$work/sine.csv" --target y --seed -1
refused 2 train ncp --data "$work/sine.csv" --target y --wiring autoncp:16,4@99999999999 --out "$work/x"
refused 2 train ncp --data "$work/sine.csv" --target y --wiring autoncp:4,4 --out "$work/x"
refused 2 train ncp --data "$work/sine.csv" --target y --cell gru --bidirectional --out "$work/x"
refused 2 train ncp --data "$work/sine.csv" --target y --cell cat
refused 2 train ncp --data "$work/sine.csv" --target y --out "$work/sine.csv"
refused 2 train ncp --data "$work/sine.csv" --target y --resume --out "$work/new"
check 'nothing was written' test ! -e "$work/x"
refused 2 predict "$work/a"
refused 3 predict "$work/no" "$work/sine.csv"
refused 2 predict "$work/a" "$work/no.csv"
refused 2 predict "$work/a" "$work/sine.csv"
check 'predict: the column that is missing' contains "$err" "'x'"
refused 2 predict "$work/s" "$work/irregular.csv" --json
echo nonsense > "$work/bad.safetensors"
refused 3 predict "$work/bad.safetensors" "$work/sine.csv"
refused 1 predict "$work/a" "$work/irregular.csv" -o "$work/no/where.csv"
finish
