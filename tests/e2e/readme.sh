#!/usr/bin/env bash
# The C code that the README shows is a program that is compiled and run.
# runs: check
. tests/check.sh
awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md > "$work/tour.c"
check 'the README has C code' test -s "$work/tour.c"
check 'the README shows examples/tour.c' diff examples/tour.c "$work/tour.c"
for link in $(grep -oE '\]\([^)#:]+\)' README.md CONTRIBUTING.md | sed 's/.*](\(.*\))/\1/'); do
    check 'a link leads somewhere' test -e "$link"
done
finish
