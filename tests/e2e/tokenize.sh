#!/usr/bin/env bash
# The commands mica tokenizer train and mica tokenize: output on stdout and stderr, and exit codes.
. tests/check.sh
mica=$BUILD/mica
data=${MICA_TEST_DATA:-$PWD/../shared/data}
same() { test "$1" = "$2"; }

# fails CODE PART ARGUMENT...: exit code CODE, one error message with PART, nothing on stdout
fails()
{
    local code=$1 part=$2
    shift 2
    run "$mica" "$@"
    check "mica $*: exit code $code, not $status" test "$status" = "$code"
    check "mica $*: one error message: $err" one_line "$err"
    check "mica $*: says '$part': $err" contains "$err" "$part"
    check "mica $*: nothing on stdout" test -z "$out"
}

# ---- a vocabulary that is trained here, in both file formats
for file in t.json t.gguf; do
    run "$mica" tokenizer train --text docs/ARCHITECTURE.md --vocab 500 -o "$work/$file"
    check "train $file: exit code 0" test "$status" = 0
    check "train $file: a line describes it: $out" contains "$out" 'tokens'
    check "train $file: nothing on stderr: $err" test -z "$err"
done
run "$mica" tokenizer train --text docs/ARCHITECTURE.md --vocab 500 -o "$work/again.json" --json
check 'the same text gives the same file' cmp -s "$work/t.json" "$work/again.json"
check 'train --json' grep -qxE '\{"file": "[^"]*", "vocabulary": 500, "bytes": [0-9]+, "tokens": [0-9]+, "seconds": [0-9.e-]+\}' <<< "$out"

text=$'The folders, in order:  1234 caf\xc3\xa9 \xf0\x9f\x9a\x80\n\ttab \xff end'
printf '%s' "$text" > "$work/text"
ids=$("$mica" tokenize "$work/t.json" -f "$work/text" --ids)
check 'ids in one line' grep -qxE '[0-9]+( [0-9]+)+' <<< "$ids"
check 'the GGUF file gives the same' same "$("$mica" tokenize "$work/t.gguf" -f "$work/text" --ids)" "$ids"
check 'stdin gives the same' same "$("$mica" tokenize "$work/t.json" - --ids < "$work/text")" "$ids"
check '-p gives the same' same "$("$mica" tokenize "$work/t.json" -p "$text" --ids)" "$ids"
check 'the begin token comes first' same "${ids%% *}" 499
check '--no-bos leaves it out' same "$("$mica" tokenize "$work/t.json" -p "$text" --ids --no-bos)" "${ids#* }"
back=$("$mica" tokenize "$work/t.json" -p "$ids" --decode)
check 'ids become the text' same "$back" "$(printf '%s' "$text" | sed $'s/\xff/\xef\xbf\xbd/')"
check '--decode --special shows control tokens' same "$("$mica" tokenize "$work/t.json" -p '499 97' --decode --special)" '<|endoftext|>a'
check '--decode hides them' same "$("$mica" tokenize "$work/t.json" -p '[499, 97]' --decode)" 'a'
check 'control tokens are letters' same "$("$mica" tokenize "$work/t.json" -p '<|endoftext|>' --no-bos --ids | wc -w | tr -d ' ')" \
    "$("$mica" tokenize "$work/t.json" -p '<|endoftext|>' --no-bos | wc -l | tr -d ' ')"
check 'or tokens with --special' same "$("$mica" tokenize "$work/t.json" -p '<|endoftext|>' --no-bos --ids --special)" 499
run "$mica" tokenize "$work/t.json" -p $'a\n\x01\xc3' --no-bos
check 'tokens for people are printable' same "$out" "$(printf "%8d  '%s'\n" 97 a 10 '\n' 1 '\x01' 195 '\xc3')"
run "$mica" tokenize "$work/t.json" -p $'a"\xc3' --no-bos --json
check 'tokenize --json' contains "$out" '"kind": "bpe", "pre": "gpt-2", "vocabulary": 500, "notes": [], "count": 3, "tokens": ['
check 'half characters are no JSON' contains "$out" '"id": 195, "text": "\ufffd"}'
check 'quotes are escaped' contains "$out" '"id": 34, "text": "\""}'
if command -v python3 > /dev/null; then
    check 'python reads the JSON' python3 -c 'import json, sys; json.loads(sys.argv[1])' "$out"
    check 'python reads tokenizer.json' python3 -c 'import json, sys; json.load(open(sys.argv[1], encoding="utf-8"))' "$work/t.json"
