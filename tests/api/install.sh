#!/usr/bin/env bash
# `make install` installs everything that a program needs: one compiled with the
# flags of mica.pc runs with the static and with the shared library. The shared
# library exports what the headers declare and nothing else.
. tests/check.sh
prefix=/opt/mica
root=$work/root$prefix
shared=$([ "$(uname -s)" = Darwin ] && echo dylib || echo so)

if [ -n "${SANITIZE:-}" ]; then
    skip 'a library with sanitizers is not for others'
    finish
fi
check 'make install' make -s install DESTDIR="$work/root" PREFIX=$prefix
for file in include/mica.h lib/libmica.a lib/libmica.$shared lib/pkgconfig/mica.pc bin/mica share/man/man1/mica.1 \
    share/bash-completion/completions/mica share/zsh/site-functions/_mica share/fish/vendor_completions.d/mica.fish; do
    check "$file is installed" test -s "$root/$file"
done
check 'the installed command runs' "$root/bin/mica" --version

cat > "$work/user.c" << 'END'
#include <mica.h>
#include <string.h>

int main(void)
{
    mica_engine *engine;
    if (mica_open(NULL, &engine) != MICA_OK) return 1;
    mica_close(engine);
    return strcmp(mica_version(), MICA_VERSION_STRING) != 0;
}
END

# The flags that pkg-config would print; a fresh machine does not have pkg-config.
# Like --define-prefix, the paths are moved to the folder of DESTDIR.
pc_field()
{
    sed -n "s/^$1: *//p" "$root/lib/pkgconfig/mica.pc" |
        sed -e "s|\${includedir}|$root/include|g" -e "s|\${libdir}|$root/lib|g"
}
cflags=$(pc_field Cflags) libs=$(pc_field Libs) private=$(pc_field Libs.private)
check 'mica.pc names the version' grep -qx "Version: $(sed -n 's/.*MICA_VERSION_STRING "\(.*\)"/\1/p' include/mica.h)" \
    "$root/lib/pkgconfig/mica.pc"

compile="$CC -std=c11 $cflags $work/user.c"
check 'compile with the static library' $compile "$root/lib/libmica.a" $private -o "$work/static"
check 'run with the static library' "$work/static"
check 'compile with the shared library' $compile $libs -Wl,-rpath,"$root/lib" -o "$work/shared"
check 'run with the shared library' env DYLD_LIBRARY_PATH="$root/lib" "$work/shared"

if [ $shared = so ]; then
    nm -D --defined-only "$root/lib/libmica.so" | awk '{ print $3 }' | sort > "$work/exported"
    cat include/*.h | tr '\n' ' ' | grep -oE 'MICA_API [^;(]*\(' | grep -oE 'mica_[a-z0-9_]+\($' | tr -d '(' | sort \
        > "$work/declared"
    check 'exported is what is declared' diff "$work/declared" "$work/exported"
    run readelf -d "$root/lib/libmica.so"
    check 'the shared library has a soname' contains "$out" '[libmica.so.'
else
    skip 'exported names: they are read with the tools of Linux'
fi

if [ -z "${DEBUG:-}" ]; then
    check 'the installed command is stripped' test $(($(wc -c < "$root/bin/mica") * 2)) -lt "$(wc -c < "$BUILD/mica")"
fi
touch "$root/lib/of-others"
check 'make uninstall' make -s uninstall DESTDIR="$work/root" PREFIX=$prefix
check 'uninstall removes what install put there, and no more' \
    test "$(cd "$root" && find . ! -type d)" = ./lib/of-others
finish
