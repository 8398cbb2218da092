/* vec<T, N>, packed vectors, array, as_type. A vector is a class with the members
 * x y z w. The translation replaces a swizzle by a call (sm_g_xy, sm_r_xy). Where it
 * cannot, the swizzle is a property of that name (clang's __declspec(property)).
 * msl/swizzle.c generates swizzleN.h. */

/* The elements of several scalars and vectors, concatenated. */
template <class T, int N> struct sm_flat {
    T e[N];
    int n;
    template <class U> SM_X constexpr void add(U s) { e[n++] = T(s); }
    template <class U, int M> SM_X constexpr void add(const vec<U, M> &v)
    {
        for (int i = 0; i < M; i++) e[n++] = T(v.sm_at(i));
    }
    template <class U, int M> SM_X constexpr void add(const packed_vec<U, M> &v)
    {
        for (int i = 0; i < M; i++) e[n++] = T(v.sm_at(i));
    }
};
template <class T> struct sm_width : metal::integral_constant<int, 1> {};
template <class T, int N> struct sm_width<vec<T, N>> : metal::integral_constant<int, N> {};
template <class T, int N> struct sm_width<packed_vec<T, N>> : metal::integral_constant<int, N> {};
template <class T, int N, class... A> SM_X constexpr sm_flat<T, N> sm_flatten(const A &...a)
{
    sm_flat<T, N> f = {};
    (f.add(a), ...);
    return f;
}
template <class T, int N> SM_X inline sm_flat<T, N> sm_flat_of(const volatile vec<T, N> &v)
{
    sm_flat<T, N> f = {};
    for (int i = 0; i < N; i++) f.add(T(((const volatile T *)&v)[i]));
    return f;
}
struct sm_tag {};

/* References to elements of a vector, for assignment. */
template <class T, int N> struct sm_swizzled {
    T *e[N];
    SM_X vec<T, N> get() const
    {
        vec<T, N> v;
        for (int i = 0; i < N; i++) v[i] = *e[i];
        return v;
    }
    SM_X vec<T, N> operator=(vec<T, N> v) const
    {
        for (int i = 0; i < N; i++) *e[i] = v[i];
        return v;
    }
#define SM_CHANGE(op) \
    SM_X vec<T, N> operator op##=(vec<T, N> v) const { return *this = get() op v; }
    SM_CHANGE(+)
    SM_CHANGE(-)
    SM_CHANGE(*)
    SM_CHANGE(/)
    SM_CHANGE(%)
    SM_CHANGE(&)
    SM_CHANGE(|)
    SM_CHANGE(^)
    SM_CHANGE(<<)
    SM_CHANGE(>>)
#undef SM_CHANGE
    SM_X vec<T, N> operator++() const { return *this = get() + vec<T, N>(T(1)); }
    SM_X vec<T, N> operator--() const { return *this = get() - vec<T, N>(T(1)); }
};

/* Counted builds (softmetal/count): a vector that has a constructor for copies is passed by reference, and LLVM sees
 * its elements. Otherwise the calling convention of the CPU packs them into integers of 64 bits, and the optimiser
 * computes with those. */
#if defined(SM_COUNTED)
#define SM_BY_ELEMENT(type, members)                \
    SM_X constexpr type(const type &o) : members {} \
    type &operator=(const type &) = default;
#define SM_MEMBERS_OF_2 x(o.x), y(o.y)
#define SM_MEMBERS_OF_3 x(o.x), y(o.y), z(o.z)
#define SM_MEMBERS_OF_4 x(o.x), y(o.y), z(o.z), w(o.w)
#else
#define SM_BY_ELEMENT(type, members)
#endif

