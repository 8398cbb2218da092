/* SYNAPSES and SYNAPSES_GRAD (synapses.h) of any strides, in f32. Each kernel computes the openings
 * that it needs, so that no array of size (n, synapses) is stored; the gradients compute them twice.
 * With lists the work is proportional to the number of synapses.
 *
 * A synapse whose source is out of range adds nothing. The bounds of a list are clamped to the
 * number of synapses. synapses_check reports both as errors. */
#include "common.metal"
#include "mica_msl.h"
#include "synapses_params.h"

constant uint dtype [[function_constant(MICA_SYNAPSES_DTYPE)]];
constant bool listed [[function_constant(MICA_SYNAPSES_LISTED)]];
constant int together [[function_constant(MICA_SYNAPSES_TOGETHER)]]; /* x whose synapses are loaded once: 1 to 4 */

constant constexpr short TOGETHER = 4, SIMDS = 8;

inline long plane_at(constant mica_plane &plane, uint row, uint col)
{
    return plane.start + long(row) * plane.row + long(col) * plane.col;
}

/* Synapse k of column c. */
struct synapse {
    float sigma, mu, drive, weight;
};

/* The operands that hold the parameters of all synapses. */
struct synapse_operands {
    device const uchar *sigma, *mu, *drive, *weight;
};

inline synapse synapse_at(thread const synapse_operands &in, constant mica_synapses_params &p, uint k, uint c)
{
    if (listed) c = 0;
    return synapse{load_float(dtype, in.sigma, plane_at(p.param[0], k, c)),
                   load_float(dtype, in.mu, plane_at(p.param[1], k, c)),
                   load_float(dtype, in.drive, plane_at(p.param[2], k, c)),
                   load_float(dtype, in.weight, plane_at(p.param[3], k, c))};
}

/* ~0: out of range. */
inline uint source_of(device const int *source, constant mica_synapses_params &p, uint k)
{
    if (!listed) return k;
    const int s = source[plane_at(p.source, k, 0)];
    return s >= 0 && s < int(p.sources) ? uint(s) : ~0u;
}

/* The index at which the list of column c begins and the list of column c - 1 ends. */
inline uint first_of(device const int *first, constant mica_synapses_params &p, uint c)
{
    return uint(clamp(first[plane_at(p.first, c, 0)], 0, int(p.rows)));
}

inline bool first_is_bad(device const int *first, constant mica_synapses_params &p, uint c)
{
    const int at = first[plane_at(p.first, c, 0)], before = c == 0 ? 0 : first[plane_at(p.first, c - 1, 0)];
    return at < before || (c == 0 && at != 0) || (c == p.cols && at != int(p.rows));
}

/* Reports the first invalid source, or else the first invalid element of `first`.
 * grid: one threadgroup, 32 * n threads. */
kernel void synapses_check(device const int *source [[buffer(0)]], device const int *first [[buffer(1)]],
                           device mica_fault *fault [[buffer(2)]], constant mica_synapses_params &p [[buffer(3)]],
                           uint at [[thread_index_in_threadgroup]], uint3 threads [[threads_per_threadgroup]],
                           uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    threadgroup uint firsts[32];
    uint bad = ~0u;
    for (uint i = at; i < p.rows + p.cols + 1 && bad == ~0u; i += threads.x)
        if (i < p.rows ? source_of(source, p, i) == ~0u : first_is_bad(first, p, i - p.rows)) bad = i;
    bad = group_min(bad, firsts, simd, lane, threads.x / 32);
    if (at != 0 || bad == ~0u) return;
    const bool ends = bad >= p.rows;
    fault->position = ends ? bad - p.rows : bad;
    fault->index = ends ? first[plane_at(p.first, bad - p.rows, 0)] : source[plane_at(p.source, bad, 0)];
    fault->size = ends ? p.rows : p.sources;
    fault->kind = ends;
    fault->set = 1;
}

