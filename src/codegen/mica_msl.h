/* Shared by generated and hand-written kernels: the ops of graph/ops.def for which Metal
 * has no function. They are scalar forms of src/simd/functions.h, which explains the
 * methods; the coefficients of both are in src/simd/polynomials.h. Metal has no double,
 * so pow is Metal's own. Metal text only. */
#include "polynomials.h"
#include <metal_stdlib>
using namespace metal;

/* Without contraction a * b + c rounds twice, as on the CPU; fma() rounds once. */
#pragma METAL fp contract(off)

/* ---- integers and both ---- */

template <typename T> inline T mica_sign(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }
/* Returns a NaN of either operand: the comparison is false for a NaN in b. */
inline float mica_max(float a, float b) { return isnan(a) || a > b ? a : b; }
inline float mica_min(float a, float b) { return isnan(a) || a < b ? a : b; }
template <typename T> inline T mica_max(T a, T b) { return a > b ? a : b; }
template <typename T> inline T mica_min(T a, T b) { return a < b ? a : b; }
template <typename T> inline T mica_relu(T x) { return mica_max(x, T(0)); }
template <typename T> inline T mica_relu2(T x) { return T(mica_max(x, T(0)) * mica_max(x, T(0))); }
template <typename T> inline T mica_abs(T x) { return x < T(0) ? T(-x) : x; }
inline float mica_abs(float x) { return fabs(x); }
template <typename T> inline T mica_not(T x) { return T(~x); }
inline bool mica_not(bool x) { return !x; }
inline float mica_fma(float a, float b, float c) { return fma(a, b, c); }
template <typename T> inline T mica_fma(T a, T b, T c) { return T(a * b + c); }

/* A count outside 0 ... bits-1 shifts out all bits: 0, or -1 for a negative number shifted right. */
template <typename T> inline T mica_shift_left(T a, T count)
{
    return ulong(count) < 8 * sizeof(T) ? T(ulong(a) << ulong(count)) : T(0);
}
template <typename T> inline T mica_shift_right(T a, T count)
{
    return ulong(count) < 8 * sizeof(T) ? T(a >> count) : a < T(0) ? T(-1) : T(0);
}

/* Division by 0 gives 0. The quotient is rounded down. */
template <typename T> inline T mica_floor_div(T a, T b)
{
    if (b == T(0)) return T(0);
    if (T(-1) < T(0) && b == T(-1)) return T(0ul - ulong(a));
    const T q = T(a / b), m = T(a % b);
    return m != T(0) && (m < T(0)) != (b < T(0)) ? T(q - T(1)) : q;
}
inline bool mica_floor_div(bool a, bool b) { return a && b; }
template <typename T> inline T mica_mod(T a, T b)
{
    if (b == T(0) || (T(-1) < T(0) && b == T(-1))) return T(0);
    const T m = T(a % b);
    return m != T(0) && (m < T(0)) != (b < T(0)) ? T(m + b) : m;
}
inline bool mica_mod(bool, bool) { return false; }
template <typename T> inline T mica_pow(T a, T b)
{
    if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? (b & T(1) ? T(-1) : T(1)) : T(0);
    ulong power = 1, base = ulong(a);
    for (ulong e = ulong(b); e != 0; e >>= 1) {
        if (e & 1) power *= base;
        base *= base;
    }
    return T(power);
}
inline bool mica_pow(bool a, bool b) { return a || !b; }

/* ---- conversions ---- */

/* Truncates; out-of-range values saturate, NaN becomes 0. The bounds are the powers of
 * two next to the limits of the type, which are exact floats. */
template <typename T> inline T mica_saturate(float x, float low, float high, T least, T most)
{
    return isnan(x) ? T(0) : x < low ? least : x >= high ? most : T(x);
}
template <typename T, typename S> struct mica_converter { static T of(S x) { return T(x); } };
#define MICA_SATURATE(T, low, high, least, most) \
    template <> struct mica_converter<T, float> { \
        static T of(float x) { return mica_saturate<T>(x, low, high, least, most); } \
    };
