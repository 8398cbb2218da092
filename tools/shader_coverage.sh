#!/usr/bin/env bash
# tools/shader_coverage.sh RECORD FILE...: prints which functions of these Metal files ran, from the record that
# SM_COVER=RECORD wrote (softmetal/README.md): a line per file, a total, and a table of the functions that did not run
# and of the first lines of blocks that did not run in other functions, with reasons as in coverage.sh. Function
# constants select what is compiled: a line that no kernel contains is not listed; a function that no kernel contains
# counts as not run. Needs addr2line.
set -eu
[ $# -gt 1 ] || { echo "usage: tools/shader_coverage.sh RECORD FILE..." >&2; exit 2; }
record=$1
shift
[ -s "$record" ] || { echo "$record: no kernel ran with SM_COVER" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# many programs load the same kernel: a block ran if it ran in any of them
awk '
    $1 == "module" { path = $2; next }
    { key = path " " $2; ran[key] = ran[key] || $1 }
    END { for (key in ran) print key, ran[key] + 0 }
' "$record" | sort > "$work/blocks"
cut -d' ' -f1 "$work/blocks" | uniq > "$work/modules"
awk -v folder="$work" '
    $1 != path { close(file); path = $1; file = folder "/addresses" ++n }
    { print $2 > file }' "$work/blocks"
n=0
while read -r module; do # addr2line prints one line per address, also for unknown addresses
    n=$((n + 1))
    if [ -e "$module" ]; then addr2line -e "$module" < "$work/addresses$n"
    else
        echo "$module is gone: what ran in it is not counted" >&2
        sed 's/.*/??/' "$work/addresses$n"
    fi
done < "$work/modules" | sed 's|.*/||; s| (disc.*||' | paste -d' ' - <(cut -d' ' -f3 "$work/blocks") > "$work/lines"

: > "$work/missed"
for file in "$@"; do
    awk -v file="$file" -v name="$(basename "$file")" -v missed="$work/missed" '
        function row(text, line) {
            sub(/^ +/, "", text)
            text = substr(text, 1, 60)
            gsub(/\|/, "\\|", text)
            printf "| `%s` | `%s` | `%s` | %d\n", name, inside, text, line >> missed
        }
        FILENAME != file {
            split($1, at, ":")
            if (at[1] == name && at[2] ~ /^[0-9]+$/) block[at[2]] = block[at[2]] || $2
            next
        }
        { source[FNR] = $0 }
        # a function extends from its first line, which is not indented, to the next brace in column 1
        /^(inline|kernel|template <.*> *(inline|kernel)) / && /\(/ {
            text = $0
            sub(/\(.*/, "", text)
            n = split(text, word, /[ *&]/)
            from = FNR
            body = 0
            inside = word[n]
        }
        inside != "" && !body && /[{]/ { body = FNR }
        inside != "" && (/^}/ || (FNR == from && /}$/)) {
            total++
            seen = 0
            for (i = from; i <= FNR; i++) seen = seen || ((i in block) && block[i])
            for (i = body; seen && i <= FNR; i++)
                if (i in block) { blocks++; if (block[i]) good++; else row(source[i], i) }
            if (!seen) row("never", from)
            reached += seen
            inside = ""
        }
        END { printf "%-44s %4d of %4d functions, %5d of %5d lines\n", file, reached, total, good, blocks }
    ' "$work/lines" "$file"
done | tee "$work/report"
awk '{ f += $2; of += $4; l += $6; lof += $8 } END {
    printf "%-44s %4d of %4d functions, %5d of %5d lines\n", "together", f, of, l, lof }' "$work/report"
tools/coverage_reasons.sh < "$work/missed"
