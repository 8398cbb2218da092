#!/usr/bin/env bash
# The command from outside: what it prints where, and its exit codes.
. tests/check.sh
mica=$BUILD/mica
version=$(sed -n 's/.*MICA_VERSION_STRING "\(.*\)"/\1/p' include/mica.h)

# wrong ARGUMENT...: refused with one sentence, no output and exit code 2
wrong()
{
    run "$mica" "$@"
    check "mica $*: exit code 2" test "$status" = 2
    check "mica $*: one sentence" one_line "$err"
    check "mica $*: nothing on stdout" test -z "$out"
}

# right ARGUMENT...: exit code 0, nothing on stderr
right()
{
    run "$mica" "$@"
    check "mica $*: exit code 0" test "$status" = 0
    check "mica $*: nothing on stderr" test -z "$err"
    check "mica $*: says something" test -n "$out"
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
    check "$command --help says how it is called" contains "$out" "mica $command"
    check "$command --help says more than its line" test "$(wc -l <<< "$out")" -gt 3
done

right doctor
check 'doctor names the cpu backend' contains "$out" cpu
check 'doctor says what an engine holds at rest' grep -qxE 'engine at rest: ([0-9.]+ MB with [0-9]+ threads|unavailable)' <<< "$out"
check 'doctor says how large the library is' grep -qxE 'library: (in [^ ]+, [0-9.]+ MB|unavailable)' <<< "$out"
check 'libmica.so is smaller than 5 MB' test "$(wc -c < "$BUILD/libmica.so")" -lt 5000000
lines=$(printf '%s\n' "$out" | wc -l)
right doctor --json
head=$(printf '%s\n' "$out" | head -n 1) tail=$(printf '%s\n' "$out" | tail -n 1)
report=$(printf '%s\n' "$out" | sed '1d;$d')
check 'doctor --json begins with the version' test "$head" = "{\"version\": \"$version\", \"report\": ["
check 'doctor --json ends' test "$tail" = ']}'
check 'doctor --json has a string for each line' test "$(printf '%s\n' "$report" | grep -cxE "  $string,?")" = "$lines"
check 'doctor --json has commas between them' test "$(printf '%s\n' "$report" | grep -c ',$')" = "$((lines - 1))"

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

if [ -e /dev/full ]; then
    for command in --version --help doctor 'doctor --json'; do
        status=0
        "$mica" $command > /dev/full 2> "$work/err" || status=$?
        check "mica $command on a full disk: exit code 1" test "$status" = 1
        check "mica $command on a full disk: one sentence" one_line "$(cat "$work/err")"
    done
else
    skip 'output to a full disk: there is no /dev/full'
fi
finish