MICA_SATURATE(uchar, 0.0f, 256.0f, 0, 255)
MICA_SATURATE(char, -128.0f, 128.0f, -128, 127)
MICA_SATURATE(ushort, 0.0f, 65536.0f, 0, 65535)
MICA_SATURATE(short, -32768.0f, 32768.0f, -32768, 32767)
MICA_SATURATE(uint, 0.0f, 4294967296.0f, 0, 4294967295u)
MICA_SATURATE(int, -2147483648.0f, 2147483648.0f, -2147483647 - 1, 2147483647)
MICA_SATURATE(ulong, 0.0f, 18446744073709551616.0f, 0, 18446744073709551615ul)
MICA_SATURATE(long, -9223372036854775808.0f, 9223372036854775808.0f, -9223372036854775807l - 1, 9223372036854775807l)
#undef MICA_SATURATE

/* Converts an integer of more than 24 bits to a float whose last bit is sticky: it is set
 * if bits were cut off. Rounding that to 8 or 11 bits rounds the integer once. */
inline float mica_odd(ulong x)
{
    const int above = 40 - int(clz(x));
    if (x == 0 || above <= 0) return float(x);
    const ulong kept = x >> above, lost = x & ((1ul << above) - 1);
    return float(kept | (lost != 0 ? 1ul : 0ul)) * as_type<float>(uint(127 + above) << 23);
}
inline float mica_odd(long x) { return x < 0 ? -mica_odd(0ul - ulong(x)) : mica_odd(ulong(x)); }
#define MICA_ROUND_ONCE(T) \
    template <> struct mica_converter<T, ulong> { static T of(ulong x) { return T(mica_odd(x)); } }; \
    template <> struct mica_converter<T, long> { static T of(long x) { return T(mica_odd(x)); } }; \
    template <> struct mica_converter<T, uint> { static T of(uint x) { return T(mica_odd(ulong(x))); } }; \
    template <> struct mica_converter<T, int> { static T of(int x) { return T(mica_odd(long(x))); } };
MICA_ROUND_ONCE(half)
#if defined(MICA_BFLOAT)
MICA_ROUND_ONCE(bfloat)
#endif
#undef MICA_ROUND_ONCE
template <typename T, typename S> inline T mica_cast(S x) { return mica_converter<T, S>::of(x); }

/* first + at * step, (almost always) rounded once, even if at is not exact as a float. */
inline float mica_iota(long at, float step, float first)
{
    const float i = float(at), i_low = float(at - long(i)), p = i * step, sum = first + p, back = sum - first;
    const float low = fma(i_low, step, fma(i, step, -p));
    return isfinite(sum) ? sum + (((first - (sum - back)) + (p - back)) + low) : sum;
}

/* ---- exp and log ---- */

inline float mica_power_of_two(float magic) { return as_type<float>(as_type<uint>(magic) << 23); }
inline float mica_with_sign(float y, float x)
{
    return as_type<float>(as_type<uint>(y) | (as_type<uint>(x) & 0x80000000u));
}
inline float mica_at_least(float x, float low) { return x < low ? low : x; }
inline float mica_at_most(float x, float high) { return x > high ? high : x; }
inline float mica_less_ln2(float x, float n) { return fma(n, -POLY_LN2_LOW, fma(n, -POLY_LN2_HIGH, x)); }

inline float mica_exp_near(float r)
{
    return POLY(5, fma, float, r, POLY_EXP);
}
inline float mica_exp_of(float r) { return fma(fma(mica_exp_near(r), r, 1.0f), r, 1.0f); }
inline float mica_exp_less_one(float r) { return fma(mica_exp_near(r), r * r, r); }
inline float mica_exp2_slope(float r)
{
    const float z = r * r;
    return POLY_PAIRS_6(fma, float, r, z, POLY_EXP2);
}
inline float mica_exp_inside(float x)
{
    const float magic = POLY_MAGIC + 254.0f;
    const float t = fma(x, POLY_LOG2_E, magic), r = mica_less_ln2(x, t - magic);
    const uint halfway = as_type<uint>(t) >> 1, rest = as_type<uint>(t) - halfway;
    return mica_exp_of(r) * as_type<float>(halfway << 23) * as_type<float>(rest << 23);
}

