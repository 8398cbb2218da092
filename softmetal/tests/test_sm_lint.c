/* The lint: texts that Apple's compiler refuses must be refused, with the line and the
 * reason; texts that it accepts must pass, and so must every shader of this project. */
#include "host.h"
#include "softmetal.h"
#include "test.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "#include <metal_stdlib>\nusing namespace metal;\n"

/* All rows are one text. @ is replaced by the row's number, so that names differ. */
static const struct {
    const char *text;
    int line; /* line of the error, within the row's text */
    const char *why;
} wrong[] = {
    {"kernel void k@(device float *a [[buffer(0)]]) { double x = a[0]; a[0] = x; }", 1, "no double"},
    {"inline int f@(int n) { return n < 2 ? 1 : n * f@(n - 1); }", 1, "recursion"},
    {"inline int g@(int n);\ninline int f@(int n) { return g@(n); }\ninline int g@(int n) { return f@(n); }", 2,
     "recursion"},
    {"kernel void k@(float *a [[buffer(0)]]) { a[0] = 1; }", 1, "a pointer without an address space in a parameter"},
    {"inline void f@(int &x) { x = 1; }", 1, "a reference without an address space in a parameter"},
    {"inline void f@(device float *a) {\n    float *p = a;\n    p[0] = 1;\n}", 2, "a pointer without an address space"},
    {"inline void f@(device float *a) {\n    auto &r = a[0];\n    r = 1;\n}", 2,
     "a reference without an address space"},
    {"inline float f@(device float *a) { return *(float *)a; }", 1, "in a cast"},
    {"inline float f@(device float *a) { return *reinterpret_cast<float *>(a); }", 1, "in a cast"},
    {"typedef float *pointer@;", 1, "in a type's name"},
    {"using pointer@ = float *;", 1, "in a type's name"},
    {"struct s@ { float *p; };", 1, "in a member"},
    {"float *f@(device float *a);", 1, "in a result"},
    {"float table@[4] = {1, 2, 3, 4};", 1, "not constant"},
    {"constexpr float x@ = 1;", 1, "not constant"},
    {"inline void f@() {\n    threadgroup float t[4];\n    t[0] = 1;\n}", 2, "outside a kernel"},
    {"kernel void k@(thread float *a) { a[0] = 1; }", 1, "must be device, constant or threadgroup"},
    {"kernel void k@(device float **a [[buffer(0)]]) { a[0][0] = 1; }", 1, "a pointer to a pointer"},
    {"inline int f@() {\n    static int count = 0;\n    return ++count;\n}", 2, "static"},
    {"inline int f@(int x) {\n    auto g = [&](int y) { return x + y; };\n    return g(1);\n}", 2, "lambda"},
    {"struct a@ { uint x : 3; };", 1, "bit-field"},
    {"struct a@ { virtual int f(); };", 1, "virtual"},
    {"inline int f@(int x) { goto end; end: return x; }", 1, "goto"},
    {"inline int f@(int x) { __asm__(\"\"); return x; }", 1, "assembler"},
    {"inline float f@(float x) { return std::exp(x); }", 1, "std::"},
    {"inline int f@(int x) { throw x; }", 1, "exceptions"},
    {"inline void f@(device float *a) {\n    threadgroup float *t = a;\n    t[0] = 1;\n}", 2, "threadgroup"},
    {"inline void g@(threadgroup float *t) { t[0] = 1; }\ninline void f@(device float *a) { g@(a); }", 2, "g@"},
    {"inline void f@(constant float *c) { c[0] = 1; }", 1, "read-only"},
    {"inline void f@(constant float *c) {\n    device float *d = (device float *)c;\n    d[0] = 1;\n}", 2,
     "a cast to another address space of 'const constant float *'"},
    {"inline float f@(device uchar *p) { return ((threadgroup const float *)p)[1]; }", 1, "a cast to another"},
    {"inline void f@(device float *a) {\n    thread float *p = a;\n    p[0] = 1;\n}", 2, "device"},
    {"inline void f@() {\n    float x = 1;\n    device float *p = &x;\n    p[0] = 2;\n}", 3, "device"},
    {"inline void g@(thread float &x) { x = 1; }\ninline void f@(device float *a) { g@(a[0]); }", 2, "g@"},
    {"inline void f@(device float *a, threadgroup float *t, bool c) {\n    device float *p = c ? a : t;\n    p[0] = "
     "1;\n}",
     2, "threadgroup"},
    {"template <typename T> inline void g@(threadgroup T *t) { t[0] = T(1); }\n"
     "kernel void k@(device float *a [[buffer(0)]]) { g@<float>(a); }",
     2, "g@"},
    /* arrays whose length is not a compile-time constant, which a function constant is not */
    {"inline float f@(int n) {\n    float a[n];\n    a[0] = 1;\n    return a[0];\n}", 2, "variable length"},
    {"constant uint n@ [[function_constant(1)]];\nkernel void k@(device float *a [[buffer(0)]]) {\n"
     "    threadgroup float t[n@];\n    t[0] = a[0];\n    a[0] = t[0];\n}",
     3, "variable length"},
    {"template <int N> inline float f@(int n) {\n    float a[N + 1], b[N][2];\n    float c[n];\n    return a[0] + "
     "b[0][1] + c[0];\n}",
     3, "variable length"},
    {"inline float f@() {\n    float a[0];\n    return a[0];\n}", 2, "zero"},
    {"struct s@ { int n; float a[]; };", 1, "flexible"},
    /* variables in an address space that is not allowed there */
    {"inline float f@() {\n    constant float x = 1;\n    return x;\n}", 2, "automatic variable"},
    {"inline float f@() {\n    constant float t[2] = {1, 2};\n    return t[0];\n}", 2, "automatic variable"},
    {"inline void f@() {\n    device int x;\n    x = 1;\n}", 2, "automatic variable"},
    {"kernel void k@(device float *a [[buffer(0)]]) {\n    const device float x = a[0];\n    a[1] = x;\n}", 2,
     "automatic variable"},
    {"device float x@;", 1, "not constant"},
    {"threadgroup float x@[4];", 1, "not constant"},
    {"static const int x@ = 1;", 1, "not constant"},
    {"extern int x@;", 1, "not constant"},
    {"namespace n@ { int x = 1; }", 1, "not constant"},
    {"struct s@ { static constexpr int x = 1; };", 1, "not constant"},
    {"template <typename T> constexpr T zero@ = T(0);", 1, "not constant"},
    {"constant float x@;", 1, "without a value"},
    {"inline int f@(constant int x) { return x; }", 1, "an address space of a parameter"},
    {"inline float f@(threadgroup float x) { return x; }", 1, "an address space of a parameter"},
    {"inline int f@() {\n    static const int x = 1;\n    return x;\n}", 2, "static"},
    {"inline int f@() {\n    const static int x = 1;\n    return x;\n}", 2, "static"},
    {"inline int f@() {\n    thread_local int x = 1;\n    return x;\n}", 2, "thread_local"},
    /* spaces: variables in threadgroup memory */
    {"kernel void k@(device float *a [[buffer(0)]]) {\n    threadgroup float t[4];\n    thread float *p = t;\n    a[0] "
     "= p[0];\n}",
     3, "threadgroup"},
    {"kernel void k@(device float *a [[buffer(0)]]) {\n    threadgroup float t[4], u;\n    thread float *p = &u;\n    "
     "a[0] = p[0] + t[0];\n}",
     3, "threadgroup"},
    {"kernel void k@(device float *a [[buffer(0)]]) {\n    threadgroup float t[4][4];\n    device float *p = t[1];\n   "
     " a[0] = p[0];\n}",
     3, "threadgroup"},
    {"inline float g@(thread const float *p) { return p[0]; }\nkernel void k@(device float *a [[buffer(0)]]) {\n"
     "    threadgroup float t[4];\n    a[0] = g@(t);\n}",
     4, "g@"},
    {"kernel void k@(device float *a [[buffer(0)]]) {\n    threadgroup float t[4];\n    a = t;\n}", 3, "threadgroup"},
    {"inline device float *f@(threadgroup float *t) { return t; }", 1, "threadgroup"},
    {"struct s@ { device float *p; };\ninline void f@(threadgroup float *t) {\n    s@ x = {t};\n    x.p[0] = 1;\n}", 3,
     "threadgroup"},
    {"struct s@ { device float *p; };\ninline void f@(threadgroup float *t) {\n    s@ x;\n    x.p = t;\n    x.p[0] = "
     "1;\n}",
     4, "threadgroup"},
    {"kernel void k@(constant float &c [[buffer(0)]]) {\n    c = 1;\n}", 2, "const-qualified"},
    {"kernel void k@(constant float *c [[buffer(0)]]) {\n    device const float &d = c[0];\n    (void)d;\n}", 2,
     "constant"},
    {"struct s@ { float x; };\nkernel void k@(constant s@ &c [[buffer(0)]]) { c.x += 1; }", 2, "const-qualified"},
    {"inline void f@(constant uint *c) { atomic_fetch_add_explicit((device atomic_uint *)c, 1u, memory_order_relaxed); "
     "}",
     1, "address space"},
    {"inline uint f@(device uint *a) { return *static_cast<threadgroup uint *>(a); }", 1, "threadgroup"},
    {"inline uint f@(device uint *a) { return *reinterpret_cast<constant uint *>(a); }", 1, "constant"},
    /* kernels */
    {"kernel int k@(device float *a [[buffer(0)]]) {\n    a[0] = 1;\n    return 1;\n}", 1, "void"},
    {"kernel void k@(device float *a [[buffer(0)]]) { a[0] = 1; }\ninline void f@(device float *a) { k@(a); }", 2,
     "a kernel"},
    {"template <typename T> kernel void k@(device T *a [[buffer(0)]]) { a[0] = 1; }\n"
     "inline void f@(device float *a) { k@<float>(a); }",
     2, "a kernel"},
    {"[[kernel]] void k@(device float *a [[buffer(0)]]) { a[0] = 1; }\n[[kernel]] void h@(device float *a "
     "[[buffer(0)]]) { k@(a); }",
     2, "a kernel"},
    {"kernel void k@(device float *a [[buffer(0)]],\n               device float *b [[buffer(0)]]) { a[0] = b[0]; }", 2,
     "index 0"},
    {"kernel void k@(threadgroup float *a [[threadgroup(1)]],\n               threadgroup float *b [[threadgroup(1)]]) "
     "{ a[0] = b[0]; }",
     2, "index 1"},
    {"kernel void k@(device float *a [[buffer(31)]]) { a[0] = 1; }", 1, "30"},
    {"kernel void k@(device float *a [[buffer(-1)]]) { a[0] = 1; }", 1, "30"},
    {"kernel void k@(threadgroup float *a [[threadgroup(31)]]) { a[0] = 1; }", 1, "30"},
    {"kernel void k@(device float *a [[buffer]]) { a[0] = 1; }", 1, "buffer"},
    {"kernel void k@(uint n [[buffer(0)]], device uint *a [[buffer(1)]]) { a[0] = n; }", 1, "'buffer'"},
    {"kernel void k@(uint n, device uint *a [[buffer(0)]]) { a[0] = n; }", 1, "without an attribute"},
    {"kernel void k@(device uint *a [[buffer(0)]],\n               const float4 n) { a[0] = uint(n.x); }", 2,
     "without an attribute"},
    {"kernel void k@(device float *a [[threadgroup(0)]]) { a[0] = 1; }", 1, "'threadgroup'"},
    {"kernel void k@(threadgroup float *a [[buffer(0)]]) { a[0] = 1; }", 1, "'buffer'"},
    {"kernel void k@(uint n [[threadgroup(0)]], device uint *a [[buffer(1)]]) { a[0] = n; }", 1, "'threadgroup'"},
    {"kernel void k@(device float *a [[buffer(0)]], float i [[thread_position_in_grid]]) { a[0] = i; }", 1,
     "'thread_position_in_grid'"},
    {"kernel void k@(device float *a [[buffer(0)]], int i [[thread_position_in_grid]]) { a[i] = 1; }", 1,
     "'thread_position_in_grid'"},
    {"kernel void k@(device float *a [[buffer(0)]], uint4 i [[threadgroup_position_in_grid]]) { a[i.x] = 1; }", 1,
     "'threadgroup_position_in_grid'"},
    {"kernel void k@(device float *a [[buffer(0)]], ushort2 i [[thread_index_in_threadgroup]]) { a[i.x] = 1; }", 1,
     "'thread_index_in_threadgroup'"},
    {"kernel void k@(device float *a [[buffer(0)]], uint3 i [[thread_index_in_simdgroup]]) { a[i.x] = 1; }", 1,
     "'thread_index_in_simdgroup'"},
    {"kernel void k@(device float *a [[buffer(0)]], constant uint &i [[thread_position_in_grid]]) { a[i] = 1; }", 1,
     "'thread_position_in_grid'"},
    {"kernel void k@(device float *a [[buffer(0)]], uint i [[vertex_id]]) { a[i] = 1; }", 1, "'vertex_id'"},
    {"kernel void k@(device float *a [[buffer(0)]], uint i [[thread_positon_in_grid]]) { a[i] = 1; }", 1,
     "'thread_positon_in_grid'"},
    {"kernel void k@(device float *a [[buffer(0)]], ...) { a[0] = 1; }", 1, "variable arguments"},
    {"struct s@ { kernel void k(device float *a [[buffer(0)]]) { a[0] = 1; } };", 1, "a member"},
    {"kernel void k@(device float *a [[buffer(0)]]) { a[0] = 1; }\nkernel void k@(device int *a [[buffer(0)]]) { a[0] "
     "= 1; }",
     2, "overloaded"},
    {"kernel void k@(const float &a [[buffer(0)]], device float *b [[buffer(1)]]) { b[0] = a; }", 1,
     "without an address space"},
    {"kernel void k@(const float a[4] [[buffer(0)]], device float *b [[buffer(1)]]) { b[0] = a[0]; }", 1,
     "without an address space"},
    {"int main() { return 0; }", 1, "main"},
    {"kernel void k@(device float *a [[buffer(0)]], uint2 i [[thread_position_in_grid]],\n"
     "               uint3 j [[threads_per_grid]]) { a[i.x] = float(j.x); }",
     2, "different sizes"},
    /* vectors: their elements have no address; as many values as components; no 64 bits between lanes */
    {"inline float f@(float4 v) {\n    thread float *p = &v.x;\n    return *p;\n}", 2, "address of vector element"},
    {"inline float f@(float4 v) {\n    thread float &r = v[1];\n    return r;\n}", 2, "vector element"},
    {"inline void g@(thread float &x) { x = 1; }\ninline void f@(float4 v) { g@(v.y); }", 2, "vector element"},
    {"inline float4 f@(float x) { return float4(x, x); }", 1, "too few or too many"},
    {"inline float3 f@(float2 x) { return float3(x, x); }", 1, "too few or too many"},
    {"inline metal::float3 f@(float x) { return metal::float3(x, x); }", 1, "too few or too many"},
    {"inline long f@(long x) { return simd_sum(x); }", 1, "simd_sum"},
    {"inline ulong2 f@(ulong2 x) { return simd_shuffle_xor(x, 1); }", 1, "simd_shuffle_xor"},
    /* types and words */
    {"inline half f@(half x) { return x * 2h; }", 1, "suffix h"},
    {"inline float f@(float x) { return x * 2f; }", 1, "suffix f"},
    {"template <class T> struct b@ { T x; b@(T y) : x(y) {} };\ninline float f@(float x) { return b@(x).x; }", 2,
     "requires template arguments"},
    {"inline float f@(float x) { return x * 1.5l; }", 1, "long double"},
    {"inline long f@(long x) {\n    long double y = x;\n    return long(y);\n}", 2, "double"},
    {"inline long f@(long x) { return (long long)x; }", 1, "long long"},
    {"inline long f@(unsigned long long x) { return long(x); }", 1, "long long"},
    {"inline int f@(int x) {\n    auto p = new int(x);\n    return *p;\n}", 2, "new"},
    {"inline int f@(int x) {\n    int *p = 0;\n    delete p;\n    return x;\n}", 3, "delete"},
    {"struct a@ { int x; };\nstruct b@ : a@ { int y; };\ninline bool f@(thread a@ *p) { return dynamic_cast<thread b@ "
     "*>(p) != nullptr; }",
     3, "dynamic_cast"},
    {"inline bool f@(int x) { return typeid(x) == typeid(int); }", 1, "typeid"},
    {"inline int f@(int x) { register int y = x; return y; }", 1, "register"},
    {"inline int f@(int x) {\n    try { x++; } catch (...) { }\n    return x;\n}", 2, "exceptions"},
    {"struct a@ { virtual ~a@(); };", 1, "virtual"},
    {"inline int f@(int x) {\nagain:\n    return x;\n}", 2, "label"},
    {"inline int f@(int x) {\n    auto [a, b] = int2(x, 1);\n    return a + b;\n}", 2, "structured binding"},
    {"inline int f@(int x) {\n    return [](int y) { return y; }(x);\n}", 2, "lambda"},
    {"inline int f@(__int128 x) { return int(x); }", 1, "__int128"},
    {"template <typename T> inline T f@(T n) { return n < T(2) ? n : f@<T>(n - 1); }", 1, "recursion"},
    {"namespace n@ { inline int f(int n) { return n < 2 ? 1 : n@::f(n - 1); } }", 1, "recursion"},
};

