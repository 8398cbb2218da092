/* The pointer to the runtime, and the functions that the compiler's sanitizers call: those
 * of the safe stack in plain builds, those of the thread sanitizer in builds with lockstep, and
 * those of the thread and undefined behaviour sanitizers in checked builds. They replace the usual runtimes. */

/* The runtime while the module is loaded. Program-scope constants that clang cannot evaluate are initialised then, on
 * the thread of the host: arrays are on a small stack of the module, and nothing is checked. A constant cannot depend
 * on lanes; if its initial value does, the module is refused (runtime/load.c). */
static int sm_start_misused;
static sm_record sm_start_record;
static void *sm_start_top;
static sm_record *sm_start_exchange(const void *, unsigned, unsigned)
{
    sm_start_misused = 1;
    return &sm_start_record;
}
static void sm_start_barrier(unsigned, unsigned) { sm_start_misused = 1; }
static unsigned sm_start_lane()
{
    sm_start_misused = 1;
    return 0;
}
static void sm_start_access(const void *, unsigned long, int, const void *) {}
static void sm_start_arithmetic(const char *, const char *, unsigned, unsigned) { sm_start_misused = 1; }
static unsigned sm_start_random() { return 0; }
__attribute__((no_sanitize("safe-stack"))) static void **sm_start_arrays()
{
    alignas(64) static char stack[65536];
    if (!sm_start_top) sm_start_top = stack + sizeof stack;
    return &sm_start_top;
}
static const sm_runtime sm_start_runtime = {sm_start_exchange, sm_start_barrier,    sm_start_barrier, sm_start_lane,
                                            sm_start_access,   sm_start_arithmetic, sm_start_random,  sm_start_arrays};

__attribute__((visibility("hidden"))) const sm_runtime *sm_rt = &sm_start_runtime;

#if defined(SM_CHECKED) || defined(SM_LOCKSTEP)
#define SM_HOOK extern "C" __attribute__((no_sanitize("thread"), nodebug, visibility("hidden"), used))
#define SM_PC __builtin_return_address(0)

SM_HOOK void __tsan_init() {}
SM_HOOK void __tsan_func_entry(void *) {}
SM_HOOK void __tsan_func_exit() {}
SM_HOOK void __tsan_vptr_update(void **, void *) {}
SM_HOOK void __tsan_vptr_read(void **) {}
SM_HOOK void __tsan_read_range(void *p, unsigned long n) { sm_rt->access(p, n, SM_ACCESS_READ, SM_PC); }
SM_HOOK void __tsan_write_range(void *p, unsigned long n) { sm_rt->access(p, n, SM_ACCESS_WRITE, SM_PC); }
#define SM_PLAIN(n)                                                                                  \
    SM_HOOK void __tsan_read##n(void *p) { sm_rt->access(p, n, SM_ACCESS_READ, SM_PC); }             \
    SM_HOOK void __tsan_write##n(void *p) { sm_rt->access(p, n, SM_ACCESS_WRITE, SM_PC); }           \
    SM_HOOK void __tsan_unaligned_read##n(void *p) { sm_rt->access(p, n, SM_ACCESS_READ, SM_PC); }   \
    SM_HOOK void __tsan_unaligned_write##n(void *p) { sm_rt->access(p, n, SM_ACCESS_WRITE, SM_PC); } \
    SM_HOOK void __tsan_read_write##n(void *p)                                                       \
    {                                                                                                \
        sm_rt->access(p, n, SM_ACCESS_READ, SM_PC);                                                  \
        sm_rt->access(p, n, SM_ACCESS_WRITE, SM_PC);                                                 \
    }
SM_PLAIN(1)
SM_PLAIN(2)
SM_PLAIN(4)
SM_PLAIN(8)
SM_PLAIN(16)
#undef SM_PLAIN
SM_HOOK void *__tsan_memcpy(void *to, const void *from, unsigned long n)
{
    sm_rt->access(from, n, SM_ACCESS_READ, SM_PC);
    sm_rt->access(to, n, SM_ACCESS_WRITE, SM_PC);
    return __builtin_memcpy(to, from, n);
}
SM_HOOK void *__tsan_memmove(void *to, const void *from, unsigned long n)
{
    sm_rt->access(from, n, SM_ACCESS_READ, SM_PC);
    sm_rt->access(to, n, SM_ACCESS_WRITE, SM_PC);
    return __builtin_memmove(to, from, n);
}
SM_HOOK void *__tsan_memset(void *to, int value, unsigned long n)
{
    sm_rt->access(to, n, SM_ACCESS_WRITE, SM_PC);
    return __builtin_memset(to, value, n);
}

