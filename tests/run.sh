#!/usr/bin/env bash
# The test runner: tests/run.sh TEST...
#
# A test is a program or a script, run from the project's root, JOBS at a time.
# Its results are in its closing line, "N passed, N failed, N skipped". Examples
# and short scripts may omit it: then exit code 0 counts as one passed, 77 as one
# skipped. Programs of BUILD/tests must print it: one that crashes or prints no line
# has failed, and so has one that prints "0 failed" and exits with an error, as the
# sanitizers do. RUN is put before each program: RUN=qemu-aarch64.
#
# PROGRAM@metal runs the program with MICA_DEVICE=metal (tests/kit/on_device.h). It also fails if its plans run a step
# on the CPU for a reason that is not in cpu_reasons.
set -eu -o pipefail
export BUILD=${BUILD:-build} JOBS=${JOBS:-2} RUN=${RUN:-} TEST_TIMEOUT=${TEST_TIMEOUT:-1200}
# Every Metal text that a test compiles, also generated ones, is linted (softmetal/README.md). Not those of
# PROGRAM@metal, whose ops tests/parity covers.
export SM_LINT=${SM_LINT:-1}
# Kernels of the software GPU are libraries with thread-local variables. gcc 12's LeakSanitizer guesses their
# addresses and crashes on a wrong guess ("DTLS 6 at 0x00020000025f" with
# LSAN_OPTIONS=verbosity=1:log_threads=1), so this is switched off.
export ASAN_OPTIONS=${ASAN_OPTIONS:-intercept_tls_get_addr=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1} TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1}

results=$BUILD/results
cpu_reasons='Metal has no f64|checks indices in a reduction|counts in doubles|nothing to do'
closing_line='^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'
log_of() { echo "$results/$(echo "${1#"$BUILD"/}" | tr / .)"; }

# Filters the dumped plans of a program: counts the steps on the CPU in NAME.cpu; prints all other output.
cpu_steps()
{
    awk -v cpu="$1" '
        /^-- plan$/ || /^(plan|memory): / { next }
        /^ *[0-9]+ / { if (match($0, /\[on the CPU: [^]]*/)) why[substr($0, RSTART + 13, RLENGTH - 13)]++; next }
        { print; fflush() }
        END { for (w in why) print why[w] " x " w > cpu }'
}

# Runs one test; writes NAME.log, and "passed failed skipped" to NAME.sum.
run_one()
{
    local test=$1 log limit='' status=0 start=$SECONDS passed=0 failed=0 skipped=0
    log=$(log_of "$test")
    ! command -v timeout > /dev/null || limit="timeout -k 10 $TEST_TIMEOUT"
    case $test in
    *.sh) $limit "$test" > "$log.log" 2>&1 < /dev/null || status=$? ;;
    *@metal)
        : > "$log.log" > "$log.cpu"
        SM_LINT=0 MICA_DEVICE=metal MICA_DUMP=plan $limit $RUN "${test%@metal}" 2>&1 >> "$log.log" < /dev/null |
            cpu_steps "$log.cpu" >> "$log.log" || status=$?
        if grep -vE " x ($cpu_reasons)$" "$log.cpu" > "$log.left"; then
            status=1
            echo "left to the CPU: $(cat "$log.left")" >> "$log.log"
        fi
        ;;
    *) $limit $RUN "$test" > "$log.log" 2>&1 < /dev/null || status=$? ;;
    esac

    read -r passed _ failed _ skipped _ < <(grep -E "$closing_line" "$log.log" | tail -n 1) || true
    if [ -z "$passed" ]; then
        passed=0 failed=0 skipped=0
        case $status:$test in
        0:"$BUILD"/tests/*) failed=1 && echo 'no closing line' >> "$log.log" ;;
        0:*) passed=1 ;;
        77:*) skipped=1 ;;
        124:*) failed=1 && echo "stopped after $TEST_TIMEOUT seconds" >> "$log.log" ;;
        *) failed=1 ;;
        esac
    elif [ "$status" != 0 ] && [ "$failed" = 0 ]; then
        failed=1
    fi
    echo "$passed $failed $skipped" > "$log.sum"
    local verdict='ok  ' code=''
    [ "$failed" = 0 ] || verdict=FAIL
    [ "$status" = 0 ] || code=", exit code $status"
    echo "$verdict ${test#"$BUILD"/}: $passed passed, $failed failed, $skipped skipped ($((SECONDS - start)) s$code)"
}

if [ "${1:-}" = --one ]; then
    run_one "$2"
    exit 0
fi

rm -rf "$results"
mkdir -p "$results"
printf '%s\0' "$@" | xargs -0 -n 1 -P "$JOBS" "$0" --one

passed=0 failed=0 skipped=0
for test in "$@"; do
    log=$(log_of "$test")
    read -r p f s < "$log.sum"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" != 0 ]; then
        echo
        echo "---- ${test#"$BUILD"/} failed; the end of $log.log:"
        tail -n 100 "$log.log"
    fi
done
grep -h '^SKIP ' "$results"/*.log || true
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
