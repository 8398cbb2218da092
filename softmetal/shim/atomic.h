/* Atomics: relaxed only, as in MSL. */

namespace metal {

enum memory_order { memory_order_relaxed };
/* For atomic_thread_fence only; atomic operations do not accept these. */
enum sm_fence_order { memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst };
enum class mem_flags {
    mem_none = 0,
    mem_device = 1,
    mem_threadgroup = 2,
    mem_texture = 4,
    mem_threadgroup_imageblock = 8,
    mem_object_data = 16,
    mem_device_and_threadgroup = 3
};
SM_X constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
SM_X constexpr mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(int(a) & int(b)); }
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

template <class T> struct atomic {
    static_assert(is_same<T, int>::value || is_same<T, uint>::value || is_same<T, float>::value ||
                      is_same<T, bool>::value || is_same<T, ulong>::value || is_same<T, long>::value,
                  "MSL has no atomic of this type");
    T sm_value;
    atomic() = default;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;
typedef atomic<ulong> atomic_ulong;

template <class T> struct sm_atomic_bits {
    typedef conditional_t<sizeof(T) == 8, ulong, conditional_t<sizeof(T) == 4, uint, uchar>> type;
};
template <class T> using sm_atomic_bits_t = typename sm_atomic_bits<T>::type;
template <class T> SM_X inline sm_atomic_bits_t<T> *sm_where(const volatile atomic<T> *a)
{
    return (sm_atomic_bits_t<T> *)&a->sm_value;
}
template <class T> SM_X inline sm_atomic_bits_t<T> sm_raw(T x) { return __builtin_bit_cast(sm_atomic_bits_t<T>, x); }

template <class T> SM_X inline void atomic_store_explicit(volatile atomic<T> *a, sm_same_t<T> x, memory_order order)
{
    __atomic_store_n(sm_where(a), sm_raw(T(x)), __ATOMIC_RELAXED);
}
template <class T> SM_X inline T atomic_load_explicit(const volatile atomic<T> *a, memory_order order)
{
    return __builtin_bit_cast(T, __atomic_load_n(sm_where(a), __ATOMIC_RELAXED));
}
template <class T> SM_X inline T atomic_exchange_explicit(volatile atomic<T> *a, sm_same_t<T> x, memory_order order)
{
    return __builtin_bit_cast(T, __atomic_exchange_n(sm_where(a), sm_raw(T(x)), __ATOMIC_RELAXED));
}
template <class T>
SM_X inline bool atomic_compare_exchange_weak_explicit(volatile atomic<T> *a, T *expected, sm_same_t<T> x,
                                                       memory_order order, memory_order failure)
{
    sm_atomic_bits_t<T> old = sm_raw(*expected);
    bool same = __atomic_compare_exchange_n(sm_where(a), &old, sm_raw(T(x)), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    *expected = __builtin_bit_cast(T, old);
    return same;
}

struct sm_add {
    template <class T> SM_X static T of(T a, T b) { return T(a + b); }
};
struct sm_sub {
    template <class T> SM_X static T of(T a, T b) { return T(a - b); }
};
struct sm_min {
    template <class T> SM_X static T of(T a, T b) { return b < a ? b : a; }
};
struct sm_max {
    template <class T> SM_X static T of(T a, T b) { return a < b ? b : a; }
};
struct sm_and {
    template <class T> SM_X static T of(T a, T b) { return T(a & b); }
};
struct sm_or {
    template <class T> SM_X static T of(T a, T b) { return T(a | b); }
};
struct sm_xor {
    template <class T> SM_X static T of(T a, T b) { return T(a ^ b); }
};
struct sm_mul {
    template <class T> SM_X static T of(T a, T b) { return T(a * b); }
};
template <class F, class T> SM_LANE_OP inline T sm_fetch_with(volatile atomic<T> *a, T x)
{
#if defined(SM_COUNTED)
    sm_rt->count_access((const void *)a, sizeof(T), SM_ACCESS_WRITE | SM_ACCESS_ATOMIC, SM_SITE_ATOMIC);
#endif
    sm_atomic_bits_t<T> old = __atomic_load_n(sm_where(a), __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(sm_where(a), &old, sm_raw(T(F::template of<T>(__builtin_bit_cast(T, old), x))),
                                        false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return __builtin_bit_cast(T, old);
}
#define SM_FETCH(name, F, condition, why)                                                              \
    template <class T>                                                                                 \
    inline T atomic_fetch_##name##_explicit(volatile atomic<T> *a, sm_same_t<T> x, memory_order order) \
    {                                                                                                  \
        static_assert(condition, why);                                                                 \
        return sm_fetch_with<F, T>(a, x);                                                              \
    }
SM_FETCH(add, sm_add, sizeof(T) == 4, "atomic_fetch_add is for int, uint and float")
SM_FETCH(sub, sm_sub, sizeof(T) == 4, "atomic_fetch_sub is for int, uint and float")
SM_FETCH(min, sm_min, sizeof(T) == 4 && !is_floating_point<T>::value, "atomic_fetch_min is for int and uint")
SM_FETCH(max, sm_max, sizeof(T) == 4 && !is_floating_point<T>::value, "atomic_fetch_max is for int and uint")
SM_FETCH(and, sm_and, !is_floating_point<T>::value, "atomic_fetch_and is for int and uint")
SM_FETCH(or, sm_or, !is_floating_point<T>::value, "atomic_fetch_or is for int and uint")
SM_FETCH(xor, sm_xor, !is_floating_point<T>::value, "atomic_fetch_xor is for int and uint")
#undef SM_FETCH
SM_X inline void atomic_min_explicit(volatile atomic<ulong> *a, ulong x, memory_order order)
{
    sm_fetch_with<sm_min, ulong>(a, x);
}
SM_X inline void atomic_max_explicit(volatile atomic<ulong> *a, ulong x, memory_order order)
{
    sm_fetch_with<sm_max, ulong>(a, x);
}
SM_X inline void atomic_thread_fence(mem_flags, sm_fence_order, thread_scope = thread_scope_device)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- barriers ---- */

#if defined(SM_COUNTED)
SM_LANE_OP inline void sm_barrier(mem_flags flags, unsigned line)
{
    sm_rt->barrier_from(unsigned(flags), line, __builtin_return_address(0));
}
SM_LANE_OP inline void sm_simd_barrier(mem_flags flags, unsigned line)
{
    sm_rt->simd_barrier_from(unsigned(flags), line, __builtin_return_address(0));
}
#else
SM_X inline void sm_barrier(mem_flags flags, unsigned line) { sm_rt->barrier(unsigned(flags), line); }
SM_X inline void sm_simd_barrier(mem_flags flags, unsigned line) { sm_rt->simd_barrier(unsigned(flags), line); }
#endif
SM_X inline void threadgroup_barrier(mem_flags flags, unsigned line = __builtin_LINE())
{
    sm_barrier(flags, line);
}
SM_X inline void simdgroup_barrier(mem_flags flags, unsigned line = __builtin_LINE())
{
    sm_simd_barrier(flags, line);
}

} // namespace metal

using metal::atomic_bool;
using metal::atomic_float;
using metal::atomic_int;
using metal::atomic_uint;
using metal::atomic_ulong;
