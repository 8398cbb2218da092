#!/usr/bin/env bash
# mica.h and mica_lm.h compile alone, as C11 and as C++17, without a warning.
. tests/check.sh
warnings='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror'
printf '#include <mica_lm.h>\n#include <mica.h>\n' > "$work/alone.c"
cp "$work/alone.c" "$work/alone.cc"

check 'as C11' $CC -std=c11 $warnings -Iinclude -c "$work/alone.c" -o "$work/alone.o"

cxx=${CXX:-c++}
if command -v "$cxx" > /dev/null; then
    check 'as C++17' "$cxx" -std=c++17 $warnings -Iinclude -c "$work/alone.cc" -o "$work/alone.o"
else
    skip "as C++17: there is no C++ compiler '$cxx'"
fi

includes=$(sed -n 's/^#include *//p' include/mica.h | sort | tr '\n' ' ')
check 'includes three standard headers only' test "$includes" = '<stdbool.h> <stddef.h> <stdint.h> '
finish
