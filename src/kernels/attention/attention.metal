/* ATTENTION and ATTENTION_CACHED (attention.h), in f32.
 *
 * Few queries: attention_rows has a threadgroup for each query and part of the keys, and
 * attention_join combines the parts. Many queries: attention_tile computes 16 to 64 queries with
 * simdgroup matrices. It multiplies hidden elements by 0, which is wrong if they are not finite.
 * In that case the tile is marked as odd, and attention_rows computes its queries again. */
#include "load4.metal"
#include "attention_params.h"
#include "attention_shared.metal"

constant uint q_type [[function_constant(MICA_ATTENTION_Q_TYPE)]];
constant uint k_type [[function_constant(MICA_ATTENTION_K_TYPE)]];
constant uint v_type [[function_constant(MICA_ATTENTION_V_TYPE)]];
constant uint out_type [[function_constant(MICA_ATTENTION_OUT_TYPE)]];
constant uint mask_type [[function_constant(MICA_ATTENTION_MASK_TYPE)]]; /* bool or a float */
constant bool has_mask [[function_constant(MICA_ATTENTION_HAS_MASK)]];
constant bool causal [[function_constant(MICA_ATTENTION_CAUSAL)]];
constant bool has_scales [[function_constant(MICA_ATTENTION_HAS_SCALES)]]; /* k and v are i8 with a scale a row */
constant uint scale_type [[function_constant(MICA_ATTENTION_SCALE_TYPE)]];
constant bool cached [[function_constant(MICA_ATTENTION_CACHED)]]; /* `length` is the number of keys */
constant uint length_type [[function_constant(MICA_ATTENTION_LENGTH_TYPE)]];
constant bool in_parts [[function_constant(MICA_ATTENTION_IN_PARTS)]]; /* stores partial results for attention_join */
constant bool only_odd [[function_constant(MICA_ATTENTION_ONLY_ODD)]]; /* only queries of tiles marked as odd */

/* The number of keys; 0 for a length out of range, which attention_check reports. */
inline uint keys_of(constant mica_attention_params &p, device const uchar *length)
{
    if (!cached) return p.keys;
    const long n = load_long(length_type, length, 0);
    return n < 0 || n > long(p.keys) ? 0 : uint(n);
}

/* The number of keys of a launch, their mask and their scales. */
struct attention_keys {
    uint count;                                       /* as keys_of                      */
    device const uchar *mask;                         /* of pairs of query and key       */
    device const uchar *k_scale, *v_scale;            /* of the rows of k and v, if i8   */
};

/* The term that is added to the score of key s; -inf: hidden. */
inline float added_to(constant mica_attention_params &p, thread const attention_keys &keys, attention_row r, uint s)
{
    if (s >= keys.count || (causal && long(s) > long(r.t) + keys.count - p.times)) return -INFINITY;
    if (!has_mask) return 0;
    const float value = load_float(mask_type, keys.mask, head_at(p.mask, r.b, r.h, r.t) + s * p.mask.stride[3]);
    if (mask_type == BOOL) return value != 0 ? 0 : -INFINITY;
    return value;
}

inline float scale_of(constant mica_head_view &v, device const uchar *scales, attention_row r, uint s)
{
    return has_scales ? load_float(scale_type, scales, head_at(v, r.b, r.g, s)) : 1.0f;
}

/* Reports a length that is out of range. grid: one thread. */
kernel void attention_check(device const uchar *length [[buffer(0)]], device mica_fault *fault [[buffer(1)]],
                            constant mica_attention_params &p [[buffer(2)]])
{
    const long n = load_long(length_type, length, 0);
    if (n >= 0 && n <= long(p.keys)) return;
    fault->index = n;
    fault->size = p.keys;
    fault->set = 1;
}

/* ----------------------------------------------------------- few queries --- */

constant constexpr uint ROW_SIMDS = 8;                /* of a threadgroup, at most       */
constant constexpr uint ROW_SIZE = 256;               /* elements of v, at most          */

/* Rows of k and v are contiguous and a multiple of 128 elements long. */
constant bool runs [[function_constant(MICA_ATTENTION_RUNS)]];

