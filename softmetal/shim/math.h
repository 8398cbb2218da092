/* Math, common, geometric and relational functions. */

namespace metal {

#if SM_MATH_MODE == 2
/* Returns a random result within the error that the language allows: at most `ulps` from x. Denormals become zero. */
SM_X inline float sm_fuzz(float x, float ulps)
{
    uint u = __builtin_bit_cast(uint, x), magnitude = u & 0x7fffffff;
    if (magnitude >= 0x7f800000) return x;
    if (magnitude < 0x00800000) return __builtin_bit_cast(float, u & 0x80000000);
    int most = int(ulps);
    if (!most) return x;
    long moved = long(magnitude) + long(sm_rt->random() % uint(2 * most + 1)) - most;
    if (moved < 0x00800000) moved = 0x00800000;
    if (moved > 0x7f7fffff) moved = 0x7f7fffff;
    return __builtin_bit_cast(float, (u & 0x80000000) | uint(moved));
}
SM_X inline half sm_fuzz_half(half x)
{
    ushort u = __builtin_bit_cast(ushort, x), magnitude = u & 0x7fff;
    if (magnitude >= 0x7bff || magnitude < 0x0400) return x;
    return __builtin_bit_cast(half, ushort(u + sm_rt->random() % 3 - 1));
}
#else
SM_X inline float sm_fuzz(float x, float) { return x; }
SM_X inline half sm_fuzz_half(half x) { return x; }
#endif
/* Converts an absolute error to ulp of y. */
SM_X inline float sm_absolute(float error, float y)
{
    float a = __builtin_fabsf(y);
    return __builtin_floorf(error / ((a < 0x1p-100f ? 0x1p-100f : a) * 0x1p-23f));
}
/* The formulas of the fast functions. The errors of their parts add up: the remainder of a quotient close to an
 * integer may be off by the whole divisor. */
SM_X inline float sm_fast_fmod(float x, float y) { return x - y * __builtin_truncf(sm_fuzz(x / y, 2)); }
SM_X inline float sm_fast_pow(float x, float y)
{
    return sm_fuzz(__builtin_exp2f(y * sm_fuzz(__builtin_log2f(x), 3)), 3);
}
SM_X inline float sm_fract(float x)
{
    float f = x - __builtin_floorf(x);
    return f < 0x1.fffffep-1f ? f : f >= 1 ? 0x1.fffffep-1f : f;
}

/* SM_IN(precise, fast): the expression of a function. Fast functions use shorter formulas, but only if SM_MATH asks for
 * inexact results: otherwise both variants are exact. */
#define SM_ULP(precise, fast) precise
#define SM_IN(precise, fast) precise
namespace precise {
#include "functions.h"
}
#if !defined(SM_FAST_FUNCTIONS)
#include "functions.h"
#endif
#undef SM_ULP
#define SM_ULP(precise, fast) fast
#if SM_MATH_MODE != 0
#undef SM_IN
#define SM_IN(precise, fast) fast
#endif
namespace fast {
#include "functions.h"
}
#if defined(SM_FAST_FUNCTIONS)
#include "functions.h"
#endif
#undef SM_ULP
#undef SM_IN

/* ---- functions with integers or pointers ---- */

/* fmaf rounds once. Arithmetic in double would round twice: it holds the product of two floats, but not the sum. */
SM_X inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
/* The double is rounded to odd in float, then to half: an inexact float gets an odd last bit, so the second rounding
 * is correct. For a direct conversion clang would call a function of libgcc, which is not available. */
SM_PURE_OP inline half fma(half a, half b, half c)
{
    double sum = __builtin_fma(double(a), double(b), double(c));
    float near = float(sum);
    uint bits = __builtin_bit_cast(uint, near);
    if (double(near) != sum && (bits & 0x7fffffff) < 0x7f800000)
        bits = (bits - (__builtin_fabs(double(near)) > __builtin_fabs(sum))) | 1;
    return half(__builtin_bit_cast(float, bits));
}

#define SM_REALS(M) M(float) M(half)
#define SM_FOR_REAL(T)                                                                                        \
    SM_X inline T ldexp(T x, int e) { return T(__builtin_ldexpf(float(x), e)); }                              \
    SM_X inline int ilogb(T x) { return __builtin_ilogbf(float(x)); }                                         \
    SM_X inline T frexp(T x, int &e) { return T(__builtin_frexpf(float(x), &e)); }                            \
    SM_X inline T modf(T x, T &whole)                                                                         \
    {                                                                                                         \
        whole = trunc(x);                                                                                     \
        return copysign(sm_isinf(x) ? T(0) : T(x - whole), x);                                                \
    }                                                                                                         \
    SM_X inline T abs(T x) { return fabs(x); }                                                                \
    SM_X inline T min(T a, T b) { return T(__builtin_fminf(float(a), float(b))); }                            \
    SM_X inline T max(T a, T b) { return T(__builtin_fmaxf(float(a), float(b))); }                            \
    SM_X inline T clamp(T x, T low, T high) { return fmin(fmax(x, low), high); }                              \
    SM_X inline T saturate(T x) { return clamp(x, T(0.0f), T(1.0f)); }                                        \
    SM_X inline T mix(T a, T b, T t) { return T(a + T(T(b - a) * t)); }                                       \
    SM_X inline T sign(T x) { return x != x ? T(0.0f) : x > T(0.0f) ? T(1.0f) : x < T(0.0f) ? T(-1.0f) : x; } \
    SM_X inline T step(T edge, T x) { return x < edge ? T(0.0f) : T(1.0f); }                                  \
    SM_X inline T smoothstep(T low, T high, T x)                                                              \
    {                                                                                                         \
        T t = saturate(T(T(x - low) / T(high - low)));                                                        \
        return T(T(t * t) * T(T(3.0f) - T(T(2.0f) * t)));                                                     \
    }                                                                                                         \
    SM_X inline bool isnan(T x) { return sm_isnan(x); }                                                       \
    SM_X inline bool isinf(T x) { return sm_isinf(x); }                                                       \
    SM_X inline bool isfinite(T x) { return !sm_isnan(x) && !sm_isinf(x); }                                   \
    SM_X inline bool isnormal(T x) { return sm_isnormal(x); }                                                 \
    SM_X inline bool signbit(T x) { return sm_signbit(x); }                                                   \
    SM_X inline bool isordered(T a, T b) { return !sm_isnan(a) && !sm_isnan(b); }                             \
    SM_X inline bool isunordered(T a, T b) { return sm_isnan(a) || sm_isnan(b); }                             \
    SM_X inline T fmin3(T a, T b, T c) { return fmin(a, fmin(b, c)); }                                        \
    SM_X inline T fmax3(T a, T b, T c) { return fmax(a, fmax(b, c)); }                                        \
    SM_X inline T fmedian3(T a, T b, T c) { return fmax(fmin(a, b), fmin(fmax(a, b), c)); }                   \
    SM_X inline T min3(T a, T b, T c) { return fmin(a, fmin(b, c)); }                                         \
    SM_X inline T max3(T a, T b, T c) { return fmax(a, fmax(b, c)); }                                         \
    SM_X inline T median3(T a, T b, T c) { return fmedian3(a, b, c); }

/* These test the bits, so that fast math does not optimise the test away. */
SM_X inline uint sm_bits_of(float x) { return __builtin_bit_cast(uint, x); }
SM_X inline uint sm_bits_of(half x) { return __builtin_bit_cast(ushort, x); }
template <class T> constexpr uint sm_exponent_mask = is_same<T, float>::value ? 0x7f800000 : 0x7c00;
template <class T> constexpr uint sm_sign_mask = is_same<T, float>::value ? 0x80000000 : 0x8000;
template <class T> SM_X inline bool sm_isnan(T x) { return (sm_bits_of(x) & ~sm_sign_mask<T>) > sm_exponent_mask<T>; }
template <class T> SM_X inline bool sm_isinf(T x) { return (sm_bits_of(x) & ~sm_sign_mask<T>) == sm_exponent_mask<T>; }
template <class T> SM_X inline bool sm_signbit(T x) { return sm_bits_of(x) & sm_sign_mask<T>; }
template <class T> SM_X inline bool sm_isnormal(T x)
{
    uint e = sm_bits_of(x) & sm_exponent_mask<T>;
    return e && e != sm_exponent_mask<T>;
}
SM_REALS(SM_FOR_REAL)
#undef SM_FOR_REAL
SM_X inline float nextafter(float a, float b) { return __builtin_nextafterf(a, b); }
SM_X inline half nextafter(half a, half b)
{
    if (sm_isnan(a) || sm_isnan(b)) return half(NAN);
    if (a == b) return b;
    if (a == half(0)) return __builtin_bit_cast(half, ushort((b < half(0) ? 0x8000 : 0) | 1));
    return __builtin_bit_cast(half, ushort(__builtin_bit_cast(ushort, a) + ((a < b) == (a > half(0)) ? 1 : -1)));
}

/* ---- relational ---- */

SM_X inline bool all(bool x) { return x; }
SM_X inline bool any(bool x) { return x; }
template <int N> SM_X inline bool all(vec<bool, N> v)
{
    bool r = true;
    for (int i = 0; i < N; i++) r = r && v[i];
    return r;
}
template <int N> SM_X inline bool any(vec<bool, N> v)
{
    bool r = false;
    for (int i = 0; i < N; i++) r = r || v[i];
    return r;
}
template <class T, class = enable_if_t<is_arithmetic<T>::value>> SM_X inline T select(T a, sm_same_t<T> b, bool c)
{
    return c ? b : a;
}
template <class T, int N> SM_X inline vec<T, N> select(vec<T, N> a, sm_same_t<vec<T, N>> b, vec<bool, N> c)
{
    for (int i = 0; i < N; i++) a[i] = c[i] ? b[i] : a[i];
    return a;
}
template <class T, int N> SM_X inline vec<T, N> select(vec<T, N> a, sm_same_t<vec<T, N>> b, bool c)
{
    return c ? b : a;
}

/* ---- geometric ---- */

/* Geometric functions take vectors of floating-point numbers only. */
template <class T, int N, class = enable_if_t<is_floating_point<T>::value>>
SM_X inline T dot(vec<T, N> a, sm_same_t<vec<T, N>> b)
{
    T r = T(a[0] * b[0]);
    for (int i = 1; i < N; i++) r = T(r + T(a[i] * b[i]));
    return r;
}
template <class T> SM_X inline vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b)
{
    return vec<T, 3>(T(a.y * b.z - a.z * b.y), T(a.z * b.x - a.x * b.z), T(a.x * b.y - a.y * b.x));
}
template <class T, int N> SM_X inline T length_squared(vec<T, N> a) { return dot(a, a); }
template <class T, int N> SM_X inline T length(vec<T, N> a) { return sqrt(dot(a, a)); }
template <class T, int N> SM_X inline T distance_squared(vec<T, N> a, vec<T, N> b) { return length_squared(a - b); }
template <class T, int N> SM_X inline T distance(vec<T, N> a, vec<T, N> b) { return length(a - b); }
template <class T, int N> SM_X inline vec<T, N> normalize(vec<T, N> a) { return a * rsqrt(dot(a, a)); }
template <class T, int N> SM_X inline vec<T, N> reflect(vec<T, N> i, vec<T, N> n) { return i - T(2) * dot(n, i) * n; }
template <class T, int N> SM_X inline vec<T, N> refract(vec<T, N> i, vec<T, N> n, sm_same_t<T> eta)
{
    T d = dot(n, i), k = T(1) - eta * eta * (T(1) - d * d);
    return k < T(0) ? vec<T, N>(T(0)) : eta * i - (eta * d + sqrt(k)) * n;
}
template <class T, int N> SM_X inline vec<T, N> faceforward(vec<T, N> n, vec<T, N> i, vec<T, N> r)
{
    return dot(r, i) < T(0) ? n : -n;
}

/* ---- matrices ---- */

template <class T, int C, int R> SM_X inline matrix<T, R, C> transpose(matrix<T, C, R> m)
{
    matrix<T, R, C> r;
    for (int i = 0; i < C; i++)
        for (int k = 0; k < R; k++) r[k][i] = m[i][k];
    return r;
}
template <class T> SM_X inline T determinant(matrix<T, 2, 2> m) { return m[0][0] * m[1][1] - m[1][0] * m[0][1]; }
template <class T> SM_X inline T determinant(matrix<T, 3, 3> m) { return dot(m[0], cross(m[1], m[2])); }
template <class T> SM_X inline T determinant(matrix<T, 4, 4> m)
{
    T r = T(0);
    for (int i = 0; i < 4; i++) {
        matrix<T, 3, 3> s;
        for (int k = 0, at = 0; k < 4; k++)
            if (k != i) s[at++] = m[k].yzw;
        r = i % 2 ? r - m[i][0] * determinant(s) : r + m[i][0] * determinant(s);
    }
    return r;
}

} // namespace metal
