#!/usr/bin/env bash
# mica ncp draw from outside: the picture of a wiring and its figures.
. tests/check.sh
mica=$BUILD/mica
run "$mica" ncp draw --units 32 --output-size 4 --sparsity 0.5 -o "$work/w.svg" --json
check 'ncp draw ends well' test "$status:$err" = 0:
check 'ncp draw: a picture' grep -q '</svg>' "$work/w.svg"
check 'ncp draw: figures' contains "$out" '"synapses": 116'
run "$mica" ncp draw --wiring random:8,8,0.5 --inputs 4
check 'ncp draw: any wiring' contains "$out" 'synapses           32'
run "$mica" ncp draw --wiring fully:8@1111 --inputs 4
check 'ncp draw: fully is full' contains "$out" 'synapses           64'
run "$mica" ncp draw --wiring ncp:10,10,8,6,6,4,6 --inputs 8
check 'ncp draw: seven numbers' contains "$out" 'synapses           112'
run "$mica" ncp draw --wiring ncp:10,10
check 'ncp draw: what is wrong says what there is' contains "$err" 'ncp:INTER,COMMAND,MOTOR,'
refused 2 ncp
refused 2 ncp paint
refused 2 ncp draw --wiring circle:3
refused 2 ncp draw --units 3
refused 2 ncp draw --seed 4294967296
refused 1 ncp draw -o "$work/no/where.svg"
finish
