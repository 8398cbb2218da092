#!/bin/sh
# Installs the peers that mica is compared with: tools/peers.sh DIR
#
# Each peer is optional. DIR/peers.tsv gets one line per peer: its name, the command
# that starts it ({threads} is replaced; empty: absent), and why it is absent. Installed
# peers are not installed again. Nothing outside DIR changes except Debian packages,
# and those only as root or with sudo without a password.
set -u
dir=${1:?usage: tools/peers.sh DIR}
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
log=$dir/install.log
table=$dir/peers.tsv
: > "$log"
: > "$table.new"
os=$(uname -s)

say() { echo "peers: $*"; }
present() { printf '%s\t%s\t\n' "$1" "$2" >> "$table.new"; }
absent()
{
    say "$1 is absent: $2"
    printf '%s\t\t%s\n' "$1" "$2" >> "$table.new"
}
# The last meaningful line in the log, as the reason.
reason() { grep -v '^ *$' "$log" | tail -n 1 | cut -c 1-200 | tr '\t' ' '; }
have() { command -v "$1" > /dev/null 2>&1; }

# apt PACKAGE FILE: succeeds if FILE of the package exists; installs the package if needed
apt()
{
    for file in $2; do [ -e "$file" ] && return 0; done
    have apt-get || { echo "there is no apt-get to install $1 with" >> "$log"; return 1; }
    sudo=''
    if [ "$(id -u)" != 0 ]; then
        if have sudo && sudo -n true 2> /dev/null; then sudo=sudo
        else echo "run: sudo apt-get install $1" >> "$log"; return 1; fi
    fi
    say "installing Debian's $1"
    { $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1" ||
        { $sudo apt-get update &&
            $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1"; }; } >> "$log" 2>&1
}

# venv NAME PYTHON OPTION...: creates the virtual environment DIR/NAME with pip
venv()
{
    name=$1 python=$2
    shift 2
    [ -x "$dir/$name/bin/python" ] && return 0
    "$python" -m venv "$@" "$dir/$name" >> "$log" 2>&1 && return 0
    apt python3-venv '' && "$python" -m venv "$@" "$dir/$name" >> "$log" 2>&1
}

# pip NAME MODULE REQUIREMENT: succeeds if DIR/NAME can import MODULE; installs it if needed
pip()
{
    "$dir/$1/bin/python" -c "import $2" >> "$log" 2>&1 && return 0
    say "installing $3 from PyPI"
    "$dir/$1/bin/python" -m pip install --quiet "$3" >> "$log" 2>&1 && "$dir/$1/bin/python" -c "import $2" >> "$log" 2>&1
}

worker() { echo "'$dir/$1/bin/python' '$here/bench/peer_worker.py' $2 {threads}"; }

# compile NAME SOURCE FLAGS...: compiles bench/SOURCE to DIR/NAME
compile()
{
    name=$1 source=$2
    shift 2
    "${peer_cc:-${CC:-cc}}" -std=c11 -D_GNU_SOURCE -O2 "$here/bench/$source" "$@" -o "$dir/$name" >> "$log" 2>&1
}

python=$(command -v python3 || true)
openblas=''

if [ -z "$python" ]; then
    for peer in numpy mlx torch; do absent $peer 'there is no python3'; done
else
    if venv pypi "$python" && pip pypi numpy numpy; then present numpy "$(worker pypi numpy)"
    else absent numpy "$(reason)"; fi
fi

# OpenBLAS before mlx: the Linux wheel of mlx contains the reference BLAS, which is about
# ten times slower. A fair comparison uses OpenBLAS instead.
if apt libopenblas-dev '/usr/include/*/cblas.h /usr/include/cblas.h' && compile openblas peer_blas.c -lopenblas; then
    present openblas "'$dir/openblas' {threads}"
    openblas=$(ldd "$dir/openblas" 2> /dev/null | awk '/openblas/ { print $3 }')
else
    absent openblas "$(reason)"
fi

if apt libdnnl-dev '/usr/include/dnnl.h' && compile onednn peer_dnnl.c -ldnnl; then
    present onednn "'$dir/onednn' {threads}"
else
    absent onednn "$(reason)"
fi

if [ -n "$python" ]; then
    mlx=mlx
    [ "$os" = Linux ] && mlx='mlx[cpu]'
    if [ -x "$dir/pypi/bin/python" ] && pip pypi mlx.core "$mlx"; then
        present mlx "${openblas:+env LD_PRELOAD=$openblas }$(worker pypi mlx)"
    else absent mlx "$(reason)"; fi

    # On Linux torch from PyPI has gigabytes of CUDA, so Debian's torch is used with Debian's Python.
    if [ "$os" = Linux ]; then
        if apt python3-torch '/usr/lib/python3/dist-packages/torch' && venv debian /usr/bin/python3 --system-site-packages &&
            "$dir/debian/bin/python" -c 'import torch' >> "$log" 2>&1; then
            # for liquid networks; without it those cases are absent
            pip debian ncps.torch ncps || say "ncps is absent: $(reason)"
            present torch "$(worker debian torch)"
        else absent torch "$(reason)"; fi
    elif venv torch "$python" && pip torch torch torch; then
        pip torch ncps.torch ncps || say "ncps is absent: $(reason)"
        present torch "$(worker torch torch)"
    else
        absent torch "$(reason)"
    fi
fi

# The fused loop, compiled for this machine by the best C compiler available.
peer_cc=$(command -v clang || echo "${CC:-cc}")
native=-march=native
[ "$os" = Darwin ] && native=-mcpu=native
if compile c_loop peer_loop.c -O3 $native -ffp-contract=fast -fno-math-errno -lm; then present c_loop "'$dir/c_loop' {threads}"
else absent c_loop "$(reason)"; fi

mv "$table.new" "$table"