#define SM_VEC_BODY(N)                                                                                       \
    typedef T value_type;                                                                                    \
    vec() = default;                                                                                         \
    SM_X constexpr vec(T s) : vec(sm_tag(), s, N) {}                                                         \
    template <class I, class = metal::enable_if_t<metal::sm_integer<I>::value && !__is_arithmetic(T)>>       \
    SM_X constexpr vec(I s) : vec(T(s)) /* for bfloat, which is a class */                                   \
    {                                                                                                        \
    }                                                                                                        \
    template <class... A, class = metal::enable_if_t<(sizeof...(A) > 1 && (sm_width<A>::value + ...) <= N)>> \
    SM_X constexpr vec(A... a) : vec(sm_flatten<T, N>(a...))                                                 \
    {                                                                                                        \
    }                                                                                                        \
    template <class U> SM_X explicit constexpr vec(vec<U, N> v) : vec(sm_flatten<T, N>(v)) {}                \
    SM_BY_ELEMENT(vec, SM_MEMBERS_OF_##N)                                                                    \
    template <class U> SM_X constexpr vec(packed_vec<U, N> v) : vec(sm_flatten<T, N>(v)) {}                  \
    constexpr T sm_at(int i) const                                                                           \
    {                                                                                                        \
        if (__builtin_is_constant_evaluated()) {                                                             \
            const T e[N] = {SM_MEMBERS_##N};                                                                 \
            return e[i];                                                                                     \
        }                                                                                                    \
        return (&x)[i];                                                                                      \
    }                                                                                                        \
    SM_X T &operator[](int i) { return (&x)[i]; }                                                            \
    SM_X T &operator[](uint i) { return (&x)[int(i)]; }                                                      \
    SM_X constexpr T operator[](int i) const { return sm_at(i); }                                            \
    SM_X constexpr T operator[](uint i) const { return sm_at(int(i)); }                                      \
    template <class I> SM_X T &operator[](I i) { return (&x)[int(i)]; }                                      \
    template <class I> SM_X constexpr T operator[](I i) const { return sm_at(int(i)); }                      \
    template <class I> SM_X volatile T &operator[](I i) volatile { return ((volatile T *)this)[int(i)]; }    \
    /* Volatile vectors are copied by templates: a copy constructor or an assignment for them would make     \
     * vectors types that are not trivial to copy. */                                                        \
    template <class U, class = metal::enable_if_t<metal::is_same<U, T>::value>>                              \
    SM_X vec(const volatile vec<U, N> &v) : vec(sm_flat_of(v))                                               \
    {                                                                                                        \
    }                                                                                                        \
    template <class U, class = metal::enable_if_t<metal::is_same<U, T>::value>>                              \
    SM_X vec operator=(const vec<U, N> &v) volatile                                                          \
    {                                                                                                        \
        for (int i = 0; i < N; i++) ((volatile T *)this)[i] = v.sm_at(i);                                    \
        return v;                                                                                            \
    }

/* One line for each operator. A body is compiled only if it is used, so % of floats is an error at its use. */
#define SM_VEC_OPERATORS(N)                                                                                       \
    SM_OP(N, +)                                                                                                   \
    SM_OP(N, -)                                                                                                   \
    SM_OP(N, *)                                                                                                   \
    SM_OP(N, /) SM_OP(N, %) SM_OP(N, &) SM_OP(N, |) SM_OP(N, ^) SM_OP(N, <<) SM_OP(N, >>) SM_COMPARE(N, ==)       \
        SM_COMPARE(N, !=) SM_COMPARE(N, <) SM_COMPARE(N, <=) SM_COMPARE(N, >) SM_COMPARE(N, >=) SM_COMPARE(N, &&) \
            SM_COMPARE(N, ||) SM_X friend constexpr vec                                                           \
            operator+(vec a)                                                                                      \
    {                                                                                                             \
        return a;                                                                                                 \
    }                                                                                                             \
    SM_X friend vec &operator++(vec &a) { return a = a + vec(T(1)); }                                             \
    SM_X friend vec &operator--(vec &a) { return a = a - vec(T(1)); }                                             \
    SM_X friend vec operator++(vec &a, int)                                                                       \
    {                                                                                                             \
        vec b = a;                                                                                                \
        a = a + vec(T(1));                                                                                        \
        return b;                                                                                                 \
    }                                                                                                             \
    SM_X friend vec operator--(vec &a, int)                                                                       \
    {                                                                                                             \
        vec b = a;                                                                                                \
        a = a - vec(T(1));                                                                                        \
        return b;                                                                                                 \
    }

/* Vectors get their alignment from a base class: alignas on the vector would guarantee it for every pointer. GPUs
 * accept vectors at addresses of elements, and third-party kernels rely on it (-fmax-type-align in msl/build.c). */
template <unsigned long A> struct alignas(A) sm_aligned {};

template <class T> struct vec<T, 2> : sm_aligned<2 * sizeof(T)> {
    T x, y;
    SM_X constexpr vec(sm_tag, T s, int) : x(s), y(s) {}
    SM_X constexpr vec(T a, T b) : x(a), y(b) {}
    SM_X constexpr vec(sm_flat<T, 2> f) : x(f.e[0]), y(f.e[1]) {}
#define SM_MEMBERS_2 x, y
    SM_VEC_BODY(2)
#define SM_OP(N, op)                                                                                  \
    SM_X friend constexpr vec operator op(vec a, vec b) { return vec(T(a.x op b.x), T(a.y op b.y)); } \
    SM_X friend constexpr vec &operator op##=(vec & a, vec b) { return a = a op b; }
#define SM_COMPARE(N, op)                                        \
    SM_X friend constexpr vec<bool, 2> operator op(vec a, vec b) \
    {                                                            \
        return vec<bool, 2>(bool(a.x op b.x), bool(a.y op b.y)); \
    }
    SM_VEC_OPERATORS(2)
    SM_X friend constexpr vec operator-(vec a) { return vec(T(-a.x), T(-a.y)); }
    SM_X friend constexpr vec operator~(vec a) { return vec(T(~a.x), T(~a.y)); }
    SM_X friend constexpr vec<bool, 2> operator!(vec a) { return vec<bool, 2>(!a.x, !a.y); }
#undef SM_OP
#undef SM_COMPARE
#include "swizzle2.h"
};

template <class T> struct vec<T, 3> : sm_aligned<4 * sizeof(T)> {
    T x, y, z;
    SM_X constexpr vec(sm_tag, T s, int) : x(s), y(s), z(s) {}
    SM_X constexpr vec(T a, T b, T c) : x(a), y(b), z(c) {}
    SM_X constexpr vec(sm_flat<T, 3> f) : x(f.e[0]), y(f.e[1]), z(f.e[2]) {}
#define SM_MEMBERS_3 x, y, z
    SM_VEC_BODY(3)
#define SM_OP(N, op)                                                                                                 \
    SM_X friend constexpr vec operator op(vec a, vec b) { return vec(T(a.x op b.x), T(a.y op b.y), T(a.z op b.z)); } \
    SM_X friend constexpr vec &operator op##=(vec & a, vec b) { return a = a op b; }
#define SM_COMPARE(N, op)                                                          \
    SM_X friend constexpr vec<bool, 3> operator op(vec a, vec b)                   \
    {                                                                              \
        return vec<bool, 3>(bool(a.x op b.x), bool(a.y op b.y), bool(a.z op b.z)); \
    }
    SM_VEC_OPERATORS(3)
    SM_X friend constexpr vec operator-(vec a) { return vec(T(-a.x), T(-a.y), T(-a.z)); }
    SM_X friend constexpr vec operator~(vec a) { return vec(T(~a.x), T(~a.y), T(~a.z)); }
    SM_X friend constexpr vec<bool, 3> operator!(vec a) { return vec<bool, 3>(!a.x, !a.y, !a.z); }
#undef SM_OP
#undef SM_COMPARE
#include "swizzle3.h"
};

template <class T> struct vec<T, 4> : sm_aligned<4 * sizeof(T)> {
    T x, y, z, w;
    SM_X constexpr vec(sm_tag, T s, int) : x(s), y(s), z(s), w(s) {}
    SM_X constexpr vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
    SM_X constexpr vec(sm_flat<T, 4> f) : x(f.e[0]), y(f.e[1]), z(f.e[2]), w(f.e[3]) {}
#define SM_MEMBERS_4 x, y, z, w
    SM_VEC_BODY(4)
#define SM_OP(N, op)                                                            \
    SM_X friend constexpr vec operator op(vec a, vec b)                         \
    {                                                                           \
        return vec(T(a.x op b.x), T(a.y op b.y), T(a.z op b.z), T(a.w op b.w)); \
    }                                                                           \
    SM_X friend constexpr vec &operator op##=(vec & a, vec b) { return a = a op b; }
#define SM_COMPARE(N, op)                                                                            \
    SM_X friend constexpr vec<bool, 4> operator op(vec a, vec b)                                     \
    {                                                                                                \
        return vec<bool, 4>(bool(a.x op b.x), bool(a.y op b.y), bool(a.z op b.z), bool(a.w op b.w)); \
    }
    SM_VEC_OPERATORS(4)
    SM_X friend constexpr vec operator-(vec a) { return vec(T(-a.x), T(-a.y), T(-a.z), T(-a.w)); }
    SM_X friend constexpr vec operator~(vec a) { return vec(T(~a.x), T(~a.y), T(~a.z), T(~a.w)); }
    SM_X friend constexpr vec<bool, 4> operator!(vec a) { return vec<bool, 4>(!a.x, !a.y, !a.z, !a.w); }
#undef SM_OP
#undef SM_COMPARE
#include "swizzle4.h"
};

/* The shift counts may have another type than the shifted vector. */
template <class T, class U>
using sm_if_shifts = metal::enable_if_t<!metal::is_same<T, U>::value && __is_integral(T) && __is_integral(U)>;
template <class T, class U, int N, class = sm_if_shifts<T, U>>
SM_X constexpr vec<T, N> operator<<(vec<T, N> a, vec<U, N> b)
{
    return a << vec<T, N>(b);
}
template <class T, class U, int N, class = sm_if_shifts<T, U>>
SM_X constexpr vec<T, N> operator>>(vec<T, N> a, vec<U, N> b)
{
    return a >> vec<T, N>(b);
}

template <class V> struct sm_volatile {};
template <class T, int N> struct sm_volatile<volatile vec<T, N>> {
    typedef vec<T, N> type;
};
#define SM_CHANGE(op)                                                            \
    template <class V, class B, class T = typename sm_volatile<V>::type>         \
    SM_X T operator op##=(V & a, const B & b)                                    \
    {                                                                            \
        return a = T(a) op T(b);                                                 \
    }
SM_CHANGE(+)
SM_CHANGE(-)
SM_CHANGE(*)
SM_CHANGE(/)
SM_CHANGE(%)
SM_CHANGE(&)
SM_CHANGE(|)
SM_CHANGE(^)
SM_CHANGE(<<)
SM_CHANGE(>>)
#undef SM_CHANGE

/* ---- packed vectors, with the alignment of their elements ---- */

template <class T, int N> struct packed_vec {
    T sm_e[N];
    packed_vec() = default;
    SM_X constexpr packed_vec(T s) : sm_e{}
    {
        for (int i = 0; i < N; i++) sm_e[i] = s;
    }
    template <class... A, class = metal::enable_if_t<(sizeof...(A) > 1 && (sm_width<A>::value + ...) <= N)>>
    SM_X constexpr packed_vec(A... a) : packed_vec(vec<T, N>(a...))
    {
    }
    SM_X constexpr packed_vec(vec<T, N> v) : sm_e{}
    {
        for (int i = 0; i < N; i++) sm_e[i] = v.sm_at(i);
    }
    template <class U> SM_X explicit constexpr packed_vec(vec<U, N> v) : packed_vec(vec<T, N>(v)) {}
    SM_X constexpr T sm_at(int i) const { return sm_e[i]; }
    SM_X T &operator[](int i) { return sm_e[i]; }
    SM_X constexpr T operator[](int i) const { return sm_e[i]; }
    SM_X constexpr T sm_get_x() const { return sm_e[0]; }
    SM_X constexpr T sm_get_y() const { return sm_e[1]; }
    SM_X constexpr T sm_get_z() const { return sm_e[2]; }
    SM_X constexpr T sm_get_w() const { return sm_e[3]; }
    SM_X void sm_put_x(T v) { sm_e[0] = v; }
    SM_X void sm_put_y(T v) { sm_e[1] = v; }
    SM_X void sm_put_z(T v) { sm_e[2] = v; }
    SM_X void sm_put_w(T v) { sm_e[3] = v; }
    __declspec(property(get = sm_get_x, put = sm_put_x)) T x;
    __declspec(property(get = sm_get_y, put = sm_put_y)) T y;
    __declspec(property(get = sm_get_z, put = sm_put_z)) T z;
    __declspec(property(get = sm_get_w, put = sm_put_w)) T w;
};
template <class T> struct sm_is_packed : metal::false_type {};
template <class T, int N> struct sm_is_packed<packed_vec<T, N>> : metal::true_type {};
#define SM_PACKED_OP(op)                                                                               \
    template <class T, int N, class B> SM_X constexpr auto operator op(packed_vec<T, N> a, const B &b) \
    {                                                                                                  \
        return vec<T, N>(a) op vec<T, N>(b);                                                           \
    }                                                                                                  \
    template <class T, int N, class A, class = metal::enable_if_t<!sm_is_packed<A>::value>>            \
    SM_X constexpr auto operator op(const A &a, packed_vec<T, N> b)                                    \
    {                                                                                                  \
        return vec<T, N>(a) op vec<T, N>(b);                                                           \
    }
SM_PACKED_OP(+)
SM_PACKED_OP(-)
SM_PACKED_OP(*)
SM_PACKED_OP(/)
SM_PACKED_OP(==)
SM_PACKED_OP(!=)
#undef SM_PACKED_OP
#define SM_PACKED_ASSIGN(op)                                                                              \
    template <class T, int N, class B> packed_vec<T, N> &operator op##=(packed_vec<T, N> &a, const B & b) \
    {                                                                                                     \
        return a = vec<T, N>(a) op vec<T, N>(b);                                                          \
    }
SM_PACKED_ASSIGN(+)
SM_PACKED_ASSIGN(-)
SM_PACKED_ASSIGN(*)
SM_PACKED_ASSIGN(/)
#undef SM_PACKED_ASSIGN
template <class T, int N> SM_X constexpr vec<T, N> operator-(packed_vec<T, N> a) { return -vec<T, N>(a); }

/* ---- names ---- */

#define SM_NAMES(T)                         \
    typedef vec<T, 2> T##2;                 \
    typedef vec<T, 3> T##3;                 \
    typedef vec<T, 4> T##4;                 \
    typedef packed_vec<T, 2> packed_##T##2; \
    typedef packed_vec<T, 3> packed_##T##3; \
    typedef packed_vec<T, 4> packed_##T##4; \
    namespace metal {                       \
    using ::T##2;                           \
    using ::T##3;                           \
    using ::T##4;                           \
    using ::packed_##T##2;                  \
    using ::packed_##T##3;                  \
    using ::packed_##T##4;                  \
    }
SM_NAMES(bool)
SM_NAMES(char)
SM_NAMES(uchar)
SM_NAMES(short)
SM_NAMES(ushort)
SM_NAMES(int)
SM_NAMES(uint)
SM_NAMES(long)
SM_NAMES(ulong)
SM_NAMES(half)
SM_NAMES(float)
SM_NAMES(bfloat)
#undef SM_NAMES

namespace metal {
using ::half;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::packed_vec;
using ::ptrdiff_t;
using ::size_t;
using ::uchar;
using ::uint;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::ulong;
using ::ushort;
using ::vec;

/* array<T, N> is a name for a type of T[N], because the length of such an array is deduced for a template parameter of
 * any integer type: f(array<T, N>) may have an int or a uint N. */
template <class A> struct sm_array;
template <class T, size_t N> using array = sm_array<T[N]>;
template <class T, size_t N> struct sm_array<T[N]> {
    T sm_elements[N];
    SM_X constexpr T &operator[](size_t i) { return sm_elements[i]; }
    SM_X constexpr const T &operator[](size_t i) const { return sm_elements[i]; }
    SM_X constexpr size_t size() const { return N; }
    SM_X constexpr const T *data() const { return sm_elements; }
    SM_X constexpr T *data() { return sm_elements; }
    SM_X constexpr const T *begin() const { return sm_elements; }
    SM_X constexpr T *begin() { return sm_elements; }
    SM_X constexpr const T *end() const { return sm_elements + N; }
    SM_X constexpr T *end() { return sm_elements + N; }
};

template <class T, int N> struct numeric_limits<vec<T, N>> {
    typedef numeric_limits<T> sm_one;
    static constexpr bool is_specialized = true, is_integer = sm_one::is_integer, is_exact = sm_one::is_exact;
    static constexpr bool is_signed = sm_one::is_signed, has_infinity = sm_one::has_infinity;
    static constexpr int digits = sm_one::digits, radix = 2;
    SM_X static constexpr vec<T, N> min() { return vec<T, N>(sm_one::min()); }
    SM_X static constexpr vec<T, N> max() { return vec<T, N>(sm_one::max()); }
    SM_X static constexpr vec<T, N> lowest() { return vec<T, N>(sm_one::lowest()); }
    SM_X static constexpr vec<T, N> epsilon() { return vec<T, N>(sm_one::epsilon()); }
    SM_X static constexpr vec<T, N> denorm_min() { return vec<T, N>(sm_one::denorm_min()); }
    SM_X static constexpr vec<T, N> infinity() { return vec<T, N>(sm_one::infinity()); }
    SM_X static constexpr vec<T, N> quiet_NaN() { return vec<T, N>(sm_one::quiet_NaN()); }
    SM_X static constexpr vec<T, N> signaling_NaN() { return vec<T, N>(sm_one::signaling_NaN()); }
};
} // namespace metal

/* Reinterprets the bits as another type of the same size; a vector of 3 has the size of 4. */
template <class T, class U> SM_X constexpr T as_type(U x)
{
    static_assert(sizeof(T) == sizeof(U), "as_type needs types of the same size");
    if constexpr (__is_trivially_copyable(T) && __is_trivially_copyable(U)) {
        return __builtin_bit_cast(T, x);
    } else { /* SM_BY_ELEMENT */
        T bits;
        __builtin_memcpy(&bits, &x, sizeof bits);
        return bits;
    }
}
namespace metal {
using ::as_type;
template <class T> struct is_vector : false_type {};
template <class T, int N> struct is_vector<vec<T, N>> : true_type {};
template <class T> constexpr bool is_vector_v = is_vector<T>::value;
template <class T> struct vec_elements {
    static constexpr const int value = 1;
};
template <class T, int N> struct vec_elements<vec<T, N>> {
    static constexpr const int value = N;
};
} // namespace metal
