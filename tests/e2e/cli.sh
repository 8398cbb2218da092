#!/usr/bin/env bash
# The command line: output on stdout and stderr, and exit codes.
. tests/check.sh
mica=$BUILD/mica
version=$(sed -n 's/.*MICA_VERSION_STRING "\(.*\)"/\1/p' include/mica.h)

# wrong ARGUMENT...: refused with one error message, no output and exit code 2
wrong()
{
    run "$mica" "$@"
    check "mica $*: exit code 2" test "$status" = 2
    check "mica $*: one error message" one_line "$err"
    check "mica $*: nothing on stdout" test -z "$out"
}

# right ARGUMENT...: exit code 0, nothing on stderr
right()
{
    run "$mica" "$@"
    check "mica $*: exit code 0" test "$status" = 0
    check "mica $*: nothing on stderr" test -z "$err"
    check "mica $*: prints something" test -n "$out"
}

# The JSON that is printed has a fixed layout, so that a pattern for each line is
# enough to read it.
string='"([^"\\]|\\["\\]|\\u[0-9a-f]{4})*"'
line_is() { printf '%s\n' "$2" | grep -qxE "$1"; }

right --version
check '--version names library and header' contains "$out" "mica $version (header $version, commit "
check '--version is one line' one_line "$out"
right version --json
check 'version --json is JSON' line_is \
    "\{\"version\": \"$version\", \"header\": \"$version\", \"commit\": $string\}" "$out"

right --help
for command in bench doctor version help; do check "help lists $command" contains "$out" "mica $command"; done
help=$out
right help
check 'mica help is mica --help' test "$out" = "$help"
right help doctor
for command in $(sed -nE 's/^  mica ([a-z-]+) .*/\1/p' <<< "$help" | sort -u); do
    right $command --help
    check "$command --help prints the usage" contains "$out" "mica $command"
    check "$command --help prints more than one line" test "$(wc -l <<< "$out")" -gt 3
done

right doctor
check 'doctor names the cpu backend' contains "$out" cpu
check 'doctor prints the memory of an idle engine' grep -qxE 'engine at rest: ([0-9.]+ MB with [0-9]+ threads|unavailable)' <<< "$out"
check 'doctor prints the size of the library' grep -qxE 'library: (in [^ ]+, [0-9.]+ MB|unavailable)' <<< "$out"
check 'libmica.so is smaller than 5 MB' test "$(wc -c < "$BUILD/libmica.so")" -lt 5000000
lines=$(printf '%s\n' "$out" | wc -l)
right doctor --json
head=$(printf '%s\n' "$out" | head -n 1) tail=$(printf '%s\n' "$out" | tail -n 1)
report=$(printf '%s\n' "$out" | sed '1d;$d')
check 'doctor --json begins with the version' test "$head" = "{\"version\": \"$version\", \"report\": ["
check 'doctor --json ends' test "$tail" = ']}'
check 'doctor --json has a string for each line' test "$(printf '%s\n' "$report" | grep -cxE "  $string,?")" = "$lines"
check 'doctor --json has commas between them' test "$(printf '%s\n' "$report" | grep -c ',$')" = "$((lines - 1))"

# ---------------------------------------------- made from the table of commands ----
right help run
check 'help run describes only run' test -z "$(grep -e 'mica doctor' <<< "$out")"
run_help=$out
right run --help
check 'run --help is help run' test "$out" = "$run_help"
check 'help has defaults, ranges and the words of the field' contains "$out" \
    '      --top-p P                nucleus sampling: keep the smallest set of tokens whose probability
                               reaches P (default: the model'\''s, or 0.95; range above 0, at most 1)'
right help train lm
check 'help train lm is train lm --help' test "$out" = "$("$mica" train lm --help)"
check 'the default of a choice is that of the command' contains "$out" '(default adamw'
right train ncp --help
check 'and another one for another command' contains "$out" '(default adam;'
wrong help train cat

right help --markdown
check 'docs/CLI.md is what mica help --markdown prints' diff docs/CLI.md - <<< "$out"
wrong help run --markdown
for code in 0 1 2 3 4 5 130 143; do check "CLI.md has exit code $code" grep -qF "| $code | " docs/CLI.md; done

right man
check 'man: a page' contains "$out" '.TH MICA 1'
check 'man: every command' test "$(grep -c '^.SS "mica ' <<< "$out")" -ge 25
if command -v groff > /dev/null; then
    check "man: troff accepts it" test -z "$(groff -man -Tutf8 -ww <<< "$out" 2>&1 > /dev/null)"
elif command -v mandoc > /dev/null; then
    check "man: mandoc accepts it" mandoc -T utf8 -W error <<< "$out"
