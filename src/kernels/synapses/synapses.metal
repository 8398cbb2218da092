/* SYNAPSES and SYNAPSES_GRAD (synapses.h) of any strides, in f32. Openings are computed where
 * they are needed, twice for gradients: nothing of the size (n, rows, cols) is in memory. With
 * `source` only synapses that are there have a row: a sparse network costs what it has.
 *
 * A synapse whose source is outside adds nothing; index_check says so. */
#include "common.metal"
#include "mica_msl.h"
#include "synapses_params.h"

constant uint dtype [[function_constant(0)]];
constant bool has_source [[function_constant(1)]];
constant int together [[function_constant(2)]];       /* x whose synapses are loaded once: 1 to 4 */

constant constexpr short TOGETHER = 4, SIMDS = 8;

struct synapse {
    uint source;                                      /* ~0: outside                     */
    float sigma, mu, drive, weight;
};

inline long plane_at(constant mica_plane &plane, uint row, uint col)
{
    return plane.start + long(row) * plane.row + long(col) * plane.col;
}

inline uint source_of(device const int *source, constant mica_synapses_params &p, uint k, uint c)
{
    if (!has_source) return k;
    const int s = source[plane_at(p.source, k, c)];
    return s >= 0 && s < int(p.sources) ? uint(s) : ~0u;
}

/* Its own part of the sums over the simdgroups is what each leaves; those of one are added in order. */
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

/* A lane has a column and `together` x, simdgroups share the rows.
 * grid: (columns * blocks of x / 32), threads (32, simdgroups). threadgroup memory: 8 floats a thread. */
kernel void synapses_forward(device const uchar *x [[buffer(0)]], device const uchar *sigma [[buffer(1)]],
                             device const uchar *mu [[buffer(2)]], device const uchar *drive [[buffer(3)]],
                             device const uchar *weight [[buffer(4)]], device const int *source [[buffer(5)]],
                             device uchar *out [[buffer(6)]], constant mica_synapses_params &p [[buffer(7)]],
                             uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                             uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float part[SIMDS * TOGETHER * 2 * 32];
    const uint count = (p.n + uint(together) - 1) / uint(together) * p.cols, at = group.x * 32 + lane;
    const uint mine = min(at, count - 1), c = mine % p.cols, first = mine / p.cols * uint(together);
    float sum[TOGETHER * 2];
    for (short i = 0; i < TOGETHER * 2; i++) sum[i] = 0;
    for (uint k = simd; k < p.rows; k += threads.y) {
        const uint from = source_of(source, p, k, c);
        if (from == ~0u) continue;
        const float s = load_float(dtype, sigma, plane_at(p.param[0], k, c)),
                    m = load_float(dtype, mu, plane_at(p.param[1], k, c)),
                    d = load_float(dtype, drive, plane_at(p.param[2], k, c)),
                    w = load_float(dtype, weight, plane_at(p.param[3], k, c));
        for (short i = 0; i < together; i++) {
            const float heard = load_float(dtype, x, plane_at(p.x, min(first + i, p.n - 1), from));
            const float open = mica_sigmoid(s * (heard - m));
            sum[2 * i] = fma(open, d, sum[2 * i]);
            sum[2 * i + 1] = fma(open, w, sum[2 * i + 1]);
        }
    }
    simds_sum<TOGETHER * 2>(sum, part, simd, lane, threads.y);
    if (simd > 0 || at >= count) return;
    for (short i = 0; i < together; i++)
        for (short half_of = 0; half_of < 2; half_of++)
            if (first + i < p.n)
                store_float(dtype, out, (long(first + i) * 2 + half_of) * p.cols + c, sum[2 * i + half_of]);
}

/* What one synapse does for one x. */
struct slopes {
    float x, sigma, drive, weight;                    /* mu's is -x                      */
};

inline slopes slopes_of(float heard, float c0, float c1, float sigma, float mu, float drive, float weight)
{
    const float far = heard - mu, open = mica_sigmoid(sigma * far);
    const float slope = fma(c0, drive, c1 * weight) * (open - open * open);
    return slopes{slope * sigma, slope * far, c0 * open, c1 * open};
}

