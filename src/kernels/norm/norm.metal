/* LAYER_NORM and RMS_NORM without weights (norm.h). The mean, the sum of squares and the result are
 * one pass over the row each. The mean is a pair of floats: in a row of equal numbers its rounding
 * error would be the whole result. Rows that are read by products with 8-bit x are quantised here too.
 *
 * grid: a row is one threadgroup, or one simdgroup if a threadgroup has several rows
 * (threads (32, r)). threadgroup memory: two floats a simdgroup. */
#include "common.metal"
#include "norm_params.h"
#include "round_rows.metal"

constant uint dtype [[function_constant(MICA_NORM_DTYPE)]];
constant uint result [[function_constant(MICA_NORM_RESULT)]]; /* f32 if weights follow */
constant bool centred [[function_constant(MICA_NORM_CENTRED)]];
constant bool rounds [[function_constant(MICA_NORM_ROUNDS)]]; /* also stores codes and scales */

kernel void norm_rows(device const uchar *x [[buffer(0)]], device uchar *out [[buffer(1)]],
                      device char *codes [[buffer(2)]], device float *scales [[buffer(3)]],
                      constant mica_norm_params &p [[buffer(4)]] MICA_EPILOGUE_5,
                      uint3 group [[threadgroup_position_in_grid]],
                      uint3 at [[thread_position_in_threadgroup]], uint3 threads [[threads_per_threadgroup]],
                      uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float scratch[64];
    const uint row = group.x * threads.y + at.y, simd = at.x / 32, simds = threads.x / 32;
    if (row >= p.rows) return; /* only if each row has one simdgroup; then there is no barrier below */
    const long from = view_at(p.x, row);

    float_pair mean = {0.0f, 0.0f};
    if (centred) {
        float plain = 0;
        for (uint i = at.x; i < p.n; i += threads.x) {
            const float v = load_float(dtype, x, from + long(i) * p.step);
            mean = pair_add(mean, float_pair{v, 0.0f});
            plain += v;
        }
        mean = row_pair_sum(mean, scratch, simd, lane, simds);
        plain = row_sum(plain, scratch, simd, lane, simds);
        const float n = float(p.n), first = mean.high / n;
        mean = pair_sum(first, (fma(-first, n, mean.high) + mean.low) / n);
        if (!(fabs(plain) < INFINITY)) mean = float_pair{plain, 0.0f};
    }
    float squares = 0;
    for (uint i = at.x; i < p.n; i += threads.x) {
        const float v = (load_float(dtype, x, from + long(i) * p.step) - mean.high) - mean.low;
        squares += v * v;
    }
    squares = row_sum(squares, scratch, simd, lane, simds);
    const float root = precise::sqrt(squares / float(p.n) + p.eps);
    row_range range = {0.0f, 0.0f};
    for (uint i = at.x; i < p.n; i += threads.x) {
        const float v = (load_float(dtype, x, from + long(i) * p.step) - mean.high) - mean.low;
        const float y = store_result(result, out, long(row) * p.n + i, v / root);
        if (rounds) range = range_with(range, y);
    }
    if (!rounds) return;
    range = range_of_row(range, scratch, simd, lane, simds);
    for (uint i = at.x; i < p.pitch; i += threads.x) {
        char code = 0;
        if (i < p.n) { /* computes and stores again, because the epilogue may have several results */
            const float v = (load_float(dtype, x, from + long(i) * p.step) - mean.high) - mean.low;
            code = round_code(range, store_result(result, out, long(row) * p.n + i, v / root));
        }
        codes[ulong(row) * p.pitch + i] = code;
    }
    if (at.x == 0) scales[row] = round_scale(range);
}
