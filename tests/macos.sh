#!/usr/bin/env bash
# tests/macos.sh: checks that a Mac can load the output of `make cross-macos` in BUILD: Mach-O for
# arm64, linked against libSystem only, signed ad hoc, exporting what the headers declare.
. tests/check.sh

for file in libmica.dylib mica; do
    run llvm-objdump-19 --macho --private-headers "$BUILD/$file"
    check "$file: for arm64" contains "$out" 'ARM64'
    check "$file: from macOS 13 on" grep -q 'minos 13' <<< "$out"
    check "$file: has a signature, without which arm64 refuses it" contains "$out" LC_CODE_SIGNATURE
    run llvm-objdump-19 --macho --dylibs-used "$BUILD/$file"
    check "$file: needs libSystem and nothing else" \
        test "$(grep -c compatibility <<< "$out") $(grep -c libSystem.B.dylib <<< "$out")" = \
        "$([ $file = mica ] && echo '1 1' || echo '2 1')"
done
llvm-nm-19 --defined-only --extern-only "$BUILD/libmica.dylib" | awk '{ print $3 }' | sort > "$work/exported"
cat include/*.h | tr '\n' ' ' | grep -oE 'MICA_API [^;(]*\(' | grep -oE 'mica_[a-z0-9_]+\($' | tr -d '(' | sed 's/^/_/' |
    sort > "$work/declared"
check 'exported is what is declared' diff "$work/declared" "$work/exported"
finish