static const char *const right[] = {
    "struct s@ { float x; s@() = default; s@(float) = delete; };\n"
    "inline int f@() {\n    struct t { int a; private: int b; public: int c; };\n    return int(sizeof(t));\n}",
    "inline int f@() {\n    int d = (metal::int2 {}.x * metal::int2 {}.y);\n    metal::float4 v = metal::float4(1, 2, "
    "3, 4);\n"
    "    return d + int(v.x);\n}",
    "inline float4 f@(float2 x, half h) { return float4(x, 1, dot(x, x)) + float4(x.x) + float4(float3(x, h), h); }\n"
    "inline int g@(int x, bool b, half2 h) {\n    h = simd_sum(h) + simd_shuffle_and_fill_up(h, h, 1);\n"
    "    return simd_max(x) + int(simd_sum(uchar(1))) + int(simd_shuffle(b, 1)) + int(h.x);\n}",
    "kernel void k@(device float *a [[buffer(0)]], uint3 i [[threadgroup_position_in_grid]],\n"
    "               ushort3 j [[thread_position_in_threadgroup]], uint n [[threads_per_grid]],\n"
    "               ushort l [[thread_index_in_simdgroup]]) { a[i.x] = float(j.y + n + l); }",
    "struct s@ { int f(int n) { return n < 2 ? 1 : f(n - 1); } };", /* MLX has such members */
    "template <typename T, typename U = metal::enable_if_t<sizeof(T) < 8>> inline T f@(T x) { return x; }",
    "template <int N> inline float f@(device float *a) {\n    constexpr int n = 4;\n    const int m = n * 2;\n"
    "    float b[n], c[m][N], d[] = {1, 2};\n    b[0] = a[0];\n    c[0][0] = 1;\n    return b[0] + c[0][0] + d[1];\n}",
    "constant bool has@ [[function_constant(7)]];\nkernel void k@(device float *a [[buffer(0)]],\n"
    "               device float *b [[buffer(1), function_constant(has@)]],\n"
    "               device int *c [[buffer(1), function_constant(has@)]], ushort3 i "
    "[[thread_position_in_threadgroup]],\n"
    "               uint32_t j [[simdgroup_index_in_threadgroup]], unsigned n [[threads_per_simdgroup]],\n"
    "               const uint3 g [[threads_per_grid]]) { a[i.x] = float(j + n + g.y); }",
    "struct s@ { static constant constexpr float t[2] = {1, 2}; static int f() { return 1; } };\n"
    "constant constexpr float s@::t[2];",
    "struct c@ { float r; };\ninline c@ exp(c@ x) { return c@{exp(x.r)}; }",
    "template <int N> inline int f@(int x) { return f@<N - 1>(x) + N; }\n"
    "template <> inline int f@<0>(int x) { return x; }",
    "inline float one@(float x) { return x; }\n"
    "template <float (*F)(float)> inline float apply@(float x) { return F(x); }\n"
    "inline float two@(float x) { return apply@<one@>(x); }",
    "inline int f@(int x) {\n    switch (x) {\n    case 1: x = 2; break;\n    default: x = x > 3 ? 4 : 5;\n    }\n"
    "    for (int i = 0; i < 3; i++) x += i;\n    return x + int(1e3f) + int(15l) + 0x1fL;\n}",
    "inline float sum@(threadgroup const float *t, thread float &x) { return t[0] + x; }\n"
    "kernel void k@(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n    if (i < 4) {\n"
    "        threadgroup float t[4][2], u;\n        const threadgroup float *p = &t[1][0];\n        float k = 1;\n"
    "        u = a[i];\n        t[i][0] = u;\n        a[i] = sum@(p, k) + sum@(t[0], k);\n    }\n}",
    "struct s@ { float x; };\ninline float f@(s@ a, thread s@ b, const thread float *c, threadgroup float d[4]) {\n"
    "    return a.x + b.x + c[0] + d[0];\n}",
    "kernel void scale@(device float *a [[buffer(0)]]) { a[0] = 1; }\n"
    "inline float f@(float x) { float scale@(x); return scale@ * 2; }",
    "kernel void k@(device float *a, constant float &b, threadgroup float *t, texture2d<float> c [[texture(0)]]) {\n"
    "    t[0] = b;\n    a[0] = t[0];\n}",
    "extern \"C\" kernel void k@(device ulong *a [[buffer(0)]]) { a[0] = 1; }\nalignas(16) constant float x@[2] = {1, "
    "2};",
    /* from third-party kernels */
    "template <typename A, typename B> struct two@ { A a; B b; };\n"
    "template <typename T> inline void f@(thread two@<T, int>& p, device two@<T, T>* q) { q->a = p.a; }",
    "struct c@ { float r; c@(float x) thread : r(x) {} c@(float x) device : r(x) {} };\n"
    "constexpr c@ operator+(c@ a, c@ b) { return c@(a.r + b.r); }\n"
    "inline bool operator<(c@ a, c@ b) { return a.r < b.r; }",
    "using bits@ = union { float f; uint u; };\nstruct base@ { int x; };\nstruct more@ : base@ { int y; };",
    "template <int N> struct n@ { static constant constexpr short v = N == 1 ? 2 : 4; };\n"
    "template <int N> inline int g@(int x) { if constexpr (N > 1) return x; return 0; }",
    "template <bool A, bool B> inline metal::enable_if_t<A & B, int> h@(int x) { return x; }",
    "kernel void k@(device float *a [[buffer(0)]], constant float &s [[buffer(1)]], uint i "
    "[[thread_position_in_grid]])\n"
    "{\n    for (uint j = 0; j < i * 2; j++) a[i] = a[i] * s + float(j) * 2.0f;\n}",
    "constant float table@[2] = {1, 2};\nconstant uint n@ [[function_constant(0)]];\nconstant bool odd@ = n@ % 2 == 1;",
    "struct pair@ { float a, b; };\ninline pair@ make@(float x, float y) { return pair@{x * y, x - y}; }\n"
    "kernel void k@(device pair@ *p [[buffer(0)]], constant pair@ &q [[buffer(1)]])\n"
    "{\n    pair@ x = p[0];\n    x.a *= q.b;\n    p[1] = x;\n    pair@ y = q;\n    p[2] = y;\n}",
    "kernel void k@(device float *a [[buffer(0)]], threadgroup float *s [[threadgroup(0)]],\n"
    "               uint i [[thread_index_in_threadgroup]])\n"
    "{\n    threadgroup float t[32];\n    t[i] = a[i];\n    s[i] = t[i];\n    "
    "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    thread float x = 0;\n    thread float *p = &x;\n    *p = t[31 - i];\n    a[i] = x;\n}",
    "inline float f@(float x) { return exp(x); }\ninline float f@(float x, int n) { return f@(x) * n; }",
    "template <typename T> inline T twice@(device const T *p, uint i) { return p[i] * T(2); }\n"
    "kernel void k@(device half *a [[buffer(0)]], uint i [[thread_position_in_grid]]) { a[i] = twice@<half>(a, i); }",
    "kernel void k@(device atomic_uint *c [[buffer(0)]]) { atomic_fetch_add_explicit(c, 1u, memory_order_relaxed); }",
    "kernel void k@(device const float *a [[buffer(0)]], device float *b [[buffer(1)]])\n"
    "{\n    simdgroup_matrix<float, 8, 8> m, n(0.0f);\n    simdgroup_load(m, a, 8);\n"
    "    simdgroup_multiply_accumulate(n, m, m, n);\n    simdgroup_store(n, b, 8);\n}",
    "kernel void k@(device uchar *a [[buffer(0)]])\n{\n    device float4 *v = (device float4 *)a;\n"
    "    v[0] = float4(1, 2, 3, 4) * v[1].wzyx;\n}",
    "kernel void k@(device uchar *a [[buffer(0)]], constant uchar *c [[buffer(1)]])\n"
    "{\n    threadgroup uint t[8];\n    ((threadgroup float *)t)[1] = ((device const float *)(a + 4))[0] * ((constant "
    "float *)c)[2];\n"
    "    *(device float *)&a[8] = ((threadgroup const float *)t)[0] + (float)a[1];\n}",
    "typedef struct p@ { uint n; float x[4]; } p@;\nenum : uint { A@ = 1, B@ = 2 };\n"
    "kernel void k@(constant p@ &q [[buffer(0)]], device float *o [[buffer(1)]]) { o[0] = q.x[A@] * float(q.n); }",
};

