#!/bin/sh
# Checks that the programs and libraries for a make target are installed: tools/setup.sh MODE
#
# MODE is build, test, test-arm, test-tsan, compilers, cross-macos, differential, test-long, format or golden.
# If nothing is missing, it prints nothing and exits with 0. Otherwise it prints what is missing and
# why, and installs it if this user may (apt as root or with sudo without a password; Homebrew). If
# not, it prints the one command to run and exits with 3.
set -eu

mode=${1:-build}
cc=${CC:-cc}
missing=''   # package names
os=$(uname -s)

# need WHAT WHY PACKAGE: called when a check found WHAT missing
need()
{
    echo "setup: $1 is missing; needed $2 (package $3)"
    case " $missing " in *" $3 "*) ;; *) missing="$missing $3" ;; esac
}

have() { command -v "$1" > /dev/null 2>&1; }
have_file() { for file in "$@"; do [ -e "$file" ] && return 0; done; return 1; }
# Debian's modules belong to /usr/bin/python3, which may not be the first python3 in PATH.
have_module() { python3 -c "import $1" > /dev/null 2>&1 || /usr/bin/python3 -c "import $1" > /dev/null 2>&1; }
# The usual path is checked first: calling the compiler costs milliseconds.
have_libc() { have_file /usr/include/stdio.h || echo '#include <stdio.h>' | $cc -E - > /dev/null 2>&1; }

need_compiler()
{
    if [ "$os" = Darwin ]; then
        # /usr/bin/cc always exists, but without the tools it only asks to install them.
        xcode-select -p > /dev/null 2>&1 && return
        echo 'setup: the C compiler is missing; run: xcode-select --install'
        exit 3
    fi
    if ! have "${cc%% *}"; then
        case $cc in
        cc | gcc) need "$cc" 'to compile' build-essential ;;
        clang | clang-[0-9]* | gcc-[0-9]*) need "$cc" 'to compile' "$cc" ;;
        aarch64-linux-gnu-gcc) need "$cc" 'to compile for ARM' gcc-aarch64-linux-gnu ;;
        *)
            echo "setup: there is no compiler '$cc'; give another with make CC=..."
            exit 3
            ;;
        esac
    fi
    have_libc || need 'stdio.h' 'to compile against the C library' libc6-dev
}

# The compiler that softmetal uses to translate Metal shaders to code for this machine. A Mac
# has Metal.
need_shaders()
{
    [ "$os" != Darwin ] || return 0
    have clang-19 || need clang-19 'to run Metal shaders on this machine' clang-19
    have ld.lld-19 || need ld.lld-19 'to link Metal shaders' lld-19
}

need_arm()
{
    if [ "$os" = Darwin ]; then
        echo 'setup: make test-arm needs Linux (qemu-user); a Mac is ARM itself: run make test'
        exit 3
    fi
    have aarch64-linux-gnu-gcc || need aarch64-linux-gnu-gcc 'to compile for ARM' gcc-aarch64-linux-gnu
    have_file /usr/aarch64-linux-gnu/lib/libc.a || need 'the ARM C library' 'to link for ARM' libc6-dev-arm64-cross
    have qemu-aarch64 || need qemu-aarch64 'to run ARM programs' qemu-user
}

need_cross_macos()
{
    if [ "$os" = Darwin ]; then
        echo 'setup: make cross-macos needs Linux; a Mac compiles for itself: run make'
        exit 3
    fi
    need_shaders # the same clang and lld
    have llvm-ar-19 || need llvm-ar-19 'to collect objects for macOS' llvm-19
}

# The runtime is a package of its own, which clang only recommends.
have_tsan() { have clang && have_file "$(clang -print-runtime-dir)"/libclang_rt.tsan-*.a; }

need_tsan()
{
    have clang || need clang 'for ThreadSanitizer' clang
    [ "$os" = Darwin ] || have_tsan || need 'the ThreadSanitizer runtime' 'to link with it' libclang-rt-dev
    [ "$os" = Darwin ] || have llvm-symbolizer || need llvm-symbolizer 'for line numbers in sanitizer reports' llvm
}

# The compilers listed in COMPILERS.
need_compilers()
{
    for compiler in ${COMPILERS:-}; do
        have "$compiler" || need "$compiler" 'to compile everything with it' "$compiler"
    done
}

# The libraries that parsers are compared with. Only tests/differential uses them.
need_differential()
{
    if [ "$os" = Darwin ]; then
        echo 'setup: make differential needs Linux with zlib, jansson, PCRE2, utf8proc and jinja2'
        exit 3
    fi
    need_compiler
    have_file /usr/include/zlib.h || need zlib.h 'to compare inflate with' zlib1g-dev
    have_file /usr/include/jansson.h || need jansson.h 'to compare JSON with' libjansson-dev
    have_file /usr/include/pcre2.h || need pcre2.h 'to compare regular expressions with' libpcre2-dev
    have_file /usr/include/utf8proc.h || need utf8proc.h 'to compare NFC with' libutf8proc-dev
    have_module jinja2 || need jinja2 'to compare chat templates with' python3-jinja2
}

need_long()
{
    if [ "$os" = Darwin ]; then
        echo 'setup: make test-long needs Linux (valgrind, qemu-user); here run make test and make test-quick-sanitize'
        exit 3
    fi
    have gcc || need gcc 'to test with it' build-essential
    need_tsan
    have_file /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a ||
        need libFuzzer 'to fuzz' libclang-rt-dev
    have valgrind || need valgrind 'to check memory use' valgrind
    need_differential
    need_arm
}

case $mode in
build) need_compiler ;;
test) need_compiler && need_shaders ;;
test-arm) need_arm ;;
test-tsan) need_compiler && need_shaders && need_tsan ;;
compilers) need_compilers ;;
cross-macos) need_cross_macos ;;
differential) need_differential ;;
test-long) need_long ;;
format)
    formatter=$([ "$os" = Darwin ] && echo clang-format || echo clang-format-19)
    have "$formatter" || need "$formatter" 'to format the sources' "$formatter"
    ;;
golden)
    have_module numpy || need 'NumPy' 'to make the golden files again' python3-numpy
    have_module torch || need 'PyTorch' 'to make the golden files again' python3-torch
    ;;
*)
    echo "setup: '$mode' is not one of build, test, test-arm, test-tsan, compilers, cross-macos, differential, test-long, format, golden" >&2
    exit 2
    ;;
esac
[ -n "$missing" ] || exit 0

if have apt-get; then
    install="apt-get update && apt-get install -y --no-install-recommends$missing"
    if [ "$(id -u)" = 0 ]; then sudo=''
    elif have sudo && sudo -n true 2> /dev/null; then sudo='sudo '
    else
        echo "setup: run: sudo sh -c '$install'"
        exit 3
    fi
    echo "setup: installing$missing with apt-get"
    export DEBIAN_FRONTEND=noninteractive
    $sudo sh -c "$install"
elif have brew; then
    echo "setup: installing$missing with Homebrew"
    brew install $missing
else
    echo "setup: install these with your package manager (Debian's names):$missing"
    exit 3
fi
