/* Scalar functions applied to each element of vectors; scalar arguments are broadcast. Included after all scalar
 * functions, because these templates find only functions that are already declared. */

namespace metal {

#define SM_EACH_1(name, R)                                            \
    template <class T, int N> SM_X inline vec<R, N> name(vec<T, N> a) \
    {                                                                 \
        vec<R, N> r;                                                  \
        for (int i = 0; i < N; i++) r[i] = R(name(a[i]));             \
        return r;                                                     \
    }
#define SM_EACH_2(name, R)                                                                    \
    template <class T, int N> SM_X inline vec<R, N> name(vec<T, N> a, sm_same_t<vec<T, N>> b) \
    {                                                                                         \
        vec<R, N> r;                                                                          \
        for (int i = 0; i < N; i++) r[i] = R(name(a[i], b[i]));                               \
        return r;                                                                             \
    }                                                                                         \
    template <class S, class T, int N, class = enable_if_t<is_arithmetic<S>::value>>          \
    SM_X inline vec<R, N> name(S a, vec<T, N> b)                                              \
    {                                                                                         \
        return name(vec<T, N>(T(a)), b);                                                      \
    }
#define SM_EACH_3(name, R)                                                                                            \
    template <class T, int N> SM_X inline vec<R, N> name(vec<T, N> a, sm_same_t<vec<T, N>> b, sm_same_t<vec<T, N>> c) \
    {                                                                                                                 \
        vec<R, N> r;                                                                                                  \
        for (int i = 0; i < N; i++) r[i] = R(name(a[i], b[i], c[i]));                                                 \
        return r;                                                                                                     \
    }                                                                                                                 \
    template <class S, class T, int N, class = enable_if_t<is_arithmetic<S>::value>>                                  \
    SM_X inline vec<R, N> name(S a, vec<T, N> b, sm_same_t<vec<T, N>> c)                                              \
    {                                                                                                                 \
        return name(vec<T, N>(T(a)), b, c);                                                                           \
    }                                                                                                                 \
    template <class S, class U, class T, int N,                                                                       \
              class = enable_if_t<is_arithmetic<S>::value && is_arithmetic<U>::value>>                                \
    SM_X inline vec<R, N> name(S a, U b, vec<T, N> c)                                                                 \
    {                                                                                                                 \
        return name(vec<T, N>(T(a)), vec<T, N>(T(b)), c);                                                             \
    }
SM_EACH_1(abs, T)
SM_EACH_1(saturate, T)
SM_EACH_1(sign, T)
SM_EACH_1(ilogb, int)
SM_EACH_1(isnan, bool)
SM_EACH_1(isinf, bool)
SM_EACH_1(isfinite, bool)
SM_EACH_1(isnormal, bool)
SM_EACH_1(signbit, bool)
SM_EACH_2(min, T)
SM_EACH_2(max, T)
SM_EACH_2(step, T)
SM_EACH_2(nextafter, T)
SM_EACH_2(isordered, bool)
SM_EACH_2(isunordered, bool)
SM_EACH_3(fma, T)
SM_EACH_3(clamp, T)
SM_EACH_3(mix, T)
SM_EACH_3(smoothstep, T)
SM_EACH_3(min3, T)
SM_EACH_3(max3, T)
SM_EACH_3(median3, T)
SM_EACH_3(fmin3, T)
SM_EACH_3(fmax3, T)
SM_EACH_3(fmedian3, T)
template <class T, int N> SM_X inline vec<T, N> ldexp(vec<T, N> a, sm_same_t<vec<int, N>> e)
{
    for (int i = 0; i < N; i++) a[i] = ldexp(a[i], e[i]);
    return a;
}
template <class T, int N> SM_X inline vec<T, N> frexp(vec<T, N> a, vec<int, N> &e)
{
    for (int i = 0; i < N; i++) a[i] = frexp(a[i], e[i]);
    return a;
}
template <class T, int N> SM_X inline vec<T, N> modf(vec<T, N> a, vec<T, N> &whole)
{
    for (int i = 0; i < N; i++) a[i] = modf(a[i], whole[i]);
    return a;
}

SM_EACH_1(popcount, T)
SM_EACH_1(clz, T)
SM_EACH_1(ctz, T)
SM_EACH_1(reverse_bits, T)
SM_EACH_2(absdiff, make_unsigned_t<T>)
SM_EACH_2(rotate, T)
SM_EACH_2(mulhi, T)
SM_EACH_2(addsat, T)
SM_EACH_2(subsat, T)
SM_EACH_2(hadd, T)
SM_EACH_2(rhadd, T)
SM_EACH_2(mul24, T)
SM_EACH_3(madhi, T)
SM_EACH_3(madsat, T)
SM_EACH_3(mad24, T)
template <class T, int N> SM_X inline vec<T, N> extract_bits(vec<T, N> a, uint offset, uint bits)
{
    for (int i = 0; i < N; i++) a[i] = extract_bits(a[i], offset, bits);
    return a;
}
template <class T, int N> SM_X inline vec<T, N> insert_bits(vec<T, N> a, vec<T, N> b, uint offset, uint bits)
{
    for (int i = 0; i < N; i++) a[i] = insert_bits(a[i], b[i], offset, bits);
    return a;
}

/* The same function in both namespaces; kernels may use either name. */
// clang-format off
#define SM_SAME                                                                                               \
    using metal::abs, metal::clamp, metal::distance, metal::fma, metal::fmax3, metal::fmedian3, metal::fmin3, \
        metal::frexp, metal::ilogb, metal::ldexp, metal::length, metal::max, metal::max3, metal::median3,     \
        metal::min, metal::min3, metal::mix, metal::modf, metal::nextafter, metal::normalize,                 \
        metal::saturate, metal::sign, metal::smoothstep, metal::step;
namespace precise {
SM_SAME
}
namespace fast {
SM_SAME
}
#undef SM_SAME
// clang-format on

} // namespace metal
