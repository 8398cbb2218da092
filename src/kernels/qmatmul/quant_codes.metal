/* QMATMUL: codes of few levels times few rows of rounded x. Sums of codes are exact integers; pairs of floats replace the
 * doubles of the CPU. */
#include "quant_matrix.metal"

/* Dot product of bytes 4 g ... of a two-bit block with x; x points to the first column of the block. */
inline int dot_two_bits(device const uchar *b, int g, device const char *x)
{
    int sum = 0;
    b += code_place + 4 * g;
    if (layout_b == 1) {
        for (int j = 0; j < 4; j++)
            for (int place = 0; place < 4; place++)
                sum += ((b[j] >> 2 * (layout_c ? 3 - place : place) & 3) - 1) * x[4 * (4 * g + j) + place];
        return sum;
    }
    const int unit = 4 * g / layout_b, first = 4 * g % layout_b;
    for (int place = 0; place < 4; place++)
        for (int j = 0; j < 4; j++)
            sum += ((b[j] >> 2 * (layout_c ? 3 - place : place) & 3) - 1) *
                   x[unit * layout_a + place * layout_b + first + j];
    return sum;
}

inline int dot_codes(device const uchar *b, int g, device const char *x)
{
    if (kind == TWO_BITS) return dot_two_bits(b, g, x);
    int sum = 0;
    for (int j = 0; j < 16; j++) sum += code_in(b, 16 * g + j) * x[16 * g + j];
    return sum;
}

/* Codes with rounded x: exact sums of 16 products, then float pairs; with a single scale only at the end. grid: (rows
 * of the matrix / simdgroups, rows of x / 4), threads (32, simdgroups). */
kernel void quant_codes(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                        device const char *codes [[buffer(2)]], device const float *acts [[buffer(3)]],
                        device uchar *out [[buffer(4)]], constant mica_qmatmul_params &p [[buffer(5)]] MICA_EPILOGUE_6,
                        uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                        uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    const uint r = group.x * threads.y + simd, first = group.y * ROWS_OF_X, each = uint(block) / 16;
    if (r >= p.rows) return;
    const short n = short(min(uint(ROWS_OF_X), p.count - first));
    const bool late = has_one_scale() && act == ACT_TOKEN;
    int whole[ROWS_OF_X] = {0, 0, 0, 0};
    float_pair sum[ROWS_OF_X];
    for (short i = 0; i < ROWS_OF_X; i++) sum[i] = float_pair{0.0f, 0.0f};
    const float one = one_scale(w, scales, p);
    for (uint at = lane; at < p.cols / 16; at += 32) {
        const uint c = at / each * uint(block);
        device const uchar *b = block_of(w, p, r, c);
        const float scale = late ? 1.0f : scale_place < 0 ? one : f16_at(b + scale_place);
        for (short i = 0; i < ROWS_OF_X; i++) {
            if (i >= n) break;
            const int part = dot_codes(b, int(at % each), codes + ulong(first + i) * p.pitch + c);
            const float d = act == ACT_TOKEN ? 1.0f : acts[ulong(first + i) * p.acts + 1 + at * 16 / 256];
            if (late) whole[i] += part;
            else sum[i] = pair_add(sum[i], piece_of(part, scale, d));
        }
    }
    for (short i = 0; i < ROWS_OF_X; i++) {
        if (i >= n) break;
        const float a = acts[ulong(first + i) * p.acts];
        const float_pair s = late ? piece_of(simd_sum(whole[i]), one, 1.0f) : simd_pair_sum(sum[i]);
        const float_pair y = pair_times(s, a);
        if (lane == 0) store_result(F32, out, ulong(first + i) * p.rows + r, isnan(a) ? a : y.high + y.low);
    }
}

/* A byte of HF holds four rows of the matrix: computes all four together. grid: (rows / 4 / simdgroups, rows of x / 4),
 * threads (32, simdgroups). */
