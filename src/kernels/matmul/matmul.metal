/* MATMUL (matmul.h) of any strides: tiles by simdgroup matrices, few vectors times many
 * lines, integers. Accumulators of floats are f32 for all operand dtypes. */
#include "load4.metal"
#include "matmul_params.h"

constant uint a_type [[function_constant(MICA_MATMUL_A_TYPE)]];
constant uint b_type [[function_constant(MICA_MATMUL_B_TYPE)]];
constant uint out_type [[function_constant(MICA_MATMUL_OUT_TYPE)]];
/* Tiles: the operand is loaded in runs along k, otherwise across lines. Vectors: its stride along k is 1. */
constant bool a_along_k [[function_constant(MICA_MATMUL_A_ALONG_K)]];
constant bool b_along_k [[function_constant(MICA_MATMUL_B_ALONG_K)]];
constant bool even_m [[function_constant(MICA_MATMUL_EVEN_M)]]; /* m is a multiple of the tile: no bounds checks */
constant bool even_n [[function_constant(MICA_MATMUL_EVEN_N)]];
constant bool even_k [[function_constant(MICA_MATMUL_EVEN_K)]];
constant bool a_runs [[function_constant(MICA_MATMUL_A_RUNS)]]; /* tiles: elements of a run are adjacent */
constant bool b_runs [[function_constant(MICA_MATMUL_B_RUNS)]];

/* ----------------------------------------------------------------- tiles --- */

/* An operand as its tiles are loaded. A line is a row of a or a column of b; a run is RUN elements that one thread
 * loads at once. */
struct tile_source {
    device const uchar *x;
    uint type;                                        /* dtype of x                          */
    long line_step, k_step;                           /* strides of lines and of k           */
    uint lines, ks;                                   /* ends of the lines, of this part of k */
    bool along_k;                                     /* runs are along k, else across lines */
    bool runs;                                        /* elements of a run are adjacent      */
    bool whole_lines, whole_ks;                       /* no tile extends past lines, ks      */
};

/* The share of a tile of LINES x K that one thread loads: runs of four elements along k, or across lines. The first
 * run begins at `line` and `k`; each following run is `lines` lines or `ks` positions of k further. Neighbouring
 * threads load neighbouring runs. */
struct tile_share {
    short line, k, lines, ks;
    long from, hop;
};

constant constexpr short RUN = 4;

template <short LINES, short K, short THREADS>
inline tile_share share_of(thread const tile_source &source, uint at)
{
    const bool along_k = source.along_k;
    tile_share s;
    s.line = short(along_k ? at / (K / RUN) : at % (LINES / RUN) * RUN);
    s.k = short(along_k ? at % (K / RUN) * RUN : at / (LINES / RUN));
    s.lines = along_k ? THREADS / (K / RUN) : 0;
    s.ks = along_k ? 0 : THREADS / (LINES / RUN);
    s.from = s.line * source.line_step + s.k * source.k_step;
    s.hop = s.lines * source.line_step + s.ks * source.k_step;
    return s;
}

/* The run at element i, which begins at `line` and `k`; elements outside the source are 0. */
inline float4 load_run(thread const tile_source &s, long i, uint line, uint k)
{
    const uint across = s.along_k ? 0 : RUN - 1, along = s.along_k ? RUN - 1 : 0;
    const long step = s.along_k ? s.k_step : s.line_step;
    if ((s.whole_lines || line + across < s.lines) && (s.whole_ks || k + along < s.ks)) {
        if (s.runs) return load_float4(s.type, s.x, i);
        return float4(load_float(s.type, s.x, i), load_float(s.type, s.x, i + step),
                      load_float(s.type, s.x, i + 2 * step), load_float(s.type, s.x, i + 3 * step));
    }
    float4 v = float4(0.0f);
    for (short e = 0; e < RUN; e++)
        if (line + (s.along_k ? 0 : e) < s.lines && k + (s.along_k ? e : 0) < s.ks)
            v[e] = load_float(s.type, s.x, i + e * step);
    return v;
}