/* Writes the row's text with its number for each @, and a newline. Returns its number of lines. */
static int put_row(char *to, size_t size, const char *text, size_t row)
{
    int lines = 1;
    size_t at = 0;
    for (; *text != 0 && at + 8 < size; text++) {
        lines += *text == '\n';
        if (*text == '@') at += (size_t)snprintf(to + at, size - at, "%zu", row);
        else to[at++] = *text;
    }
    to[at++] = '\n';
    to[at] = 0;
    return lines;
}

enum { TEXT_SIZE = 65536, ROWS = sizeof wrong / sizeof *wrong };

/* Returns whether a line of the errors starts with `begins` and contains `why`. */
static bool complained(const char *said, const char *begins, const char *why)
{
    for (const char *line = said; line != NULL && *line != 0; line = strchr(line, '\n'), line += line != NULL) {
        const char *end = strchr(line, '\n'), *found = strstr(line, why);
        if (strncmp(line, begins, strlen(begins)) == 0 && found != NULL && (end == NULL || found < end)) return true;
    }
    return false;
}

TEST(texts_that_apple_refuses)
{
    CHECK(host_open());
    static char text[TEXT_SIZE];
    int first[ROWS], lines = 2;
    strcpy(text, HEAD);
    const size_t count = sizeof wrong / sizeof *wrong;
    for (size_t i = 0; i < count; i++) {
        first[i] = lines + 1;
        lines += put_row(text + strlen(text), sizeof text - strlen(text), wrong[i].text, i);
    }
    char *said = host.lint(text, strlen(text), "x.metal");
    CHECK(said != NULL);
    for (size_t i = 0; i < count; i++) {
        test_case("%s", wrong[i].text);
        char at[32], why[128];
        snprintf(at, sizeof at, "x.metal:%d:", first[i] + wrong[i].line - 1);
        put_row(why, sizeof why, wrong[i].why, i);
        why[strlen(why) - 1] = 0;
        EXPECT_MSG(complained(said, at, why), "no '%s' at %s in:\n%s", why, at, said);
    }
    free(said);
}

