# Sourced by the shell tests, from the project's root: counts checks and prints
# the closing line. `. tests/check.sh`, checks, then `finish`.
set -u
export BUILD=${BUILD:-build} CC=${CC:-cc}
# The tests that call make start a fresh one, not a child of `make test`.
unset MAKEFLAGS MAKELEVEL MFLAGS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# check WHAT COMMAND...: passes if the command succeeds
check()
{
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what: $*"
    fi
}

skip()
{
    skipped=$((skipped + 1))
    echo "SKIP $(basename "$0"): $*"
}

# run COMMAND...: sets $status, $out and $err
run()
{
    status=0
    out=$("$@" 2> "$work/err") || status=$?
    err=$(cat "$work/err")
}

contains() { case $1 in *"$2"*) return 0 ;; *) return 1 ;; esac; }
one_line() { [ -n "$1" ] && [ "$(printf '%s\n' "$1" | wc -l)" -eq 1 ]; }

# refused CODE ARGUMENT...: mica with these prints one error message, nothing on stdout, and exits with CODE
refused()
{
    local code=$1
    shift
    run "$BUILD/mica" "$@"
    check "mica $*: exit code $code, not $status" test "$status" = "$code"
    check "mica $*: one error message ($err)" one_line "$err"
    check "mica $*: nothing on stdout" test -z "$out"
}

finish()
{
    echo "$passed passed, $failed failed, $skipped skipped"
    exit $((failed > 0))
}
