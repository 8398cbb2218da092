/* How the runtime calls a kernel. Each parameter has a tag that selects the value to pass;
 * the value is converted to the parameter's own type. */

enum class sm_kind {
    thread_position_in_grid,
    thread_position_in_threadgroup,
    threadgroup_position_in_grid,
    threads_per_threadgroup,
    threads_per_grid,
    threadgroups_per_grid,
    dispatch_threads_per_threadgroup,
    thread_index_in_threadgroup,
    thread_index_in_simdgroup,
    simdgroup_index_in_threadgroup,
    simdgroups_per_threadgroup,
    dispatch_simdgroups_per_threadgroup,
    threads_per_simdgroup,
    thread_execution_width,
    thread_index_in_quadgroup,
    quadgroup_index_in_threadgroup,
    quadgroups_per_threadgroup,
    dispatch_quadgroups_per_threadgroup,
    grid_origin,
    grid_size,
};

/* A position, before it is converted to the parameter's type. */
struct sm_value {
    uint e[3];
    int width;
};
template <class P> struct sm_unsigned {
    static constexpr bool value = metal::is_same<P, uint>::value || metal::is_same<P, ushort>::value;
};
template <class P> struct sm_to {
    static_assert(sm_unsigned<P>::value, "a kernel's position must be uint or ushort, or a vector of 2 or 3 of them");
    SM_X static P of(const sm_value &v) { return P(v.e[0]); }
};
template <class T, int N> struct sm_to<vec<T, N>> {
    static_assert(N <= 3 && sm_unsigned<T>::value,
                  "a kernel's position must be uint or ushort, or a vector of 2 or 3 of them");
    static vec<T, N> of(const sm_value &v)
    {
        vec<T, N> r;
        for (int i = 0; i < N; i++) r[i] = T(v.e[i]);
        return r;
    }
};

#if defined(SM_COUNTED)
/* Counted builds take the arguments from functions that the count recognises by name: positions are in registers
 * when a kernel starts, and the address of a buffer is the same for all threads. */
template <sm_kind K, int Axis> __attribute__((nodebug, noinline, __const__)) uint sm_count_position(const sm_thread &t);
template <int I, bool Constant> __attribute__((nodebug, noinline, __const__)) void *sm_count_buffer(const sm_thread &t)
{
    return t.group->buffers[I];
}
template <int I> __attribute__((nodebug, noinline, __const__)) void *sm_count_local(const sm_thread &t)
{
    return t.group->locals[I];
}
#endif

template <sm_kind K> struct sm_position {
    static constexpr int sm_argument_kind = -1, index = 0, needed = 0, constants = 0;
    SM_X static sm_value three(const unsigned *p) { return sm_value{{p[0], p[1], p[2]}, 3}; }
    SM_X static sm_value one(unsigned x) { return sm_value{{x, 1, 1}, 1}; }
    static sm_value value(const sm_thread &t)
    {
        const sm_group &g = *t.group;
        unsigned full = g.full[0] * g.full[1] * g.full[2];
        switch (K) {
        case sm_kind::thread_position_in_grid:
            return sm_value{{g.origin[0] + t.position[0], g.origin[1] + t.position[1], g.origin[2] + t.position[2]}, 3};
        case sm_kind::thread_position_in_threadgroup: return three(t.position);
        case sm_kind::threadgroup_position_in_grid: return three(g.position);
        case sm_kind::threads_per_threadgroup: return three(g.size);
        case sm_kind::threads_per_grid: return three(g.grid);
        case sm_kind::grid_size: return three(g.grid);
        case sm_kind::threadgroups_per_grid: return three(g.groups);
        case sm_kind::dispatch_threads_per_threadgroup: return three(g.full);
        case sm_kind::thread_index_in_threadgroup: return one(t.index);
        case sm_kind::thread_index_in_simdgroup: return one(t.index % 32);
        case sm_kind::simdgroup_index_in_threadgroup: return one(t.index / 32);
        case sm_kind::simdgroups_per_threadgroup: return one((g.threads + 31) / 32);
        case sm_kind::dispatch_simdgroups_per_threadgroup: return one((full + 31) / 32);
        case sm_kind::threads_per_simdgroup:
        case sm_kind::thread_execution_width: return one(32);
        case sm_kind::thread_index_in_quadgroup: return one(t.index % 4);
        case sm_kind::quadgroup_index_in_threadgroup: return one(t.index / 4);
        case sm_kind::quadgroups_per_threadgroup: return one((g.threads + 3) / 4);
        case sm_kind::dispatch_quadgroups_per_threadgroup: return one((full + 3) / 4);
        case sm_kind::grid_origin: return sm_value{{0, 0, 0}, 3};
        }
    }
    static constexpr bool is_one =
        K == sm_kind::thread_index_in_threadgroup || K == sm_kind::thread_index_in_simdgroup ||
        K == sm_kind::simdgroup_index_in_threadgroup || K == sm_kind::simdgroups_per_threadgroup ||
        K == sm_kind::dispatch_simdgroups_per_threadgroup || K == sm_kind::threads_per_simdgroup ||
        K == sm_kind::thread_execution_width || K == sm_kind::thread_index_in_quadgroup ||
        K == sm_kind::quadgroup_index_in_threadgroup || K == sm_kind::quadgroups_per_threadgroup ||
        K == sm_kind::dispatch_quadgroups_per_threadgroup;
    template <class P> SM_X static P get(const sm_thread &t)
    {
        static_assert(!is_one || sm_unsigned<metal::remove_cv_t<P>>::value,
                      "an index of a kernel's thread or group is one number: uint or ushort");
#if defined(SM_COUNTED)
        sm_value v = {{sm_count_position<K, 0>(t), 1, 1}, 1};
        if (!is_one) v.e[1] = sm_count_position<K, 1>(t), v.e[2] = sm_count_position<K, 2>(t);
        return sm_to<metal::remove_cv_t<P>>::of(v);
#else
        return sm_to<metal::remove_cv_t<P>>::of(value(t));
#endif
    }
};

