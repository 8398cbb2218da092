/* PAD, CONCAT, UNWINDOW (move.h) and copies. grid: one thread for each element of the result
 * (CONCAT: of an operand). */
#include "common.metal"
#include "move_params.h"

constant uint element_bytes [[function_constant(MICA_MOVE_ELEMENT_BYTES)]]; /* bytes of an element */
constant uint dtype [[function_constant(MICA_MOVE_DTYPE)]];

kernel void move_copy(device const uchar *x [[buffer(0)]], device uchar *out [[buffer(1)]],
                      constant mica_copy_params &p [[buffer(2)]], uint i [[thread_position_in_grid]])
{
    if (i < p.count) copy_bits(element_bytes, out, view_at(p.to, i), x, view_at(p.from, i));
}

kernel void move_pad(device const uchar *x [[buffer(0)]], device uchar *out [[buffer(1)]],
                     constant mica_pad_params &p [[buffer(2)]], uint i [[thread_position_in_grid]])
{
    if (i >= p.count) return;
    uint rest = i;
    long from = p.start;
    bool inside = true;
    for (uint d = p.ndim; d-- > 0;) {
        const long at = long(rest % p.to[d]) - p.low[d];
        rest /= p.to[d];
        inside = inside && at >= 0 && at % p.every[d] == 0 && at / p.every[d] < long(p.from[d]);
        from += at / p.every[d] * p.stride[d];
    }
    if (inside) copy_bits(element_bytes, out, i, x, from);
    else store_bits(element_bytes, out, i, p.value);
}

kernel void move_unwindow(device const uchar *x [[buffer(0)]], device uchar *out [[buffer(1)]],
                          constant mica_unwindow_params &p [[buffer(2)]], uint i [[thread_position_in_grid]])
{
    if (i >= p.count) return;
    const uint place = i / p.inner % p.full;
    /* the element number without the axis, as in the view of x */
    const long from = view_at(p.x, i / p.inner / p.full * p.inner + i % p.inner);
    float_pair sum = {0, 0};
    float plain = 0;
    ulong whole = 0;
    for (uint t = 0; t < p.size; t++) {
        const long at = long(place) - t * p.dilation;
        if (at < 0 || at % p.stride != 0 || at / p.stride >= long(p.windows)) continue;
        const long offset = from + at / p.stride * p.axis_step + t * p.window_step;
        if (!type_is_float(dtype)) {
            whole += ulong(load_long(dtype, x, offset));
            continue;
        }
        const float value = load_float(dtype, x, offset);
        sum = pair_add(sum, float_pair{value, 0});
        plain += value;
    }
    if (!type_is_float(dtype)) store_long(dtype, out, i, long(whole));
    else store_float(dtype, out, i, fabs(plain) < INFINITY ? sum.high + sum.low : plain);
}