/* Of the parameters: a lane has a synapse, simdgroups share the x.
 * grid: (synapses / 32), threads (32, simdgroups). threadgroup memory: 4 floats a thread. */
kernel void synapses_backward(device const uchar *x [[buffer(0)]], device const uchar *sigma [[buffer(1)]],
                              device const uchar *mu [[buffer(2)]], device const uchar *drive [[buffer(3)]],
                              device const uchar *weight [[buffer(4)]], device const int *source [[buffer(5)]],
                              device const uchar *ct [[buffer(6)]], device uchar *out [[buffer(7)]],
                              constant mica_synapses_params &p [[buffer(8)]],
                              uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                              uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float part[SIMDS * 4 * 32];
    const uint count = p.rows * p.cols, at = group.x * 32 + lane, mine = min(at, count - 1);
    const uint k = mine / p.cols, c = mine % p.cols, from = source_of(source, p, k, c);
    const float s = load_float(dtype, sigma, plane_at(p.param[0], k, c)),
                m = load_float(dtype, mu, plane_at(p.param[1], k, c)),
                d = load_float(dtype, drive, plane_at(p.param[2], k, c)),
                w = load_float(dtype, weight, plane_at(p.param[3], k, c));
    float sum[4] = {0, 0, 0, 0};
    for (uint n = simd; n < p.n && from != ~0u; n += threads.y) {
        const long ct_at = plane_at(p.ct, n, c);
        const float c0 = load_float(dtype, ct, ct_at), c1 = load_float(dtype, ct, ct_at + p.ct_half);
        const slopes g = slopes_of(load_float(dtype, x, plane_at(p.x, n, from)), c0, c1, s, m, d, w);
        sum[0] += g.sigma;
        sum[1] -= g.x;
        sum[2] += g.drive;
        sum[3] += g.weight;
    }
    simds_sum<4>(sum, part, simd, lane, threads.y);
    if (simd > 0 || at >= count) return;
    for (short i = 0; i < 4; i++) store_float(dtype, out, long(p.n) * p.sources + long(i) * count + at, sum[i]);
}

/* Of x: a simdgroup has one source of `together` x, and its lanes look for the synapses that listen to it.
 * grid: (blocks of x * sources / simdgroups), threads (32, simdgroups). No threadgroup memory. */
kernel void synapses_heard(device const uchar *x [[buffer(0)]], device const uchar *sigma [[buffer(1)]],
                           device const uchar *mu [[buffer(2)]], device const uchar *drive [[buffer(3)]],
                           device const uchar *weight [[buffer(4)]], device const int *source [[buffer(5)]],
                           device const uchar *ct [[buffer(6)]], device uchar *out [[buffer(7)]],
                           constant mica_synapses_params &p [[buffer(8)]],
                           uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                           uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    const uint mine = group.x * threads.y + simd, which = mine % p.sources, first = mine / p.sources * uint(together);
    if (first >= p.n) return;
    float heard[TOGETHER], sum[TOGETHER] = {0, 0, 0, 0};
    for (short i = 0; i < together; i++)
        heard[i] = load_float(dtype, x, plane_at(p.x, min(first + i, p.n - 1), which));
    for (uint j = lane; j < (has_source ? p.rows : 1u) * p.cols; j += 32) {
        const uint k = has_source ? j / p.cols : which, c = j % p.cols;
        if (has_source && source_of(source, p, k, c) != which) continue;
        const float s = load_float(dtype, sigma, plane_at(p.param[0], k, c)),
                    m = load_float(dtype, mu, plane_at(p.param[1], k, c)),
                    d = load_float(dtype, drive, plane_at(p.param[2], k, c)),
                    w = load_float(dtype, weight, plane_at(p.param[3], k, c));
        for (short i = 0; i < together; i++) {
            const long ct_at = plane_at(p.ct, min(first + i, p.n - 1), c);
            sum[i] += slopes_of(heard[i], load_float(dtype, ct, ct_at), load_float(dtype, ct, ct_at + p.ct_half), s, m,
                                d, w).x;
        }
    }
    for (short i = 0; i < together; i++) {
        const float whole = simd_sum(sum[i]);
        if (lane == 0 && first + i < p.n) store_float(dtype, out, long(first + i) * p.sources + which, whole);
    }
}
