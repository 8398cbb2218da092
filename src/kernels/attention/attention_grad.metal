/* ATTENTION_GRAD (attention_grad.h) in f32. Three kernels: the first stores the maximum, the sum and the
 * mean slope of each query, the second computes dq by query, the third dk and dv by key. Each kernel
 * computes the scores again.
 *
 * grid: a threadgroup for each query (or key), threads (32, simdgroups <= 8). The simdgroups share the
 * keys (or the queries); lanes share the elements of a row, 256 at most. threadgroup memory: the sums
 * of the simdgroups. */
#include "common.metal"
#include "attention_params.h"
#include "attention_shared.metal"

constant uint q_type [[function_constant(MICA_ATTENTION_GRAD_Q_TYPE)]];
constant uint k_type [[function_constant(MICA_ATTENTION_GRAD_K_TYPE)]];
constant uint v_type [[function_constant(MICA_ATTENTION_GRAD_V_TYPE)]];
constant uint out_type [[function_constant(MICA_ATTENTION_GRAD_OUT_TYPE)]];
constant uint mask_type [[function_constant(MICA_ATTENTION_GRAD_MASK_TYPE)]];
constant bool has_mask [[function_constant(MICA_ATTENTION_GRAD_HAS_MASK)]];
constant bool causal [[function_constant(MICA_ATTENTION_GRAD_CAUSAL)]];
constant uint c_type [[function_constant(MICA_ATTENTION_GRAD_C_TYPE)]];

constant constexpr uint SIMDS = 8, SIZE = 256, EACH = SIZE / 32;

/* The operands: q, k, v and the mask of ATTENTION, and the cotangent of its result. */
struct grad_operands {
    device const uchar *q, *k, *v, *mask, *c;
};

/* One row of an operand. */
struct operand_row {
    device const uchar *x;
    uint type;                                        /* dtype of x                      */
    long at, step;                                    /* its first element, the stride   */
};

/* The dot product of two rows of n elements, by all lanes. */
inline float dot_of(uint n, operand_row x, operand_row y, uint lane)
{
    float sum = 0;
    for (uint i = lane; i < n; i += 32)
        sum = fma(load_float(x.type, x.x, x.at + i * x.step), load_float(y.type, y.x, y.at + i * y.step), sum);
    return simd_sum(sum);
}

/* The score of query r with key s; -inf: hidden. */
inline float score_of(constant mica_attention_params &p, thread const grad_operands &in, attention_row r, uint s,
                      uint lane)
{
    if (causal && long(s) > long(r.t) + p.keys - p.times) return -INFINITY;
    float added = 0;
    if (has_mask) {
        const float value = load_float(mask_type, in.mask, head_at(p.mask, r.b, r.h, r.t) + s * p.mask.stride[3]);
        added = mask_type != BOOL ? value : value != 0 ? 0 : -INFINITY;
        if (added == -INFINITY) return added;
    }
    const operand_row query = {in.q, q_type, head_at(p.q, r.b, r.h, r.t), p.q.stride[3]};
    const operand_row key = {in.k, k_type, head_at(p.k, r.b, r.g, s), p.k.stride[3]};
    return dot_of(p.dims, query, key, lane) * p.scale + added;
}

/* <c, v[s]> */
inline float slope_of(constant mica_attention_params &p, thread const grad_operands &in, attention_row r, uint s,
                      uint lane)
{
    const operand_row slopes = {in.c, c_type, head_at(p.c, r.b, r.h, r.t), p.c.stride[3]};
    const operand_row value = {in.v, v_type, head_at(p.v, r.b, r.g, s), p.v.stride[3]};
    return dot_of(p.size, slopes, value, lane);
}

