/* UPDATE (update.h). grid: one thread for each value. */
#include "common.metal"
#include "update_params.h"

constant uint from_type [[function_constant(MICA_UPDATE_FROM_TYPE)]];
constant uint to_type [[function_constant(MICA_UPDATE_TO_TYPE)]];
constant uint start_type [[function_constant(MICA_UPDATE_START_TYPE)]];
constant uint element_bytes [[function_constant(MICA_UPDATE_ELEMENT_BYTES)]]; /* 0: the types differ */

kernel void update_values(device const uchar *values [[buffer(0)]], device const uchar *start [[buffer(1)]],
                          device uchar *state [[buffer(2)]], device mica_fault *fault [[buffer(3)]],
                          constant mica_update_params &p [[buffer(4)]], uint i [[thread_position_in_grid]])
{
    const long first = load_long(start_type, start, 0);
    if (first < 0 || first > long(p.size) - long(p.n)) {
        if (i != 0) return;
        fault->position = p.n;
        fault->index = first;
        fault->size = p.size;
        fault->set = 1;
        return;
    }
    if (i >= p.count) return;
    const long to = view_at(p.state, i) + first * p.step, from = view_at(p.values, i);
    if (element_bytes != 0) copy_bits(element_bytes, state, to, values, from);
    else cast_element(to_type, state, to, element_in{from_type, values, from});
}
