#!/usr/bin/env bash
# tools/coverage.sh FOLDER...: prints how much of the sources in these folders ran in the test
# programs of the last `make coverage`: a line per file, a total, and a table of code that did not
# run, by function and line. Each row has the reason from a table in docs/*.md, whose rows are
#
#   | `file.c` | `function` | `first line that was not run` | reason |
#
# or "?" without a reason. Needs gcov, which is part of gcc. Only linked files count.
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
    # Lines are count:number:text, or the summary that -b prints before a function. The count "-" means no code;
    # "#####" and "=====" mean code that did not run. Only the part about the source is read, not its headers.
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