fi
check 'an empty text has the begin token' same "$("$mica" tokenize "$work/t.json" -p '' --ids)" 499

# ---- chat
check 'a chat by a name' same "$("$mica" tokenize "$work/t.json" -p ' Hi ' --chat --chat-template bitnet --ids --no-bos | xargs -0 "$mica" tokenize "$work/t.json" --decode --special -p)" \
    '<|endoftext|>User: Hi<|eot_id|>Assistant: '
check 'a chat by Jinja' same "$("$mica" tokenize "$work/t.json" -p Hi --chat --chat-template '{{ messages[0].content }}!' --ids --no-bos)" '72 105 33'
check '--template names it' same "$("$mica" tokenize "$work/t.json" --template --chat-template chatml)" chatml
check '--template --json' same "$("$mica" tokenize "$work/t.json" --template --chat-template chatml --json)" '{"template": "chatml"}'
fails 3 'has no chat template' tokenize "$work/t.json" --template
fails 3 "no chat template 'nonsense'" tokenize "$work/t.json" -p Hi --chat --chat-template nonsense
fails 3 "line 1: the filter 'nope'" tokenize "$work/t.json" -p Hi --chat --chat-template '{{ 1 | nope }}'

# ---- wrong usage, and files that are not tokenizers
fails 2 'usage' tokenize
fails 2 'give one text' tokenize "$work/t.json"
fails 2 'give one text' tokenize "$work/t.json" -p a -f b
fails 2 'give one text' tokenize "$work/t.json" more
fails 2 "no option '--nonsense'" tokenize "$work/t.json" --nonsense
fails 2 "'x' is not an id" tokenize "$work/t.json" -p x --decode
fails 2 'the vocabulary has 500' tokenize "$work/t.json" -p 500 --decode
fails 3 'No such file' tokenize "$work/none" -p a
fails 3 'not a tokenizer' tokenize README.md -p a
fails 3 "pre-tokenizer 'nonsense'" tokenize "$work/t.json" --pre nonsense -p a
head -c 2000 "$work/t.json" > "$work/cut.json"
fails 3 'JSON at byte 2000' tokenize "$work/cut.json" -p a
fails 3 'No such file' tokenize "$work/t.json" -f "$work/none"
fails 2 'a subcommand is missing' tokenizer
fails 2 '--text FILE is missing' tokenizer train -o "$work/x.json"
fails 2 '--out FILE is missing' tokenizer train --text README.md
fails 2 'out of range (257 to 1000000)' tokenizer train --text README.md --vocab 5 -o "$work/x.json"
fails 2 "pre-tokenizer 'nonsense'" tokenizer train --text README.md --pre nonsense -o "$work/x.json"
fails 3 'No such file' tokenizer train --text "$work/none" -o "$work/x.json"
fails 1 'No such file' tokenizer train --text README.md -o "$work/none/x.json"
check 'nothing was half-written' test -z "$(find "$work" -name 'x.json*')"
for command in 'tokenize --help' 'tokenizer train --help'; do
    run "$mica" $command
    check "$command: exit code 0" test "$status" = 0
    check "$command lists options" contains "$out" '--json'
done

# ---- third-party vocabularies
# bitnet_chat FILE IDS: a file of 128,000 ranks, which is how Llama 3 is recognised
bitnet_chat()
{
    run "$mica" tokenize "$1" -p Hi --chat --chat-template bitnet --ids
    check "$1: BitNet chat" same "$out" "$2"
    check "$1: a note on stderr" contains "$err" 'note: the file has ranks only'
}
# All strings of one byte, of two bytes, and enough of three. The pair with the lowest rank is merged first.
awk 'BEGIN {
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for (rank = 0; rank < 128000; rank++) {
        n = rank < 256 ? 1 : rank < 65792 ? 2 : 3
        bits = n == 1 ? rank * 65536 : n == 2 ? (rank - 256) * 256 : rank - 65792
        text = ""
        for (d = 262144; d >= 1; d /= 64) text = text substr(digits, int(bits / d) % 64 + 1, 1)
        print substr(text, 1, n + 1) substr("==", 1, 3 - n) " " rank
    }
}' > "$work/ranks.model"
bitnet_chat "$work/ranks.model" '128000 22131 26226 58 8520 105 128009 17011 115 27251 116 25198 116 58 32'
llama3=$data/tokenizers/llama3-tiktoken-tokenizer.model
if [ -r "$llama3" ]; then bitnet_chat "$llama3" '128000 1502 25 21694 128009 72803 25 220'; fi
finish
