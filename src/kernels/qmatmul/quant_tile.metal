/* QMATMUL: many rows of x, in tiles of simdgroup matrices. */
#include "quant_matrix.metal"

constant bool exact [[function_constant(MICA_QMATMUL_EXACT)]]; /* codes in both operands, one scale each */

constant constexpr short DEPTH = 32, LINE = 36;       /* columns at a time; pitch of their lines */

/* Tiles of simdgroup matrices: M rows of x times N rows of the matrix, which are unpacked into threadgroup memory. More
 * rows of x per tile mean less unpacking. exact: both are integers, and so are the sums (below 2^24). grid: (tiles of
 * rows of the matrix, tiles of rows of x), threads 128 = 2 x 2 simdgroups. threadgroup memory: both tiles, 64 floats
 * per simdgroup. */
template <short M, short N>
kernel void quant_tile(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                       device const uchar *biases [[buffer(2)]], device const float *x [[buffer(3)]],
                       device const char *codes [[buffer(4)]], device const float *acts [[buffer(5)]],
                       device uchar *out [[buffer(6)]], constant mica_qmatmul_params &p [[buffer(7)]] MICA_EPILOGUE_8,
                       uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]],
                       uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    constexpr short rows = M / 16, cols = N / 16;     /* 8 x 8 matrices per simdgroup */
    threadgroup float x_tile[M * LINE];
    threadgroup float w_tile[N * LINE];
    threadgroup float place[4 * 64];
    const uint row = group.y * M, col = group.x * N;
    const short my_row = short(simd / 2) * (M / 2), my_col = short(simd % 2) * (N / 2);
    const quant_matrix m = {w, scales, biases, one_scale(w, scales, p)};
    const quant_acts in = {x, codes, acts};

    simdgroup_matrix<float, 8, 8> sum[rows][cols];
    for (short i = 0; i < rows; i++)
        for (short j = 0; j < cols; j++) sum[i][j] = simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k0 = 0; k0 < p.cols; k0 += DEPTH) {
        for (short i = at; i < M * DEPTH; i += 128) {
            const uint r = i / DEPTH, c = i % DEPTH, k = k0 + c;
            float left = 0;
            if (row + r < p.count && k < p.cols)
                left = exact ? float(codes[ulong(row + r) * p.pitch + k])
                             : act_at(in, p, view_at(p.x, row + r), row + r, k);
            x_tile[r * LINE + c] = left;
        }
        for (short i = at; i < N * DEPTH; i += 128) {
            const uint r = i / DEPTH, c = i % DEPTH, k = k0 + c;
            float right = 0;
            if (col + r < p.rows && k < p.cols)
                right = exact ? float(code_at(w, p, col + r, k)) : value_at(m, p, col + r, k);
            w_tile[r * LINE + c] = right;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (short k = 0; k < DEPTH; k += 8) {
            simdgroup_matrix<float, 8, 8> left[rows], right[cols];
            for (short i = 0; i < rows; i++) simdgroup_load(left[i], x_tile + (my_row + i * 8) * LINE + k, LINE);
            for (short j = 0; j < cols; j++)
                simdgroup_load(right[j], w_tile + (my_col + j * 8) * LINE + k, LINE, ulong2(0, 0), true);
            for (short i = 0; i < rows; i++)
                for (short j = 0; j < cols; j++) simdgroup_multiply_accumulate(sum[i][j], left[i], right[j], sum[i][j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    threadgroup float *mine = place + simd * 64;
    for (short i = 0; i < rows; i++)
        for (short j = 0; j < cols; j++) {
            simdgroup_store(sum[i][j], mine, 8);
            simdgroup_barrier(mem_flags::mem_threadgroup);
            for (short e = lane; e < 64; e += 32) {
                const uint r = row + my_row + i * 8 + e / 8, c = col + my_col + j * 8 + e % 8;
                if (r >= p.count || c >= p.rows) continue;
                const float a = acts[ulong(r) * p.acts];
                float y = mine[e];
                if (exact) {
                    const float_pair s = pair_times(piece_of(int(y), m.one, 1.0f), a);
                    y = s.high + s.low;
                }
                store_result(F32, out, ulong(r) * p.rows + c, isnan(a) ? a : y);
            }
            simdgroup_barrier(mem_flags::mem_threadgroup);
        }
}

#define QUANT_TILE(name, M, N) \
    template [[host_name(name)]] kernel decltype(quant_tile<M, N>) quant_tile<M, N>;
QUANT_TILE("quant_tile_64x64", 64, 64)
QUANT_TILE("quant_tile_64x32", 64, 32)
QUANT_TILE("quant_tile_32x32", 32, 32)