kernel void quant_hf(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                     device const char *codes [[buffer(2)]], device const float *acts [[buffer(3)]],
                     device uchar *out [[buffer(4)]], constant mica_qmatmul_params &p [[buffer(5)]] MICA_EPILOGUE_6,
                     uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                     uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    const uint quarter = (p.rows + 3) / 4, line = group.x * threads.y + simd, first = group.y * ROWS_OF_X;
    if (line >= quarter) return;
    const short n = short(min(uint(ROWS_OF_X), p.count - first));
    device const uchar *row = w + ulong(line) * p.cols;
    const float one = matrix_scale(w, scales, p);
    int whole[ROWS_OF_X][4];
    float_pair sum[ROWS_OF_X][4];
    for (short i = 0; i < ROWS_OF_X; i++)
        for (short k = 0; k < 4; k++) {
            whole[i][k] = 0;
            sum[i][k] = float_pair{0.0f, 0.0f};
        }
    for (uint b = 0; b * 256 < p.cols; b++) {
        const uint end = min(p.cols, b * 256 + 256);
        for (uint c = b * 256 + lane; c < end; c += 32) {
            const int byte = row[c];
            for (short i = 0; i < ROWS_OF_X; i++) {
                if (i >= n) break;
                const int q = codes[ulong(first + i) * p.pitch + c];
                for (short k = 0; k < 4; k++) whole[i][k] += ((byte >> 2 * k & 3) - 1) * q;
            }
        }
        if (act == ACT_TOKEN) continue;
        for (short i = 0; i < ROWS_OF_X; i++)
            for (short k = 0; k < 4; k++) {
                const float d = i < n ? acts[ulong(first + i) * p.acts + 1 + b] : 0.0f;
                sum[i][k] = pair_add(sum[i][k], piece_of(whole[i][k], one, d));
                whole[i][k] = 0;
            }
    }
    for (short i = 0; i < ROWS_OF_X; i++)
        for (short k = 0; k < 4; k++) {
            if (i >= n) break;
            const float a = acts[ulong(first + i) * p.acts];
            const float_pair s =
                act == ACT_TOKEN ? piece_of(simd_sum(whole[i][k]), one, 1.0f) : simd_pair_sum(sum[i][k]);
            const float_pair y = pair_times(s, a);
            const uint r = line + k * quarter;
            if (lane == 0 && r < p.rows)
                store_result(F32, out, ulong(first + i) * p.rows + r, isnan(a) ? a : y.high + y.low);
        }
}

/* Panels of 16 rows: a lane computes a row. Half-simdgroups and simdgroups split the blocks, so that neighbouring lanes
 * read neighbouring bytes. MICA_T2 and the parts of MICA_T1, with rounded x. grid: (panels, rows of x / 4), threads
 * (32, simdgroups <= 8). */
kernel void quant_panels(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                     device const char *codes [[buffer(2)]], device const float *acts [[buffer(3)]],
                     device uchar *out [[buffer(4)]], constant mica_qmatmul_params &p [[buffer(5)]] MICA_EPILOGUE_6,
                     uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                     uint at [[thread_index_in_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]])
{
    threadgroup int wholes[8][ROWS_OF_X][PANEL];
    threadgroup float2 sums[8][ROWS_OF_X][PANEL];
    const uint blocks = kind == T1 ? (p.cols + 255) / 256 * 13 : (p.cols + 15) / 16;
    const uint first = group.y * ROWS_OF_X, row = lane % PANEL;
    const short n = short(min(uint(ROWS_OF_X), p.count - first));
    const float one = matrix_scale(w, scales, p);
    int whole[ROWS_OF_X] = {0, 0, 0, 0};
    float_pair sum[ROWS_OF_X];
    for (short i = 0; i < ROWS_OF_X; i++) sum[i] = float_pair{0.0f, 0.0f};
    for (uint k = simd * 2 + lane / PANEL; k < blocks; k += threads.y * 2) {
        device const uchar *b = w + (ulong(group.x) * blocks + k) * 64 + 4 * row;
        const uint c = kind == T1 ? k / 13 * 256 + k % 13 * 20 : k * 16;
        const short digits = kind == T1 && k % 13 != 12 ? 5 : 4; /* 256 is 12 * 20 + 16 */
        for (short i = 0; i < ROWS_OF_X; i++) {
            if (i >= n) break;
            /* rows of codes are 16-byte aligned */
            device const char4 *x = (device const char4 *)(codes + ulong(first + i) * p.pitch + c);
            int4 byte = int4(b[0], b[1], b[2], b[3]);
            int part = 0;
            for (short f = 0; f < digits; f++) {
                const int4 products = ((kind == T1 ? byte * 3 >> 8 : byte & 3) - 1) * int4(x[f]);
                part += (products.x + products.y) + (products.z + products.w);
                byte = kind == T1 ? byte * 3 & 255 : byte >> 2;
            }
            if (act == ACT_TOKEN) whole[i] += part;
            else sum[i] = pair_add(sum[i], piece_of(part, one, acts[ulong(first + i) * p.acts + 1 + c / 256]));
        }
    }
    for (short i = 0; i < ROWS_OF_X; i++) {
        whole[i] += simd_shuffle_xor(whole[i], 16);
        sum[i] = pair_add(sum[i], float_pair{simd_shuffle_xor(sum[i].high, 16), simd_shuffle_xor(sum[i].low, 16)});
        if (lane < PANEL) {
            wholes[simd][i][row] = whole[i];
            sums[simd][i][row] = float2(sum[i].high, sum[i].low);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = at; e < uint(n) * PANEL; e += threads.x * threads.y) {
        const uint i = e / PANEL, r = e % PANEL;
        if (group.x * PANEL + r >= p.rows) continue;
        int all = 0;
        float_pair s = {0.0f, 0.0f};
        for (uint j = 0; j < threads.y; j++) {
            all += wholes[j][i][r];
            s = pair_add(s, float_pair{sums[j][i][r].x, sums[j][i][r].y});
        }
        if (act == ACT_TOKEN) s = piece_of(all, one, 1.0f);
        const float a = acts[ulong(first + i) * p.acts];
        const float_pair y = pair_times(s, a);
        store_result(F32, out, ulong(first + i) * p.rows + group.x * PANEL + r, isnan(a) ? a : y.high + y.low);
    }
}
