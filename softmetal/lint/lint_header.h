/* Metal's names as declarations only, with its address spaces as clang's: enough for clang
 * to check the address space of each pointer. Nothing is defined here. Missing or inexact
 * declarations do no harm: of clang's errors the lint keeps those about address spaces
 * (lint.c), everything else is left to the real compilation. */
#define device __attribute__((address_space(1)))
#define constant __attribute__((address_space(2))) const
#define threadgroup __attribute__((address_space(3)))
#define thread
#define kernel
#define M_PI_F 3.14159274f
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

typedef unsigned char uchar, uint8_t;
typedef unsigned short ushort, uint16_t;
typedef unsigned int uint, uint32_t;
typedef unsigned long ulong, uint64_t, size_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t, ptrdiff_t;
typedef _Float16 half;
typedef __bf16 bfloat;

/* The number of components of a value. A vector is constructed from one value, or from as many as it has. */
template <class T> struct lint_size { static constexpr int value = 1; };
template <class T, int N> struct lint_size<T __attribute__((ext_vector_type(N)))> { static constexpr int value = N; };
template <class T> struct lint_size<const T> : lint_size<T> {};
template <class... A> struct lint_sizes { static constexpr int value = 0; };
template <class T, class... A> struct lint_sizes<T, A...> {
    static constexpr int value = lint_size<T>::value + lint_sizes<A...>::value;
};
template <bool C, class T> struct lint_if {};
template <class T> struct lint_if<true, T> { typedef T type; };
template <class V, class... A>
typename lint_if<(sizeof...(A) < 2 || lint_size<V>::value == lint_sizes<A...>::value), V>::type lint_make(A...);
/* Lanes cannot exchange 64-bit numbers. Classes are not checked: they may be incomplete here. */
template <class T> struct lint_lane { static constexpr bool value = !__is_arithmetic(T) || sizeof(T) <= 4; };
template <class T, int N> struct lint_lane<T __attribute__((ext_vector_type(N)))> : lint_lane<T> {};
template <class T> struct lint_lanes : lint_if<lint_lane<T>::value, T> {};
#define LINT_VECTORS(T)                                  \
    typedef T T##2 __attribute__((ext_vector_type(2)));  \
    typedef T T##3 __attribute__((ext_vector_type(3)));  \
    typedef T T##4 __attribute__((ext_vector_type(4)));  \
    typedef T##2 packed_##T##2;                          \
    typedef T##3 packed_##T##3;                          \
    typedef T##4 packed_##T##4;
LINT_VECTORS(bool) LINT_VECTORS(char) LINT_VECTORS(uchar) LINT_VECTORS(short) LINT_VECTORS(ushort) LINT_VECTORS(int)
LINT_VECTORS(uint) LINT_VECTORS(long) LINT_VECTORS(ulong) LINT_VECTORS(half) LINT_VECTORS(float)
#define bool2(...) lint_make<bool2>(__VA_ARGS__)
#define bool3(...) lint_make<bool3>(__VA_ARGS__)
#define bool4(...) lint_make<bool4>(__VA_ARGS__)
#define char2(...) lint_make<char2>(__VA_ARGS__)
#define char3(...) lint_make<char3>(__VA_ARGS__)
#define char4(...) lint_make<char4>(__VA_ARGS__)
#define uchar2(...) lint_make<uchar2>(__VA_ARGS__)
#define uchar3(...) lint_make<uchar3>(__VA_ARGS__)
#define uchar4(...) lint_make<uchar4>(__VA_ARGS__)
#define short2(...) lint_make<short2>(__VA_ARGS__)
#define short3(...) lint_make<short3>(__VA_ARGS__)
#define short4(...) lint_make<short4>(__VA_ARGS__)
#define ushort2(...) lint_make<ushort2>(__VA_ARGS__)
#define ushort3(...) lint_make<ushort3>(__VA_ARGS__)
#define ushort4(...) lint_make<ushort4>(__VA_ARGS__)
#define int2(...) lint_make<int2>(__VA_ARGS__)
#define int3(...) lint_make<int3>(__VA_ARGS__)
#define int4(...) lint_make<int4>(__VA_ARGS__)
#define uint2(...) lint_make<uint2>(__VA_ARGS__)
#define uint3(...) lint_make<uint3>(__VA_ARGS__)
#define uint4(...) lint_make<uint4>(__VA_ARGS__)
#define long2(...) lint_make<long2>(__VA_ARGS__)
#define long3(...) lint_make<long3>(__VA_ARGS__)
#define long4(...) lint_make<long4>(__VA_ARGS__)
#define ulong2(...) lint_make<ulong2>(__VA_ARGS__)
#define ulong3(...) lint_make<ulong3>(__VA_ARGS__)
#define ulong4(...) lint_make<ulong4>(__VA_ARGS__)
#define half2(...) lint_make<half2>(__VA_ARGS__)
#define half3(...) lint_make<half3>(__VA_ARGS__)
#define half4(...) lint_make<half4>(__VA_ARGS__)
#define float2(...) lint_make<float2>(__VA_ARGS__)
#define float3(...) lint_make<float3>(__VA_ARGS__)
#define float4(...) lint_make<float4>(__VA_ARGS__)

