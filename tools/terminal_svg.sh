#!/bin/sh
# Runs commands and draws their output as a terminal window in SVG. For the picture of the README:
#
#     tools/terminal_svg.sh docs/images/terminal.svg
#
# The picture shows the output on the machine and at the time of the recording. Needs $BUILD/mica (make).
set -eu
out=${1:?usage: tools/terminal_svg.sh OUT.svg}
build=$(cd "${BUILD:-build}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$build:$PATH

session="mica run -p 'First Citizen:' -n 48 --seed 3 --no-peaks
mica data irregular -o uneven.csv
mica train ncp --data uneven.csv --target speed --time time --wiring autoncp:16,1 --epochs 20 --out try
mica predict try uneven.csv -o out.csv"

echo "$session" | while IFS= read -r command; do
    echo "\$ $command"
    (cd "$work" && COLUMNS=100 sh -c "$command" < /dev/null 2>&1) || exit 1
done | sed 's/\r/\n/g' > "$work/text"

awk '
    function xml(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
    { line[NR] = $0; if (length($0) > wide) wide = length($0) }
    END {
        width = wide * 8.43 + 32; height = NR * 19 + 58
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", width, height, width, height
        print "<title>A terminal: mica runs its built-in model, then trains a liquid network and predicts with it</title>"
        printf "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#1d2230\"/>\n", width, height
        print "<circle cx=\"20\" cy=\"18\" r=\"6\" fill=\"#e0605a\"/><circle cx=\"40\" cy=\"18\" r=\"6\" fill=\"#e0b050\"/><circle cx=\"60\" cy=\"18\" r=\"6\" fill=\"#60b060\"/>"
        print "<g font-family=\"ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace\" font-size=\"14\" fill=\"#d6dae4\" xml:space=\"preserve\">"
        for (i = 1; i <= NR; i++) {
            style = line[i] ~ /^\$ / ? " fill=\"#8fd0ff\" font-weight=\"bold\"" : ""
            printf "<text x=\"16\" y=\"%d\"%s>%s</text>\n", 33 + i * 19, style, xml(line[i])
        }
        print "</g>\n</svg>"
    }' "$work/text" > "$work/out.svg"
mkdir -p "$(dirname "$out")"
mv "$work/out.svg" "$out"
