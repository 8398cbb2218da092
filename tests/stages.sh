#!/usr/bin/env bash
# tests/stages.sh COMMAND...: runs each command in turn, continues after a failure,
# and prints the sum of their closing lines "N passed, N failed, N skipped".
# A command that fails without a counted failure counts as one.
set -eu
# Each command is a fresh make, not a child of the one that started this.
unset MAKEFLAGS MAKELEVEL MFLAGS

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0
lines=''
for command in "$@"; do
    echo "==== $command"
    status=0
    bash -o pipefail -c "($command) 2>&1 | tee '$log'" || status=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    read -r p _ f _ s _ <<< "${line:-0 passed, 0 failed, 0 skipped}"
    [ "$status" = 0 ] || [ "$f" != 0 ] || f=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    lines="$lines$p passed, $f failed, $s skipped: $command"$'\n'
done
echo "==== together"
printf '%s' "$lines"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
