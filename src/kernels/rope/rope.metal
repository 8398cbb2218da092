/* ROPE (rope.h). The table is f64, which Metal does not have: each number is split into two
 * floats, and products and sums are pairs of floats, so that results round nearly as in ref.
 *
 * grid: one thread for each rotated pair or pair of copied elements; (work, rows). */
#include "common.metal"
#include "rope_params.h"

constant uint dtype [[function_constant(MICA_ROPE_DTYPE)]];
constant bool interleaved [[function_constant(MICA_ROPE_INTERLEAVED)]];
constant bool inverse [[function_constant(MICA_ROPE_INVERSE)]];

/* 48 bits of an f64 of ordinary size: the upper 24, and the next 24. */
inline float_pair pair_of_f64(ulong bits)
{
    const int exponent = int(bits >> 52 & 0x7fful) - 1023;
    const ulong fraction = bits & 0xffffffffffffful;
    const float sign = bits >> 63 ? -1.0f : 1.0f;
    if (exponent == 1024) return float_pair{fraction ? NAN : sign * INFINITY, 0.0f};
    if (exponent < -100) return float_pair{sign * 0.0f, 0.0f};
    const ulong whole = fraction | 1ul << 52;
    const float high = float(uint(whole >> 29)), low = float(uint(whole & 0x1ffffffful) >> 5);
    const float unit = as_type<float>(uint(exponent - 23 + 127) << 23) * sign;
    return float_pair{high * unit, low * 0x1p-24f * unit};
}

/* a c + b s */
inline float turned(float a, float_pair c, float b, float_pair s)
{
    const float plain = a * c.high + b * s.high;
    if (!(fabs(plain) < INFINITY)) return plain;
    const float_pair sum = pair_add(pair_times(c, a), pair_times(s, b));
    return sum.high + sum.low;
}

kernel void rope_pairs(device const uchar *x [[buffer(0)]], device const ulong *table [[buffer(1)]],
                       device uchar *out [[buffer(2)]], constant mica_rope_params &p [[buffer(3)]],
                       uint2 at [[thread_position_in_grid]])
{
    if (at.x >= p.work || at.y >= p.rows) return;
    const uint pairs = p.dims / 2, i = at.x;
    const long from = view_at(p.x, at.y), to = long(at.y) * p.n;
    if (i >= pairs) {
        const uint size = dtype == F32 ? 4 : 2;
        for (uint k = p.dims + 2 * (i - pairs); k < min(p.n, p.dims + 2 * (i - pairs) + 2); k++)
            copy_bits(size, out, to + k, x, from + k * p.step);
        return;
    }
    const uint first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + pairs;
    const long turn = view_at(p.table, at.y);
    const float_pair c = pair_of_f64(table[turn + i * p.table_step]);
    float_pair s = pair_of_f64(table[turn + (pairs + i) * p.table_step]);
    if (inverse) s = float_pair{-s.high, -s.low};
    const float a = load_float(dtype, x, from + first * p.step), b = load_float(dtype, x, from + second * p.step);
    store_float(dtype, out, to + first, turned(a, c, -b, s));
    store_float(dtype, out, to + second, turned(b, c, a, s));
}