else
    skip 'man: there is no groff and no mandoc'
fi

for shell in bash zsh fish; do
    right completions $shell
    check "$shell completions have a nested command" contains "$out" ncp
    printf '%s\n' "$out" > "$work/mica.$shell"
    if command -v $shell > /dev/null; then check "$shell reads its completions" $shell -n "$work/mica.$shell"
    else skip "$shell completions: there is no $shell"; fi
done
# complete WORD...: what bash offers for the last word
complete_words()
{
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mica; printf "%s\n" "${COMPREPLY[@]}"' - "$work/mica.bash" "$@"
}
check 'bash completes commands' test "$(complete_words mica to | sort | xargs)" = 'tokenize tokenizer'
check 'bash completes subcommands' test "$(complete_words mica train n)" = ncp
check 'bash completes options' test "$(complete_words mica run --top | sort | xargs)" = '--top-k --top-p'
check 'bash completes options of subcommands' test "$(complete_words mica train lm --eval | sort | xargs)" = '--eval-every --eval-windows'
check 'bash completes values' test "$(complete_words mica run --kv f | sort | xargs)" = 'f16 f32'
wrong completions csh
wrong completions

# says PART ARGUMENT...: refused, and the error message contains PART
says()
{
    local part=$1
    shift
    wrong "$@"
    check "mica $*: the message has $part ($err)" contains "$err" "$part"
}
says "there is no command 'rnu'; did you mean 'mica run'?" rnu
says "did you mean 'mica train lm'?" train ml
says "there is no option '--topp'; did you mean '--top-p'?" run --topp 0.5
says "did you mean '--n-predict'?" run --n-predct 5
says "there is no benchmark 'matmull'; did you mean 'matmul'?" bench matmull
says '--top-p 1.5 is out of range (above 0, at most 1)' run --top-p 1.5
says '--top-k -1 is out of range (at least 0)' run --top-k -1
says '--tokens takes a whole number (at least -1), not '\''x'\' run -n x
says '--threads 257 is out of range (1 to 256)' run -t 257
says '--threads 99999999999999999999 is out of range' run --threads=99999999999999999999
says '--json takes no value' version --json=yes
says '--prompt needs a value' run --prompt
says "--text FILE is missing; usage: mica train lm --text FILE" train lm
says "IN is missing; usage: mica quantize IN OUT" quantize
says "'c' is one argument too many" quantize a b c

run "$mica"
check 'no command: exit code 2' test "$status" = 2
check 'no command: help on stderr' contains "$err" 'mica doctor'
check 'no command: nothing on stdout' test -z "$out"
wrong frobnicate
check 'names the unknown command' contains "$err" "'frobnicate'"
wrong --frobnicate
wrong doctor --frobnicate
wrong doctor now
wrong --version now
wrong help frobnicate
wrong help doctor version
wrong ''

# One writer prints all JSON: every command prints valid JSON, also with bytes that are not UTF-8 and quotes in a name.
python=$(command -v python3 || true)
if [ -n "$python" ]; then
    name=$work/$'a"b\\c\xe9.gguf'
    check 'make a model' "$mica" make-random -o "$name"
    check 'make data' "$mica" data sine --rows 300 -o "$work/sine.csv"
    check 'make a text' cp README.md "$work/text"
    json()
    {
        run "$mica" "$@" --json
        check "mica $* --json: exit code 0 ($err)" test "$status" = 0
        check "mica $* --json parses" "$python" -c 'import json, sys; json.loads(sys.stdin.buffer.read().decode("utf-8"))' <<< "$out"
    }
    json version
    json doctor
    json inspect "$name" --tensors --meta --check
    json data info "$work/sine.csv"
    json ncp draw
    json ncp advise
    json tokenize "$name" -p $'caf\xc3\xa9 \xe9 "x"'
    json tokenizer train --text "$work/text" --vocab 300 -o "$work/t.json"
    json eval ppl "$name" "$work/text" --limit 50
    json run "$name" -p a -n 4 --no-peaks
    json selftest --device cpu
    [ "$(uname -s)" != Linux ] || json tune
    json bench "$name" -p 8 -n 4 -r 1 --no-peaks
    json bench matmul_f32_32 --seconds 0.001 --threads 1 --no-peaks
    json bench --list
else
    skip 'JSON parses: there is no python3'
fi

if [ -e /dev/full ]; then
    for command in --version --help doctor 'doctor --json'; do
        status=0
        "$mica" $command > /dev/full 2> "$work/err" || status=$?
        check "mica $command on a full disk: exit code 1" test "$status" = 1
        check "mica $command on a full disk: one error message" one_line "$(cat "$work/err")"
    done
else
    skip 'output to a full disk: there is no /dev/full'
fi
finish