TEST(texts_that_apple_accepts)
{
    CHECK(host_open());
    static char text[TEXT_SIZE];
    strcpy(text, HEAD);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        put_row(text + strlen(text), sizeof text - strlen(text), right[i], i);
    char *said = host.lint(text, strlen(text), "x.metal");
    EXPECT_MSG(said == NULL, "%s", said);
    free(said);
}

/* Call graphs, one letter per function: "ab" means that a calls b. `recursive` lists the functions that must be
 * reported. */
static const struct {
    const char *calls, *recursive;
} shapes[] = {{"ab bc cd", ""},
              {"aa ab bc", "a"},
              {"ab bc ca", "abc"},
              {"ab bc cb cd de", "bc"},             /* functions before and after a cycle are fine */
              {"ab bc ca cd de ed", "abcde"},       /* two cycles, one after the other             */
              {"ab ac bd cd de ee", "e"},           /* two paths to one function are not a cycle   */
              {"ab bc cd db ae ef fa", "aefbcd"},   /* a cycle found while another is open         */
              {"ba cb ac da", "abc"},
              {"ab ba bc cb", "abc"}};

TEST(recursive_functions_are_found)
{
    CHECK(host_open());
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char text[2048] = "", at[32];
        test_case("%s", shapes[i].calls);
        for (char f = 'a'; f <= 'f'; f++) {
            size_t n = strlen(text);
            n += (size_t)snprintf(text + n, sizeof text - n, "inline int node_%c(int x) { return x", f);
            for (const char *c = shapes[i].calls; *c; c += 2 + (c[2] != 0))
                if (c[0] == f) n += (size_t)snprintf(text + n, sizeof text - n, " + node_%c(x)", c[1]);
            snprintf(text + n, sizeof text - n, "; }\n");
        }
        char *said = host.lint(text, strlen(text), "x.metal");
        for (char f = 'a'; f <= 'f'; f++) {
            snprintf(at, sizeof at, "x.metal:%d:", f - 'a' + 1);
            EXPECT_MSG(complained(said, at, "recursion") == (strchr(shapes[i].recursive, f) != NULL), "%c: %s", f,
                       said == NULL ? "nothing was said" : said);
        }
        free(said);
    }
}

