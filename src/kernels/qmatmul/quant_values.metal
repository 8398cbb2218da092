/* QMATMUL: few rows of x times weights that are unpacked to floats. */
#include "quant_matrix.metal"

/* MICA_Q8, any x. grid: as quant_panels. */
kernel void quant_panel8(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                         device const uchar *biases [[buffer(2)]], device const float *x [[buffer(3)]],
                         device const char *codes [[buffer(4)]], device const float *acts [[buffer(5)]],
                         device uchar *out [[buffer(6)]], constant mica_qmatmul_params &p [[buffer(7)]] MICA_EPILOGUE_8,
                         uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                         uint at [[thread_index_in_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float sums[8][ROWS_OF_X][PANEL];
    const uint blocks = (p.cols + 31) / 32, first = group.y * ROWS_OF_X, row = lane % PANEL;
    const short n = short(min(uint(ROWS_OF_X), p.count - first));
    const quant_acts in = {x, codes, acts};
    long from[ROWS_OF_X];
    float sum[ROWS_OF_X] = {0, 0, 0, 0};
    for (short i = 0; i < ROWS_OF_X; i++) from[i] = i < n ? view_at(p.x, first + i) : 0;
    for (uint k = simd * 2 + lane / PANEL; k < blocks; k += threads.y * 2) {
        device const uchar *b = w + (ulong(group.x) * blocks + k) * 576;
        float part[ROWS_OF_X] = {0, 0, 0, 0};
        for (uint c = 0; c < min(32u, p.cols - 32 * k); c++) {
            const float q = float(char(b[c / 2 * 32 + 2 * row + c % 2]));
            for (short i = 0; i < ROWS_OF_X; i++)
                if (i < n) part[i] = fma(q, act_at(in, p, from[i], first + i, 32 * k + c), part[i]);
        }
        const float scale = f32_at(b + 512 + 4 * row);
        for (short i = 0; i < ROWS_OF_X; i++) sum[i] = fma(scale, part[i], sum[i]);
    }
    for (short i = 0; i < ROWS_OF_X; i++) {
        sum[i] += simd_shuffle_xor(sum[i], 16);
        if (lane < PANEL) sums[simd][i][row] = sum[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = at; e < uint(n) * PANEL; e += threads.x * threads.y) {
        const uint i = e / PANEL, r = e % PANEL;
        if (group.x * PANEL + r >= p.rows) continue;
        float all = 0;
        for (uint j = 0; j < threads.y; j++) all += sums[j][i][r];
        const float a = acts[ulong(first + i) * p.acts];
        store_result(F32, out, ulong(first + i) * p.rows + group.x * PANEL + r, isnan(a) ? a : all);
    }
}

/* All other cases, 8 columns per lane at a time. grid: as quant_codes. */
kernel void quant_values(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                         device const uchar *biases [[buffer(2)]], device const float *x [[buffer(3)]],
                         device const char *codes [[buffer(4)]], device const float *acts [[buffer(5)]],
                         device uchar *out [[buffer(6)]], constant mica_qmatmul_params &p [[buffer(7)]] MICA_EPILOGUE_8,
                         uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                         uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    const uint r = group.x * threads.y + simd, first = group.y * ROWS_OF_X;
    if (r >= p.rows) return;
    const short n = short(min(uint(ROWS_OF_X), p.count - first));
    const quant_matrix m = {w, scales, biases, one_scale(w, scales, p)};
    const quant_acts in = {x, codes, acts};
    long from[ROWS_OF_X];
    float sum[ROWS_OF_X] = {0, 0, 0, 0};
    for (short i = 0; i < ROWS_OF_X; i++) from[i] = i < n ? view_at(p.x, first + i) : 0;
    for (uint c = lane * 8; c < p.cols; c += 256)
        for (uint j = 0; j < 8 && c + j < p.cols; j++) {
            const float weight = value_at(m, p, r, c + j);
            for (short i = 0; i < ROWS_OF_X; i++)
                if (i < n) sum[i] = fma(weight, act_at(in, p, from[i], first + i, c + j), sum[i]);
        }
    for (short i = 0; i < ROWS_OF_X; i++) {
        const float whole = simd_sum(sum[i]);
        if (lane != 0 || i >= n) continue;
        const float a = acts[ulong(first + i) * p.acts];
        store_result(F32, out, ulong(first + i) * p.rows + r, isnan(a) ? a : whole);
    }
}
