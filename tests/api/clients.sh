#!/usr/bin/env bash
# The library from other languages: a C++17 program and a Python one that loads
# the shared library with ctypes. Each evaluates a graph, takes a gradient and
# provokes an error.
. tests/check.sh

if [ -n "${SANITIZE:-}" ]; then
    skip 'a library with sanitizers needs their run-time in the host'
    finish
fi

cat > "$work/client.cpp" << 'END'
#include <cstdint>
#include <cstring>
#include <mica.h>

int main()
{
    mica_engine *e = nullptr;
    if (mica_open(nullptr, &e) != MICA_OK) return 1;
    mica_scope *s = mica_scope_begin(e);
    const int64_t shape[] = {3};
    const float v[] = {1, 2, 3};
    mica_array *x = mica_from_data(s, MICA_F32, 1, shape, v);
    mica_array *y = mica_sum(s, mica_square(s, x), nullptr, 0, false), *g = nullptr;
    if (mica_grad(s, y, &x, 1, &g) != MICA_OK) return 2;
    mica_array *out[] = {y, g};
    if (mica_eval(s, out, 2) != MICA_OK || mica_data_f32(y)[0] != 14.0f || mica_data_f32(g)[2] != 6.0f) return 3;
    const int64_t other[] = {4};
    if (mica_add(s, x, mica_zeros(s, MICA_F32, 1, other)) != nullptr) return 4;
    if (mica_scope_status(s) != MICA_ERR_SHAPE || !std::strstr(mica_scope_error(s), "add")) return 5;
    mica_scope_end(s);
    mica_close(e);
    return 0;
}
END
if command -v c++ > /dev/null; then
    check 'compile a C++17 program' c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude "$work/client.cpp" \
        "$BUILD/libmica.a" -lm -lpthread -o "$work/client"
    check 'run a C++17 program' "$work/client"
else
    skip 'there is no C++ compiler'
fi

cat > "$work/client.py" << 'END'
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
p, i64 = ctypes.c_void_p, ctypes.c_int64
def fn(name, result, *args):
    f = getattr(lib, name); f.restype = result; f.argtypes = args; return f
engine = p()
assert fn("mica_open", ctypes.c_int, p, ctypes.POINTER(p))(None, ctypes.byref(engine)) == 0
s = fn("mica_scope_begin", p, p)(engine)
from_data = fn("mica_from_data", p, p, ctypes.c_int, ctypes.c_int, ctypes.POINTER(i64), p)
x = from_data(s, 11, 1, (i64 * 4)(4), (ctypes.c_float * 4)(1, 2, 3, 4))
y = fn("mica_mul", p, p, p, p)(s, x, x)
out = (p * 1)(y)
evaluate = fn("mica_eval", ctypes.c_int, p, ctypes.POINTER(p), ctypes.c_size_t)
assert evaluate(s, out, 1) == 0
data = fn("mica_data_f32", ctypes.POINTER(ctypes.c_float), p)(y)
assert [data[i] for i in range(4)] == [1, 4, 9, 16]
fn("mica_exp", p, p, p)(s, None)
assert evaluate(s, out, 1) == 10
assert b"exp" in fn("mica_last_error", ctypes.c_char_p)()
fn("mica_scope_end", None, p)(s)
fn("mica_close", None, p)(engine)
END
shared=$(ls "$BUILD"/libmica.so "$BUILD"/libmica.dylib 2> /dev/null | head -n 1)
if command -v python3 > /dev/null && [ -n "$shared" ]; then
    check 'a Python program with ctypes' python3 "$work/client.py" "$shared"
else
    skip 'there is no python3, or no shared library was built'
fi
finish
