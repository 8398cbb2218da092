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
refused 2 ncp draw --wiring autoncp:8,2 --units 9
run "$mica" ncp --help
check 'ncp --help: all there is' test "$status:$(printf '%s\n' "$out" | grep -c '^  mica ncp')" = 0:2
run "$mica" ncp advise --units 33 --batch 30 --chip 'Apple M1 Pro'
check 'ncp advise: odd sizes' contains "$out" 'units: 33 is not a power of two; 32 or 64'
check 'ncp advise: each of them' contains "$out" 'batch: 30 is not a power of two; 16 or 32'
check 'ncp advise: the preset of a chip' contains "$out" 'memory_mb            16384'
check 'ncp advise: nothing to say about that chip' test -z "$err"
run "$mica" ncp advise --chip 'Apple M4 Max'
check 'ncp advise: another chip gets figures of an M1, with a message' contains "$err" "no figures for 'Apple M4 Max'; printing those of the M1 Max"
run "$mica" ncp advise --json
check 'ncp advise: nothing to say' contains "$out" '"advice": ""'
refused 2 ncp advise --units 0
refused 2 ncp
refused 2 ncp paint
refused 2 ncp draw --wiring circle:3
refused 2 ncp draw --units 3
refused 2 ncp draw --seed 4294967296
refused 1 ncp draw -o "$work/no/where.svg"
finish
