#!/usr/bin/env bash
# tools/coverage.sh FOLDER...: how much of the sources in these folders the test programs of
# the last `make coverage` ran: a line a file, what was not run, and a total. Needs gcov,
# which comes with gcc. Only files that were linked count; a file that nobody ran has 0 %.
set -eu
build=${BUILD:-build/coverage}
[ $# -gt 0 ] || { echo "usage: tools/coverage.sh FOLDER..." >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lines=0 ran=0
for source in $(find "$@" -name '*.c' | sort); do
    object=$build/${source%.c}.o
    [ -e "${object%.o}.gcno" ] || { echo "$source: not built with coverage" >&2; exit 1; }
    gcov -t -o "$(dirname "$object")" "$source" > "$work/all" 2> /dev/null || true
    # the part about the source itself, not its headers
    awk -v s="$source" '/:Source:/ { on = substr($0, index($0, ":Source:") + 8) == s } on' "$work/all" > "$work/report"
    report=$work/report
    if [ -s "$report" ]; then
        # count:number:text; "-" is no code, "#####" and "=====" code that did not run
        read -r all missed where <<< "$(awk -F: '
            $1 ~ /[0-9]|#####|=====/ { all++ }
            $1 ~ /#####|=====/ {
                missed++
                n = $2 + 0
                if (n == last + 1 && first) last = n
                else { if (first) text = text (text ? "," : "") (first == last ? first : first "-" last); first = last = n }
            }
            END {
                if (first) text = text (text ? "," : "") (first == last ? first : first "-" last)
                print all + 0, missed + 0, text ? text : "-"
            }' "$report")"
    else
        all=$(grep -c ';' "$source") missed=$all where='never run'
    fi
    lines=$((lines + all)) ran=$((ran + all - missed))
    awk -v a="$all" -v m="$missed" -v s="$source" -v w="$where" \
        'BEGIN { printf "%-48s %5d lines %6.1f %%  %s\n", s, a, a ? 100 * (a - m) / a : 100, w == "-" ? "" : "not run: " w }'
done
awk -v a="$lines" -v r="$ran" 'BEGIN { printf "%-48s %5d lines %6.1f %%\n", "together", a, a ? 100 * r / a : 100 }'
