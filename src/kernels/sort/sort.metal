/* SORT and ARGSORT (sort.h): pairs of an order key and an index. Both are compared, so that any
 * sorting algorithm is stable. Blocks are sorted in threadgroup memory. Then sorted runs are merged
 * or, if few elements are wanted, the first elements of each block are sorted again. */
#include "common.metal"
#include "sort_params.h"

constant uint dtype [[function_constant(MICA_SORT_DTYPE)]];
constant uint element_bytes [[function_constant(MICA_SORT_ELEMENT_BYTES)]]; /* bytes of an element */
constant bool descending [[function_constant(MICA_SORT_DESCENDING)]];
constant bool indices [[function_constant(MICA_SORT_INDICES)]]; /* ARGSORT */
constant bool from_x [[function_constant(MICA_SORT_FROM_X)]]; /* else from keys and places */
constant bool to_out [[function_constant(MICA_SORT_TO_OUT)]]; /* else to keys and places */

/* A row of x and of the result. */
struct sort_row {
    device const uchar *x;
    device uchar *out;
    uint row;                                         /* its number                      */
};

/* Stores element e of a row of the result: the element of x at `place`, or its index. */
inline void put_result(constant mica_sort_params &p, sort_row r, uint e, uint place)
{
    const ulong at = ulong(r.row) * p.k + e;
    if (indices) ((device long *)r.out)[at] = place;
    else copy_bits(element_bytes, r.out, at, r.x, view_at(p.x, r.row) + long(place) * p.step);
}

/* Bitonic sort of blocks of up to BLOCK. grid: (blocks, rows), threads (32 * n). threadgroup memory: a block of
 * pairs. */
template <uint BLOCK>
kernel void sort_block(device const uchar *x [[buffer(0)]], device const ulong *keys [[buffer(1)]],
                       device const uint *places [[buffer(2)]], device ulong *next_keys [[buffer(3)]],
                       device uint *next_places [[buffer(4)]], device uchar *out [[buffer(5)]],
                       constant mica_sort_params &p [[buffer(6)]], uint3 group [[threadgroup_position_in_grid]],
                       uint at [[thread_index_in_threadgroup]], uint3 threads [[threads_per_threadgroup]])
{
    threadgroup ulong key[BLOCK];
    threadgroup uint place[BLOCK];
    const uint row = group.y, first = group.x * p.block;
    const long from = from_x ? view_at(p.x, row) : long(row) * p.n;
    for (uint i = at; i < p.block; i += threads.x) {
        const uint e = first + i;
        ulong one = ~0ul;
        uint where = ~0u;
        if (e < p.n && from_x) {
            one = order_key(dtype, x, from + long(e) * p.step);
            if (descending) one = ~one;
            where = e;
        } else if (e < p.n) {
            one = keys[from + e];
            where = places[from + e];
        }
        key[i] = one;
        place[i] = where;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint run = 2; run <= p.block; run *= 2)
        for (uint by = run / 2; by > 0; by /= 2) {
            for (uint i = at; i < p.block / 2; i += threads.x) {
                const uint a = i / by * 2 * by + i % by, b = a + by;
                const bool up = (a & run) == 0;
                const ulong key_a = key[a], key_b = key[b];
                const uint place_a = place[a], place_b = place[b];
                const bool more = key_a > key_b || (key_a == key_b && place_a > place_b);
                if (more == up) {
                    key[a] = key_b;
                    key[b] = key_a;
                    place[a] = place_b;
                    place[b] = place_a;
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    for (uint i = at; i < p.keep; i += threads.x) {
        const uint e = group.x * p.keep + i;
        if (to_out && e < p.k) put_result(p, sort_row{x, out, row}, e, place[i]);
        if (!to_out && e < p.next) {
            next_keys[ulong(row) * p.next + e] = key[i];
            next_places[ulong(row) * p.next + e] = place[i];
        }
    }
}

#define SORT_BLOCK(name, BLOCK) template [[host_name(name)]] kernel decltype(sort_block<BLOCK>) sort_block<BLOCK>;
SORT_BLOCK("sort_block_2048", 2048)
SORT_BLOCK("sort_block_1024", 1024)

/* Merges neighbouring runs of `width`: the position of a key is the sum of its ranks in both runs.
 * grid: (keys of a row / threads, rows). */
kernel void sort_merge(device const uchar *x [[buffer(0)]], device const ulong *keys [[buffer(1)]],
                       device const uint *places [[buffer(2)]], device ulong *next_keys [[buffer(3)]],
                       device uint *next_places [[buffer(4)]], device uchar *out [[buffer(5)]],
                       constant mica_sort_params &p [[buffer(6)]], uint3 at [[thread_position_in_grid]])
{
    if (at.x >= p.n) return;
    const uint row = at.y, run = at.x / p.width, pair = run / 2 * 2 * p.width, other = (run ^ 1) * p.width;
    device const ulong *mine = keys + ulong(row) * p.n;
    device const uint *where = places + ulong(row) * p.n;
    const ulong key = mine[at.x];
    const uint place = where[at.x];
    uint low = min(other, p.n);
    const uint begin = low;
    uint high = min(other + p.width, p.n);
    while (low < high) {
        const uint middle = (low + high) / 2;
        if (mine[middle] < key || (mine[middle] == key && where[middle] < place)) low = middle + 1;
        else high = middle;
    }
    const uint e = pair + (at.x - run * p.width) + (low - begin);
    if (to_out) {
        if (e < p.k) put_result(p, sort_row{x, out, row}, e, place);
        return;
    }
    next_keys[ulong(row) * p.n + e] = key;
    next_places[ulong(row) * p.n + e] = place;
}
