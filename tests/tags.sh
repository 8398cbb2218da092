#!/bin/sh
# Prints the words of the line `runs:` of each test, as "word:path" (a program's path without .c): tests/tags.sh FILE...
#
# A test program or script may have one such line in its head comment (the first 30 lines):
#
#      * runs: metal, arm, check */
#
# Without it a program runs in make test, test-quick-sanitize and test-long, on the CPU. The words:
#
#   metal              runs a second time on Metal (tests/kit/on_device.h)
#   metal-unsanitized  the same, but not under a sanitizer, where it takes too long
#   unsanitized        does not run under a sanitizer
#   arm                runs in make test-arm, compiled for ARM under qemu
#   check              runs in make check; at most a few seconds
#   check@metal        so does its second run on Metal
#   first              starts before the others, because it takes longest
#   faults             is linked with nn/ and models/ compiled so that allocations can fail
#   wide-vectors       passes 64-byte vectors between functions: no warning about the ABI
#
# An unknown word is reported on stderr, and the word "error" is printed.
set -eu
[ $# -gt 0 ] || exit 0
exec awk '
    BEGIN {
        n = split("metal metal-unsanitized unsanitized arm check check@metal first faults wide-vectors", word, " ")
        for (i = 1; i <= n; i++) known[word[i]] = 1
    }
    FNR > 30 || !/^[ \/*#]*runs: / { next }
    {
        path = FILENAME
        sub(/\.c$/, "", path)
        line = $0
        sub(/^[ \/*#]*runs: */, "", line)
        sub(/ *\*\/ *$/, "", line)
        n = split(line, word, /, */)
        for (i = 1; i <= n; i++) {
            if (word[i] in known) print word[i] ":" path
            else {
                print FILENAME ":" FNR ": runs: there is no word \"" word[i] "\" (tests/tags.sh lists them)" > "/dev/stderr"
                print "error"
            }
        }
    }' "$@"