half operator""h(long double);

/* The lint replaces (device T *)p by lint_to<device T *>() ->* p, which accepts pointers of that space only. */
template <class T> struct lint_to;
#define LINT_TO(number)                                                                                         \
    template <class X> struct lint_to<__attribute__((address_space(number))) X *> {                             \
        template <class U>                                                                                      \
        __attribute__((address_space(number))) X *operator->*(__attribute__((address_space(number))) U *) const; \
        __attribute__((address_space(number))) X *operator->*(ulong) const;                                     \
    };
LINT_TO(1) LINT_TO(2) LINT_TO(3)

/* The value of a function constant. */
struct lint_any {
    template <class T> operator T() const;
};
lint_any lint_given();

namespace metal {
using ::lint_make;
#define LINT_NAMES(T) using ::T; using ::T##2; using ::T##3; using ::T##4;
LINT_NAMES(uchar) LINT_NAMES(ushort) LINT_NAMES(uint) LINT_NAMES(ulong) LINT_NAMES(half)
#undef LINT_NAMES
#define LINT_NAMES(T) using ::T##2; using ::T##3; using ::T##4;
LINT_NAMES(bool) LINT_NAMES(char) LINT_NAMES(short) LINT_NAMES(int) LINT_NAMES(long) LINT_NAMES(float)
template <class T, int N> using vec = T __attribute__((ext_vector_type(N)));
template <class T, class U> T as_type(U);

#define LINT_ONE(name) template <class T> T name(T);
#define LINT_TWO(name) template <class T, class U> T name(T, U);
#define LINT_THREE(name) template <class T, class U, class V> T name(T, U, V);
#define LINT_MATHS                                                                                                    \
    LINT_ONE(abs) LINT_ONE(acos) LINT_ONE(acosh) LINT_ONE(asin) LINT_ONE(asinh) LINT_ONE(atan) LINT_ONE(atanh)        \
    LINT_ONE(ceil) LINT_ONE(cos) LINT_ONE(cosh) LINT_ONE(exp) LINT_ONE(exp2) LINT_ONE(exp10) LINT_ONE(fabs)           \
    LINT_ONE(floor) LINT_ONE(fract) LINT_ONE(log) LINT_ONE(log2) LINT_ONE(log10) LINT_ONE(rint) LINT_ONE(round)       \
    LINT_ONE(rsqrt) LINT_ONE(sign) LINT_ONE(sin) LINT_ONE(sinh) LINT_ONE(sqrt) LINT_ONE(tan) LINT_ONE(tanh)           \
    LINT_ONE(trunc) LINT_ONE(saturate) LINT_TWO(atan2) LINT_TWO(copysign) LINT_TWO(fdim) LINT_TWO(fmax) LINT_TWO(fmin) \
    LINT_TWO(fmod) LINT_TWO(ldexp) LINT_TWO(pow) LINT_TWO(powr) LINT_TWO(min) LINT_TWO(max) LINT_TWO(divide)          \
    LINT_THREE(fma) LINT_THREE(clamp) LINT_THREE(mix) LINT_THREE(select) LINT_THREE(step) LINT_THREE(smoothstep)      \
    template <class T> bool isnan(T);                                                                                 \
    template <class T> bool isinf(T);                                                                                 \
    template <class T> bool isfinite(T);                                                                              \
    template <class T> bool signbit(T);                                                                               \
    template <class T> T modf(T, T &);                                                                                \
    template <class T> T frexp(T, int &);                                                                             \
    template <class T> T sincos(T, T &);
LINT_MATHS
namespace precise { LINT_MATHS }
namespace fast { LINT_MATHS }
LINT_ONE(clz) LINT_ONE(ctz) LINT_ONE(popcount) LINT_ONE(reverse_bits) LINT_TWO(mulhi) LINT_TWO(rotate) LINT_TWO(addsat)
LINT_TWO(subsat) LINT_TWO(hadd) LINT_TWO(rhadd) LINT_TWO(absdiff) LINT_TWO(cross) LINT_THREE(mad24)
LINT_THREE(madhi) LINT_THREE(extract_bits)
template <class T, int N> T dot(T __attribute__((ext_vector_type(N))), T __attribute__((ext_vector_type(N))));
template <class T> bool any(T);
template <class T> bool all(T);

enum class mem_flags { mem_none, mem_device, mem_threadgroup, mem_texture, mem_threadgroup_imageblock };
mem_flags operator|(mem_flags, mem_flags);
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);

