#!/usr/bin/env bash
# tools/setup.sh on machines without the needed programs: PATH has only a few small
# scripts, and an apt-get that only records its arguments.
# runs: check
. tests/check.sh

bin=$work/bin
shell=$(command -v sh)
mkdir "$bin"
# Always a new file: writing through a link would overwrite the real program.
fake() { rm -f "$bin/$1" && printf '#!%s\n%s\n' "$shell" "$2" > "$bin/$1" && chmod +x "$bin/$1"; }
for tool in sh uname; do fake "$tool" "exec $(command -v "$tool") \"\$@\""; done
fake id 'echo 0'
setup() { run env PATH="$bin" CC="$1" "$shell" tools/setup.sh "$2"; }

if [ "$(uname -s)" != Linux ]; then
    skip 'these machines are Linux'
    finish
fi

fake gcc-demo ''
setup gcc-demo build
check 'nothing is missing: exit code 0' test "$status" = 0
check 'nothing is missing: prints nothing' test -z "$out$err"

fake apt-get "echo \"\$*\" >> $work/asked"
setup cc build
check 'root: exit code 0' test "$status" = 0
check 'root: prints what it installs and why' contains "$out" 'setup: cc is missing; needed to compile (package build-essential)'
check 'root: updates, then installs' test "$(cat "$work/asked")" = \
    "update"$'\n'"install -y --no-install-recommends build-essential"

rm "$work/asked"
setup cc test-long
check 'test-long: one installation of everything' test "$(grep -c install "$work/asked")" = 1
check 'test-long: names what is missing' contains "$(cat "$work/asked")" valgrind

rm "$work/asked"
fake id 'echo 1000'
setup cc test
check 'no root: exit code 3' test "$status" = 3
check 'no root: prints the command to run' contains "$out" \
    "setup: run: sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends build-essential clang-19 lld-19'"
check 'no root: installs nothing' test ! -e "$work/asked"

fake sudo "[ \"\$1\" = -n ] && exit 0; exec \"\$@\""
setup cc test
check 'sudo without a password: installs' contains "$(cat "$work/asked")" build-essential

setup /no/such/compiler build
check 'a compiler that no package has: exit code 3' test "$status" = 3
check 'a compiler that no package has: one message' one_line "$out"
setup cc nonsense
check 'an unknown mode: exit code 2' test "$status" = 2
finish
