/* Scalar types, numeric_limits, type traits. */

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef _Float16 half;

/* The type of {a, b, c} where no other type is given; the compiler requires this name. */
namespace std {
template <class T> class initializer_list {
    const T *sm_first;
    size_t sm_count;

public:
    typedef T value_type;
    SM_X constexpr initializer_list() : sm_first(nullptr), sm_count(0) {}
    SM_X constexpr size_t size() const { return sm_count; }
    SM_X constexpr const T *begin() const { return sm_first; }
    SM_X constexpr const T *end() const { return sm_first + sm_count; }
};
} // namespace std

struct bfloat;
template <class T, int N> struct vec;
template <class T, int N> struct packed_vec;
template <class T, int C, int R> struct matrix;

namespace metal {

using std::initializer_list;

template <class T, T v> struct integral_constant {
    static constexpr const T value = v;
    typedef T value_type;
    typedef integral_constant type;
    SM_X constexpr operator T() const { return v; }
    SM_X constexpr T operator()() const { return v; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> {
    typedef T type;
};
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;

template <bool B, class T, class F> struct conditional {
    typedef T type;
};
template <class T, class F> struct conditional<false, T, F> {
    typedef F type;
};
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;

template <class T, class U> struct is_same : false_type {};
template <class T> struct is_same<T, T> : true_type {};
template <class T, class U> constexpr bool is_same_v = is_same<T, U>::value;

template <class T> struct remove_const {
    typedef T type;
};
template <class T> struct remove_const<const T> {
    typedef T type;
};
template <class T> struct remove_volatile {
    typedef T type;
};
template <class T> struct remove_volatile<volatile T> {
    typedef T type;
};
template <class T> struct remove_cv {
    typedef typename remove_const<typename remove_volatile<T>::type>::type type;
};
template <class T> struct remove_reference {
    typedef T type;
};
template <class T> struct remove_reference<T &> {
    typedef T type;
};
template <class T> struct remove_reference<T &&> {
    typedef T type;
};
template <class T> struct remove_pointer {
    typedef T type;
};
template <class T> struct remove_pointer<T *> {
    typedef T type;
};
template <class T> struct remove_pointer<T *const> {
    typedef T type;
};
template <class T> struct remove_extent {
    typedef T type;
};
template <class T, size_t N> struct remove_extent<T[N]> {
    typedef T type;
};
template <class T> struct add_const {
    typedef const T type;
};
template <class T> struct add_pointer {
    typedef T *type;
};
template <class T> struct add_lvalue_reference {
    typedef T &type;
};
template <class T> struct remove_addrspace {
    typedef T type;
};
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> using remove_volatile_t = typename remove_volatile<T>::type;
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> using remove_extent_t = typename remove_extent<T>::type;
template <class T> using add_const_t = typename add_const<T>::type;
template <class T> using add_pointer_t = typename add_pointer<T>::type;
template <class T> using remove_addrspace_t = T;
template <class T> struct decay {
    typedef remove_cv_t<remove_reference_t<T>> type;
};
template <class T> using decay_t = typename decay<T>::type;

template <class T> struct sm_integer : false_type {};
template <class T> struct sm_real : false_type {};
#define SM_IS(kind, T) \
    template <> struct sm_##kind<T> : true_type {};
SM_IS(integer, bool)
SM_IS(integer, char)
SM_IS(integer, signed char)
SM_IS(integer, unsigned char)
SM_IS(integer, short)
SM_IS(integer, unsigned short)
SM_IS(integer, int)
SM_IS(integer, unsigned int)
SM_IS(integer, long)
SM_IS(integer, unsigned long)
SM_IS(integer, long long)
SM_IS(integer, unsigned long long)
SM_IS(real, half)
SM_IS(real, float)
SM_IS(real, bfloat)
#undef SM_IS

template <class T> struct is_integral : sm_integer<remove_cv_t<T>> {};
template <class T> struct is_floating_point : sm_real<remove_cv_t<T>> {};
template <class T> struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <class T> struct is_scalar : is_arithmetic<T> {};
template <class T>
struct is_unsigned : bool_constant<is_integral<T>::value && (remove_cv_t<T>(-1) > remove_cv_t<T>(0))> {};
template <> struct is_unsigned<half> : false_type {};
template <> struct is_unsigned<float> : false_type {};
template <> struct is_unsigned<bfloat> : false_type {};
template <class T> struct is_signed : bool_constant<is_arithmetic<T>::value && !is_unsigned<T>::value> {};
template <class T> struct is_void : is_same<remove_cv_t<T>, void> {};
template <class T> struct is_const : false_type {};
template <class T> struct is_const<const T> : true_type {};
template <class T> struct is_pointer : false_type {};
template <class T> struct is_pointer<T *> : true_type {};
template <class T> struct is_reference : false_type {};
template <class T> struct is_reference<T &> : true_type {};
template <class T> struct is_array : false_type {};
template <class T, size_t N> struct is_array<T[N]> : true_type {};
template <class T> struct is_enum : bool_constant<__is_enum(T)> {};
template <class T> struct is_class : bool_constant<__is_class(T)> {};
template <class T> struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class A, class B> struct is_base_of : bool_constant<__is_base_of(A, B)> {};
template <class A, class B> struct is_convertible : bool_constant<__is_convertible(A, B)> {};
template <class T> constexpr bool is_integral_v = is_integral<T>::value;
template <class T> constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T> constexpr bool is_scalar_v = is_scalar<T>::value;
template <class T> constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class T> constexpr bool is_signed_v = is_signed<T>::value;
template <class T> constexpr bool is_pointer_v = is_pointer<T>::value;
template <class T> constexpr bool is_const_v = is_const<T>::value;
template <class T> constexpr bool is_void_v = is_void<T>::value;
template <class A, class B> constexpr bool is_convertible_v = is_convertible<A, B>::value;

template <class T> struct make_unsigned {
    typedef T type;
};
template <> struct make_unsigned<char> {
    typedef uchar type;
};
template <> struct make_unsigned<signed char> {
    typedef uchar type;
};
template <> struct make_unsigned<short> {
    typedef ushort type;
};
template <> struct make_unsigned<int> {
    typedef uint type;
};
template <> struct make_unsigned<long> {
    typedef ulong type;
};
template <> struct make_unsigned<long long> {
    typedef unsigned long long type;
};
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class T> struct make_signed {
    typedef T type;
};
template <> struct make_signed<uchar> {
    typedef signed char type;
};
template <> struct make_signed<ushort> {
    typedef short type;
};
template <> struct make_signed<uint> {
    typedef int type;
};
template <> struct make_signed<ulong> {
    typedef long type;
};
template <class T> using make_signed_t = typename make_signed<T>::type;

template <class T> T &&declval();
/* A parameter type that is not deduced, so that a scalar argument converts to a vector. */
template <class T> struct sm_same {
    typedef T type;
};
template <class T> using sm_same_t = typename sm_same<T>::type;

/* The base of Apple's numeric_limits; third-party texts specialise it. */
template <class T> struct _numeric_limits_impl;
template <class T> struct numeric_limits : _numeric_limits_impl<T> {};
#define SM_LIMITS_INTEGER(T, low, high)                                                    \
    template <> struct numeric_limits<T> {                                                 \
        static constexpr bool is_specialized = true, is_integer = true, is_exact = true;   \
        static constexpr bool is_signed = T(low) < T(0), has_infinity = false;             \
        static constexpr int digits = int(sizeof(T)) * 8 - (is_signed ? 1 : 0), radix = 2; \
        static constexpr int digits10 = digits * 30103 / 100000;                           \
        SM_X static constexpr T min() { return T(low); }                                   \
        SM_X static constexpr T lowest() { return T(low); }                                \
        SM_X static constexpr T max() { return T(high); }                                  \
        SM_X static constexpr T epsilon() { return T(0); }                                 \
        SM_X static constexpr T infinity() { return T(0); }                                \
        SM_X static constexpr T quiet_NaN() { return T(0); }                               \
    };
SM_LIMITS_INTEGER(bool, 0, 1)
SM_LIMITS_INTEGER(char, CHAR_MIN, CHAR_MAX)
typedef signed char sm_schar;
SM_LIMITS_INTEGER(sm_schar, CHAR_MIN, CHAR_MAX)
SM_LIMITS_INTEGER(uchar, 0, UCHAR_MAX)
SM_LIMITS_INTEGER(short, SHRT_MIN, SHRT_MAX)
SM_LIMITS_INTEGER(ushort, 0, USHRT_MAX)
SM_LIMITS_INTEGER(int, INT_MIN, INT_MAX)
SM_LIMITS_INTEGER(uint, 0, UINT_MAX)
SM_LIMITS_INTEGER(long, LONG_MIN, LONG_MAX)
SM_LIMITS_INTEGER(ulong, 0, ULONG_MAX)
#undef SM_LIMITS_INTEGER
#define SM_LIMITS_REAL(T, mantissa, exponent, low, high, eps, tiny, inf)                   \
    template <> struct numeric_limits<T> {                                                 \
        static constexpr bool is_specialized = true, is_integer = false, is_exact = false; \
        static constexpr bool is_signed = true, has_infinity = true;                       \
        static constexpr int digits = mantissa, radix = 2, max_exponent = exponent;        \
        static constexpr int min_exponent = 3 - exponent;                                  \
        SM_X static constexpr T min() { return low; }                                      \
        SM_X static constexpr T max() { return high; }                                     \
        SM_X static constexpr T lowest() { return -high; }                                 \
        SM_X static constexpr T epsilon() { return eps; }                                  \
        SM_X static constexpr T denorm_min() { return tiny; }                              \
        SM_X static constexpr T infinity() { return inf; }                                 \
        SM_X static constexpr T quiet_NaN() { return T(NAN); }                             \
        SM_X static constexpr T signaling_NaN() { return T(NAN); }                         \
    };
SM_LIMITS_REAL(float, 24, 128, FLT_MIN, FLT_MAX, FLT_EPSILON, FLT_DENORM_MIN, INFINITY)
SM_LIMITS_REAL(half, 11, 16, HALF_MIN, HALF_MAX, HALF_EPSILON, HALF_DENORM_MIN, half(INFINITY))

} // namespace metal