/* A threadgroup of WM x WN simdgroups computes M x N of the result. Tiles of both operands, of
 * length K, are stored in threadgroup memory as T (half if both are f16, which is exact).
 *
 * grid: (tiles of n, tiles of m, batches * parts of k), threads (32 * WM * WN).
 * threadgroup memory: both tiles and 64 floats a simdgroup. With parts of k the result
 * is f32 partial sums; the parts are the outermost axis. */
template <typename T, short M, short N, short K, short WM, short WN>
kernel void matmul_tile(device const uchar *a [[buffer(0)]], device const uchar *b [[buffer(1)]],
                        device uchar *out [[buffer(2)]], constant mica_matmul_params &p [[buffer(3)]] MICA_EPILOGUE_4,
                        uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]],
                        uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    constexpr short threads = 32 * WM * WN, a_line = K + 16 / sizeof(T), b_line = N + 16 / sizeof(T);
    constexpr short rows = M / WM / 8, cols = N / WN / 8; /* matrices of 8 x 8 of a simdgroup */
    threadgroup T a_tile[M * a_line];
    threadgroup T b_tile[K * b_line];
    threadgroup float place[WM * WN * 64];

    const uint batch = group.z % p.batches, part = group.z / p.batches;
    const uint row = group.y * M, col = group.x * N;
    const uint first = part * p.each, end = min(p.k, first + p.each);
    const long a_from = view_at(p.a, batch) + long(row) * p.a_row, b_from = view_at(p.b, batch) + long(col) * p.b_col;
    const short my_row = short(simd / WN) * (M / WM), my_col = short(simd % WN) * (N / WN);

    simdgroup_matrix<float, 8, 8> sum[rows][cols];
    for (short i = 0; i < rows; i++)
        for (short j = 0; j < cols; j++) sum[i][j] = simdgroup_matrix<float, 8, 8>(0.0f);

    const tile_source from_a = {a, a_type, p.a_row, p.a_col, p.m, end, a_along_k, a_runs, even_m, even_k};
    const tile_source from_b = {b, b_type, p.b_col, p.b_row, p.n, end, b_along_k, b_runs, even_n, even_k};
    const tile_share mine_a = share_of<M, K, threads>(from_a, at), mine_b = share_of<N, K, threads>(from_b, at);
    for (uint k0 = first; k0 < end; k0 += K) {
        const long a_at = a_from + long(k0) * p.a_col + mine_a.from, b_at = b_from + long(k0) * p.b_row + mine_b.from;
        for (short i = 0; i < M * K / threads / RUN; i++) {
            const short r = mine_a.line + i * mine_a.lines, c = mine_a.k + i * mine_a.ks;
            const float4 v = load_run(from_a, a_at + i * mine_a.hop, row + r, k0 + c);
            for (short e = 0; e < RUN; e++)
                a_tile[a_along_k ? r * a_line + c + e : (r + e) * a_line + c] = T(v[e]);
        }
        for (short i = 0; i < K * N / threads / RUN; i++) {
            const short r = mine_b.k + i * mine_b.ks, c = mine_b.line + i * mine_b.lines;
            const float4 v = load_run(from_b, b_at + i * mine_b.hop, col + c, k0 + r);
            for (short e = 0; e < RUN; e++)
                b_tile[b_along_k ? (r + e) * b_line + c : r * b_line + c + e] = T(v[e]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (short k = 0; k < K; k += 8) {
            simdgroup_matrix<T, 8, 8> left[rows], right[cols];
            for (short i = 0; i < rows; i++)
                simdgroup_load(left[i], a_tile + (my_row + i * 8) * a_line + k, a_line);
            for (short j = 0; j < cols; j++) simdgroup_load(right[j], b_tile + k * b_line + my_col + j * 8, b_line);
            for (short i = 0; i < rows; i++)
                for (short j = 0; j < cols; j++) simdgroup_multiply_accumulate(sum[i][j], left[i], right[j], sum[i][j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    threadgroup float *mine = place + simd * 64;
    const long to = long(group.z) * p.m * p.n;
    for (short i = 0; i < rows; i++)
        for (short j = 0; j < cols; j++) {
            simdgroup_store(sum[i][j], mine, 8);
            simdgroup_barrier(mem_flags::mem_threadgroup);
            for (short e = lane; e < 64; e += 32) {
                const uint r = row + my_row + i * 8 + e / 8, c = col + my_col + j * 8 + e % 8;
                if ((even_m || r < p.m) && (even_n || c < p.n))
                    store_result(out_type, out, to + long(r) * p.n + c, mine[e]);
            }
            simdgroup_barrier(mem_flags::mem_threadgroup);
        }
}

#define MATMUL_TILE(name, T, M, N, K, WM, WN) \
    template [[host_name(name)]] kernel decltype(matmul_tile<T, M, N, K, WM, WN>) matmul_tile<T, M, N, K, WM, WN>;
MATMUL_TILE("matmul_float_64x64x16_2x2", float, 64, 64, 16, 2, 2)
MATMUL_TILE("matmul_float_64x32x16_2x2", float, 64, 32, 16, 2, 2)
MATMUL_TILE("matmul_float_32x64x16_1x2", float, 32, 64, 16, 1, 2)
MATMUL_TILE("matmul_float_32x32x16_2x2", float, 32, 32, 16, 2, 2)
MATMUL_TILE("matmul_half_64x64x32_2x2", half, 64, 64, 32, 2, 2)
MATMUL_TILE("matmul_half_64x64x16_1x2", half, 64, 64, 16, 1, 2)
MATMUL_TILE("matmul_half_64x32x32_2x2", half, 64, 32, 32, 2, 2)
MATMUL_TILE("matmul_half_32x32x32_2x2", half, 32, 32, 32, 2, 2)

/* grid: one thread an element of the result. */
kernel void matmul_sum(device const float *part [[buffer(0)]], device uchar *out [[buffer(1)]],
                       constant mica_matmul_sum_params &p [[buffer(2)]] MICA_EPILOGUE_3,
                       uint i [[thread_position_in_grid]])
{
    if (i >= p.count) return;
    float sum = 0;
    for (uint j = 0; j < p.parts; j++) sum += part[ulong(j) * p.count + i];
    store_result(out_type, out, i, sum);
}

/* --------------------------------------------------------------- vectors --- */

constant int vector_count [[function_constant(MICA_MATMUL_VECTOR_COUNT)]]; /* at a time: 1 to 4 */
constant constexpr short VECTORS = 4, LINES = 4;

/* Lines that are contiguous along k: lanes share four lines, four elements of each at a time.
 * grid: (lines / 4 / simdgroups, vectors / 1 ... 4, batches), threads (32, simdgroups). No threadgroup
 * memory. a_type is that of the lines, b_type that of the vectors; a_along_k, b_along_k: their
 * steps along k are 1. */
kernel void matmul_lines(device const uchar *w [[buffer(0)]], device const uchar *v [[buffer(1)]],
                         device uchar *out [[buffer(2)]], constant mica_matvec_params &p [[buffer(3)]] MICA_EPILOGUE_4,
                         uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                         uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    const uint line = (group.x * threads.y + simd) * LINES, first = group.y * vector_count;
    if (line >= p.lines) return;
    const long w_k = a_along_k ? 1 : p.w_k, v_k = b_along_k ? 1 : p.v_k;
    long w_from[LINES], v_from[VECTORS];
    /* past the end, the last line or vector is computed again and not stored */
    for (short j = 0; j < LINES; j++) w_from[j] = view_at(p.w, group.z) + min(line + j, p.lines - 1) * p.w_line;
    for (short i = 0; i < vector_count; i++)
        v_from[i] = view_at(p.v, group.z) + min(first + i, p.vectors - 1) * p.v_vector;
    float sum[LINES][VECTORS];
    for (short j = 0; j < LINES; j++)
        for (short i = 0; i < vector_count; i++) sum[j][i] = 0;
    for (uint k = lane * 4; k < p.k; k += 128) {
        if (a_along_k && b_along_k && k + 4 <= p.k) { /* vector loads; the same order of additions as below */
            float4 x[VECTORS];
            for (short i = 0; i < vector_count; i++) x[i] = load_float4(b_type, v, v_from[i] + k);
            for (short j = 0; j < LINES; j++) {
                const float4 weight = load_float4(a_type, w, w_from[j] + k);
                for (short e = 0; e < 4; e++)
                    for (short i = 0; i < vector_count; i++) sum[j][i] = fma(weight[e], x[i][e], sum[j][i]);
            }
            continue;
        }
        for (uint e = k; e < min(k + 4, p.k); e++) {
            float x[VECTORS];
            for (short i = 0; i < vector_count; i++) x[i] = load_float(b_type, v, v_from[i] + e * v_k);
            for (short j = 0; j < LINES; j++) {
                const float weight = load_float(a_type, w, w_from[j] + e * w_k);
                for (short i = 0; i < vector_count; i++) sum[j][i] = fma(weight, x[i], sum[j][i]);
            }
        }
    }
    for (short j = 0; j < LINES; j++)
        for (short i = 0; i < vector_count; i++) {
            const float whole = simd_sum(sum[j][i]);
            if (lane == 0 && line + j < p.lines && first + i < p.vectors)
                store_result(out_type, out,
                             group.z * p.out_batch + (line + j) * p.out_line + (first + i) * p.out_vector, whole);
        }
}

/* Lines that are adjacent in memory: a lane has a line, simdgroups share k.
 * grid: (lines / 32, vectors / 1 ... 4, batches), threads (32, simdgroups, at most 16).
 * threadgroup memory: 32 x 4 floats a simdgroup. */
kernel void matmul_beside(device const uchar *w [[buffer(0)]], device const uchar *v [[buffer(1)]],
                          device uchar *out [[buffer(2)]], constant mica_matvec_params &p [[buffer(3)]] MICA_EPILOGUE_4,
                          uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                          uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float part[16][VECTORS][32];
    const uint line = group.x * 32 + lane, first = group.y * vector_count;
    const long w_from = view_at(p.w, group.z) + min(line, p.lines - 1) * p.w_line;
    long v_from[VECTORS];
    float sum[VECTORS];
    for (short i = 0; i < vector_count; i++) {
        v_from[i] = view_at(p.v, group.z) + min(first + i, p.vectors - 1) * p.v_vector;
        sum[i] = 0;
    }
    for (uint k = simd; k < p.k; k += threads.y) {
        const float weight = load_float(a_type, w, w_from + k * p.w_k);
        for (short i = 0; i < vector_count; i++)
            sum[i] = fma(weight, load_float(b_type, v, v_from[i] + k * p.v_k), sum[i]);
    }
    for (short i = 0; i < vector_count; i++) part[simd][i][lane] = sum[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (short i = short(simd); i < vector_count; i += short(threads.y)) {
        float whole = 0;
        for (uint s = 0; s < threads.y; s++) whole += part[s][i][lane];
        if (line < p.lines && first + i < p.vectors)
            store_result(out_type, out, group.z * p.out_batch + line * p.out_line + (first + i) * p.out_vector, whole);
    }
}

/* -------------------------------------------------------------- integers --- */

/* Computes modulo 2^64 and truncates to the dtype of the result. grid: one thread an element of the result. */
kernel void matmul_integers(device const uchar *a [[buffer(0)]], device const uchar *b [[buffer(1)]],
                            device uchar *out [[buffer(2)]], constant mica_matmul_params &p [[buffer(3)]],
                            uint at [[thread_position_in_grid]])
{
    if (at >= p.m * p.n * p.batches) return;
    const uint col = at % p.n, row = at / p.n % p.m, batch = at / p.n / p.m;
    const long a_from = view_at(p.a, batch) + row * p.a_row, b_from = view_at(p.b, batch) + col * p.b_col;
    ulong sum = 0;
    for (uint k = 0; k < p.k; k++)
        sum += ulong(load_long(a_type, a, a_from + k * p.a_col)) * ulong(load_long(b_type, b, b_from + k * p.b_row));
    store_long(out_type, out, at, long(sum));
}
