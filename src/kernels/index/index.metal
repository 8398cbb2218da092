/* TAKE and SCATTER (index.h). */
#include "common.metal"
#include "index_params.h"

constant uint dtype [[function_constant(MICA_INDEX_DTYPE)]];
constant uint element_bytes [[function_constant(MICA_INDEX_ELEMENT_BYTES)]]; /* bytes of an element */
constant bool adds [[function_constant(MICA_INDEX_ADDS)]];

/* The index as 0 ... n-1; ~0 if it is out of range. */
inline uint index_of(long index, uint n)
{
    if (index < -long(n) || index >= long(n)) return ~0u;
    return uint(index < 0 ? index + n : index);
}

/* Reports the first index that is out of range; indices are integers of type dtype.
 * grid: one threadgroup, 32 * n threads. */
kernel void index_check(device const uchar *indices [[buffer(0)]], device mica_fault *fault [[buffer(1)]],
                        constant mica_index_params &p [[buffer(2)]], uint at [[thread_index_in_threadgroup]],
                        uint3 threads [[threads_per_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]])
{
    threadgroup uint firsts[32];
    uint bad = ~0u;
    for (uint i = at; i < p.count && bad == ~0u; i += threads.x) {
        const long index = load_long(dtype, indices, view_at(p.indices, i));
        if (index_of(index, p.n) == ~0u) bad = i;
    }
    bad = group_min(bad, firsts, simd, lane, threads.x / 32);
    if (at != 0 || bad == ~0u) return;
    fault->position = bad;
    fault->index = load_long(dtype, indices, view_at(p.indices, bad));
    fault->size = p.n;
    fault->kind = p.caller;
    fault->set = 1;
}

/* grid: one thread an element of the result. */
kernel void index_take(device const uchar *x [[buffer(0)]], device const long *indices [[buffer(1)]],
                       device uchar *out [[buffer(2)]], constant mica_index_params &p [[buffer(3)]],
                       uint i [[thread_position_in_grid]])
{
    if (i >= p.work) return;
    const uint inner = i % p.inner, which = i / p.inner % p.count, outer = i / p.inner / p.count;
    const uint at = index_of(indices[view_at(p.indices, which)], p.n);
    if (at == ~0u) store_bits(element_bytes, out, i, 0);
    else copy_bits(element_bytes, out, i, x, view_at(p.x, (outer * p.n + at) * p.inner + inner));
}

/* Applies updates in the order of the indices: a thread reads all indices, for one (outer, inner) and
 * the positions of the axis that are `part` modulo the number of parts.
 * grid: one thread for each of those. */
kernel void index_scatter(device const long *indices [[buffer(0)]], device const uchar *updates [[buffer(1)]],
                          device uchar *out [[buffer(2)]], constant mica_index_params &p [[buffer(3)]],
                          uint i [[thread_position_in_grid]])
{
    if (i >= p.work) return;
    const uint inner = i % p.inner, part = i / p.inner % p.parts, outer = i / p.inner / p.parts;
    for (uint which = 0; which < p.count; which++) {
        const uint at = index_of(indices[view_at(p.indices, which)], p.n);
        if (at == ~0u || at % p.parts != part) continue;
        const long to = (long(outer) * p.n + at) * p.inner + inner;
        const long from = view_at(p.updates, (outer * p.count + which) * p.inner + inner);
        if (!adds) copy_bits(element_bytes, out, to, updates, from);
        else if (type_is_float(dtype))
            store_float(dtype, out, to, load_float(dtype, out, to) + load_float(dtype, updates, from));
        else store_long(dtype, out, to, load_long(dtype, out, to) + load_long(dtype, updates, from));
    }
}
