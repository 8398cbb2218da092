/* Math functions. math.h includes this file three times, for namespaces metal,
 * metal::precise and metal::fast. SM_ULP(precise, fast) is the error that the language
 * allows, in ulp; only SM_MATH=fuzz uses it. SM_IN(precise, fast) is the expression of
 * each variant. There are no overloads for bfloat: it is converted to float, and the
 * result is a float. The functions of SM_1 and SM_2 are sequences with a price of their own
 * on a GPU, those of SM_INLINE_1 and SM_INLINE_2 single operations that compilers fold. */

#define SM_REAL_1(X, name, ulps, expression)                           \
    X inline float name(float x) { return sm_fuzz(expression, ulps); } \
    X inline half name(half h)                                         \
    {                                                                  \
        float x = h;                                                   \
        return sm_fuzz_half(half(expression));                         \
    }                                                                  \
    template <class T, int N> SM_X inline vec<T, N> name(vec<T, N> v)  \
    {                                                                  \
        vec<T, N> r;                                                   \
        for (int i = 0; i < N; i++) r[i] = T(name(v[i]));              \
        return r;                                                      \
    }
#define SM_REAL_2(X, name, ulps, expression)                                                  \
    X inline float name(float x, float y) { return sm_fuzz(expression, ulps); }               \
    X inline half name(half h, half k)                                                        \
    {                                                                                         \
        float x = h, y = k;                                                                   \
        return sm_fuzz_half(half(expression));                                                \
    }                                                                                         \
    template <class T, int N> SM_X inline vec<T, N> name(vec<T, N> v, sm_same_t<vec<T, N>> w) \
    {                                                                                         \
        vec<T, N> r;                                                                          \
        for (int i = 0; i < N; i++) r[i] = T(name(v[i], w[i]));                               \
        return r;                                                                             \
    }                                                                                         \
    template <class S, class T, int N, class = enable_if_t<is_arithmetic<S>::value>>          \
    SM_X inline vec<T, N> name(S s, vec<T, N> w)                                              \
    {                                                                                         \
        return name(vec<T, N>(T(s)), w);                                                      \
    }
#define SM_1(name, ulps, expression) SM_REAL_1(SM_PURE_OP, name, ulps, expression)
#define SM_2(name, ulps, expression) SM_REAL_2(SM_PURE_OP, name, ulps, expression)
#define SM_INLINE_1(name, ulps, expression) SM_REAL_1(SM_X, name, ulps, expression)
#define SM_INLINE_2(name, ulps, expression) SM_REAL_2(SM_X, name, ulps, expression)

SM_1(acos, SM_ULP(4, 5), __builtin_acosf(x))
SM_1(acosh, SM_ULP(4, 5), __builtin_acoshf(x))
SM_1(asin, SM_ULP(4, 5), __builtin_asinf(x))
SM_1(asinh, SM_ULP(4, 5), __builtin_asinhf(x))
SM_1(atan, SM_ULP(5, 5), __builtin_atanf(x))
SM_1(atanh, SM_ULP(5, 5), __builtin_atanhf(x))
SM_1(cos, SM_ULP(4, sm_absolute(0x1p-13f, __builtin_cosf(x))), __builtin_cosf(x))
SM_1(cosh, SM_ULP(4, 5), __builtin_coshf(x))
SM_1(cospi, SM_ULP(4, 4), float(__builtin_cos(3.14159265358979323846 * double(x))))
SM_1(exp, SM_ULP(4, 3 + __builtin_floorf(__builtin_fabsf(2 * x))), __builtin_expf(x))
SM_1(exp2, SM_ULP(4, 3 + __builtin_floorf(__builtin_fabsf(2 * x))), __builtin_exp2f(x))
SM_1(exp10, SM_ULP(4, 3 + __builtin_floorf(__builtin_fabsf(2 * x))), float(__builtin_pow(10.0, double(x))))
SM_1(log, SM_ULP(4, x > 0.5f && x < 2.0f ? sm_absolute(0x1p-21f, __builtin_logf(x)) : 3), __builtin_logf(x))
SM_1(log2, SM_ULP(4, x > 0.5f && x < 2.0f ? sm_absolute(0x1p-21f, __builtin_log2f(x)) : 3), __builtin_log2f(x))
SM_1(log10, SM_ULP(4, x > 0.5f && x < 2.0f ? sm_absolute(0x1p-21f, __builtin_log10f(x)) : 3), __builtin_log10f(x))
SM_1(rsqrt, SM_ULP(2, 2), float(1.0 / __builtin_sqrt(double(x))))
SM_1(sin, SM_ULP(4, sm_absolute(0x1p-13f, __builtin_sinf(x))), __builtin_sinf(x))
SM_1(sinh, SM_ULP(4, 5), __builtin_sinhf(x))
SM_1(sinpi, SM_ULP(4, 4), float(__builtin_sin(3.14159265358979323846 * double(x))))
SM_1(sqrt, SM_ULP(0, 2), __builtin_sqrtf(x))
SM_1(tan, SM_ULP(6, 6), __builtin_tanf(x))
SM_1(tanh, SM_ULP(5, 5), __builtin_tanhf(x))
SM_1(tanpi, SM_ULP(6, 6), float(__builtin_tan(3.14159265358979323846 * double(x))))
SM_INLINE_1(ceil, 0, __builtin_ceilf(x))
SM_INLINE_1(floor, 0, __builtin_floorf(x))
SM_INLINE_1(rint, 0, __builtin_rintf(x))
SM_INLINE_1(round, 0, __builtin_roundf(x))
SM_INLINE_1(trunc, 0, __builtin_truncf(x))
SM_INLINE_1(fabs, 0, __builtin_fabsf(x))
SM_1(fract, 0, sm_fract(x))
SM_2(atan2, SM_ULP(6, 5), __builtin_atan2f(x, y))
SM_2(pow, SM_ULP(16, 0), SM_IN(__builtin_powf(x, y), sm_fast_pow(x, y)))
SM_2(powr, SM_ULP(16, 0), x < 0 ? NAN : SM_IN(__builtin_powf(x, y), sm_fast_pow(x, y)))
SM_2(divide, SM_ULP(0, 2), x / y)
SM_2(fmod, 0, SM_IN(__builtin_fmodf(x, y), sm_fast_fmod(x, y)))
SM_2(fdim, 0, __builtin_fdimf(x, y))
SM_INLINE_2(fmin, 0, __builtin_fminf(x, y))
SM_INLINE_2(fmax, 0, __builtin_fmaxf(x, y))
SM_INLINE_2(copysign, 0, __builtin_copysignf(x, y))
#undef SM_1
#undef SM_2
#undef SM_INLINE_1
#undef SM_INLINE_2
#undef SM_REAL_1
#undef SM_REAL_2

template <class T, class = enable_if_t<is_floating_point<T>::value>> SM_X inline T sincos(T x, T &c)
{
    c = cos(x);
    return sin(x);
}
template <class T, int N> SM_X inline vec<T, N> sincos(vec<T, N> x, vec<T, N> &c)
{
    c = cos(x);
    return sin(x);
}
