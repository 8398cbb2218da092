/* Internal functions of Apple's headers. They are not part of the language, but
 * third-party kernels (MLX) call them. */

#define SM_1(name) \
    template <class T> SM_X inline T __metal_##name(T x, bool) { return metal::name(x); }
#define SM_2(name) \
    template <class T> SM_X inline T __metal_##name(T x, T y, bool) { return metal::name(x, y); }
#define SM_3(name) \
    template <class T> SM_X inline T __metal_##name(T x, T y, T z, bool) { return metal::name(x, y, z); }
#define SM_REDUCTION(name) \
    template <class T> SM_X inline T __metal_simd_##name(T x) { return metal::simd_##name(x); }
#define SM_LANES(name) \
    template <class T> SM_X inline T __metal_simd_##name(T x, ushort by) { return metal::simd_##name(x, by); }
#define SM_FILL(name)                                                                           \
    template <class T> SM_X inline T __metal_simd_##name(T x, T fill, ushort by, ushort modulo) \
    {                                                                                           \
        return metal::simd_##name(x, fill, by, modulo);                                         \
    }
SM_1(fabs)
SM_1(acos) SM_1(acosh) SM_1(asin) SM_1(asinh) SM_1(atan) SM_1(atanh) SM_1(ceil) SM_1(cos) SM_1(cosh) SM_1(cospi)
    SM_1(exp) SM_1(exp10) SM_1(exp2) SM_1(floor) SM_1(fract) SM_1(log) SM_1(log10) SM_1(log2) SM_1(rint) SM_1(round)
        SM_1(rsqrt) SM_1(sin) SM_1(sinh) SM_1(sinpi) SM_1(sqrt) SM_1(tan) SM_1(tanh) SM_1(tanpi) SM_1(trunc) SM_2(atan2)
            SM_2(divide) SM_2(fmax) SM_2(fmin) SM_2(fmod) SM_2(pow) SM_2(powr) SM_3(fma) SM_3(fmax3) SM_3(fmin3)
                SM_3(fmedian3) SM_REDUCTION(sum) SM_REDUCTION(product) SM_REDUCTION(min) SM_REDUCTION(max)
                    SM_REDUCTION(prefix_inclusive_sum) SM_REDUCTION(prefix_inclusive_product)
                        SM_REDUCTION(prefix_exclusive_sum) SM_REDUCTION(prefix_exclusive_product) SM_LANES(broadcast)
                            SM_LANES(shuffle) SM_LANES(shuffle_up) SM_LANES(shuffle_down) SM_LANES(shuffle_xor)
                                SM_LANES(shuffle_rotate_up) SM_LANES(shuffle_rotate_down) SM_FILL(shuffle_and_fill_up)
                                    SM_FILL(shuffle_and_fill_down)
#undef SM_1
#undef SM_2
#undef SM_3
#undef SM_REDUCTION
#undef SM_LANES
#undef SM_FILL
                                        template <class T>
                                        SM_X inline T __metal_simd_xor(T x) /* bitwise, also for a float */
{
    return __builtin_bit_cast(T, metal::simd_xor(__builtin_bit_cast(metal::sm_atomic_bits_t<T>, x)));
}
SM_X inline float __metal_fma(float x, float y, float z) { return metal::fma(x, y, z); }
SM_X inline float __metal_ldexp(float x, int e, bool) { return metal::ldexp(x, e); }
SM_X inline float __metal_frexp(float x, int *e) { return metal::frexp(x, *e); }
SM_X inline float __metal_nextafter(float x, float y) { return metal::nextafter(x, y); }
SM_X inline ushort __metal_get_simdgroup_size(ushort) { return 32; }
SM_X inline ushort __metal_get_thread_index_in_simdgroup(ushort) { return ushort(sm_rt->lane()); }
SM_X inline void sm_assert(bool holds, const char *text, const char *file, uint line)
{
#if defined(SM_CHECKED)
    if (!holds) sm_rt->arithmetic(text, file, line, 1);
#endif
}
template <class... A> struct _disjunction : metal::bool_constant<(A::value || ...)> {};

namespace metal {
/* The types that simd_* accept: no 64-bit numbers, no bfloat. */
template <class T> struct __is_valid_simdgroup_type : bool_constant<is_arithmetic<T>::value && sizeof(T) <= 4> {};
template <> struct __is_valid_simdgroup_type<bool> : false_type {};
template <> struct __is_valid_simdgroup_type<bfloat> : false_type {};
template <class T, int N> struct __is_valid_simdgroup_type<vec<T, N>> : __is_valid_simdgroup_type<T> {};

/* Metal's log. Messages are discarded: logging is not supported, but kernels that log must compile. */
struct os_log {
    SM_X constexpr os_log(const char *, const char *) {}
    template <class... A> SM_X void log(const char *, A...) const {}
    template <class... A> SM_X void log_debug(const char *, A...) const {}
    template <class... A> SM_X void log_info(const char *, A...) const {}
    template <class... A> SM_X void log_error(const char *, A...) const {}
    template <class... A> SM_X void log_fault(const char *, A...) const {}
};
} // namespace metal
