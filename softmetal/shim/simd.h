/* simd_* and quad_*: each lane contributes a value (sm_rt->exchange) and can read those of
 * the other lanes. A result that is the same for all lanes is computed by the first lane
 * that returns from the exchange. With SM_MATH=fuzz, reductions start at a random lane, and
 * the value of a lane that did not take part is garbage; the language allows both. */

namespace metal {

/* There are no overloads for bfloat: it is converted to float. */
template <class T> struct sm_exchanged {
    typedef T type;
};
template <> struct sm_exchanged<bfloat> {
    typedef float type;
};
template <class T> using sm_exchanged_t = typename sm_exchanged<T>::type;

template <class T> SM_X inline sm_record *sm_exchange_value(T x)
{
    static_assert(!is_same<T, bfloat>::value, "no simdgroup function takes a bfloat");
    static_assert(sizeof(T) <= SM_SLOT, "too large for a simdgroup function");
#if defined(SM_COUNTED)
    /* The operation is a function of its own: the site of the exchange is where that was called. */
    return sm_rt->exchange_from(&x, sizeof x, __builtin_return_address(0));
#else
    return sm_rt->exchange(&x, sizeof x, 0);
#endif
}
template <class T> SM_X inline T sm_slot_value(const sm_record *r, uint lane) { return *(const T *)r->slots[lane].bytes; }
template <class T> SM_X inline T &sm_result(sm_record *r, uint lane) { return *(T *)r->result[lane].bytes; }

/* Returns the lane's value if it took part. Otherwise the result is undefined, as on a GPU. */
template <class T> SM_X inline T sm_lane_value(const sm_record *r, uint lane)
{
    if (lane < 32 && r->mask >> lane & 1) return sm_slot_value<T>(r, lane);
    T garbage;
    unsigned char *p = (unsigned char *)&garbage;
    for (uint i = 0; i < sizeof(T); i++) p[i] = SM_MATH_MODE == 2 ? 0xA7 : 0;
    return garbage;
}

template <class F, class T> SM_X inline T sm_combine(T a, T b) { return F::of(a, b); }
template <class F, class T, int N> SM_X inline vec<T, N> sm_combine(vec<T, N> a, vec<T, N> b)
{
    for (int i = 0; i < N; i++) a[i] = F::of(a[i], b[i]);
    return a;
}
struct sm_fmin {
    template <class T> SM_X static T of(T a, T b) { return min(a, b); }
};
struct sm_fmax {
    template <class T> SM_X static T of(T a, T b) { return max(a, b); }
};

template <class F, class T> SM_X inline T sm_reduce(sm_record *r, uint mask)
{
    uint turn = SM_MATH_MODE == 2 ? r->random & 31 : 0;
    bool first = true;
    T sum = T();
    for (uint i = 0; i < 32; i++) {
        uint lane = (i + turn) & 31;
        if (!(mask >> lane & 1)) continue;
        sum = first ? sm_slot_value<T>(r, lane) : sm_combine<F>(sum, sm_slot_value<T>(r, lane));
        first = false;
    }
    return sum;
}
template <class F, class T> SM_LANE_OP inline T sm_simd_reduce(T x)
{
    sm_record *r = sm_exchange_value(x);
    if (!r->done) {
        r->done = 1;
        sm_result<T>(r, 0) = sm_reduce<F, T>(r, r->mask);
    }
    return sm_result<T>(r, 0);
}
template <class F, class T> SM_LANE_OP inline T sm_quad_reduce(T x)
{
    sm_record *r = sm_exchange_value(x);
    return sm_reduce<F, T>(r, r->mask & 15u << (r->lane & 28));
}
/* Prefix sums over the lanes; the exclusive sum of the first lane is the neutral element. */
template <class F, class T> SM_LANE_OP inline T sm_simd_prefix(T x, T neutral, bool inclusive, uint width)
{
    sm_record *r = sm_exchange_value(x);
    if (!r->done) {
        r->done = 1;
        T sum = neutral;
        for (uint i = 0; i < 32; i++) {
            if (i % width == 0) sum = neutral;
            if (!inclusive) sm_result<T>(r, i) = sum;
            if (r->mask >> i & 1) sum = sm_combine<F>(sum, sm_slot_value<T>(r, i));
            if (inclusive) sm_result<T>(r, i) = sum;
        }
    }
    return sm_result<T>(r, r->lane);
}

#if defined(SM_COUNTED)
/* One operation for each element, as on a GPU. */
#define SM_ELEMENTS(name)                                                      \
    template <class F, class T, int N> SM_X inline vec<T, N> name(vec<T, N> x) \
    {                                                                          \
        for (int i = 0; i < N; i++) x[i] = name<F>(x[i]);                      \
        return x;                                                              \
    }
SM_ELEMENTS(sm_simd_reduce)
SM_ELEMENTS(sm_quad_reduce)
#undef SM_ELEMENTS
template <class F, class T, int N>
SM_X inline vec<T, N> sm_simd_prefix(vec<T, N> x, vec<T, N> neutral, bool inclusive, uint width)
{
    for (int i = 0; i < N; i++) x[i] = sm_simd_prefix<F>(x[i], neutral[i], inclusive, width);
    return x;
}
#endif

#define SM_REDUCTION(name, F)                                         \
    template <class T> SM_X inline sm_exchanged_t<T> simd_##name(T x) \
    {                                                                 \
        return sm_simd_reduce<F>(sm_exchanged_t<T>(x));               \
    }                                                                 \
    template <class T> SM_X inline sm_exchanged_t<T> quad_##name(T x) \
    {                                                                 \
        return sm_quad_reduce<F>(sm_exchanged_t<T>(x));               \
    }
SM_REDUCTION(sum, sm_add)
SM_REDUCTION(product, sm_mul)
SM_REDUCTION(min, sm_fmin)
SM_REDUCTION(max, sm_fmax)
SM_REDUCTION(and, sm_and)
SM_REDUCTION(or, sm_or)
SM_REDUCTION(xor, sm_xor)
#undef SM_REDUCTION
#define SM_PREFIX_OF(name, F, neutral, inclusive, width)              \
    template <class T> SM_X inline sm_exchanged_t<T> name(T x)        \
    {                                                                 \
        typedef sm_exchanged_t<T> U;                                  \
        return sm_simd_prefix<F>(U(x), U(neutral), inclusive, width); \
    }
#define SM_PREFIX(name, F, neutral)                                   \
    SM_PREFIX_OF(simd_prefix_inclusive_##name, F, neutral, true, 32)  \
    SM_PREFIX_OF(simd_prefix_exclusive_##name, F, neutral, false, 32) \
    SM_PREFIX_OF(quad_prefix_inclusive_##name, F, neutral, true, 4)   \
    SM_PREFIX_OF(quad_prefix_exclusive_##name, F, neutral, false, 4)
SM_PREFIX(sum, sm_add, 0)
SM_PREFIX(product, sm_mul, 1)
#undef SM_PREFIX
#undef SM_PREFIX_OF

/* ---- shuffles ---- */

template <class T> SM_LANE_OP inline T sm_simd_shuffle(T x, ushort lane)
{
    return sm_lane_value<T>(sm_exchange_value(x), lane);
}
template <class T> SM_LANE_OP inline T sm_simd_broadcast(T x, ushort lane)
{
    return sm_lane_value<T>(sm_exchange_value(x), lane);
}
template <class T> SM_LANE_OP inline T sm_simd_broadcast_first(T x)
{
    sm_record *r = sm_exchange_value(x);
    return sm_slot_value<T>(r, uint(__builtin_ctz(r->mask)));
}
template <class T> SM_LANE_OP inline T sm_simd_shuffle_up(T x, ushort by)
{
    sm_record *r = sm_exchange_value(x);
    return sm_lane_value<T>(r, r->lane >= by ? r->lane - by : SM_MATH_MODE == 2 ? 32 : r->lane);
}
template <class T> SM_LANE_OP inline T sm_simd_shuffle_down(T x, ushort by)
{
    sm_record *r = sm_exchange_value(x);
    return sm_lane_value<T>(r, r->lane + by < 32 ? r->lane + by : SM_MATH_MODE == 2 ? 32 : r->lane);
}
template <class T> SM_LANE_OP inline T sm_simd_shuffle_xor(T x, ushort mask)
{
    sm_record *r = sm_exchange_value(x);
    return sm_lane_value<T>(r, r->lane ^ mask);
}
template <class T> SM_LANE_OP inline T sm_simd_shuffle_rotate_up(T x, ushort by)
{
    sm_record *r = sm_exchange_value(x);
    return sm_lane_value<T>(r, (r->lane - by) & 31);
}
template <class T> SM_LANE_OP inline T sm_simd_shuffle_rotate_down(T x, ushort by)
{
    sm_record *r = sm_exchange_value(x);
    return sm_lane_value<T>(r, (r->lane + by) & 31);
}
template <class T> struct sm_pair {
    T a, b;
};
template <class T>
SM_LANE_OP inline T sm_simd_shuffle_and_fill_up(T x, sm_same_t<T> fill, ushort by, ushort modulo = 32)
{
    sm_record *r = sm_exchange_value(sm_pair<T>{x, fill});
    uint base = r->lane / modulo * modulo, at = r->lane % modulo;
    return at >= by ? sm_lane_value<sm_pair<T>>(r, base + at - by).a
                    : sm_lane_value<sm_pair<T>>(r, base + at + modulo - by).b;
}
template <class T>
SM_LANE_OP inline T sm_simd_shuffle_and_fill_down(T x, sm_same_t<T> fill, ushort by, ushort modulo = 32)
{
    sm_record *r = sm_exchange_value(sm_pair<T>{x, fill});
    uint base = r->lane / modulo * modulo, at = r->lane % modulo;
    return at + by < modulo ? sm_lane_value<sm_pair<T>>(r, base + at + by).a
                            : sm_lane_value<sm_pair<T>>(r, base + at + by - modulo).b;
}
template <class T> SM_LANE_OP inline T sm_quad_shuffle(T x, ushort lane)
{
    sm_record *r = sm_exchange_value(x);
    return sm_lane_value<T>(r, (r->lane & 28) + (lane & 3));
}
template <class T> SM_X inline T sm_quad_broadcast(T x, ushort lane) { return sm_quad_shuffle(x, lane); }
template <class T> SM_LANE_OP inline T sm_quad_broadcast_first(T x)
{
    sm_record *r = sm_exchange_value(x);
    return sm_slot_value<T>(r, uint(__builtin_ctz(r->mask & 15u << (r->lane & 28))));
}
template <class T> SM_LANE_OP inline T sm_quad_shuffle_up(T x, ushort by)
{
    sm_record *r = sm_exchange_value(x);
    uint at = r->lane & 3;
    return sm_lane_value<T>(r, at >= by ? r->lane - by : r->lane);
}
template <class T> SM_LANE_OP inline T sm_quad_shuffle_down(T x, ushort by)
{
    sm_record *r = sm_exchange_value(x);
    uint at = r->lane & 3;
    return sm_lane_value<T>(r, at + by < 4 ? r->lane + by : r->lane);
}
template <class T> SM_LANE_OP inline T sm_quad_shuffle_xor(T x, ushort mask)
{
    sm_record *r = sm_exchange_value(x);
    return sm_lane_value<T>(r, r->lane ^ (mask & 3));
}
template <class T> SM_LANE_OP inline T sm_quad_shuffle_rotate_up(T x, ushort by)
{
    sm_record *r = sm_exchange_value(x);
    return sm_lane_value<T>(r, (r->lane & 28) + ((r->lane - by) & 3));
}
template <class T> SM_LANE_OP inline T sm_quad_shuffle_rotate_down(T x, ushort by)
{
    sm_record *r = sm_exchange_value(x);
    return sm_lane_value<T>(r, (r->lane & 28) + ((r->lane + by) & 3));
}

#define SM_EXCHANGES                                                                                   \
    SM_LANES(simd_shuffle) SM_LANES(simd_broadcast) SM_LANES(simd_shuffle_up)                          \
    SM_LANES(simd_shuffle_down) SM_LANES(simd_shuffle_xor) SM_LANES(simd_shuffle_rotate_up)            \
    SM_LANES(simd_shuffle_rotate_down) SM_LANES(quad_shuffle) SM_LANES(quad_broadcast)                 \
    SM_LANES(quad_shuffle_up) SM_LANES(quad_shuffle_down) SM_LANES(quad_shuffle_xor)                   \
    SM_LANES(quad_shuffle_rotate_up) SM_LANES(quad_shuffle_rotate_down) SM_FIRST(simd_broadcast_first) \
    SM_FIRST(quad_broadcast_first) SM_FILL(simd_shuffle_and_fill_up) SM_FILL(simd_shuffle_and_fill_down)
#if defined(SM_COUNTED)
#define SM_LANES(name)                                                                \
    template <class T, int N> SM_X inline vec<T, N> sm_##name(vec<T, N> x, ushort by) \
    {                                                                                 \
        for (int i = 0; i < N; i++) x[i] = sm_##name(x[i], by);                       \
        return x;                                                                     \
    }
#define SM_FIRST(name)                                                     \
    template <class T, int N> SM_X inline vec<T, N> sm_##name(vec<T, N> x) \
    {                                                                      \
        for (int i = 0; i < N; i++) x[i] = sm_##name(x[i]);                \
        return x;                                                          \
    }
#define SM_FILL(name)                                                                                      \
    template <class T, int N>                                                                              \
    SM_X inline vec<T, N> sm_##name(vec<T, N> x, sm_same_t<vec<T, N>> fill, ushort by, ushort modulo = 32) \
    {                                                                                                      \
        for (int i = 0; i < N; i++) x[i] = sm_##name(x[i], fill[i], by, modulo);                           \
        return x;                                                                                          \
    }
SM_EXCHANGES
#undef SM_LANES
#undef SM_FIRST
#undef SM_FILL
#endif

#define SM_LANES(name)                                                    \
    template <class T> SM_X inline sm_exchanged_t<T> name(T x, ushort by) \
    {                                                                     \
        return sm_##name(sm_exchanged_t<T>(x), by);                       \
    }
#define SM_FIRST(name) \
    template <class T> SM_X inline sm_exchanged_t<T> name(T x) { return sm_##name(sm_exchanged_t<T>(x)); }
#define SM_FILL(name)                                                                                            \
    template <class T> SM_X inline sm_exchanged_t<T> name(T x, sm_same_t<T> fill, ushort by, ushort modulo = 32) \
    {                                                                                                            \
        return sm_##name(sm_exchanged_t<T>(x), fill, by, modulo);                                                \
    }
SM_EXCHANGES
#undef SM_LANES
#undef SM_FIRST
#undef SM_FILL
#undef SM_EXCHANGES

/* ---- votes ---- */

struct simd_vote {
    typedef ulong vote_t;
    vote_t sm_bits;
    simd_vote() = default;
    SM_X explicit constexpr simd_vote(vote_t v) : sm_bits(v) {}
    SM_X explicit constexpr operator vote_t() const { return sm_bits; }
    SM_X constexpr bool all() const { return (sm_bits & 0xffffffff) == 0xffffffff; }
    SM_X constexpr bool any() const { return (sm_bits & 0xffffffff) != 0; }
};
SM_X inline uint sm_votes(const sm_record *r)
{
    uint bits = 0;
    for (uint i = 0; i < 32; i++)
        if (r->mask >> i & 1 && sm_slot_value<uchar>(r, i)) bits |= 1u << i;
    return bits;
}
SM_LANE_OP inline simd_vote simd_ballot(bool x) { return simd_vote(sm_votes(sm_exchange_value(uchar(x)))); }
SM_LANE_OP inline simd_vote simd_active_threads_mask() { return simd_vote(sm_exchange_value(uchar(1))->mask); }
SM_LANE_OP inline bool simd_all(bool x)
{
    sm_record *r = sm_exchange_value(uchar(x));
    return sm_votes(r) == r->mask;
}
SM_LANE_OP inline bool simd_any(bool x) { return sm_votes(sm_exchange_value(uchar(x))) != 0; }
SM_LANE_OP inline bool simd_is_first()
{
    sm_record *r = sm_exchange_value(uchar(1));
    return r->lane == uint(__builtin_ctz(r->mask));
}
SM_X inline bool simd_is_helper_thread() { return false; }
SM_LANE_OP inline bool quad_all(bool x)
{
    sm_record *r = sm_exchange_value(uchar(x));
    uint quad = 15u << (r->lane & 28);
    return (sm_votes(r) & quad) == (r->mask & quad);
}
SM_LANE_OP inline bool quad_any(bool x)
{
    sm_record *r = sm_exchange_value(uchar(x));
    return sm_votes(r) & 15u << (r->lane & 28);
}
struct quad_vote {
    typedef ushort vote_t;
    vote_t sm_bits;
    SM_X explicit constexpr quad_vote(vote_t v = 0) : sm_bits(v) {}
    template <class I, class = enable_if_t<is_integral<I>::value>> SM_X explicit constexpr operator I() const
    {
        return I(sm_bits);
    }
    SM_X constexpr bool all() const { return (sm_bits & 15) == 15; }
    SM_X constexpr bool any() const { return (sm_bits & 15) != 0; }
};
SM_LANE_OP inline quad_vote quad_ballot(bool x)
{
    sm_record *r = sm_exchange_value(uchar(x));
    return quad_vote(quad_vote::vote_t(sm_votes(r) >> (r->lane & 28) & 15));
}
SM_LANE_OP inline quad_vote quad_active_threads_mask()
{
    sm_record *r = sm_exchange_value(uchar(1));
    return quad_vote(quad_vote::vote_t(r->mask >> (r->lane & 28) & 15));
}
SM_LANE_OP inline bool quad_is_first()
{
    sm_record *r = sm_exchange_value(uchar(1));
    return r->lane == uint(__builtin_ctz(r->mask & 15u << (r->lane & 28)));
}

/* A value that is the same for all lanes. */
template <class T> struct uniform {
    T sm_value;
    uniform() = default;
    SM_X constexpr uniform(T x) : sm_value(x) {}
    SM_X constexpr operator T() const { return sm_value; }
};
template <class T> SM_X constexpr uniform<T> make_uniform(T x) { return uniform<T>(x); }

} // namespace metal