inline float mica_expm1(float given)
{
    const float x = mica_at_least(mica_at_most(given, 89.0f), -18.0f), magic = POLY_MAGIC + 126.0f;
    const float t = fma(x, POLY_LOG2_E, magic), n = t - magic, r = mica_less_ln2(x, n);
    const float p = POLY(6, fma, float, r, POLY_EXPM1);
    const float q = fma(p, r * r, r), part = mica_power_of_two(t), y = fma(part, q, part - 0.5f);
    return mica_with_sign(n == 0.0f ? q : y + y, given);
}

inline float mica_log_near(float f, float more)
{
    const float z = f * f;
    const float p = POLY(8, fma, float, f, POLY_LOG);
    return fma(z, -0.5f, fma(z * f, p, more));
}
inline float mica_log_sum(float e, float f)
{
    return fma(e, POLY_LN2_HIGH, f + mica_log_near(f, e * POLY_LN2_LOW));
}
inline float mica_log_edges(float x, float y)
{
    if (x <= 0.0f) return x == 0.0f ? -INFINITY : NAN;
    return x < INFINITY ? y : x;
}
inline float mica_log_split(float x, thread float &e)
{
    const bool tiny = x < 1.17549435e-38f;
    const uint bits = as_type<uint>(tiny ? x * 8388608.0f : x), field = (bits - 0x3f3504f3u) & 0xff800000u;
    e = float(as_type<int>(field) >> 23) - (tiny ? 23.0f : 0.0f);
    return as_type<float>(bits - field) - 1.0f;
}
inline float mica_log(float x)
{
    float e;
    const float f = mica_log_split(x, e);
    return mica_log_edges(x, mica_log_sum(e, f));
}
inline float mica_log1p(float x)
{
    const float u = 1.0f + x, lost = ((x > 1.0f ? x : 1.0f) - u) + (x > 1.0f ? 1.0f : x);
    const uint bits = as_type<uint>(u), field = (bits - 0x3f3504f3u) & 0xff800000u;
    const float f = as_type<float>(bits - field) - 1.0f, e = float(as_type<int>(field) >> 23);
    const float back = x > 1.2676506e+30f ? 0.0f : as_type<float>(0x3f800000u - field);
    return mica_with_sign(mica_log_edges(u, mica_log_sum(e, fma(lost, back, f))), x);
}

/* ---- sigmoids ---- */

inline float mica_one_plus_exp(float magic, float q, float unit)
{
    const float power = mica_power_of_two(magic), sum = power + unit;
    return sum + fma(power, q, (power - sum) + unit);
}
inline float mica_logistic(float x, float unit, float exponent)
{
    const float magic = POLY_MAGIC + 127.0f + exponent, t = fma(x, POLY_LOG2_E, magic);
    return mica_one_plus_exp(t, mica_exp_less_one(mica_less_ln2(x, t - magic)), unit);
}
inline float mica_times_sigmoid(float x, float inside, float d, float top)
{
    return x > top ? x : fma(inside / d, 2.32830644e-10f, -(x - x));
}
inline float mica_sigmoid(float x)
{
    return 5.42101086e-20f / mica_logistic(mica_at_least(mica_at_most(-x, 105.0f), -40.0f), 5.42101086e-20f, -64.0f);
}
inline float mica_silu(float x)
{
    const float inside = mica_at_least(x, -110.0f);
    return mica_times_sigmoid(x, inside, mica_logistic(-inside, 2.32830644e-10f, -32.0f), 30.0f);
}
inline float mica_gelu_tanh(float given)
{
    const float magic = POLY_MAGIC + 127.0f - 32.0f;
    const float a = POLY_GELU_TANH_A, b = POLY_GELU_TANH_B, c = POLY_GELU_TANH_C;
    const float x = mica_at_least(given, -10.9f), z = x * x, sum = fma(b, z, a);
    const float lost = fma(sum, c, fma(b, z, a - sum)), low = fma(b, fma(x, x, -z), lost);
    const float t = fma(x, sum, magic), r = fma(x, low, fma(x, sum, magic - t)), power = mica_power_of_two(t);
    return mica_times_sigmoid(given, x, power + fma(power * r, mica_exp2_slope(r), 2.32830644e-10f), 8.0f);
}
inline float mica_far_tanh(float x, float scale, float scale_low, float high, float low)
{
    const float magic = POLY_MAGIC + 127.0f, t = fma(x, scale, magic);
    const float r = fma(x, scale_low, fma(x, scale, magic - t));
    return high - (2 * high / mica_one_plus_exp(t, mica_exp2_slope(r) * r, 1.0f) - low);
}
inline float mica_lecun_tanh(float given)
{
    const float x = mica_at_most(fabs(given), 15.0f), z = x * x;
    const float p = POLY(6, fma, float, z, POLY_LECUN_TANH);
    const float far = mica_far_tanh(x, POLY_LECUN_SCALE, POLY_LECUN_SCALE_LOW, POLY_LECUN_TOP, POLY_LECUN_TOP_LOW);
    return copysign(x < 1.0f ? fma(x, p, x) : far, given);
}
inline float mica_softplus(float x)
{
    const float a = fabs(x), z = x * x, e = mica_exp_inside(mica_at_least(-a, -104.0f));
    const float p = POLY(5, fma, float, z, POLY_SOFTPLUS);
    const float near = fma(x, 0.5f, fma(z, p, POLY_LN2));
    const float q = POLY(7, fma, float, e, POLY_SOFTPLUS_FAR);
    return a < 1.0f ? near : fma(q, e, mica_max(x, 0.0f));
}
/* The slope is a double as two floats: the product is rounded once. */
inline float mica_leaky_relu(float x, float slope, float rest)
{
    const float y = x * slope;
    return x >= 0.0f ? x : isfinite(y) && y != 0.0f ? y + fma(x, rest, fma(x, slope, -y)) : y;
}
inline float mica_elu(float x, float scale) { return x >= 0.0f ? x : scale * mica_expm1(x); }

