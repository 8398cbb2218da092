/* The shim: each function compared with double, all half and bfloat bit patterns, sizes and alignments. A generated
 * kernel tests many functions, because compiling takes longer than running. */
#include "runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "#include <metal_stdlib>\nusing namespace metal;\n"
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Runs the kernel `k` with n threads and buffers x and y. */
static bool run(const char *text, void *x, size_t x_bytes, void *y, size_t y_bytes, uint32_t n)
{
    runner r = {0};
    bool good = runner_open(&r, text, "k", NULL, 0);
    if (good) {
        runner_buffer(&r, 0, x, x_bytes);
        runner_buffer(&r, 1, y, y_bytes);
        good = runner_run(&r, (uint32_t[3]){n, 1, 1}, (uint32_t[3]){64, 1, 1});
    }
    runner_close(&r);
    return good;
}

/* ---- functions of one and two floats ---- */

static double d_fract(double x) { return x - floor(x); }
static double d_rsqrt(double x) { return 1 / sqrt(x); }
static double d_exp10(double x) { return pow(10, x); }
static double d_sinpi(double x) { return sin(3.14159265358979323846 * x); }
static double d_cospi(double x) { return cos(3.14159265358979323846 * x); }
static double d_saturate(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static double d_sign(double x) { return (x > 0) - (x < 0); }
static double d_mad(double x, double y) { return fma(x, y, 0.25); }
static double d_mix(double x, double y) { return x + (y - x) * 0.25; }
static double d_clamp(double x, double y) { return fmin(fmax(x, -0.5), fabs(y)); }
static double d_step(double x, double y) { return y < x ? 0 : 1; }
static double d_divide(double x, double y) { return x / y; }

static const struct {
    const char *call; /* an expression of x, which is in low .. high */
    double (*of)(double);
    double low, high, ulps;
} ones[] = {
    {"acos(x)", acos, -1, 1, 4},
    {"acosh(x)", acosh, 1, 9, 4},
    {"asin(x)", asin, -1, 1, 4},
    {"asinh(x)", asinh, -9, 9, 4},
    {"atan(x)", atan, -9, 9, 4},
    {"atanh(x)", atanh, -0.9, 0.9, 4},
    {"ceil(x)", ceil, -9, 9, 0},
    {"cos(x)", cos, -9, 9, 4},
    {"cosh(x)", cosh, -9, 9, 4},
    {"cospi(x)", d_cospi, -2, 2, 4},
    {"exp(x)", exp, -80, 80, 4},
    {"exp2(x)", exp2, -100, 100, 4},
    {"exp10(x)", d_exp10, -30, 30, 4},
    {"fabs(x)", fabs, -9, 9, 0},
    {"abs(x)", fabs, -9, 9, 0},
    {"floor(x)", floor, -9, 9, 0},
    {"fract(x)", d_fract, -9, 9, 1},
    {"log(x)", log, 1e-9, 99, 4},
    {"log2(x)", log2, 1e-9, 99, 4},
    {"log10(x)", log10, 1e-9, 99, 4},
    {"rint(x)", rint, -9, 9, 0},
    {"round(x)", round, -9, 9, 0},
    {"rsqrt(x)", d_rsqrt, 1e-9, 99, 2},
    {"sin(x)", sin, -9, 9, 4},
    {"sinh(x)", sinh, -9, 9, 4},
    {"sinpi(x)", d_sinpi, -2, 2, 4},
    {"sqrt(x)", sqrt, 0, 99, 0.5},
    {"tan(x)", tan, -1.4, 1.4, 6},
    {"tanh(x)", tanh, -9, 9, 5},
    {"trunc(x)", trunc, -9, 9, 0},
    {"saturate(x)", d_saturate, -2, 2, 0},
    {"sign(x)", d_sign, -2, 2, 0},
    {"precise::exp(x)", exp, -80, 80, 4},
    {"fast::exp(x)", exp, -80, 80, 4},
    {"precise::sin(x)", sin, -9, 9, 4},
    {"float4(0, x, 0, 0).y", floor, 0, 0, 0},
    {"exp(float3(x)).z", exp, -80, 80, 4},
    {"length(float2(x, 0))", fabs, 1, 9, 1},
    {"ldexp(x, 3) / 8", NULL, -9, 9, 0},
    {"as_type<float>(as_type<int>(x))", NULL, -9, 9, 0},
    {"float4(x).wzyx.x", NULL, -9, 9, 0},
    {"dot(float3(x), float3(1, 2, -2))", NULL, -9, 9, 3},
    {"transpose(float2x3(x, 0, 1, 2, 3, 4))[0].x", NULL, -9, 9, 0},
    {"(float2x2(2, 0, 0, 2) * float2(x, 1)).x / 2", NULL, -9, 9, 0},
    {"determinant(float3x3(float3(x, 0, 0), float3(0, 1, 0), float3(0, 0, 1)))", NULL, -9, 9, 0},
};

static const struct {
    const char *call;
    double (*of)(double, double);
    double ulps;
} twos[] = {
    {"atan2(x, y)", atan2, 5},
    {"pow(fabs(x), y)", NULL, 16},
    {"powr(fabs(x), y)", NULL, 16},
    {"fmod(x, y)", fmod, 0},
    {"fdim(x, y)", fdim, 0.5},
    {"fmin(x, y)", fmin, 0},
    {"fmax(x, y)", fmax, 0},
    {"min(x, y)", fmin, 0},
    {"max(x, y)", fmax, 0},
    {"copysign(x, y)", copysign, 0},
    {"fma(x, y, 0.25)", d_mad, 0.5},
    {"mix(x, y, 0.25)", d_mix, 2000},
    {"clamp(x, -0.5, fabs(y))", d_clamp, 0},
    {"step(x, y)", d_step, 0},
    {"divide(x, y)", d_divide, 0.5},
    {"x / y", d_divide, 0.5},
    {"max(float4(x), y).z", fmax, 0},
    {"min(x, float2(y)).y", fmin, 0},
    {"clamp(float2(x), -0.5, fabs(y)).x", d_clamp, 0},
    {"max3(x, y, x)", fmax, 0},
    {"select(x, y, x < y)", fmax, 0},
    {"distance(float2(x, 0), float2(y, 0))", NULL, 2},
};

static double d_two(size_t k, double x, double y)
{
    if (twos[k].of) return twos[k].of(x, y);
    return !strncmp(twos[k].call, "pow", 3) ? pow(fabs(x), y) : fabs(x - y);
}

static bool within_ulps(double got, double want, double ulps)
{
    int exponent;
    frexp(want, &exponent);
    double unit = ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
    return fabs(got - want) <= (ulps + 0.5) * unit;
}

enum { POINTS = 256 };

TEST(functions_of_one_number)
{
    if (!runner_usable()) return;
    static float x[POINTS * COUNT(ones)], y[POINTS * COUNT(ones)];
    char text[16384];
    int at =
        snprintf(text, sizeof text,
                 HEAD "kernel void k(device float *in, device float *out, uint i [[thread_position_in_grid]]) {\n");
    for (size_t k = 0; k < COUNT(ones); k++) {
        at += snprintf(text + at, sizeof text - (size_t)at, "{ float x = in[%zu * %d + i]; out[%zu * %d + i] = %s; }\n",
                       k, POINTS, k, POINTS, ones[k].call);
        for (int i = 0; i < POINTS; i++)
            x[k * POINTS + (size_t)i] = (float)(ones[k].low + (ones[k].high - ones[k].low) * i / (POINTS - 1));
    }
    snprintf(text + at, sizeof text - (size_t)at, "}\n");
    if (!run(text, x, sizeof x, y, sizeof y, POINTS)) return;
    for (size_t k = 0; k < COUNT(ones); k++) {
        test_case("%s", ones[k].call);
        for (size_t i = k * POINTS; i < (k + 1) * POINTS; i++) {
            double want = ones[k].of ? ones[k].of((double)x[i]) : (double)x[i];
            if (!EXPECT_MSG(within_ulps((double)y[i], want, ones[k].ulps), "at %.9g: %.9g, not %.17g", (double)x[i],
                            (double)y[i], want))
                break;
        }
    }
}

TEST(functions_of_two_numbers)
{
    if (!runner_usable()) return;
    static float x[2 * POINTS], y[POINTS * COUNT(twos)];
    uint32_t state = 9;
    for (int i = 0; i < 2 * POINTS; i++) x[i] = 4 * runner_number(&state);
    char text[8192];
    int at = snprintf(text, sizeof text,
                      HEAD "kernel void k(device float *in, device float *out, uint i [[thread_position_in_grid]]) {\n"
                           "float x = in[i], y = in[%d + i];\n",
                      POINTS);
    for (size_t k = 0; k < COUNT(twos); k++)
        at += snprintf(text + at, sizeof text - (size_t)at, "out[%zu * %d + i] = %s;\n", k, POINTS, twos[k].call);
    snprintf(text + at, sizeof text - (size_t)at, "}\n");
    if (!run(text, x, sizeof x, y, sizeof y, POINTS)) return;
    for (size_t k = 0; k < COUNT(twos); k++) {
        test_case("%s", twos[k].call);
        for (size_t i = 0; i < POINTS; i++) {
            double a = (double)x[i], b = (double)x[POINTS + i], want = d_two(k, a, b), got = (double)y[k * POINTS + i];
            if (!EXPECT_MSG(within_ulps(got, want, twos[k].ulps), "of %.9g, %.9g: %.9g, not %.17g", a, b, got, want))
                break;
        }
    }
}

/* ---- conditions that hold in every thread ---- */

/* Each condition must be true for i = 0 .. 63. Each thread stores the number of its first false condition. */
static void all_true(const char *before, const char *const *conditions, size_t count)
{
    static char text[32768];
    static uint32_t x[64 * 64], y[64];
    for (size_t i = 0; i < COUNT(x); i++) x[i] = (uint32_t)i * 2654435761u;
    int at = snprintf(text, sizeof text,
                      HEAD "%s\nkernel void k(device uint *in, device uint *out, uint i [[thread_position_in_grid]],\n"
                           "  uint lane [[thread_index_in_simdgroup]]) {\nint n = int(i); uint bad = 0; half h = "
                           "half(i) / 8; float f = i * 0.25;\n"
                           "  half2 hv = half2(h, 2); uint u = in[i]; int4 v = int4(n, n + 1, n + 2, n + 3);\n",
                      before);
    for (size_t k = 0; k < count; k++)
        at +=
            snprintf(text + at, sizeof text - (size_t)at, "if (!(%s)) bad = bad ? bad : %zu;\n", conditions[k], k + 1);
    snprintf(text + at, sizeof text - (size_t)at,
             "out[i] = bad; (void)n; (void)h; (void)f; (void)hv; (void)u; (void)v; (void)lane; }\n");
    if (!run(text, x, sizeof x, y, sizeof y, 64)) return;
    for (int i = 0; i < 64; i++)
        if (!EXPECT_MSG(!y[i], "thread %d: %s", i, y[i] <= count ? conditions[y[i] - 1] : "?")) return;
}

static const char *const vectors[] = {
    "all(v.xyz == int3(n, n + 1, n + 2))",
    "all(v.wzyx == int4(n + 3, n + 2, n + 1, n))",
    "v.x == v.r && v.w == v.a",
    "all(v.xxyy == int4(n, n, n + 1, n + 1))",
    "all(int4(v.xy, v.zw) == v)",
    "all(int4(v.x, v.yzw) == v)",
    "all(int4(1, v.xy, 2) == int4(1, n, n + 1, 2))",
    "all(int3(5) == int3(5, 5, 5))",
    "[&] { int4 w = v; w.xy = w.yx; return all(w == int4(n + 1, n, n + 2, n + 3)); }()",
    "[&] { int4 w = v; w.zw *= 2; return all(w == int4(n, n + 1, 2 * n + 4, 2 * n + 6)); }()",
    "[&] { int4 w = v; w += 1; return all(w == v + 1); }()",
    "[&] { int4 w = v; w[2] = 7; return w.z == 7; }()",
    "all(2 * v - v == v)",
    "all((v & 1) + (v & ~1) == v)",
    "all((v << 2) >> 2 == v)",
    "all(int2(-8, 3) >> uint2(1, 0) == int2(-4, 3)) && all(ushort3(1) << int3(1, 2, 3) == ushort3(2, 4, 8))",
    "any(v == n + 2) && !any(v == n + 9)",
    "all(v % 3 + v / 3 * 3 == v)",
    "all(-v == 0 - v)",
    "all(!(v < n))",
    "all(uint4(v) == uint4(n, n + 1, n + 2, n + 3))",
    "all(float4(v) * 0.5f == float4(v) / 2)",
    "all(char4(v) == char4(char(n), char(n + 1), char(n + 2), char(n + 3)))",
    "all(min(v, n + 1) == int4(n, n + 1, n + 1, n + 1))",
    "all(select(v, int4(0), v > n + 1) == int4(n, n + 1, 0, 0))",
    "all(clamp(v, n + 1, n + 2) == int4(n + 1, n + 1, n + 2, n + 2))",
    "dot(float2(3, 4), float2(3, 4)) == 25",
    "all(cross(float3(1, 0, 0), float3(0, 1, 0)) == float3(0, 0, 1))",
    "length(float3(2, 3, 6)) == 7",
    "all(normalize(float2(0, 5)) == float2(0, 1))",
    "all(fma(float2(2), float2(3), float2(1)) == float2(7))",
    "[&] { uint4 w = {1, 2, 3}; return w.z == 3 && w.w == 0; }()",
    "[&] { packed_float3 p = float3(1, 2, 3); return p.y * 2 == 4 && all(float3(p) == float3(1, 2, 3)); }()",
    "[&] { packed_float3 p(1, 2, 3); p += float3(1); return all(p * 2 == float3(4, 6, 8)); }()",
    ("[&] { float2x2 m(1, 2, 3, 4); return all(m * float2(1, 1) == float2(4, 6)) && all(float2(1, 1) * m == "
     "float2(3, 7)); }()"),
    "[&] { float2x2 m(1, 2, 3, 4); m = m * m; return all(m[0] == float2(7, 10)) && all(m[1] == float2(15, 22)); }()",
    "determinant(float4x4(2)) == 16",
    "all(float3x3(1)[1] == float3(0, 1, 0))",
    "as_type<uint>(1.0f) == 0x3f800000",
    "as_type<ushort>(1.0h) == 0x3c00",
    "all(as_type<uchar4>(0x04030201) == uchar4(1, 2, 3, 4))",
    "swizzled(v, v.wzyx)",
    "all(as_type<half2>(0x40003c00) == half2(1, 2))",
    "as_type<ulong>(uint2(1, 2)) == 0x200000001ul",
};

/* Swizzles as operands in templates, which clang treats differently. */
static const char templates[] = "template <typename V> bool swizzled(V a, V b) {\n"
                                "  bool good = all(a.xy * b.yx - a.yx == int2(a.x * b.y - a.y, a.y * b.x - a.x)) && "
                                "all(-a.xy == int2(-a.x, -a.y));\n"
                                "  good = good && all((a.xy < b.xy) == bool2(a.x < b.x, a.y < b.y)) && all(2 * a.zw == "
                                "a.zw + a.zw) && all(a.xyz + 1 == int3(a.x + 1, a.y + 1, a.z + 1));\n"
                                "  a.xy += b.zw; return good && all(max(a.xy, b.xy) >= b.xy) && a.x == a.xyz.x; }\n";

TEST(vectors_and_matrices)
{
    if (!runner_usable()) return;
    all_true(templates, vectors, COUNT(vectors));
}

static const char *const integers[] = {
    "popcount(u) == ([&] { uint c = 0; for (int b = 0; b < 32; b++) c += u >> b & 1; return c; }())",
    "clz(1u << (i % 32)) == 31 - i % 32",
    "ctz(1u << (i % 32)) == i % 32",
    "clz(0u) == 32 && ctz(0u) == 32 && clz(uchar(1)) == 7 && ctz(ushort(0)) == 16",
    "reverse_bits(reverse_bits(u)) == u && reverse_bits(1u) == 0x80000000 && reverse_bits(uchar(1)) == 128",
    "rotate(u, 32u) == u && rotate(u, 8u) == (u << 8 | u >> 24) && rotate(ushort(0x8001), ushort(1)) == 3",
    "mulhi(u, u) == uint(ulong(u) * u >> 32)",
    "mulhi(-n, 1 << 30) == int(long(-n) * (1 << 30) >> 32)",
    "madhi(u, 0u, 7u) == 7",
    "mulhi(0xfffffffffffffffful, 0xfffffffffffffffful) == 0xfffffffffffffffeul",
    "addsat(uchar(250), uchar(10)) == 255 && addsat(char(-120), char(-120)) == -128 && addsat(2147483647, n) == "
    "2147483647",
    "subsat(3u, 5u) == 0 && subsat(char(-120), char(100)) == -128",
    "hadd(255u, 256u) == 255 && rhadd(255u, 256u) == 256",
    "hadd(-1, -2) == -2 && hadd(0xffffffffu, 0xffffffffu) == 0xffffffffu",
    "madsat(1 << 30, 4, 5) == 2147483647",
    "absdiff(n, -n) == uint(2 * n)",
    "absdiff(-2147483647 - 1, 2147483647) == 0xffffffffu",
    "abs(-n) == n && abs(char(-5)) == 5",
    "extract_bits(0xabcdu, 4, 8) == 0xbc && extract_bits(0x80, 4, 4) == -8 && extract_bits(u, 0, 32) == u && "
    "extract_bits(u, 3, 0) == 0",
    "insert_bits(0xffffu, 0u, 4, 8) == 0xf00f",
    "mul24(n, -3) == -3 * n && mad24(u & 255, 3u, 1u) == (u & 255) * 3 + 1",
    "min3(n, 5, 7) == min(n, 5) && max3(n, 5, 7) == max(n, 7) && median3(n, 5, 7) == clamp(n, 5, 7)",
    "all(popcount(uint2(3, 7)) == uint2(2, 3))",
    "numeric_limits<int>::max() == 2147483647 && numeric_limits<uchar>::max() == 255",
    "numeric_limits<float>::epsilon() == FLT_EPSILON && numeric_limits<half>::max() == HALF_MAX && "
    "numeric_limits<long>::digits == 63",
    "numeric_limits<float>::infinity() > FLT_MAX && isnan(numeric_limits<half>::quiet_NaN())",
    "float(numeric_limits<bfloat>::max()) > 3.3e38f",
    "pack_float_to_unorm4x8(float4(0, 1, 0.5, 2)) == 0xff80ff00",
    "all(unpack_unorm4x8_to_float(0xff00ff00) == float4(0, 1, 0, 1))",
    "all(unpack_snorm4x8_to_float(pack_float_to_snorm4x8(float4(1, -1, 0, -2))) == float4(1, -1, 0, -1))",
    "pack_float_to_snorm2x16(float2(1, -0.5)) == 0xc0007fff && pack_half_to_snorm2x16(half2(0, -9)) == 0x80010000",
    "all(unpack_snorm2x16_to_float(0x80007fff) == float2(1, -1)) && all(unpack_snorm2x16_to_half(0) == half2(0))",
    "all(unpack_unorm2x16_to_half(pack_half_to_unorm2x16(half2(1, 0))) == half2(1, 0))",
    "all(unpack_snorm4x8_to_half(pack_half_to_snorm4x8(half4(1, -1, 0, 2))) == half4(1, -1, 0, 1))",
    "fast::min(f, 1.0f) == min(f, 1.0f) && precise::clamp(f, 1.0f, 2.0f) == clamp(f, 1.0f, 2.0f) && fast::fma(f, 2.0f, "
    "1.0f) == f * 2 + 1",
    "all(fast::max(float2(f), float2(1)) == float2(max(f, 1.0f))) && fast::saturate(half(3)) == half(1)",
    "fast::length(float2(3, 4)) == 5 && precise::mix(1.0f, 3.0f, 0.5f) == 2 && fast::abs(-f) == abs(f)",
    "isnan(NAN) && isinf(INFINITY) && !isfinite(INFINITY) && isfinite(f) && isnormal(1.0f) && !isnormal(1e-40f)",
    "signbit(-0.0f) && !signbit(0.0f) && isnan(half(NAN)) && isinf(half(1e6f)) && isordered(f, 1) && isunordered(f, "
    "NAN)",
    "[&] { int e; float m = frexp(12.0f, e); return m == 0.75f && e == 4; }()",
    "[&] { float w; return modf(-2.5f, w) == -0.5f && w == -2; }()",
    "[&] { float c; float s = sincos(f, c); return s == sin(f) && c == cos(f); }()",
    "ilogb(8.5f) == 3 && nextafter(1.0f, 2.0f) == 1 + FLT_EPSILON",
    "as_type<ushort>(nextafter(half(1), half(2))) == 0x3c01 && as_type<ushort>(nextafter(half(0), half(-1))) == 0x8001",
    "smoothstep(0.0f, 2.0f, 1.0f) == 0.5f && fmedian3(3.0f, 1.0f, 2.0f) == 2 && max(half(2), half(3)) == half(3)",
    "max(NAN, 1.0f) == 1 && min(1.0f, NAN) == 1 && fmax(half(NAN), half(2)) == half(2)",
    "is_same_v<decltype(hv * 2.0f), half2>",
    "is_same_v<decltype(h * h), half> && is_same_v<decltype(h * 1.0f), float> && is_same_v<decltype(bfloat(1) * "
    "bfloat(2)), bfloat>",
    "is_same_v<decltype(exp(bfloat(1))), float> && float(bfloat(1) / bfloat(3)) == 0.333984375f",
    "sizeof(long) == 8 && sizeof(uint) == 4",
};

TEST(integers_and_the_rest)
{
    if (!runner_usable()) return;
    all_true("", integers, COUNT(integers));
}

/* ---- lanes ---- */

static const char *const lanes[] = {
    "simd_sum(lane) == 496 && simd_max(n) == int(i - lane + 31) && simd_min(n) == int(i - lane)",
    "simd_product(1u) == 1 && simd_or(1u << lane) == 0xffffffff",
    "simd_and(~(1u << lane)) == 0 && simd_xor(lane) == 0",
    "simd_prefix_inclusive_sum(1u) == lane + 1 && simd_prefix_exclusive_sum(lane) == lane * (lane - 1) / 2",
    "simd_prefix_inclusive_product(lane == 0 ? 2u : 1u) == 2 && simd_prefix_exclusive_product(2.0f) == "
    "exp2(float(lane))",
    "simd_shuffle(lane, ushort(31 - lane)) == 31 - lane && simd_broadcast(lane, 7) == 7 && simd_broadcast_first(lane) "
    "== 0",
    "simd_shuffle_xor(lane, 5) == (lane ^ 5) && simd_shuffle_rotate_down(lane, 3) == (lane + 3) % 32 && "
    "simd_shuffle_rotate_up(lane, 3) == (lane + 29) % 32",
    "[&] { uint a = simd_shuffle_down(lane, 4); return lane > 27 || a == lane + 4; }()",
    "[&] { uint a = simd_shuffle_up(lane, 4); return lane < 4 || a == lane - 4; }()",
    "simd_shuffle_and_fill_up(lane, 100 + lane, 2) == (lane >= 2 ? lane - 2 : 130 + lane)",
    "simd_shuffle_and_fill_down(lane, 100 + lane, 2) == (lane < 30 ? lane + 2 : 70 + lane)",
    "all(simd_shuffle(float2(lane, 1), 3) == float2(3, 1))",
    "simd_sum(half(1)) == 32 && simd_sum(float2(1, 2)).y == 64",
    "simd_all(lane < 32) && !simd_all(lane < 31) && simd_any(lane == 9) && !simd_any(lane > 40)",
    "ulong(simd_ballot(lane % 2 == 0)) == 0x55555555 && simd_ballot(true).all() && ulong(simd_active_threads_mask()) "
    "== 0xffffffff",
    "simd_is_first() == (lane == 0)",
    "quad_sum(lane) == (lane & 28) * 4 + 6 && quad_max(lane) == (lane | 3) && quad_broadcast(lane, 2) == (lane & 28) + "
    "2",
    "quad_shuffle_xor(lane, 1) == (lane ^ 1) && quad_prefix_inclusive_sum(1u) == lane % 4 + 1 && quad_all(lane < 32) "
    "&& quad_any(lane % 4 == 3)",
    "quad_shuffle_rotate_down(lane, 1) == (lane & 28) + (lane + 1) % 4 && ulong(quad_ballot(lane % 4 == 1)) == 2",
    "lane >= 8 || simd_sum(lane) == 28",
    "[&] { uint s = 0; for (uint r = 0; r <= lane; r++) s = simd_sum(1u); return s == 32 - lane; }()",
    "simd_sum(bfloat(1)) == 32.0f",
};

TEST(lanes_of_a_simdgroup)
{
    if (!runner_usable()) return;
    for (int seed = 0; seed < 3; seed++) {
        char number[16];
        snprintf(number, sizeof number, "%d", seed);
        setenv("SM_SEED", number, 1);
        all_true("", lanes, COUNT(lanes));
    }
    unsetenv("SM_SEED");
}

/* ---- layout ---- */

typedef struct layout {
    const char *type;
    int size, align;
} layout;

static const layout layouts[] = {
    {"bool", 1, 1},
    {"char", 1, 1},
    {"uchar", 1, 1},
    {"short", 2, 2},
    {"ushort", 2, 2},
    {"int", 4, 4},
    {"uint", 4, 4},
    {"long", 8, 8},
    {"ulong", 8, 8},
    {"half", 2, 2},
    {"bfloat", 2, 2},
    {"float", 4, 4},
    {"size_t", 8, 8},
    {"bool2", 2, 2},
    {"bool3", 4, 4},
    {"bool4", 4, 4},
    {"char2", 2, 2},
    {"char3", 4, 4},
    {"char4", 4, 4},
    {"uchar3", 4, 4},
    {"short2", 4, 4},
    {"short3", 8, 8},
    {"short4", 8, 8},
    {"ushort4", 8, 8},
    {"int2", 8, 8},
    {"int3", 16, 16},
    {"int4", 16, 16},
    {"uint3", 16, 16},
    {"long2", 16, 16},
    {"long3", 32, 32},
    {"long4", 32, 32},
    {"half2", 4, 4},
    {"half3", 8, 8},
    {"half4", 8, 8},
    {"bfloat2", 4, 4},
    {"bfloat3", 8, 8},
    {"bfloat4", 8, 8},
    {"float2", 8, 8},
    {"float3", 16, 16},
    {"float4", 16, 16},
    {"packed_char2", 2, 1},
    {"packed_char3", 3, 1},
    {"packed_uchar4", 4, 1},
    {"packed_short3", 6, 2},
    {"packed_int3", 12, 4},
    {"packed_half2", 4, 2},
    {"packed_half3", 6, 2},
    {"packed_half4", 8, 2},
    {"packed_float2", 8, 4},
    {"packed_float3", 12, 4},
    {"packed_float4", 16, 4},
    {"packed_bfloat3", 6, 2},
    {"float2x2", 16, 8},
    {"float2x3", 32, 16},
    {"float2x4", 32, 16},
    {"float3x2", 24, 8},
    {"float3x3", 48, 16},
    {"float3x4", 48, 16},
    {"float4x2", 32, 8},
    {"float4x3", 64, 16},
    {"float4x4", 64, 16},
    {"half2x2", 8, 4},
    {"half2x3", 16, 8},
    {"half3x3", 24, 8},
    {"half4x4", 32, 8},
    {"half4x2", 16, 4},
    {"atomic_int", 4, 4},
    {"atomic_uint", 4, 4},
    {"atomic_float", 4, 4},
    {"atomic_ulong", 8, 8},
    {"metal::vec<float, 3>", 16, 16},
};

TEST(sizes_and_alignments)
{
    if (!runner_usable()) return;
    static char text[16384];
    int at = snprintf(text, sizeof text, HEAD);
    for (size_t i = 0; i < COUNT(layouts); i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "static_assert(sizeof(%s) == %d && alignof(%s) == %d, \"%s\");\n", layouts[i].type,
                       layouts[i].size, layouts[i].type, layouts[i].align, layouts[i].type);
    char *message = NULL;
    sm_library *library = sm_library_open(text, strlen(text), NULL, &message);
    EXPECT_MSG(library, "%s", message);
    sm_library_close(library);
    free(message);
}

/* ---- all bit patterns ---- */

static double from_half(uint32_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double m = bits & 1023, sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31) return m != 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + m, exponent - 25) : ldexp(m, -24));
}