/* The element of a row that accumulator j of a lane has: lanes have groups of four elements, or single ones. */
inline uint lane_element(uint lane, uint j) { return runs ? lane * 4 + j / 4 * 128 + j % 4 : lane + 32 * j; }

/* grid: (queries, parts of the keys), threads (32, simdgroups <= 8).
 * threadgroup memory: the query, and the sums of each simdgroup. */
kernel void attention_rows(device const uchar *q [[buffer(0)]], device const uchar *k [[buffer(1)]],
                           device const uchar *v [[buffer(2)]], device const uchar *mask [[buffer(3)]],
                           device const uchar *k_scale [[buffer(4)]], device const uchar *v_scale [[buffer(5)]],
                           device const uchar *length [[buffer(6)]], device const uint *odd [[buffer(7)]],
                           device uchar *out [[buffer(8)]], constant mica_attention_params &p [[buffer(9)]],
                           uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                           uint at [[thread_index_in_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float query[ROW_SIZE];
    threadgroup float part[ROW_SIMDS][ROW_SIZE];
    threadgroup float tops[ROW_SIMDS], totals[ROW_SIMDS];
    const attention_row r = row_of(p, group.x);
    if (only_odd && odd[(r.b * p.heads + r.h) * ((p.times + p.tile - 1) / p.tile) + r.t / p.tile] == 0) return;
    const uint count = threads.x * threads.y;
    const long q_from = head_at(p.q, r.b, r.h, r.t);
    for (uint d = at; d < p.dims; d += count) query[d] = load_float(q_type, q, q_from + d * p.q.stride[3]);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const attention_keys keys = {keys_of(p, length), mask, k_scale, v_scale};
    const uint first = group.y * p.each, end = min(keys.count, first + p.each);
    float top = -INFINITY, total = 0, sum[ROW_SIZE / 32];
    for (uint j = 0; j < ROW_SIZE / 32; j++) sum[j] = 0;
    for (uint s = first + simd; s < end; s += threads.y) {
        const float added = added_to(p, keys, r, s);
        if (added == -INFINITY) continue;
        const long k_from = head_at(p.k, r.b, r.g, s), v_from = head_at(p.v, r.b, r.g, s);
        float dot = 0;
        if (runs)
            for (uint d = lane * 4; d < p.dims; d += 128) {
                const float4 four = load_float4(k_type, k, k_from + d);
                for (uint e = 0; e < 4; e++) dot = fma(query[d + e], four[e], dot);
            }
        else
            for (uint d = lane; d < p.dims; d += 32)
                dot = fma(query[d], load_float(k_type, k, k_from + d * p.k.stride[3]), dot);
        const float score = simd_sum(dot) * scale_of(p.k_scale, k_scale, r, s) * p.scale + added;
        if (score == -INFINITY) continue;
        const float higher = score > top ? score : top; /* ignores NaN */
        const float less = total == 0 ? 0.0f : precise::exp(top - higher), weight = precise::exp(score - higher);
        top = higher;
        total = total * less + weight;
        const float share = weight * scale_of(p.v_scale, v_scale, r, s);
        if (runs)
            for (uint j = 0; j < ROW_SIZE / 32; j += 4) {
                if (lane_element(lane, j) >= p.size) break;
                const float4 four = load_float4(v_type, v, v_from + lane_element(lane, j));
                for (uint e = 0; e < 4; e++) sum[j + e] = fma(share, four[e], sum[j + e] * less);
            }
        else
            for (uint j = 0; j < ROW_SIZE / 32; j++) {
                const uint e = lane_element(lane, j);
                if (e < p.size) sum[j] = fma(share, load_float(v_type, v, v_from + e * p.v.stride[3]), sum[j] * less);
            }
    }
    for (uint j = 0; j < ROW_SIZE / 32; j++) part[simd][lane_element(lane, j)] = sum[j];
    if (lane == 0) tops[simd] = top;
    if (lane == 0) totals[simd] = total;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint i = 0; i < threads.y; i++) top = tops[i] > top ? tops[i] : top;
    total = 0;
    for (uint i = 0; i < threads.y; i++)
        if (totals[i] != 0) total += totals[i] * precise::exp(tops[i] - top);
    const ulong place = ulong(group.x) * p.parts + group.y;
    for (uint e = at; e < p.size; e += count) {
        float whole = 0;
        for (uint i = 0; i < threads.y; i++)
            if (totals[i] != 0) whole += part[i][e] * precise::exp(tops[i] - top);
        if (in_parts) ((device float *)out)[place * (p.size + 2) + 2 + e] = whole;
        else store_float(out_type, out, ulong(group.x) * p.size + e, total == 0 ? 0.0f : whole / total);
    }
    if (in_parts && at == 0) {
        ((device float *)out)[place * (p.size + 2)] = top;
        ((device float *)out)[place * (p.size + 2) + 1] = total;
    }
}

/* Combines the partial results of attention_rows, in order. grid: (queries), threads (32 * n). */
kernel void attention_join(device const float *part [[buffer(0)]], device uchar *out [[buffer(1)]],
                           constant mica_attention_params &p [[buffer(2)]],
                           uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                           uint at [[thread_index_in_threadgroup]])
{
    device const float *mine = part + ulong(group.x) * p.parts * (p.size + 2);
    float top = -INFINITY, total = 0;
    for (uint i = 0; i < p.parts; i++) {
        const float one = mine[i * (p.size + 2)];
        top = one > top ? one : top;
    }
    for (uint i = 0; i < p.parts; i++) {
        const float one = mine[i * (p.size + 2) + 1];
        if (one != 0) total += one * precise::exp(mine[i * (p.size + 2)] - top);
    }
    for (uint e = at; e < p.size; e += threads.x) {
        float whole = 0;
        for (uint i = 0; i < p.parts; i++)
            if (mine[i * (p.size + 2) + 1] != 0)
                whole += mine[i * (p.size + 2) + 2 + e] * precise::exp(mine[i * (p.size + 2)] - top);
        store_float(out_type, out, ulong(group.x) * p.size + e, total == 0 ? 0.0f : whole / total);
    }
}

/* ----------------------------------------------------------------- tiles --- */

constant constexpr short TILE_WIDE = 64;              /* elements of q, k, v at a time   */
constant constexpr short TILE_LINE = TILE_WIDE + 4;

inline bool is_odd(float v) { return !(fabs(v) < INFINITY); }

/* The rows of one head of q, k or v. */
struct head_rows {
    device const uchar *x;
    uint type;                                        /* dtype of x                      */
    constant mica_head_view *view;                    /* of x                            */
    uint b, h;                                        /* the batch, the head of x        */
    uint end, width;                                  /* rows, elements of a row         */
};

/* Loads ROWS rows from `first` on, TILE_WIDE elements of each from column `from` on, with zeros for elements
 * outside; all THREADS share the work. Returns whether this thread, number `at`, loaded an element that is not
 * finite. */
template <short ROWS, short THREADS>
inline bool load_tile(threadgroup float *tile, thread const head_rows &rows, uint first, uint from, uint at)
{
    bool odd = false;
    for (uint i = at; i < uint(ROWS * TILE_WIDE); i += THREADS) {
        const uint r = i / TILE_WIDE, c = i % TILE_WIDE;
        float value = 0;
        if (first + r < rows.end && from + c < rows.width)
            value = load_float(rows.type, rows.x, head_at(*rows.view, rows.b, rows.h, first + r) +
                                                      (from + c) * rows.view->stride[3]);
        odd = odd || is_odd(value);
        tile[r * TILE_LINE + c] = value;
    }
    return odd;
}

/* The state of a query after some of the keys; the four lanes that share the query have the same. */
struct query_state {
    attention_row row;
    threadgroup float *scores;                        /* of the current keys, later their weights */
    float top, total;                                 /* the largest score, the sum of weights */
    bool odd;                                         /* a value is not finite           */
};

/* Replaces the scores of a query with KEYS keys from s0 on by their weights times the scales of v. Returns
 * the factor for the sums so far. */
template <short KEYS>
inline float weigh(constant mica_attention_params &p, thread const attention_keys &keys, uint s0, uint lane,
                   thread query_state &state)
{
    const attention_row r = state.row;
    float value[KEYS / 4], higher = state.top;
    for (short i = 0; i < KEYS / 4; i++) {
        const uint c = (lane & 3) + 4 * i, s = s0 + c;
        const float added = r.t < p.times ? added_to(p, keys, r, s) : -INFINITY;
        value[i] = added;
        if (added != -INFINITY) value[i] = state.scores[c] * scale_of(p.k_scale, keys.k_scale, r, s) * p.scale + added;
        state.odd = state.odd || (added != -INFINITY && is_odd(value[i]));
        higher = value[i] > higher ? value[i] : higher;
    }
    higher = max(higher, simd_shuffle_xor(higher, 1));
    higher = max(higher, simd_shuffle_xor(higher, 2));
    float weights = 0;
    for (short i = 0; i < KEYS / 4; i++) {
        const uint c = (lane & 3) + 4 * i;
        const float weight = value[i] == -INFINITY ? 0.0f : precise::exp(value[i] - higher);
        weights += weight;
        state.scores[c] = weight == 0 ? 0.0f : weight * scale_of(p.v_scale, keys.v_scale, r, s0 + c);
    }
    weights += simd_shuffle_xor(weights, 1);
    weights += simd_shuffle_xor(weights, 2);
    const float less = state.total == 0 ? 0.0f : precise::exp(state.top - higher);
    state.top = higher;
    state.total = state.total * less + weights;
    return less;
}

/* Up to E columns of v, with accumulators in registers; ROWS queries, KEYS keys at a time.
 * grid: (queries / ROWS, heads, batches), threads 4 * ROWS: a simdgroup has 8 queries.
 * threadgroup memory: tiles of q and of k or v, the scores, an 8 x 8 matrix for each simdgroup. */
template <short E, short ROWS, short KEYS>
kernel void attention_tile(device const uchar *q [[buffer(0)]], device const uchar *k [[buffer(1)]],
                           device const uchar *v [[buffer(2)]], device const uchar *mask [[buffer(3)]],
                           device const uchar *k_scale [[buffer(4)]], device const uchar *v_scale [[buffer(5)]],
                           device const uchar *length [[buffer(6)]], device uint *odd_tiles [[buffer(7)]],
                           device uchar *out [[buffer(8)]], constant mica_attention_params &p [[buffer(9)]],
                           uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
                           uint at [[thread_index_in_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]])
{
    constexpr short SIMDS = ROWS / 8, THREADS = SIMDS * 32, SCORE_LINE = KEYS + 4;
    threadgroup float queries[ROWS * TILE_LINE];
    threadgroup float tile[KEYS * TILE_LINE];
    threadgroup float scores[ROWS * SCORE_LINE];
    threadgroup float square[SIMDS * 64];
    threadgroup uint odd_simds[SIMDS];
    const attention_keys keys = {keys_of(p, length), mask, k_scale, v_scale};
    const uint first = group.x * ROWS;
    const uint my_line = lane / 4;                    /* four lanes share a query        */
    const attention_row r = {group.z, group.y, group.y / (p.heads / p.groups), first + simd * 8 + my_line};
    threadgroup float *mine = scores + simd * 8 * SCORE_LINE, *diagonal = square + simd * 64;
    const long last = causal ? long(first) + ROWS + keys.count - p.times : long(keys.count);
    const uint end = uint(clamp(last, 0l, long(keys.count)));
    const head_rows q_rows = {q, q_type, &p.q, r.b, r.h, p.times, p.dims};
    const head_rows k_rows = {k, k_type, &p.k, r.b, r.g, end, p.dims};
    const head_rows v_rows = {v, v_type, &p.v, r.b, r.g, end, p.size};

    simdgroup_matrix<float, 8, 8> sum[E / 8];
    for (short j = 0; j < E / 8; j++) sum[j] = simdgroup_matrix<float, 8, 8>(0.0f);
    query_state state = {r, mine + my_line * SCORE_LINE, -INFINITY, 0.0f, false};
    if (p.dims <= TILE_WIDE) state.odd = load_tile<ROWS, THREADS>(queries, q_rows, first, 0, at);

    for (uint s0 = 0; s0 < end; s0 += KEYS) {
        simdgroup_matrix<float, 8, 8> score[KEYS / 8];
        for (short j = 0; j < KEYS / 8; j++) score[j] = simdgroup_matrix<float, 8, 8>(0.0f);
        for (uint d0 = 0; d0 < p.dims; d0 += TILE_WIDE) {
            if (p.dims > TILE_WIDE)
                state.odd = load_tile<ROWS, THREADS>(queries, q_rows, first, d0, at) || state.odd;
            state.odd = load_tile<KEYS, THREADS>(tile, k_rows, s0, d0, at) || state.odd;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            const short wide = short(min(uint(TILE_WIDE), p.dims - d0));
            for (short d = 0; d < wide; d += 8) {
                simdgroup_matrix<float, 8, 8> left, right;
                simdgroup_load(left, queries + simd * 8 * TILE_LINE + d, TILE_LINE);
                for (short j = 0; j < KEYS / 8; j++) {
                    simdgroup_load(right, tile + j * 8 * TILE_LINE + d, TILE_LINE, ulong2(0, 0), true);
                    simdgroup_multiply_accumulate(score[j], left, right, score[j]);
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        for (short j = 0; j < KEYS / 8; j++) simdgroup_store(score[j], mine + j * 8, SCORE_LINE);
        simdgroup_barrier(mem_flags::mem_threadgroup);

        const float less = weigh<KEYS>(p, keys, s0, lane, state);
        for (short i = 0; i < 2; i++) {
            const uint c = (lane & 3) * 2 + i;
            diagonal[my_line * 8 + c] = c == my_line ? less : 0.0f;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_matrix<float, 8, 8> shrink;
        simdgroup_load(shrink, diagonal, 8);
        for (short j = 0; j < E / 8; j++) {
            const simdgroup_matrix<float, 8, 8> before = sum[j];
            simdgroup_multiply(sum[j], shrink, before);
        }
        for (short e0 = 0; e0 < E; e0 += TILE_WIDE) {
            if (uint(e0) >= p.size) break;
            state.odd = load_tile<KEYS, THREADS>(tile, v_rows, s0, uint(e0), at) || state.odd;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (short i = 0; i < KEYS / 8; i++) {
                simdgroup_matrix<float, 8, 8> left, right;
                simdgroup_load(left, mine + i * 8, SCORE_LINE);
                for (short j = 0; j < min(E, TILE_WIDE) / 8; j++) {
                    simdgroup_load(right, tile + i * 8 * TILE_LINE + j * 8, TILE_LINE);
                    simdgroup_multiply_accumulate(sum[e0 / 8 + j], left, right, sum[e0 / 8 + j]);
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    }

    const ulong to = (ulong(r.b) * p.heads + r.h) * p.times + r.t;
    for (short j = 0; j < E / 8; j++) {
        simdgroup_store(sum[j], diagonal, 8);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (short i = 0; i < 2; i++) {
            const uint c = (lane & 3) * 2 + i, e = j * 8 + c;
            const float whole = state.total == 0 ? 0.0f : diagonal[my_line * 8 + c] / state.total;
            state.odd = state.odd || is_odd(whole);
            if (r.t < p.times && e < p.size) store_float(out_type, out, to * p.size + e, whole);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    const bool any = simd_any(state.odd);
    if (lane == 0) odd_simds[simd] = any ? 1 : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (at == 0) {
        uint all = 0;
        for (short i = 0; i < SIMDS; i++) all |= odd_simds[i];
        odd_tiles[(group.z * groups.y + group.y) * groups.x + group.x] = all;
    }
}

#define ATTENTION_TILE(name, E, ROWS, KEYS) \
    template [[host_name(name)]] kernel decltype(attention_tile<E, ROWS, KEYS>) attention_tile<E, ROWS, KEYS>;
ATTENTION_TILE("attention_tile_64_32x32", 64, 32, 32)
ATTENTION_TILE("attention_tile_64_64x16", 64, 64, 16)
ATTENTION_TILE("attention_tile_64_16x32", 64, 16, 32)
ATTENTION_TILE("attention_tile_128_32x32", 128, 32, 32)
ATTENTION_TILE("attention_tile_128_64x16", 128, 64, 16)
ATTENTION_TILE("attention_tile_128_16x32", 128, 16, 32)
ATTENTION_TILE("attention_tile_256_32x32", 256, 32, 32)
ATTENTION_TILE("attention_tile_256_16x32", 256, 16, 32)
