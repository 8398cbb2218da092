/* CUMSUM, CUMPROD, CUMMAX (cumulative.h): a threadgroup processes a row in pieces with one element a
 * thread. Each piece is a Hillis-Steele scan: in step k a thread combines its state with that of the
 * thread 2^k before it.
 *
 * Floats are pairs (48 bits), integers 64 bits. grid: a threadgroup for each row, 32 * n threads.
 * threadgroup memory: two states a thread. */
#include "common.metal"
#include "cumulative_params.h"

constant uint dtype [[function_constant(MICA_CUMULATIVE_DTYPE)]];
constant uint result [[function_constant(MICA_CUMULATIVE_RESULT)]];
constant uint kind [[function_constant(MICA_CUMULATIVE_KIND)]]; /* MICA_CUMULATIVE_SUM, ... */
constant bool reverse [[function_constant(MICA_CUMULATIVE_REVERSE)]];
constant bool exclusive [[function_constant(MICA_CUMULATIVE_EXCLUSIVE)]];

constant constexpr uint PIECE = 256;                  /* threads, at most                */

/* A state is a float2 (a pair) or a ulong; the argument of first_state selects the overload. */
inline float2 first_state(float2)
{
    return float2(kind == MICA_CUMULATIVE_SUM ? 0.0f : kind == MICA_CUMULATIVE_PRODUCT ? 1.0f : -INFINITY, 0.0f);
}
inline float2 load_state(float2, device const uchar *x, long at) { return float2(load_float(dtype, x, at), 0.0f); }
/* Does not add a low part of 0: -0 + 0 would be 0. */
inline void store_state(device uchar *out, long at, float2 s)
{
    store_float(result, out, at, s.y == 0.0f ? s.x : s.x + s.y);
}
inline float2 join(float2 a, float2 b)
{
    if (kind == MICA_CUMULATIVE_MAXIMUM) return isnan(a.x) || a.x >= b.x ? a : b;
    const float plain = kind == MICA_CUMULATIVE_SUM ? a.x + b.x : a.x * b.x;
    if (!(fabs(plain) < INFINITY) || (kind == MICA_CUMULATIVE_PRODUCT && plain == 0.0f)) return float2(plain, 0.0f);
    float_pair p;
    if (kind == MICA_CUMULATIVE_SUM) p = pair_add(float_pair{a.x, a.y}, float_pair{b.x, b.y});
    else {
        p = pair_times(float_pair{a.x, a.y}, b.x);
        p = pair_sum(p.high, fma(a.x, b.y, p.low));
    }
    return float2(p.high, p.low);
}

inline ulong first_state(ulong)
{
    const ulong bits = dtype == I8 ? 7 : dtype == I16 ? 15 : dtype == I32 ? 31 : 63;
    if (kind == MICA_CUMULATIVE_MAXIMUM) return type_is_signed(dtype) ? ~0ul << bits : 0ul;
    return kind == MICA_CUMULATIVE_PRODUCT ? 1ul : 0ul;
}
inline ulong load_state(ulong, device const uchar *x, long at) { return ulong(load_long(dtype, x, at)); }
inline void store_state(device uchar *out, long at, ulong s) { store_long(result, out, at, long(s)); }
inline ulong join(ulong a, ulong b)
{
    if (kind == MICA_CUMULATIVE_SUM) return a + b;
    if (kind == MICA_CUMULATIVE_PRODUCT) return a * b;
    if (type_is_signed(dtype)) return long(a) >= long(b) ? a : b;
    return a >= b ? a : b;
}

template <typename S>
kernel void cumulative_rows(device const uchar *x [[buffer(0)]], device uchar *out [[buffer(1)]],
                            constant mica_cumulative_params &p [[buffer(2)]],
                            uint3 group [[threadgroup_position_in_grid]],
                            uint at [[thread_index_in_threadgroup]], uint3 threads [[threads_per_threadgroup]])
{
    threadgroup S states[2][PIECE];
    const long from = view_at(p.x, group.x), to = long(group.x) * p.n;
    S before = first_state(S(0));
    for (uint first = 0; first < p.n; first += threads.x) {
        const uint i = first + at, place = reverse ? p.n - 1 - i : i;
        S mine = i < p.n ? load_state(S(0), x, from + long(place) * p.step) : first_state(S(0));
        if (at == 0) mine = join(before, mine);
        uint side = 0;
        states[0][at] = mine;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint by = 1; by < threads.x; by *= 2, side ^= 1) {
            if (at >= by) mine = join(states[side][at - by], mine);
            states[side ^ 1][at] = mine;
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        if (i < p.n) {
            S show = mine;
            if (exclusive) show = before;
            if (exclusive && at > 0) show = states[side][at - 1];
            store_state(out, to + place, show);
        }
        before = states[side][threads.x - 1];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

template [[host_name("cumulative_floats")]] kernel decltype(cumulative_rows<float2>) cumulative_rows<float2>;
template [[host_name("cumulative_integers")]] kernel decltype(cumulative_rows<ulong>)
    cumulative_rows<ulong>;