static double from_bfloat(uint32_t bits)
{
    uint32_t u = bits << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return (double)f;
}

/* The nearest pattern, ties to even, found by binary search. */
static uint32_t to_pattern(double x, double (*from)(uint32_t), uint32_t infinity)
{
    uint32_t sign = signbit(x) ? 0x8000 : 0, low = 0, high = infinity;
    double a = fabs(x);
    double largest = from(infinity - 1), step = largest - from(infinity - 2);
    if (a >= largest + step / 2) return sign | infinity;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (from(middle) <= a) low = middle;
        else high = middle;
    }
    if (low == infinity - 1) return sign | low;
    double below = a - from(low), above = from(low + 1) - a;
    return sign | (above < below || (above == below && low % 2) ? low + 1 : low);
}

/* Converts each pattern to float and back, and rounds sums and products. */
TEST(all_half_and_bfloat_patterns)
{
    if (!runner_usable()) return;
    static const char text[] =
        HEAD "kernel void k(device ushort *in, device float *out, uint i [[thread_position_in_grid]]) {\n"
             "  half h = as_type<half>(in[i]); bfloat b = as_type<bfloat>(in[i]);\n"
             "  device uint *o = (device uint *)out + 65536 * 2;\n"
             "  out[i] = float(h); out[65536 + i] = float(b);\n"
             "  o[i] = as_type<ushort>(half(float(h))) | uint(as_type<ushort>(bfloat(float(b)))) << 16;\n"
             "  float q = float(h) * 1.00048828125f, r = float(b) * 1.00390625f;\n"
             "  o[65536 + i] = as_type<ushort>(half(q)) | uint(as_type<ushort>(bfloat(r))) << 16;\n"
             "  half g = as_type<half>(ushort(in[i] * 40503u)); bfloat c = as_type<bfloat>(ushort(in[i] * 40503u));\n"
             "  o[131072 + i] = as_type<ushort>(h + g) | uint(as_type<ushort>(b + c)) << 16;\n"
             "  o[196608 + i] = as_type<ushort>(h * g) | uint(as_type<ushort>(b * c)) << 16; }\n";
    static uint16_t x[65536];
    static float y[65536 * 6];
    for (uint32_t i = 0; i < 65536; i++) x[i] = (uint16_t)i;
    if (!run(text, x, sizeof x, y, sizeof y, 65536)) return;
    static uint32_t bits[65536 * 4];
    memcpy(bits, y + 65536 * 2, sizeof bits);
    int bad = 0;
    for (uint32_t i = 0; i < 65536 && bad < 5; i++) {
        for (int kind = 0; kind < 2; kind++) {
            double (*from)(uint32_t) = kind ? from_bfloat : from_half;
            uint32_t infinity = kind ? 0x7f80 : 0x7c00;
            double value = from(i), got = (double)y[(uint32_t)kind * 65536 + i], other = from(i * 40503u & 0xffff);
            bool nan = isnan(value);
            bad += !EXPECT_MSG(nan ? isnan(got) : got == value, "%04x is %g, not %g", i, got, value);
            double factor = kind ? (double)1.00390625f : (double)1.00048828125f;
            double results[4] = {value, (double)(float)(value * factor), value + other, value * other};
            for (int k = 0; k < 4; k++) {
                uint32_t have = bits[(uint32_t)k * 65536 + i] >> (kind ? 16 : 0) & 0xffff;
                if (isnan(results[k])) {
                    bad += !EXPECT_MSG(isnan(from(have)), "%04x, case %d: %04x is not NaN", i, k, have);
                } else {
                    /* The shim rounds bfloat sums and products to float first, which cannot change the result. */
                    double exact = k < 2 || !kind ? results[k] : (double)(float)results[k];
                    uint32_t want = to_pattern(exact, from, infinity);
                    bad += !EXPECT_MSG(have == want, "%s %04x, case %d: %04x, not %04x", kind ? "bfloat" : "half", i, k,
                                       have, want);
                }
            }
        }
    }
}