/* Adds the sums of all simdgroups, in order; simdgroup 0 has the result. */
template <short N>
inline void simds_sum(thread float *sum, threadgroup float *part, uint simd, uint lane, uint simds)
{
    if (simds == 1) return;
    for (short i = 0; i < N; i++) part[(simd * N + i) * 32 + lane] = sum[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (short i = 0; i < N; i++) sum[i] = 0;
    if (simd > 0) return;
    for (uint s = 0; s < simds; s++)
        for (short i = 0; i < N; i++) sum[i] += part[(s * N + i) * 32 + lane];
}

/* A lane computes one column for `together` x; the simdgroups share the synapses of the column.
 * With a block, neighbouring lanes have neighbouring columns, so that they load neighbouring
 * parameters. With lists, neighbouring lanes have the same column, so that they have lists of
 * the same length.
 * grid: (columns * groups of x / 32), threads (32, simdgroups). threadgroup memory: 8 floats a thread. */
kernel void synapses_forward(device const uchar *x [[buffer(0)]], device const uchar *sigma [[buffer(1)]],
                             device const uchar *mu [[buffer(2)]], device const uchar *drive [[buffer(3)]],
                             device const uchar *weight [[buffer(4)]], device const int *source [[buffer(5)]],
                             device const int *first [[buffer(6)]], device uchar *out [[buffer(7)]],
                             constant mica_synapses_params &p [[buffer(8)]],
                             uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                             uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float part[SIMDS * TOGETHER * 2 * 32];
    const synapse_operands in = {sigma, mu, drive, weight};
    const uint groups = (p.n + uint(together) - 1) / uint(together), count = groups * p.cols;
    const uint at = group.x * 32 + lane, mine = min(at, count - 1);
    const uint c = listed ? mine / groups : mine % p.cols;
    const uint n = (listed ? mine % groups : mine / p.cols) * uint(together);
    const uint begin = listed ? first_of(first, p, c) : 0, end = listed ? first_of(first, p, c + 1) : p.rows;
    float sum[TOGETHER * 2];
    for (short i = 0; i < TOGETHER * 2; i++) sum[i] = 0;
    for (uint k = begin + simd; k < end; k += threads.y) {
        const uint from = source_of(source, p, k);
        if (from == ~0u) continue;
        const synapse s = synapse_at(in, p, k, c);
        for (short i = 0; i < together; i++) {
            const float input = load_float(dtype, x, plane_at(p.x, min(n + i, p.n - 1), from));
            const float open = mica_sigmoid(s.sigma * (input - s.mu));
            sum[2 * i] = fma(open, s.drive, sum[2 * i]);
            sum[2 * i + 1] = fma(open, s.weight, sum[2 * i + 1]);
        }
    }
    simds_sum<TOGETHER * 2>(sum, part, simd, lane, threads.y);
    if (simd > 0 || at >= count) return;
    for (short i = 0; i < together; i++)
        for (short half_of = 0; half_of < 2; half_of++)
            if (n + i < p.n) store_float(dtype, out, (long(n + i) * 2 + half_of) * p.cols + c, sum[2 * i + half_of]);
}

/* The gradients of one synapse for one x. */
struct slopes {
    float x, sigma, drive, weight;                    /* that of mu is -x                */
};

inline slopes slopes_of(float input, float c0, float c1, synapse s)
{
    const float far = input - s.mu, open = mica_sigmoid(s.sigma * far);
    const float slope = fma(c0, s.drive, c1 * s.weight) * (open - open * open);
    return slopes{slope * s.sigma, slope * far, c0 * open, c1 * open};
}

/* Lists: the column of synapse k, which is the last column whose list begins at or before k. */
inline uint column_of(device const int *first, constant mica_synapses_params &p, uint k)
{
    uint low = 0, high = p.cols;
    while (high - low > 1) {
        const uint middle = (low + high) / 2;
        if (first_of(first, p, middle) <= k) low = middle;
        else high = middle;
    }
    return low;
}

/* Gradients of the parameters: a lane has one synapse; the simdgroups share the x.
 * grid: (synapses / 32), threads (32, simdgroups). threadgroup memory: 4 floats a thread. */
kernel void synapses_backward(device const uchar *x [[buffer(0)]], device const uchar *sigma [[buffer(1)]],
                              device const uchar *mu [[buffer(2)]], device const uchar *drive [[buffer(3)]],
                              device const uchar *weight [[buffer(4)]], device const int *source [[buffer(5)]],
                              device const int *first [[buffer(6)]], device const uchar *ct [[buffer(7)]],
                              device uchar *out [[buffer(8)]], constant mica_synapses_params &p [[buffer(9)]],
                              uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                              uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float part[SIMDS * 4 * 32];
    const synapse_operands in = {sigma, mu, drive, weight};
    const uint count = listed ? p.rows : p.rows * p.cols, at = group.x * 32 + lane, mine = min(at, count - 1);
    const uint k = listed ? mine : mine / p.cols, c = listed ? column_of(first, p, mine) : mine % p.cols;
    const uint from = source_of(source, p, k);
    const synapse s = synapse_at(in, p, k, c);
    float sum[4] = {0, 0, 0, 0};
    for (uint n = simd; n < p.n && from != ~0u; n += threads.y) {
        const long ct_at = plane_at(p.ct, n, c);
        const float c0 = load_float(dtype, ct, ct_at), c1 = load_float(dtype, ct, ct_at + p.ct_half);
        const slopes g = slopes_of(load_float(dtype, x, plane_at(p.x, n, from)), c0, c1, s);
        sum[0] += g.sigma;
        sum[1] -= g.x;
        sum[2] += g.drive;
        sum[3] += g.weight;
    }
    simds_sum<4>(sum, part, simd, lane, threads.y);
    if (simd > 0 || at >= count) return;
    for (short i = 0; i < 4; i++) store_float(dtype, out, long(p.n) * p.sources + long(i) * count + at, sum[i]);
}

/* Gradient of x with a block: a simdgroup has one source of `together` x; its lanes share the columns.
 * grid: (groups of x * sources / simdgroups), threads (32, simdgroups). No threadgroup memory. */
kernel void synapses_backward_x(device const uchar *x [[buffer(0)]], device const uchar *sigma [[buffer(1)]],
                                device const uchar *mu [[buffer(2)]], device const uchar *drive [[buffer(3)]],
                                device const uchar *weight [[buffer(4)]], device const uchar *ct [[buffer(7)]],
                                device uchar *out [[buffer(8)]], constant mica_synapses_params &p [[buffer(9)]],
                                uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                                uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    const uint mine = group.x * threads.y + simd, which = mine % p.sources, first = mine / p.sources * uint(together);
    if (first >= p.n) return;
    const synapse_operands in = {sigma, mu, drive, weight};
    float input[TOGETHER], sum[TOGETHER] = {0, 0, 0, 0};
    for (short i = 0; i < together; i++)
        input[i] = load_float(dtype, x, plane_at(p.x, min(first + i, p.n - 1), which));
    for (uint c = lane; c < p.cols; c += 32) {
        const synapse s = synapse_at(in, p, which, c);
        for (short i = 0; i < together; i++) {
            const long ct_at = plane_at(p.ct, min(first + i, p.n - 1), c);
            sum[i] += slopes_of(input[i], load_float(dtype, ct, ct_at), load_float(dtype, ct, ct_at + p.ct_half), s).x;
        }
    }
    for (short i = 0; i < together; i++) {
        const float whole = simd_sum(sum[i]);
        if (lane == 0 && first + i < p.n) store_float(dtype, out, long(first + i) * p.sources + which, whole);
    }
}

/* Gradient of x with lists: a lane has one x and an accumulator for each of SYNAPSES_SOURCES sources; the
 * simdgroups share the columns. All lanes of a simdgroup process the same synapse at a time, and skip it if
 * its source is not one of theirs.
 * grid: (n / 32, sources / SYNAPSES_SOURCES), threads (32, simdgroups: up to 4). threadgroup memory:
 * SYNAPSES_SOURCES floats a thread. */
kernel void synapses_lists_backward_x(device const uchar *x [[buffer(0)]], device const uchar *sigma [[buffer(1)]],
                                      device const uchar *mu [[buffer(2)]], device const uchar *drive [[buffer(3)]],
                                      device const uchar *weight [[buffer(4)]], device const int *source [[buffer(5)]],
                                      device const int *first [[buffer(6)]], device const uchar *ct [[buffer(7)]],
                                      device uchar *out [[buffer(8)]], constant mica_synapses_params &p [[buffer(9)]],
                                      uint3 group [[threadgroup_position_in_grid]],
                                      uint3 threads [[threads_per_threadgroup]],
                                      uint simd [[simdgroup_index_in_threadgroup]],
                                      uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float part[SYNAPSES_LISTS_SIMDS * SYNAPSES_SOURCES * 32];
    const synapse_operands in = {sigma, mu, drive, weight};
    threadgroup float *sum = part + simd * SYNAPSES_SOURCES * 32 + lane;
    const uint low = group.y * SYNAPSES_SOURCES, mine = group.x * 32 + lane, n = min(mine, p.n - 1);
    for (uint i = 0; i < SYNAPSES_SOURCES; i++) sum[i * 32] = 0;
    for (uint c = simd; c < p.cols; c += threads.y) {
        const long ct_at = plane_at(p.ct, n, c);
        const float c0 = load_float(dtype, ct, ct_at), c1 = load_float(dtype, ct, ct_at + p.ct_half);
        for (uint k = first_of(first, p, c); k < first_of(first, p, c + 1); k++) {
            const uint from = source_of(source, p, k);
            if (from < low || from >= low + SYNAPSES_SOURCES) continue;
            const synapse s = synapse_at(in, p, k, c);
            sum[(from - low) * 32] += slopes_of(load_float(dtype, x, plane_at(p.x, n, from)), c0, c1, s).x;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = simd; i < min(uint(SYNAPSES_SOURCES), p.sources - low); i += threads.y) {
        float whole = 0;
        for (uint other = 0; other < threads.y; other++) whole += part[(other * SYNAPSES_SOURCES + i) * 32 + lane];
        if (mine < p.n) store_float(dtype, out, long(n) * p.sources + low + i, whole);
    }
}
