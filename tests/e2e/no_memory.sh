#!/usr/bin/env bash
# A command whose first allocations fail prints an error message: it never fails silently.
. tests/check.sh
mica=$BUILD/mica

if [ -n "${SANITIZE:-}" ] || [ -n "${RUN:-}" ] || [ "$(uname)" != Linux ] ||
    ! $CC -shared -fPIC -o "$work/fail.so" tests/e2e/fail_malloc.c 2> /dev/null; then
    skip 'allocations of the command cannot be made to fail here'
    finish
fi

printf 'some text, and some text\n' > "$work/text"
printf 'a,b\n1,2\n2,3\n3,4\n' > "$work/data.csv"

# never_silent ARGUMENT...: fails each of the first allocations, alone and together with all later ones
never_silent()
{
    local at
    for at in 1 2 3 4 5 6 8 10 12 15 20; do
        for all in '' 1; do
            run env ${all:+FAIL_ALL=1} FAIL_AT=$at LD_PRELOAD="$work/fail.so" timeout 20 "$mica" "$@" < /dev/null
            check "mica $*, allocation $at${all:+ and all after it}: exit code $status and a message" \
                test "$status" = 0 -o "$status" = 124 -o -n "$err"
            check "mica $*, allocation $at${all:+ and all after it}: no signal ($status)" test "$status" -lt 128
        done
    done
}

never_silent version
never_silent help
never_silent doctor
never_silent bench --list
never_silent bench --help
never_silent inspect "$work/data.csv"
never_silent ncp draw -o "$work/picture.svg"
never_silent data sine -o "$work/sine.csv"
never_silent tokenizer train --text "$work/text" -o "$work/tokenizer.gguf"
never_silent make-random -o "$work/random.gguf" --shape tiny
never_silent run -p hello -n 2 --no-peaks
never_silent train ncp --help
finish
