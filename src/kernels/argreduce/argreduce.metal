/* ARGMAX and ARGMIN (argreduce.h) by order keys: the first of the largest keys.
 *
 * grid: a row is one threadgroup of 32 * n threads, or one simdgroup if a threadgroup
 * has several rows (threads (32, r)). threadgroup memory: a key and an index for each
 * simdgroup, used only by rows with more than one simdgroup. */
#include "common.metal"
#include "argreduce_params.h"

constant uint dtype [[function_constant(MICA_ARGREDUCE_DTYPE)]];
constant uint result [[function_constant(MICA_ARGREDUCE_RESULT)]];
constant bool largest [[function_constant(MICA_ARGREDUCE_LARGEST)]];

/* Shuffles each half: simd_shuffle_xor has no 64-bit form. */
inline ulong shuffle_key(ulong key, ushort by)
{
    return ulong(simd_shuffle_xor(uint(key >> 32), by)) << 32 | simd_shuffle_xor(uint(key), by);
}

/* A thread without elements has index ~0 and never wins. */
inline bool is_before(ulong key, uint where, ulong than, uint there)
{
    if (where == ~0u || there == ~0u) return where != ~0u;
    return key > than || (key == than && where < there);
}

kernel void argreduce_rows(device const uchar *x [[buffer(0)]], device uchar *out [[buffer(1)]],
                           constant mica_argreduce_params &p [[buffer(2)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint3 at [[thread_position_in_threadgroup]], uint3 threads [[threads_per_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]])
{
    threadgroup ulong keys[32];
    threadgroup uint places[32];
    const uint row = group.x * threads.y + at.y, simd = at.x / 32, simds = threads.x / 32;
    if (row >= p.rows) return; /* only if each row has one simdgroup; then there is no barrier below */
    const long from = view_at(p.x, row);
    ulong best = 0;
    uint where = ~0u;
    for (uint i = at.x; i < p.n; i += threads.x) {
        ulong key = order_key(dtype, x, from + long(i) * p.step);
        if (!largest && !(type_is_float(dtype) && key == KEY_NAN)) key = ~key;
        if (where == ~0u || key > best) {
            best = key;
            where = i;
        }
    }
    for (ushort by = 16; by > 0; by /= 2) {
        const ulong key = shuffle_key(best, by);
        const uint there = simd_shuffle_xor(where, by);
        if (is_before(key, there, best, where)) {
            best = key;
            where = there;
        }
    }
    if (simds > 1) {
        if (lane == 0) {
            keys[simd] = best;
            places[simd] = where;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < simds && at.x == 0; i++)
            if (is_before(keys[i], places[i], best, where)) {
                best = keys[i];
                where = places[i];
            }
    }
    if (at.x == 0) store_long(result, out, row, where);
}
