/* CONV (conv.h) in f32: the product of w (outs, k) with the patches of x (k, positions), k
 * counting channels and places of the kernel, in tiles of simdgroup matrices; patches are
 * gathered into threadgroup memory. Padding is stored as 0 there; NUMERICS.md leaves the result
 * of a weight that is not finite times padding undefined.
 *
 * grid: (tiles of positions, tiles of outs, batches * groups), threads 32 * WM * WN: WM * WN
 * simdgroups share the M outs and N positions of a tile. threadgroup memory: both tiles, and 64
 * floats a simdgroup. */
#include "common.metal"
#include "conv_params.h"

constant uint dtype [[function_constant(MICA_CONV_DTYPE)]];

constant constexpr short DEPTH = 16, LINE = 4;

/* The element of x that output position `place` multiplies with element t of the kernel; -1: padding. */
inline int source_of(constant mica_conv_params &p, short axis, int place, int t)
{
    const int at = place * p.stride[axis] + t * p.dilation[axis] - p.pad[axis], spread = p.input_dilation[axis];
    return at >= 0 && at % spread == 0 && at / spread < p.size[axis] ? at / spread : -1;
}

template <short M, short N, short WM, short WN>
kernel void conv_tile(device const uchar *x [[buffer(0)]], device const uchar *w [[buffer(1)]],
                      device uchar *out [[buffer(2)]], constant mica_conv_params &p [[buffer(3)]] MICA_EPILOGUE_4,
                      uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]],
                      uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    constexpr short threads = 32 * WM * WN, A = M / WM / 8, B = N / WN / 8;
    threadgroup float weights[M * (DEPTH + LINE)];
    threadgroup float patches[DEPTH * (N + LINE)];
    threadgroup float place[WM * WN * 64];
    const uint batch = group.z / p.groups, part = group.z % p.groups;
    const uint row = group.y * M, col = group.x * N;
    const uint taps = uint(p.kernel[0] * p.kernel[1]), positions = uint(p.out[0] * p.out[1]), depth = p.channels * taps;
    const long x_from = p.x_start + batch * p.x_batch + long(part) * p.channels * p.x_channel;
    const long w_from = p.w_start + long(part) * p.outs * p.w_out;
    const short my_row = short(simd / WN) * A * 8, my_col = short(simd % WN) * B * 8;

    simdgroup_matrix<float, 8, 8> sum[A][B];
    for (short i = 0; i < A; i++)
        for (short j = 0; j < B; j++) sum[i][j] = simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k0 = 0; k0 < depth; k0 += DEPTH) {
        for (short i = at; i < M * DEPTH; i += threads) {
            const uint r = i / DEPTH, c = i % DEPTH, k = k0 + c, tap = k % taps;
            float value = 0;
            if (row + r < p.outs && k < depth)
                value = load_float(dtype, w,
                                   w_from + (row + r) * p.w_out + k / taps * p.w_channel +
                                       tap / p.kernel[1] * p.w_step[0] + tap % p.kernel[1] * p.w_step[1]);
            weights[r * (DEPTH + LINE) + c] = value;
        }
        for (short i = at; i < DEPTH * N; i += threads) {
            const uint r = i / N, c = i % N, k = k0 + r, tap = k % taps, y = col + c;
            float value = 0;
            if (y < positions && k < depth) {
                const int x0 = source_of(p, 0, int(y) / p.out[1], int(tap) / p.kernel[1]);
                const int x1 = source_of(p, 1, int(y) % p.out[1], int(tap) % p.kernel[1]);
                if (x0 >= 0 && x1 >= 0)
                    value = load_float(dtype, x,
                                       x_from + k / taps * p.x_channel + x0 * p.x_step[0] + x1 * p.x_step[1]);
            }
            patches[r * (N + LINE) + c] = value;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (short k = 0; k < DEPTH; k += 8) {
            simdgroup_matrix<float, 8, 8> left[A], right[B];
            for (short i = 0; i < A; i++)
                simdgroup_load(left[i], weights + (my_row + i * 8) * (DEPTH + LINE) + k, DEPTH + LINE);
            for (short j = 0; j < B; j++)
                simdgroup_load(right[j], patches + k * (N + LINE) + my_col + j * 8, N + LINE);
            for (short i = 0; i < A; i++)
                for (short j = 0; j < B; j++) simdgroup_multiply_accumulate(sum[i][j], left[i], right[j], sum[i][j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    threadgroup float *mine = place + simd * 64;
    const long to = (long(batch) * p.groups + part) * p.outs * positions;
    for (short i = 0; i < A; i++)
        for (short j = 0; j < B; j++) {
            simdgroup_store(sum[i][j], mine, 8);
            simdgroup_barrier(mem_flags::mem_threadgroup);
            for (short e = lane; e < 64; e += 32) {
                const uint r = row + my_row + i * 8 + e / 8, c = col + my_col + j * 8 + e % 8;
                if (r < p.outs && c < positions) store_result(dtype, out, to + long(r) * positions + c, mine[e]);
            }
            simdgroup_barrier(mem_flags::mem_threadgroup);
        }
}

#define CONV_TILE(name, M, N, WM, WN) \
    template [[host_name(name)]] kernel decltype(conv_tile<M, N, WM, WN>) conv_tile<M, N, WM, WN>;
CONV_TILE("conv_tile_64x64", 64, 64, 2, 2)
CONV_TILE("conv_tile_32x64", 32, 64, 2, 2)
CONV_TILE("conv_tile_32x32", 32, 32, 2, 2)
CONV_TILE("conv_tile_16x64", 16, 64, 1, 4)