#define LINT_LANES(name, ...) template <class T> typename lint_lanes<T>::type name(T __VA_ARGS__);
#define LINT_FILLS(name) template <class T> typename lint_lanes<T>::type name(T, T, ushort, ushort = 32);
LINT_LANES(simd_sum) LINT_LANES(simd_product) LINT_LANES(simd_min) LINT_LANES(simd_max) LINT_LANES(simd_and)
LINT_LANES(simd_or) LINT_LANES(simd_xor) LINT_LANES(simd_broadcast_first) LINT_LANES(simd_prefix_exclusive_sum)
LINT_LANES(simd_prefix_inclusive_sum) LINT_LANES(simd_prefix_exclusive_product)
LINT_LANES(simd_prefix_inclusive_product) LINT_LANES(simd_broadcast, , ushort) LINT_LANES(simd_shuffle, , ushort)
LINT_LANES(simd_shuffle_xor, , ushort) LINT_LANES(simd_shuffle_up, , ushort) LINT_LANES(simd_shuffle_down, , ushort)
LINT_LANES(simd_shuffle_rotate_up, , ushort) LINT_LANES(simd_shuffle_rotate_down, , ushort)
LINT_FILLS(simd_shuffle_and_fill_up) LINT_FILLS(simd_shuffle_and_fill_down) LINT_LANES(quad_sum)
LINT_LANES(quad_product) LINT_LANES(quad_min) LINT_LANES(quad_max) LINT_LANES(quad_and) LINT_LANES(quad_or)
LINT_LANES(quad_xor) LINT_LANES(quad_broadcast, , ushort) LINT_LANES(quad_shuffle, , ushort)
LINT_LANES(quad_shuffle_xor, , ushort) LINT_LANES(quad_shuffle_up, , ushort) LINT_LANES(quad_shuffle_down, , ushort)
bool simd_is_first();
bool simd_all(bool);
bool simd_any(bool);
struct simd_vote {
    explicit operator ulong() const;
};
simd_vote simd_ballot(bool);
simd_vote simd_active_threads_mask();

enum memory_order { memory_order_relaxed };
template <class T> struct atomic {};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;
typedef atomic<ulong> atomic_ulong;
template <class A> struct lint_atomic;
template <class T> struct lint_atomic<atomic<T>> { typedef T type; };
#define LINT_ATOMIC(name)                                                                                     \
    template <class T, class V> T name(device atomic<T> *, V, memory_order);                                  \
    template <class T, class V> T name(volatile device atomic<T> *, V, memory_order);                         \
    template <class T, class V> T name(threadgroup atomic<T> *, V, memory_order);                             \
    template <class T, class V> T name(volatile threadgroup atomic<T> *, V, memory_order);
LINT_ATOMIC(atomic_store_explicit) LINT_ATOMIC(atomic_exchange_explicit) LINT_ATOMIC(atomic_fetch_add_explicit)
LINT_ATOMIC(atomic_fetch_sub_explicit) LINT_ATOMIC(atomic_fetch_and_explicit) LINT_ATOMIC(atomic_fetch_or_explicit)
LINT_ATOMIC(atomic_fetch_xor_explicit) LINT_ATOMIC(atomic_fetch_max_explicit) LINT_ATOMIC(atomic_fetch_min_explicit)
template <class T> T atomic_load_explicit(const device atomic<T> *, memory_order);
template <class T> T atomic_load_explicit(const threadgroup atomic<T> *, memory_order);
template <class T, class V>
bool atomic_compare_exchange_weak_explicit(device atomic<T> *, T *, V, memory_order, memory_order);
template <class T, class V>
bool atomic_compare_exchange_weak_explicit(threadgroup atomic<T> *, T *, V, memory_order, memory_order);

template <class T, int R, int C> struct simdgroup_matrix {
    simdgroup_matrix();
    template <class U> simdgroup_matrix(U);
    T *thread_elements_pointer();
    T (&thread_elements())[2];
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
#define LINT_MATRIX_MEMORY(space)                                                                               \
    template <class M, class T> void simdgroup_load(M &, const space T *, ulong = 0, ulong2 = 0, bool = false); \
    template <class M, class T> void simdgroup_store(M, space T *, ulong = 0, ulong2 = 0, bool = false);
LINT_MATRIX_MEMORY(device) LINT_MATRIX_MEMORY(threadgroup)
template <class A, class B, class C, class D> void simdgroup_multiply_accumulate(A &, B, C, D);
template <class A, class B, class C> void simdgroup_multiply(A &, B, C);
template <class M, class T> M make_filled_simdgroup_matrix(T);

template <class T> struct numeric_limits {
    static constexpr T max();
    static constexpr T min();
    static constexpr T lowest();
    static constexpr T infinity();
    static constexpr T quiet_NaN();
};
template <class T> constexpr bool is_function_constant_defined(T);
template <class A, class B> struct is_same { static constexpr bool value = __is_same(A, B); };
template <class A, class B> constexpr bool is_same_v = __is_same(A, B);
template <bool C, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool C, class T = void> using enable_if_t = typename enable_if<C, T>::type;
template <bool C, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };
template <bool C, class A, class B> using conditional_t = typename conditional<C, A, B>::type;
} // namespace metal
