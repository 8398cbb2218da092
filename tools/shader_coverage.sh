#!/usr/bin/env bash
# tools/shader_coverage.sh RECORD FILE...: which functions of these Metal texts ran, by what SM_COVER=RECORD left
# (softmetal/README.md): a line a file, the functions nobody ran, and of the others the lines where a block of code
# starts that nobody ran. Function constants choose what is compiled: a line that was left out of every kernel is in no
# list, a function that is in none counts as not run. Needs addr2line.
set -eu
[ $# -gt 1 ] || { echo "usage: tools/shader_coverage.sh RECORD FILE..." >&2; exit 2; }
record=$1
shift
[ -s "$record" ] || { echo "$record: no kernel ran with SM_COVER" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# a kernel is loaded by many programs: it ran if it ran in one
awk '
    $1 == "module" { path = $2; next }
    { key = path " " $2; ran[key] = ran[key] || $1 }
    END { for (key in ran) print key, ran[key] + 0 }
' "$record" | sort > "$work/blocks"
for module in $(cut -d' ' -f1 "$work/blocks" | uniq); do
    [ -e "$module" ] || continue # trimmed from the cache since
    grep -F "$module " "$work/blocks" > "$work/one"
    cut -d' ' -f2 "$work/one" | addr2line -e "$module" | sed 's|.*/||; s| (disc.*||' | paste -d' ' - <(cut -d' ' -f3 "$work/one")
done > "$work/lines"

for file in "$@"; do
    awk -v file="$file" -v name="$(basename "$file")" '
        FILENAME != file {
            split($1, at, ":")
            if (at[1] == name && at[2] ~ /^[0-9]+$/) block[at[2]] = block[at[2]] || $2
            next
        }
        # a function: from its line at the margin to the next brace there
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
            for (i = from; i <= FNR; i++) seen = seen || block[i]
            if (seen) for (i = body; i <= FNR; i++) if (i in block) { blocks++; if (block[i]) good++; else missed = missed " " i }
            if (!seen) never = never " " inside
            reached += seen
            inside = ""
        }
        END {
            printf "%-40s %3d of %3d functions, %4d of %4d lines", file, reached, total, good, blocks
            if (never) printf "; never:%s", never
            if (missed) printf "; lines:%s", missed
            printf "\n"
        }' "$work/lines" "$file"
done | tee "$work/report"
awk '{ f += $2; of += $4; l += $6; lof += $8 } END {
    printf "%-40s %3d of %3d functions, %4d of %4d lines\n", "together", f, of, l, lof }' "$work/report"