/* ---- erf, gelu ---- */

inline float mica_erf(float given)
{
    const float x = mica_at_most(fabs(given), 4.0f), z = x * x;
    const float p = POLY(7, fma, float, z, POLY_ERF);
    const float q = POLY(7, fma, float, x, POLY_ERF_FAR);
    const float magic = POLY_MAGIC + 127.0f, t = fma(q, POLY_LOG2_E, magic);
    const float r = mica_less_ln2(q, t - magic), power = mica_power_of_two(t);
    const float far = fma(-power, mica_exp_less_one(r), 1.0f - power);
    return copysign(x < 0.9f ? fma(x, p, x) : far, given);
}
inline float mica_gelu_far(float given)
{
    const float magic = POLY_MAGIC + 127.0f + 32.0f;
    const float size = fabs(given), a = mica_at_most(size, 14.5f), z = a * a;
    const float d = fma(a, 0.25f, 1.0f), t = 1.0f / d, w = t - 0.5f;
    const float rest = POLY(9, fma, float, w, POLY_GELU_FAR);
    const float first = POLY_GELU_FAR_FIRST, p = fma(rest, w, first);
    const float p_lost = fma(rest, w, first - p) - POLY_GELU_FAR_LOW;
    const float wrong = fma(-t, fma(a, 0.25f, 1.0f - d), fma(-d, t, 1.0f));
    const float s = fma(z, -0.5f * POLY_LOG2_E, magic), n = s - magic;
    const float twice = fma(t, -3.8f, -2.0f), low = fma(wrong, twice, fma(a, a, -z));
    const float y = fma(n, 2 * POLY_LN2_HIGH, z) + fma(n, 2 * POLY_LN2_LOW, low);
    const float u = a * t, m = u * p, q = mica_exp_less_one(y * -0.5f);
    const float lost = fma(p_lost, u, fma(fma(a, t, -u), p, fma(u, p, -m)));
    const float left = (m + fma(m, q, fma(lost, q, lost))) * mica_power_of_two(s);
    return fma(left, -2.32830644e-10f, fma(given, 0.5f, size * 0.5f));
}
inline float mica_gelu(float x)
{
    const float z = x * x;
    const float p = POLY(4, fma, float, z, POLY_GELU);
    return fabs(x) < 0.5f ? x * fma(p, x, 0.5f) : mica_gelu_far(x);
}

