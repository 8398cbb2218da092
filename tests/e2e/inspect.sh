#!/usr/bin/env bash
# mica inspect: its output for valid files, and its errors.
. tests/check.sh
mica=$BUILD/mica
"$mica" make-random -o "$work/m.gguf" || exit 1
"$mica" make-random --container hf -o "$work/m" || exit 1

run "$mica" inspect "$work/m.gguf"
check 'exit code 0' test "$status" = 0
check 'nothing on stderr' test -z "$err"
for part in 'gguf, bitnet-b1.58' 'I2_S ' 'F16 ' 'layers           2' 'heads            4, 2 for keys and values, of 64' \
    'vocabulary       288' 'context          512' 'gpt2 (llama-bpe), 288 tokens' 'warning: I2_S'; do
    check "prints $part" contains "$out" "$part"
done
run "$mica" inspect "$work/m" --tensors
check 'a folder' contains "$out" 'safetensors, bitnet'
check 'a folder: packed weights' contains "$out" 'HF_TERNARY'
check 'a folder: tensors' contains "$out" 'model.layers.1.mlp.down_proj.weight_scale'
run "$mica" inspect "$work/m.gguf" --meta
check 'metadata' contains "$out" 'general.architecture = bitnet-b1.58'
check 'lists are cut' contains "$out" 'tokenizer.ggml.tokens = 288 items: '

for file in m.gguf m; do
    run "$mica" inspect "$work/$file" --json --tensors --meta --check
    check "$file --json: exit code 0" test "$status" = 0
    if command -v python3 > /dev/null; then
        check "$file --json is JSON" python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["layers"] == 2 and d["vocab"] == 288 and d["parameters"] > 1000000, d
assert len(d["tensor_list"]) == d["tensors"] and len(d["codes"]) == 14, d
assert sum(f["bytes"] for f in d["formats"]) == d["bytes"], d
assert d["rope_theta"] == 500000 and d["tied"] is True, d
' <<< "$out"
    else
        skip "$file --json: there is no python3"
    fi
done

# refused_saying CODE PART FILE...
refused_saying()
{
    local code=$1 part=$2
    shift 2
    refused "$code" inspect "$@"
    check "inspect $*: the message has $part" contains "$err" "$part"
}
refused_saying 2 'mica inspect'
refused_saying 2 '--frobnicate' "$work/m.gguf" --frobnicate
refused_saying 2 'mica inspect' "$work/m.gguf" "$work/m.gguf"
refused_saying 3 'cannot open' "$work/nothing.gguf"
refused_saying 3 'no model.safetensors' "$work"
head -c 300000 "$work/m.gguf" > "$work/cut.gguf"
refused_saying 3 "tensor 'blk." "$work/cut.gguf"
head -c 100 "$work/m.gguf" > "$work/cut.gguf"
refused_saying 3 'byte' "$work/cut.gguf"
: > "$work/empty.gguf"
refused_saying 3 '0 bytes' "$work/empty.gguf"
{ printf 'NOPE'; tail -c +5 "$work/m.gguf"; } > "$work/magic.gguf"
refused_saying 3 'bytes that are not' "$work/magic.gguf"
printf 'version https://git-lfs.github.com/spec/v1\n' > "$work/lfs.gguf"
refused_saying 3 'Git LFS' "$work/lfs.gguf"
printf '{"a": }' > "$work/m/config.json"
refused_saying 3 'config.json: JSON at byte 6' "$work/m"
# an invalid code: both bits set
cp "$work/m.gguf" "$work/bad.gguf"
at=$("$mica" inspect "$work/bad.gguf" --tensors | awk '$1 == "blk.0.attn_q.weight" { print $4 }')
printf '\377' | dd of="$work/bad.gguf" bs=1 seek="$at" conv=notrunc 2> /dev/null
run "$mica" inspect "$work/bad.gguf"
check 'a bad code is not looked for' test "$status" = 0
refused_saying 3 "at byte $at" "$work/bad.gguf" --check

if [ -e /dev/full ]; then
    status=0
    "$mica" inspect "$work/m.gguf" --tensors > /dev/full 2> "$work/err" || status=$?
    check 'a full disk: exit code 1' test "$status" = 1
fi
if ls models/builtin/*.gguf > /dev/null 2>&1; then
    run "$mica" inspect builtin --tensors
    check "builtin: exit code 0 ($err)" test "$status" = 0
    check 'builtin: the same tensors as its file' test "$(tail -n +2 <<< "$out")" = "$("$mica" inspect models/builtin/*.gguf --tensors | tail -n +2)"
else
    refused 3 inspect builtin
fi
check '--help' contains "$("$mica" inspect --help)" '--check'
finish