#if defined(SM_COUNTED)
template <sm_kind K, int Axis> uint sm_count_position(const sm_thread &t) { return sm_position<K>::value(t).e[Axis]; }
#endif

template <class P> struct sm_pointer;
template <class T> struct sm_pointer<T *> {
    SM_X static T *of(void *p) { return (T *)p; }
};
template <class T> struct sm_pointer<T *const> {
    SM_X static T *of(void *p) { return (T *)p; }
};
template <class T> struct sm_pointer<T &> {
    SM_X static T &of(void *p) { return *(T *)p; }
};
template <int I, bool Needed, bool Constant = false> struct sm_buffer {
    static_assert(I >= 0 && I < 31, "the index of a buffer is between 0 and 30");
    static constexpr int sm_argument_kind = 0, index = I, needed = Needed, constants = Constant;
    template <class P> SM_X static P get(const sm_thread &t)
    {
        /* Not volatile: if the address is unused, the compiler deletes this statement and with it the byte in the
         * section sm_used. Metal requires a program to bind only the buffers that a kernel uses. */
#if defined(SM_COUNTED)
        void *address = sm_count_buffer<I, Constant>(t);
#else
        void *address = t.group->buffers[I];
#endif
        __asm__(".pushsection sm_used,\"aR\",@progbits\n.byte %c[index]\n.popsection" : "+r"(address) : [index] "i"(I));
        return sm_pointer<P>::of(address);
    }
};
template <int I, bool Needed> struct sm_local {
    static_assert(I >= 0 && I < 31, "the index of threadgroup memory is between 0 and 30");
    static constexpr int sm_argument_kind = 1, index = I, needed = Needed, constants = 0;
#if defined(SM_COUNTED)
    template <class P> SM_X static P get(const sm_thread &t) { return sm_pointer<P>::of(sm_count_local<I>(t)); }
#else
    template <class P> SM_X static P get(const sm_thread &t) { return sm_pointer<P>::of(t.group->locals[I]); }
#endif
};

template <class F, F f, class... Tags> struct sm_call;
template <class... P, void (*f)(P...), class... Tags> struct sm_call<void (*)(P...), f, Tags...> {
#if defined(SM_COVERED)
    static void run(const sm_thread *t) { f(Tags::template get<P>(*t)...); }
#else
    static void run(const sm_thread *t) { [[clang::always_inline]] f(Tags::template get<P>(*t)...); }
#endif
    static constexpr int count = (0 + ... + (Tags::sm_argument_kind >= 0 ? 1 : 0));
    struct table {
        sm_module_argument list[sizeof...(Tags) + 1];
    };
    SM_X static constexpr table make()
    {
        table t = {};
        int n = 0;
        ((Tags::sm_argument_kind >= 0
              ? (void)(t.list[n++] = {Tags::sm_argument_kind, Tags::index, Tags::needed, Tags::constants})
              : (void)0),
         ...);
        return t;
    }
    static constexpr table arguments = make();
};

extern "C" {
extern const unsigned char __start_sm_used[] __attribute__((weak, visibility("hidden")));
extern const unsigned char __stop_sm_used[] __attribute__((weak, visibility("hidden")));
}

#define SM_ENTRY(limit, ...)                                                                                    \
    namespace {                                                                                                 \
    using sm_this = sm_call<metal::remove_cv_t<decltype(sm_target)>, sm_target, ##__VA_ARGS__>;                 \
    }                                                                                                           \
    extern "C" __attribute__((visibility("default")))                                                           \
    const sm_module sm_kernel_module = {SM_ABI_VERSION, sm_this::run, &sm_rt,          sm_this::arguments.list, \
                                        sm_this::count, int(limit),   __start_sm_used, __stop_sm_used,          \
                                        &sm_start_misused};
