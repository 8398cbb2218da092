#!/usr/bin/env bash
# The comparison with other engines (peers), with fake peers: one that answers, one that
# dies, one that is not installed. Real peers are not tested.
. tests/check.sh
mica=$BUILD/mica

python=$(command -v python3 || true)
if [ -z "$python" ]; then
    skip 'bench/peers.py: there is no python3'
    finish
fi
peers() { run "$python" bench/peers.py --mica "$mica" --peers "$work/peers" --out "$work/out" --rounds 1 --seconds 0.001 "$@"; }

mkdir "$work/peers"
cat > "$work/peers/steady" << 'END'
#!/bin/sh
echo '{"version": "steady 1 with '$1' threads"}'
while read -r name seconds; do
    case $name in
    matmul*) echo '{"fastest_ns": 1000000, "median_ns": 2000000, "runs": 3}' ;;
    *) echo '{"absent": "only products"}' ;;
    esac
done
END
printf '#!/bin/sh\necho "{\\"version\\": \\"mortal 1\\"}"\nread -r line\n' > "$work/peers/mortal"
chmod +x "$work/peers/steady" "$work/peers/mortal"
printf '%s\t%s\t%s\n' openblas "'$work/peers/steady' {threads}" '' torch "'$work/peers/mortal' {threads}" '' \
    numpy "'$work/peers/nowhere' {threads}" '' mlx '' 'no network' > "$work/peers/peers.tsv"

peers --threads 1 matmul_f32_32 tiny_1000
check "peers.py: exit code 0 ($err)" test "$status" = 0
check 'an absent peer has its reason' contains "$out" 'mlx is absent: no network'
check 'a peer that does not start has its reason' contains "$out" 'numpy is absent: does not start'
for file in md json svg; do check "peers.$file is written" test -s "$work/out/peers.$file"; done
check 'nothing is left beside' test -z "$(ls "$work/out" | grep new)"
table=$(cat "$work/out/peers.md")
check 'the table names versions' contains "$table" '- openblas: steady 1 with 1 threads'
check 'the table names what is absent' contains "$table" '- mlx: absent, no network'
check 'the table has a row for each' test "$(grep -cE '^\| (matmul_f32_32|tiny_1000) ' <<< "$table")" = 2
check 'numbers agree' "$python" - "$work/out/peers.json" << 'END'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["peers"] == ["openblas", "torch"], report["peers"]
assert report["peaks"]["fma_f32"] > 0 and report["mica"]["commit"]
product, tiny = report["rows"]
ratio = product["ratios"]["openblas"]["best"]
assert abs(ratio - 1e6 / product["times"]["mica"]["fastest_ns"]) < 1e-6 * ratio
assert "torch" not in product["ratios"] and "ended" in product["times"]["torch"]["absent"]
assert tiny["ratios"] == {} and tiny["times"]["openblas"]["absent"] == "only products"
END
check 'the chart is XML' "$python" -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$work/out/peers.svg"

for bad in 'frobnicate' '--threads x' '--rounds 0' '--seconds -1'; do
    peers $bad
    check "peers.py $bad: exit code 2" test "$status" = 2
    check "peers.py $bad: nothing on stdout" test -z "$out"
done
peers --peers "$work/nowhere" matmul_f32_32
check 'no table of peers: exit code 2' test "$status" = 2
check 'no table of peers: one error message' one_line "$err"

# The installer on an empty machine: every peer is reported as absent, with the reason.
bin=$work/bin
mkdir "$bin"
for tool in sh uname dirname mkdir grep tail cut tr id mv cat awk; do ln -s "$(command -v $tool)" "$bin/$tool"; done
run env PATH="$bin" CC=/no/such/cc "$bin/sh" tools/peers.sh "$work/bare"
check "peers.sh: exit code 0 ($err)" test "$status" = 0
check 'peers.sh: a line for each' test "$(wc -l < "$work/bare/peers.tsv")" = 6
check 'peers.sh: every one is absent, with a reason' test "$(awk -F'\t' '$2 == "" && $3 != ""' "$work/bare/peers.tsv" | wc -l)" = 6
check 'peers.sh: reports it' test "$(grep -c 'is absent: .' <<< "$out")" = 6
finish
