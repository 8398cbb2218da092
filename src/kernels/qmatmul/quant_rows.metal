/* QROWS (qmatmul.h), and the rows of x that QMATMUL rounds before it multiplies. */
#include "quant_matrix.metal"
#include "round_rows.metal"

/* grid: one thread per element of the result. */
kernel void quant_rows(device const long *ids [[buffer(0)]], device const uchar *w [[buffer(1)]],
                       device const uchar *scales [[buffer(2)]], device const uchar *biases [[buffer(3)]],
                       device float *out [[buffer(4)]], constant mica_qmatmul_params &p [[buffer(5)]],
                       uint i [[thread_position_in_grid]])
{
    if (i >= p.count * p.cols) return;
    long r = ids[view_at(p.x, i / p.cols)];
    if (r < 0) r += p.rows;
    if (r < 0 || r >= long(p.rows)) {
        out[i] = 0; /* index_check reports it */
        return;
    }
    const quant_matrix m = {w, scales, biases, one_scale(w, scales, p)};
    out[i] = value_at(m, p, uint(r), i % p.cols);
}

/* A row of x: its codes, zero-padded to the pitch, and its scales: a, then one per 256 columns (BLOCK256). a is NaN if
 * an element of x is not finite. grid: one row per threadgroup, 32 * n threads. threadgroup memory: one float per
 * simdgroup. */
kernel void quant_round(device const float *x [[buffer(0)]], device char *codes [[buffer(1)]],
                        device float *acts [[buffer(2)]], constant mica_qmatmul_params &p [[buffer(3)]],
                        uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]],
                        uint3 threads [[threads_per_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float scratch[32];
    const uint simds = threads.x / 32;
    const long from = view_at(p.x, group.x);
    device char *to = codes + ulong(group.x) * p.pitch;
    device float *mine = acts + ulong(group.x) * p.acts;
    row_range range = {0.0f, 0.0f};
    for (uint c = at; c < p.n; c += threads.x) range = range_with(range, x[from + long(c) * p.step]);
    range = range_of_row(range, scratch, simd, lane, simds);
    const float odd = range.odd;
    if (act == ACT_TOKEN) {
        for (uint c = at; c < p.pitch; c += threads.x)
            to[c] = c < p.n ? round_code(range, x[from + long(c) * p.step]) : char(0);
        if (at == 0) mine[0] = round_scale(range);
        return;
    }
    if (at == 0) mine[0] = odd != 0 ? NAN : 1.0f;
    if (act == ACT_NONE) return;
    /* a simdgroup processes a block of 256, 8 elements per lane */
    for (uint b = simd; b * 256 < p.pitch; b += simds) {
        float v[8], top = 0;
        uint where = ~0u;
        for (uint j = 0; j < 8; j++) {
            const uint c = b * 256 + j * 32 + lane;
            v[j] = c < p.n && odd == 0 ? x[from + long(c) * p.step] : 0.0f;
            top = max(top, fabs(v[j]));
        }
        top = simd_max(top);
        for (uint j = 8; j-- > 0;)
            if (fabs(v[j]) == top) where = j * 32 + lane;
        where = simd_min(where);
        float first = 0; /* the first of the largest elements: its sign is used */
        for (uint j = 0; j < 8; j++)
            if (where == j * 32 + lane) first = v[j];
        first = simd_sum(first);
        const float times = top < 1e-30f ? 0.0f : -127.0f / first;
        for (uint j = 0; j < 8; j++) {
            const uint c = b * 256 + j * 32 + lane;
            if (c < p.pitch) to[c] = char(clamp(rint(v[j] * times), -128.0f, 127.0f));
        }
        if (lane == 0) mine[1 + b] = times == 0 ? 0.0f : 1.0f / times;
    }
}
