#!/usr/bin/env bash
# The headers compile alone, as C11 and as C++17, without a warning.
# runs: check
. tests/check.sh
warnings='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror'
cxx=${CXX:-c++}
for header in include/*.h; do
    header=$(basename "$header")
    echo "#include <$header>" > "$work/alone.c"
    cp "$work/alone.c" "$work/alone.cc"
    check "$header as C11" $CC -std=c11 $warnings -Iinclude -c "$work/alone.c" -o "$work/alone.o"
    if command -v "$cxx" > /dev/null; then
        check "$header as C++17" "$cxx" -std=c++17 $warnings -Iinclude -c "$work/alone.cc" -o "$work/alone.o"
    else
        skip "$header as C++17: there is no C++ compiler '$cxx'"
    fi
done

includes=$(sed -n 's/^#include *//p' include/mica.h | sort | tr '\n' ' ')
check 'includes three standard headers only' test "$includes" = '<stdbool.h> <stddef.h> <stdint.h> '
finish