/* erfinv is steep near 1, so the argument (1 - x)(1 + x) of the logarithm has two floats. */
inline float mica_erfinv(float x)
{
    const float ax = fabs(x);
    if (!(ax < 1.0f)) return ax == 1.0f ? copysign(INFINITY, x) : NAN;
    const float z = x * x, lost = fma(x, x, -z), y = 1.0f - z, rest = (1.0f - y) - z - lost;
    const float w = -(mica_log(y) + rest / y);
    if (w < 4.5f) {
        const float u = w - 2.5f;
        return x * POLY(10, fma, POLY_FLOAT, u, POLY_ERFINV);
    }
    const float v = precise::sqrt(w) - 3.0f;
    return x * POLY(12, fma, POLY_FLOAT, v, POLY_ERFINV_FAR);
}

/* ---- two operands ---- */

/* A square rounds like the product, because the algebra pass may replace one by the other. */
inline float mica_pow(float a, float b) { return b == 2.0f ? a * a : precise::pow(a, b); }
/* Scaled by a power of two, so that no square overflows or underflows. */
inline float mica_hypot(float a, float b)
{
    const float x = fabs(a), y = fabs(b), high = x > y ? x : y, low = x > y ? y : x;
    if (isinf(x) || isinf(y)) return INFINITY;
    if (!(high > 0.0f)) return x + y; /* 0, or NaN */
    if (isnan(low)) return low;
    const float scale = high > 1.1529215e+18f ? 8.27180613e-25f : high < 9.09494702e-13f ? 1.20892582e+24f : 1.0f;
    const float back = high > 1.1529215e+18f ? 1.20892582e+24f : high < 9.09494702e-13f ? 8.27180613e-25f : 1.0f;
    const float h = high * scale, l = low * scale;
    return precise::sqrt(fma(h, h, l * l)) * back;
}
/* The floor of the exact quotient, through precise::fmod, which is exact. */
inline float mica_divmod(float a, float b, thread float &mod)
{
    float m = precise::fmod(a, b);
    if (b == 0.0f) {
        mod = m;
        return a / b;
    }
    float quotient = (a - m) / b;
    if (m == 0.0f) {
        m = copysign(0.0f, b);
    } else if ((b < 0.0f) != (m < 0.0f)) {
        m += b;
        quotient -= 1.0f;
    }
    mod = m;
    if (quotient == 0.0f) return copysign(0.0f, a / b);
    const float floored = floor(quotient);
    return quotient - floored > 0.5f ? floored + 1.0f : floored;
}
inline float mica_floor_div(float a, float b)
{
    float mod;
    return mica_divmod(a, b, mod);
}
inline float mica_mod(float a, float b)
{
    float mod;
    mica_divmod(a, b, mod);
    return mod;
}
/* ------------------------------------------------------------------------ indices --- */

/* Same layout as mica_fault of kernels/common/common_params.h. */
struct mica_index_fault {
    uint set, kind;              /* 2 * caller, + 1 if index is a ulong */
    long position, index, size;
};
static_assert(sizeof(mica_index_fault) == 32, "mica_index_fault");

/* The first bad index of a thread. */
struct mica_bad_index {
    uint at;                     /* ~0: none */
    uint kind;
    long index, size;
};

/* Maps an index to 0 ... size-1; records an invalid one and returns 0. */
template <typename T>
inline long mica_check_index(T given, long size, uint caller, uint at, thread mica_bad_index *bad)
{
    const long index = long(given);
    const bool is_unsigned = sizeof(T) == 8 && T(-1) > T(0); /* others are in range as a long */
    if (is_unsigned ? ulong(index) < ulong(size) : index >= -size && index < size)
        return index < 0 ? index + size : index;
    if (bad->at == ~0u) *bad = {at, 2 * caller + (is_unsigned ? 1 : 0), index, size};
    return 0;
}

/* Stores the first bad index of a threadgroup; all its threads must call this. */
inline void mica_note_index(device mica_index_fault *fault, mica_bad_index bad, threadgroup uint *first, uint lane,
                            uint lanes)
{
    first[lane] = bad.at;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (bad.at == ~0u) return;
    for (uint i = 0; i < lanes; i++)
        if (first[i] < bad.at) return;
    fault->kind = bad.kind;
    fault->position = bad.at;
    fault->index = bad.index;
    fault->size = bad.size;
    fault->set = 1;
}