/* ---- atomics, matrices of a simdgroup, positions ---- */

TEST(atomics)
{
    if (!runner_usable()) return;
    static const char text[] = HEAD
        "kernel void k(device atomic_int *a, device atomic_uint *b, device atomic_float *c [[buffer(2)]], uint i "
        "[[thread_position_in_grid]]) {\n"
        "  atomic_fetch_add_explicit(&a[0], 1, memory_order_relaxed); atomic_fetch_sub_explicit(&a[1], 2, "
        "memory_order_relaxed);\n"
        "  atomic_fetch_max_explicit(&a[2], int(i), memory_order_relaxed); atomic_fetch_min_explicit(&a[3], -int(i), "
        "memory_order_relaxed);\n"
        "  atomic_fetch_or_explicit(&b[0], 1u << (i % 32), memory_order_relaxed); atomic_fetch_and_explicit(&b[1], "
        "~(1u << (i % 8)), memory_order_relaxed);\n"
        "  atomic_fetch_xor_explicit(&b[2], i, memory_order_relaxed); atomic_fetch_add_explicit(&c[0], 0.5f, "
        "memory_order_relaxed);\n"
        "  uint old = atomic_load_explicit(&b[3], memory_order_relaxed);\n"
        "  while (!atomic_compare_exchange_weak_explicit(&b[3], &old, old + 3, memory_order_relaxed, "
        "memory_order_relaxed)) {}\n"
        "  threadgroup atomic_uint t; if (i % 64 == 0) atomic_store_explicit(&t, 0u, memory_order_relaxed);\n"
        "  threadgroup_barrier(mem_flags::mem_threadgroup); atomic_fetch_add_explicit(&t, 1u, memory_order_relaxed);\n"
        "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "  if (i % 64 == 1) atomic_fetch_add_explicit(&a[4], int(atomic_exchange_explicit(&t, 9u, "
        "memory_order_relaxed)), memory_order_relaxed); }\n";
    for (int check = 0; check < 2; check++) {
        int32_t a[5] = {0, 0, -9, 9, 0};
        uint32_t b[4] = {0, 0xffff, 0, 0};
        float c[1] = {0};
        setenv("SM_CHECK", check ? "1" : "0", 1);
        runner r = {0};
        if (runner_open(&r, text, "k", NULL, 0)) {
            runner_buffer(&r, 0, a, sizeof a);
            runner_buffer(&r, 1, b, sizeof b);
            runner_buffer(&r, 2, c, sizeof c);
            runner_run(&r, (uint32_t[3]){4096, 1, 1}, (uint32_t[3]){64, 1, 1});
        }
        runner_close(&r);
        EXPECT_MSG(a[0] == 4096 && a[1] == -8192 && a[2] == 4095 && a[3] == -4095 && a[4] == 4096, "%d %d %d %d %d",
                   a[0], a[1], a[2], a[3], a[4]);
        EXPECT_MSG(b[0] == 0xffffffff && b[1] == 0xff00 && b[2] == 0 && b[3] == 3 * 4096, "%x %x %x %x", b[0], b[1],
                   b[2], b[3]);
        EXPECT_CLOSE(c[0], 2048, 0, 0);
    }
    unsetenv("SM_CHECK");
}

TEST(simdgroup_matrices)
{
    if (!runner_usable()) return;
    static const char text[] =
        HEAD "template <typename T> void one(device const float *x, device float *y, threadgroup T *s, uint lane) {\n"
             "  for (uint k = lane; k < 192; k += 32) s[k] = T(x[k]);\n"
             "  simdgroup_barrier(mem_flags::mem_threadgroup);\n"
             "  simdgroup_matrix<T, 8, 8> a, b; simdgroup_matrix<float, 8, 8> c = make_filled_simdgroup_matrix<float, "
             "8, 8>(1.0f), d(2.0f);\n"
             "  simdgroup_load(a, s, 8); simdgroup_load(b, s + 64, 16, ulong2(0, 0), true);\n"
             "  simdgroup_multiply_accumulate(c, a, b, c); simdgroup_multiply(d, c, d);\n"
             "  simdgroup_store(d, y, 8); simdgroup_store(d, y + 64, 8, ulong2(0, 0), true);\n"
             "  y[128 + lane] = a.thread_elements()[1]; }\n"
             "kernel void k(device const float *x, device float *y, uint i [[thread_position_in_grid]], uint lane "
             "[[thread_index_in_simdgroup]]) {\n"
             "  threadgroup float f[192]; threadgroup half h[192]; threadgroup bfloat b[192];\n"
             "  if (i < 32) one(x, y, f, lane); else if (i < 64) one(x, y + 160, h, lane); else one(x, y + 320, b, "
             "lane); }\n";
    float x[192], y[480];
    for (int i = 0; i < 192; i++) x[i] = (float)((i * 37) % 61 - 30) / 4;
    runner r = {0};
    if (runner_open(&r, text, "k", NULL, 0)) {
        runner_buffer(&r, 0, x, sizeof x);
        runner_buffer(&r, 1, y, sizeof y);
        runner_run(&r, (uint32_t[3]){96, 1, 1}, (uint32_t[3]){96, 1, 1});
        for (int part = 0; part < 3; part++) {
            for (int i = 0; i < 64; i++) {
                double want = 1;
                for (int k = 0; k < 8; k++) want += (double)x[i / 8 * 8 + k] * (double)x[64 + i % 8 * 16 + k];
                EXPECT_CLOSE(y[part * 160 + i], 2 * want, 1e-6, 1e-6);
                EXPECT_CLOSE(y[part * 160 + 64 + i % 8 * 8 + i / 8], 2 * want, 1e-6, 1e-6);
            }
            for (int l = 0; l < 32; l++) {
                int row = (l / 4 & 4) + l / 2 % 4, column = (l / 4 & 2) * 2 + l % 2 * 2;
                EXPECT_CLOSE(y[part * 160 + 128 + l], x[row * 8 + column + 1], 0, 0);
            }
        }
    }
    runner_close(&r);
}

/* A three-dimensional grid whose sizes are not multiples of the threadgroup's. */
TEST(positions)
{
    if (!runner_usable()) return;
    static const char text[] =
        HEAD "kernel void k(device uint *y, uint3 p [[thread_position_in_grid]], uint3 t "
             "[[thread_position_in_threadgroup]],\n"
             "  uint3 g [[threadgroup_position_in_grid]], uint3 n [[threads_per_threadgroup]], uint3 all "
             "[[threads_per_grid]],\n"
             "  uint3 groups [[threadgroups_per_grid]], uint3 full [[dispatch_threads_per_threadgroup]], uint i "
             "[[thread_index_in_threadgroup]],\n"
             "  ushort lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]], uint ss "
             "[[simdgroups_per_threadgroup]],\n"
             "  uint w [[threads_per_simdgroup]], uint q [[thread_index_in_quadgroup]], uint qq "
             "[[quadgroup_index_in_threadgroup]],\n"
             "  uint ds [[dispatch_simdgroups_per_threadgroup]], uint ew [[thread_execution_width]]) {\n"
             "  bool good = all.x == 10 && all.y == 7 && all.z == 3 && groups.x == 3 && groups.y == 2 && groups.z == 2 "
             "&& full.x == 4 && full.y == 5\n"
             "    && full.z == 2 && p.x == g.x * 4 + t.x && p.y == g.y * 5 + t.y && p.z == g.z * 2 + t.z && t.x < n.x "
             "&& t.y < n.y && t.z < n.z\n"
             "    && n.x == min(4u, 10 - g.x * 4) && n.y == min(5u, 7 - g.y * 5) && n.z == min(2u, 3 - g.z * 2)\n"
             "    && i == (t.z * n.y + t.y) * n.x + t.x && lane == i % 32 && s == i / 32 && ss == (n.x * n.y * n.z + "
             "31) / 32 && w == 32\n"
             "    && q == i % 4 && qq == i / 4 && ds == 2 && ew == 32;\n"
             "  y[(p.z * 7 + p.y) * 10 + p.x] += good ? 1 : 100; }\n";
    uint32_t y[210] = {0};
    runner r = {0};
    if (runner_open(&r, text, "k", NULL, 0)) {
        runner_buffer(&r, 0, y, sizeof y);
        runner_run(&r, (uint32_t[3]){10, 7, 3}, (uint32_t[3]){4, 5, 2});
        for (int i = 0; i < 210; i++)
            if (!EXPECT_INT(y[i], 1)) break;
    }
    runner_close(&r);
}