#if defined(SM_CHECKED)
/* Only one OS thread runs a checked kernel, so plain operations are enough. */
#define SM_CHANGE(T, bits, name, expression)                                                  \
    SM_HOOK T __tsan_atomic##bits##_##name(volatile T *p, T x, int)                           \
    {                                                                                         \
        sm_rt->access((const void *)p, sizeof(T), SM_ACCESS_WRITE | SM_ACCESS_ATOMIC, SM_PC); \
        T old = *p;                                                                           \
        *p = expression;                                                                      \
        return old;                                                                           \
    }
#define SM_ATOMICS(T, bits)                                                                        \
    SM_HOOK T __tsan_atomic##bits##_load(const volatile T *p, int)                                 \
    {                                                                                              \
        sm_rt->access((const void *)p, sizeof(T), SM_ACCESS_READ | SM_ACCESS_ATOMIC, SM_PC);       \
        return *p;                                                                                 \
    }                                                                                              \
    SM_HOOK void __tsan_atomic##bits##_store(volatile T *p, T x, int)                              \
    {                                                                                              \
        sm_rt->access((const void *)p, sizeof(T), SM_ACCESS_WRITE | SM_ACCESS_ATOMIC, SM_PC);      \
        *p = x;                                                                                    \
    }                                                                                              \
    SM_CHANGE(T, bits, exchange, x)                                                                \
    SM_CHANGE(T, bits, fetch_add, T(old + x))                                                      \
    SM_CHANGE(T, bits, fetch_sub, T(old - x))                                                      \
    SM_CHANGE(T, bits, fetch_and, T(old &x))                                                       \
    SM_CHANGE(T, bits, fetch_or, T(old | x))                                                       \
    SM_CHANGE(T, bits, fetch_xor, T(old ^ x))                                                      \
    SM_HOOK T __tsan_atomic##bits##_compare_exchange_val(volatile T *p, T expected, T x, int, int) \
    {                                                                                              \
        sm_rt->access((const void *)p, sizeof(T), SM_ACCESS_WRITE | SM_ACCESS_ATOMIC, SM_PC);      \
        T old = *p;                                                                                \
        if (old == expected) *p = x;                                                               \
        return old;                                                                                \
    }
typedef unsigned char sm_u8;
SM_ATOMICS(sm_u8, 8)
typedef unsigned short sm_u16;
SM_ATOMICS(sm_u16, 16)
typedef unsigned int sm_u32;
SM_ATOMICS(sm_u32, 32)
typedef unsigned long sm_u64;
SM_ATOMICS(sm_u64, 64)
#undef SM_ATOMICS
#undef SM_CHANGE
SM_HOOK void __tsan_atomic_thread_fence(int) {}
SM_HOOK void __tsan_atomic_signal_fence(int) {}

struct sm_source {
    const char *file;
    unsigned line, column;
};
#define SM_UNDEFINED(name, text, ...)                                      \
    SM_HOOK void __ubsan_handle_##name(const sm_source *at, ##__VA_ARGS__) \
    {                                                                      \
        sm_rt->arithmetic(text, at->file, at->line, at->column);           \
    }
SM_UNDEFINED(out_of_bounds, "an index outside of its array", unsigned long)
SM_UNDEFINED(shift_out_of_bounds, "a shift by a negative number or by as many bits as there are", unsigned long,
             unsigned long)
SM_UNDEFINED(divrem_overflow, "an integer division by zero or one that overflows", unsigned long, unsigned long)
SM_UNDEFINED(float_cast_overflow, "a conversion of a number that does not fit the integer", unsigned long)
#undef SM_UNDEFINED
#endif
#undef SM_HOOK
#undef SM_PC
#endif

#if !defined(SM_CHECKED)
extern "C" __attribute__((no_sanitize("safe-stack"), nodebug, visibility("hidden"), used))
void **__safestack_pointer_address()
{
    return sm_rt->arrays();
}
#endif

#if defined(SM_COUNTED)
/* Called before accesses; count/pass.c adds the calls. */
extern "C" __attribute__((nodebug, noinline, visibility("hidden"), used)) void sm_count_hook(const void *address,
                                                                                            unsigned size, int kind,
                                                                                            unsigned site)
{
    sm_rt->count_access(address, size, kind, site);
}
#endif

#if defined(SM_COVERED)
#define SM_COVER_HOOK extern "C" __attribute__((no_sanitize("coverage", "thread"), nodebug, visibility("hidden"), used))
extern "C" __attribute__((visibility("default"))) sm_cover sm_kernel_cover;
sm_cover sm_kernel_cover;
SM_COVER_HOOK void __sanitizer_cov_bool_flag_init(bool *start, bool *end)
{
    sm_kernel_cover.ran = (const unsigned char *)start;
    sm_kernel_cover.ran_end = (const unsigned char *)end;
}
SM_COVER_HOOK void __sanitizer_cov_pcs_init(const unsigned long *start, const unsigned long *)
{
    sm_kernel_cover.blocks = start;
}
#endif