/* The text determines the depth of calls, so the lint must not recurse over it. */
TEST(a_long_chain_of_calls)
{
    enum { CHAIN = 100000, RING = 99000, LINE = 64 };
    char *text = malloc((size_t)CHAIN * LINE), at[32];
    size_t n = 0;
    CHECK(host_open() && text != NULL);
    for (int f = 0; f < CHAIN; f++)
        n += (size_t)snprintf(text + n, LINE, "inline int f%d(int x) { return f%d(x); }\n", f,
                              f + 1 < CHAIN ? f + 1 : RING);
    char *said = host.lint(text, n, "x.metal");
    int lines = 0;
    for (const char *c = said; c != NULL && *c; c++) lines += *c == '\n';
    EXPECT_INT(lines, CHAIN - RING);
    snprintf(at, sizeof at, "x.metal:%d:", RING + 1);
    EXPECT(complained(said, at, "recursion"));
    free(said);
    free(text);
}

TEST(every_shader_of_this_project)
{
    glob_t files = {0}, folders = {0};
    if (glob("src/*/*/*.metal", 0, NULL, &files) != 0) SKIP("there are no shaders here");
    glob("src/kernels/*/", 0, NULL, &folders);
    glob("src/codegen/", GLOB_APPEND, NULL, &folders);
    glob("src/simd/", GLOB_APPEND, NULL, &folders);
    const char *flags[41] = {NULL};
    char places[40][256];
    for (size_t i = 0; i < folders.gl_pathc && i < 40; i++) {
        snprintf(places[i], sizeof places[i], "-I%s", folders.gl_pathv[i]);
        flags[i] = places[i];
    }
    for (size_t i = 0; i < files.gl_pathc; i++) {
        test_case("%s", files.gl_pathv[i]);
        char *said = sm_lint_file(files.gl_pathv[i], flags);
        EXPECT_MSG(said == NULL, "%s", said);
        free(said);
    }
    globfree(&files);
    globfree(&folders);
}

TEST(a_file_that_is_not_there)
{
    char *said = sm_lint_file("/no/such/file.metal", NULL);
    EXPECT_MSG(said != NULL && strstr(said, "cannot be read") != NULL, "%s", said == NULL ? "nothing was said" : said);
    free(said);
}

TEST(sm_lint_refuses_libraries)
{
    CHECK(host_open());
    void *pool = host.push();
    id device = host.default_device(), error = NULL;
    setenv("SM_LINT", "1", 1);
    EXPECT(host_library(device, "kernel void k(device float *a [[buffer(0)]]) { double x = a[0]; a[0] = x; }\n",
                        &error) == NULL);
    EXPECT_MSG(strstr(host_error_text(error), "no double") != NULL, "%s", host_error_text(error));
    id library = host_library(device, "kernel void k(device float *a [[buffer(0)]]) { a[0] = 1; }\n", &error);
    EXPECT_MSG(library != NULL, "%s", host_error_text(error));
    unsetenv("SM_LINT");
    host_release(library);
    host.pop(pool);
}
