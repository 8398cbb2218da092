/* SOFTMAX, LOG_SOFTMAX, LOGSUMEXP (softmax.h). The largest element, the sum of powers and the
 * result are one pass over the row each; the row stays in the cache.
 *
 * grid: a row is one threadgroup, or one simdgroup if a threadgroup has several rows
 * (threads (32, r)). threadgroup memory: one float a simdgroup. */
#include "common.metal"
#include "softmax_params.h"

constant uint dtype [[function_constant(MICA_SOFTMAX_DTYPE)]];
constant uint kind [[function_constant(MICA_SOFTMAX_KIND)]]; /* MICA_SOFTMAX_... */
constant bool has_origin [[function_constant(MICA_SOFTMAX_HAS_ORIGIN)]];

kernel void softmax_rows(device const uchar *x [[buffer(0)]], device const uchar *origin [[buffer(1)]],
                         device uchar *out [[buffer(2)]], constant mica_softmax_params &p [[buffer(3)]] MICA_EPILOGUE_4,
                         uint3 group [[threadgroup_position_in_grid]], uint3 at [[thread_position_in_threadgroup]],
                         uint3 threads [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float scratch[32];
    const uint row = group.x * threads.y + at.y, simd = at.x / 32, simds = threads.x / 32;
    if (row >= p.rows) return; /* only if each row has one simdgroup; then there is no barrier below */
    const long from = view_at(p.x, row);

    float top = -INFINITY;
    for (uint i = at.x; i < p.n; i += threads.x) {
        const float v = load_float(dtype, x, from + long(i) * p.step);
        if (v > top) top = v;
    }
    top = row_max(top, scratch, simd, lane, simds);
    if (kind == MICA_SOFTMAX_LOGSUMEXP && isinf(top)) top = 0; /* inf - inf is NaN; exp and log give the infinity */

    float sum = 0;
    for (uint i = at.x; i < p.n; i += threads.x)
        sum += precise::exp(load_float(dtype, x, from + long(i) * p.step) - top);
    sum = row_sum(sum, scratch, simd, lane, simds);

    if (kind == MICA_SOFTMAX_LOGSUMEXP) {
        const float less = has_origin ? load_float(dtype, origin, view_at(p.origin, row)) : 0.0f;
        if (at.x == 0) store_result(dtype, out, row, precise::log(sum) + (top - less));
        return;
    }
    const float log_sum = kind == MICA_SOFTMAX_LOG ? precise::log(sum) : 0.0f;
    for (uint i = at.x; i < p.n; i += threads.x) {
        const float v = load_float(dtype, x, from + long(i) * p.step) - top;
        store_result(dtype, out, long(row) * p.n + i, kind == MICA_SOFTMAX_LOG ? v - log_sum : precise::exp(v) / sum);
    }
}
