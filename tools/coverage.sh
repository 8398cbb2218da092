#!/usr/bin/env bash
# tools/coverage.sh FOLDER...: how much of the sources in these folders the test programs of
# the last `make coverage` ran: a line a file, a total, and a table of what was not run, by
# function and line, with the reason that a table of docs/*.md gives for it: a row is
#
#   | `file.c` | `function` | `first line that was not run` | reason |
#
# ? where there is none. Needs gcov, which comes with gcc. Only files that were linked count.
set -eu
build=${BUILD:-build/coverage}
[ $# -gt 0 ] || { echo "usage: tools/coverage.sh FOLDER..." >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: > "$work/missed"
for source in $(find "$@" -name '*.c' | sort); do
    object=$build/${source%.c}.o
    [ -e "${object%.o}.gcno" ] || { echo "$source: not built with coverage" >&2; exit 1; }
    gcov -t -b -o "$(dirname "$object")" "$source" > "$work/all" 2> /dev/null || true
    # count:number:text, or what -b says of a function before its first line; "-" is no code, "#####" and "=====" code
    # that did not run. Only the part about the source itself, not its headers.
    awk -v source="$source" -v missed="$work/missed" '
        function flush() {
            if (!first) return
            sub(/^ +/, "", text)
            text = substr(text, 1, 60)
            gsub(/\|/, "\\|", text)
            printf "| `%s` | `%s` | `%s` | %s\n", file, piece, text, first == last ? first : first "-" last >> missed
            first = 0
        }
        BEGIN { file = source; sub(/.*\//, "", file) }
        /:Source:/ { on = substr($0, index($0, ":Source:") + 8) == source; next }
        !on { next }
        /^function / { flush(); function_ = $2; functions++; if ($4 > 0) called++; next }
        /^(branch|call|unconditional) / { next }
        {
            count = $0
            sub(/:.*/, "", count)
            rest = substr($0, index($0, ":") + 1)
            n = rest + 0
            if (count ~ /[0-9]|#####|=====/) all++
            if (count ~ /#####|=====/) {
                none++
                if (!first) { first = n; piece = function_; text = substr(rest, index(rest, ":") + 1) }
                last = n
            } else if (count ~ /[0-9]/) flush()
        }
        END {
            flush()
            printf "%-44s %4d of %4d functions, %5d of %5d lines\n", source, called, functions, all - none, all
        }' "$work/all"
done | tee "$work/report"
awk '{ f += $2; of += $4; l += $6; lof += $8 } END {
    printf "%-44s %4d of %4d functions, %5d of %5d lines, %.1f %%\n", "together", f, of, l, lof, lof ? 100 * l / lof : 100 }' \
    "$work/report"
tools/coverage_reasons.sh < "$work/missed"