/* Stores for each query the largest score, the sum of weights and the mean slope. */
kernel void grad_stats(device const uchar *q [[buffer(0)]], device const uchar *k [[buffer(1)]],
                       device const uchar *v [[buffer(2)]], device const uchar *mask [[buffer(3)]],
                       device const uchar *c [[buffer(4)]], device float *stats [[buffer(5)]],
                       constant mica_attention_params &p [[buffer(6)]], uint3 group [[threadgroup_position_in_grid]],
                       uint3 threads [[threads_per_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float part[SIMDS][3];
    const grad_operands in = {q, k, v, mask, c};
    const attention_row r = row_of(p, group.x);
    float top = -INFINITY, total = 0, slopes = 0;
    for (uint s = simd; s < p.keys; s += threads.y) {
        const float score = score_of(p, in, r, s, lane);
        if (score == -INFINITY) continue;
        const float slope = slope_of(p, in, r, s, lane), higher = score > top ? score : top;
        const float less = total == 0 ? 0.0f : precise::exp(top - higher), weight = precise::exp(score - higher);
        top = higher;
        total = total * less + weight;
        slopes = slopes * less + (weight != 0 ? weight * slope : 0.0f);
    }
    if (lane == 0) {
        part[simd][0] = top;
        part[simd][1] = total;
        part[simd][2] = slopes;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simd != 0 || lane != 0) return;
    for (uint i = 0; i < threads.y; i++) top = part[i][0] > top ? part[i][0] : top;
    total = 0;
    slopes = 0;
    for (uint i = 0; i < threads.y; i++) {
        if (part[i][1] == 0) continue;
        const float less = precise::exp(part[i][0] - top);
        total += part[i][1] * less;
        slopes += part[i][2] * less;
    }
    stats[3 * group.x] = top;
    stats[3 * group.x + 1] = total;
    stats[3 * group.x + 2] = total == 0 ? 0.0f : slopes / total;
}

kernel void grad_queries(device const uchar *q [[buffer(0)]], device const uchar *k [[buffer(1)]],
                         device const uchar *v [[buffer(2)]], device const uchar *mask [[buffer(3)]],
                         device const uchar *c [[buffer(4)]], device const float *stats [[buffer(5)]],
                         device uchar *out [[buffer(6)]], constant mica_attention_params &p [[buffer(7)]],
                         uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                         uint at [[thread_index_in_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float part[SIMDS][SIZE];
    const grad_operands in = {q, k, v, mask, c};
    const attention_row r = row_of(p, group.x);
    const float top = stats[3 * group.x], total = stats[3 * group.x + 1], mean = stats[3 * group.x + 2];
    float sum[EACH];
    for (uint j = 0; j < EACH; j++) sum[j] = 0;
    for (uint s = simd; s < p.keys; s += threads.y) {
        const float score = score_of(p, in, r, s, lane);
        if (score == -INFINITY) continue;
        const float weight = precise::exp(score - top) / total;
        if (weight == 0) continue;
        const float slope = weight * (slope_of(p, in, r, s, lane) - mean) * p.scale;
        const long from = head_at(p.k, r.b, r.g, s);
        for (uint j = 0; j < EACH; j++)
            if (lane + 32 * j < p.dims)
                sum[j] = fma(slope, load_float(k_type, k, from + (lane + 32 * j) * p.k.stride[3]), sum[j]);
    }
    for (uint j = 0; j < EACH; j++) part[simd][lane + 32 * j] = sum[j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint d = at; d < p.dims; d += threads.x * threads.y) {
        float whole = 0;
        for (uint i = 0; i < threads.y; i++) whole += part[i][d];
        store_float(out_type, out, long(group.x) * p.dims + d, whole);
    }
}

/* out begins with dk; grid: (B * G * S). */
kernel void grad_keys(device const uchar *q [[buffer(0)]], device const uchar *k [[buffer(1)]],
                      device const uchar *v [[buffer(2)]], device const uchar *mask [[buffer(3)]],
                      device const uchar *c [[buffer(4)]], device const float *stats [[buffer(5)]],
                      device uchar *out [[buffer(6)]], constant mica_attention_params &p [[buffer(7)]],
                      uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
                      uint3 threads [[threads_per_threadgroup]], uint at [[thread_index_in_threadgroup]],
                      uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float dk[SIMDS][SIZE];
    threadgroup float dv[SIMDS][SIZE];
    const grad_operands in = {q, k, v, mask, c};
    const uint s = group.x % p.keys, head = group.x / p.keys, share = p.heads / p.groups;
    float for_k[EACH], for_v[EACH];
    for (uint j = 0; j < EACH; j++) {
        for_k[j] = 0;
        for_v[j] = 0;
    }
    for (uint i = simd; i < share * p.times; i += threads.y) {
        const uint number = head * share * p.times + i;
        const attention_row r = row_of(p, number);
        const float score = score_of(p, in, r, s, lane);
        if (score == -INFINITY) continue;
        const float weight = precise::exp(score - stats[3 * number]) / stats[3 * number + 1];
        if (weight == 0) continue;
        const float slope = weight * (slope_of(p, in, r, s, lane) - stats[3 * number + 2]) * p.scale;
        const long q_from = head_at(p.q, r.b, r.h, r.t), c_from = head_at(p.c, r.b, r.h, r.t);
        for (uint j = 0; j < EACH; j++) {
            const uint e = lane + 32 * j;
            if (e < p.dims) for_k[j] = fma(slope, load_float(q_type, q, q_from + e * p.q.stride[3]), for_k[j]);
            if (e < p.size) for_v[j] = fma(weight, load_float(c_type, c, c_from + e * p.c.stride[3]), for_v[j]);
        }
    }
    for (uint j = 0; j < EACH; j++) {
        dk[simd][lane + 32 * j] = for_k[j];
        dv[simd][lane + 32 * j] = for_v[j];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint count = threads.x * threads.y;
    for (uint d = at; d < p.dims; d += count) {
        float whole = 0;
        for (uint i = 0; i < threads.y; i++) whole += dk[i][d];
        store_float(out_type, out, long(group.x) * p.dims + d, whole);
    }
    for (uint e = at; e < p.size; e += count) {
        float whole = 0;
        for (uint i = 0; i < threads.y; i++) whole += dv[i][e];
        store_float(out_type, out, long(groups.x) * p.dims + long(group.x) * p.size + e, whole);
    }
}
