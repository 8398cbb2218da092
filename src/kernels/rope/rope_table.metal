/* ROPE_TABLE (rope.h): cosines and sines in f64, which Metal does not have. A number is a 64-bit
 * mantissa with an exponent, in integers. Products and quotients round to 53 bits like double on the
 * CPU, so that the angle has the same bits; its sine and cosine have an error of about 2^-62.
 *
 * grid: one thread for each pair, (pairs, positions). */
#include "common.metal"
#include "rope_table_params.h"

constant uint position_type [[function_constant(MICA_ROPE_TABLE_POSITION_TYPE)]];
constant uint factor_type [[function_constant(MICA_ROPE_TABLE_FACTOR_TYPE)]];
constant bool has_factors [[function_constant(MICA_ROPE_TABLE_HAS_FACTORS)]];

/* m * 2^e; m is 0 or has its top bit set. */
struct wide {
    ulong m;
    int e;
    bool negative, odd;                               /* odd: infinite or NaN            */
};

inline wide wide_of(ulong m, int e, bool negative)
{
    const int up = m == 0 ? 0 : int(clz(m));
    return wide{m << up, e - up, negative, false};
}

/* Rounds to 53 bits, to nearest, ties to even; more: nonzero bits were cut off below. */
inline wide rounded(wide v, bool more)
{
    const ulong low = v.m & 0x7fful, half_way = 0x400ul;
    v.m -= low;
    const bool up = low > half_way || (low == half_way && (more || (v.m & 0x800ul) != 0));
    if (up) {
        v.m += 0x800ul;
        if (v.m == 0) return wide{KEY_TOP, v.e + 1, v.negative, v.odd};
    }
    return v;
}

inline wide wide_of_f64(ulong bits)
{
    const int exponent = int(bits >> 52 & 0x7fful);
    const ulong fraction = bits & 0xffffffffffffful;
    if (exponent == 0) return wide_of(fraction, -1074, bits >> 63 != 0);
    wide v = wide_of(fraction | 1ul << 52, exponent - 1075, bits >> 63 != 0);
    v.odd = exponent == 0x7ff;
    return v;
}

inline wide wide_at(uint type, device const uchar *x, long at)
{
    if (type == F64) return wide_of_f64(((device const ulong *)x)[at]);
    if (type_is_float(type)) {
        const uint bits = as_type<uint>(load_float(type, x, at)), exponent = bits >> 23 & 255u;
        wide v = wide_of(exponent ? (bits & 0x7fffffu) | 0x800000u : bits & 0x7fffffu, int(max(exponent, 1u)) - 150,
                         bits >> 31 != 0);
        v.odd = exponent == 255;
        return v;
    }
    const long v = load_long(type, x, at);
    const bool negative = type != U64 && v < 0;
    return rounded(wide_of(negative ? 0ul - ulong(v) : ulong(v), 0, negative), false);
}

inline wide times(wide a, wide b)
{
    const ulong high = mulhi(a.m, b.m), low = a.m * b.m;
    wide v = {high, a.e + b.e + 64, a.negative != b.negative, a.odd || b.odd};
    if (high != 0 && high < KEY_TOP) v = wide{high << 1 | low >> 63, v.e - 1, v.negative, v.odd};
    return rounded(v, high != 0 && (high < KEY_TOP ? low << 1 : low) != 0);
}

/* a / b, one bit at a time; it is computed once for a pair. */
inline wide over(wide a, wide b)
{
    wide v = {0, a.e - b.e - 63, a.negative != b.negative, a.odd || b.odd || b.m == 0};
    ulong rest = a.m;
    if (a.m == 0 || b.m == 0) return v;
    bool above = false;                               /* rest has one more bit, 2^64     */
    for (int i = 0; i < 64; i++) {
        const bool fits = above || rest >= b.m;
        v.m = v.m << 1 | (fits ? 1ul : 0ul);
        if (fits) rest -= b.m;
        above = rest >> 63 != 0;
        rest <<= 1;
    }
    if (v.m < KEY_TOP) { /* one more bit */
        const bool fits = above || rest >= b.m;
        v.m = v.m << 1 | (fits ? 1ul : 0ul);
        v.e -= 1;
        if (fits) rest -= b.m;
        above = false;
    }
    return rounded(v, above || rest != 0);
}

/* Converts to f64; 0 below the normal range. */
inline ulong f64_of(wide v)
{
    v = rounded(v, false);
    const ulong sign = v.negative ? KEY_TOP : 0ul;
    const int exponent = v.e + 63 + 1023;
    if (v.odd) return 0x7ff8000000000000ul;
    if (v.m == 0 || exponent <= 0) return sign;
    return sign | ulong(exponent) << 52 | (v.m >> 11 & 0xffffffffffffful);
}

/* Bits at ... at + 63 of four words. */
inline ulong bits_at(thread const ulong *word, int at)
{
    const int i = at >> 6, by = at & 63;
    const ulong low = i >= 0 && i < 4 ? word[i] : 0ul, high = i >= -1 && i < 3 ? word[i + 1] : 0ul;
    return by == 0 ? low : low >> by | high << (64 - by);
}

/* x - quarter * pi / 2, in -pi / 4 ... pi / 4, by a product with 192 bits of 2 / pi, which is enough
 * for angles below 2^63. */
inline wide turned_back(wide x, thread uint &quarter)
{
    quarter = 0;
    if (x.m == 0 || x.e < -64) return x;              /* below 1 / 2                     */
    const ulong c0 = 0xdb6295993c439041ul, c1 = 0xfc2757d1f534ddc0ul, c2 = 0xa2f9836e4e441529ul;
    ulong word[4];
    const ulong m = x.m;
    word[0] = m * c0;
    const ulong carry0 = mulhi(m, c0), low1 = m * c1;
    word[1] = low1 + carry0;
    const ulong carry1 = mulhi(m, c1) + (word[1] < low1 ? 1ul : 0ul), low2 = m * c2;
    word[2] = low2 + carry1;
    word[3] = mulhi(m, c2) + (word[2] < low2 ? 1ul : 0ul);
    const int point = 192 - x.e;
    quarter = uint(bits_at(word, point)) & 3u;
    ulong high = bits_at(word, point - 64), low = bits_at(word, point - 128);
    bool negative = false;
    if (high >> 63 != 0) {                            /* nearer to the next quarter      */
        quarter = (quarter + 1) & 3u;
        negative = true;
        low = ~low + 1;
        high = ~high + (low == 0 ? 1ul : 0ul);
    }
    const int up = high == 0 ? 64 : int(clz(high));
    const ulong fraction = up == 0 ? high : up == 64 ? low : high << up | low >> (64 - up);
    wide r = wide_of(mulhi(fraction, 0xc90fdaa22168c234ul), -63 - up, negative != x.negative);
    if (x.negative) quarter = (4 - quarter) & 3u;
    return r;
}

/* 1 - z (c1 - z (c2 - ...)), z and the coefficients in units of 2^-64; 0 stands for 1. */
inline ulong series(ulong z, constant ulong *c)
{
    ulong p = c[9];
    for (int k = 8; k >= 0; k--) p = c[k] - mulhi(z, p);
    return 0ul - mulhi(z, p);
}

constant ulong SINES[10] = {0x2aaaaaaaaaaaaaabul, 0x0222222222222222ul, 0x000d00d00d00d00dul, 0x00002e3bc74aad8eul,
                               0x0000006b99159fd5ul, 0x00000000b092309dul, 0x0000000000d73f9ful, 0x000000000000ca96ul,
                               0x0000000000000098ul, 0x0000000000000000ul};
constant ulong COSINES[10] = {0x8000000000000000ul, 0x0aaaaaaaaaaaaaabul, 0x005b05b05b05b05bul, 0x0001a01a01a01a02ul,
                                 0x0000049f93edde28ul, 0x00000008f76c77fcul, 0x000000000c9cba54ul, 0x00000000000d73faul,
                                 0x0000000000000b41ul, 0x0000000000000008ul};

/* v times `part`, in units of 2^-64; 0 stands for 1. */
inline wide part_of(wide v, ulong part) { return part == 0 ? v : wide_of(mulhi(v.m, part), v.e, v.negative); }

kernel void rope_table(device const uchar *positions [[buffer(0)]], device const uchar *factors [[buffer(1)]],
                       device ulong *out [[buffer(2)]], constant mica_rope_table_params &p [[buffer(3)]],
                       uint2 at [[thread_position_in_grid]])
{
    if (at.x >= p.pairs || at.y >= p.count) return;
    wide angle = times(wide_at(position_type, positions, view_at(p.positions, at.y)), wide_of_f64(p.scale));
    angle = times(angle, wide_of_f64(p.power[at.x]));
    if (has_factors) angle = over(angle, wide_at(factor_type, factors, p.factor_start + at.x * p.factor_step));
    uint quarter;
    const wide x = turned_back(angle, quarter);
    /* x^2 in units of 2^-64; below 2^-32 it is 0 */
    const int down = -64 - x.e;
    const ulong unit = x.m == 0 || down >= 64 ? 0ul : down <= 0 ? x.m : x.m >> down, z = mulhi(unit, unit);
    wide sine = part_of(x, series(z, SINES)), cosine = part_of(wide{KEY_TOP, -63, false, false}, series(z, COSINES));
    if (quarter & 1u) {
        const wide swap = sine;
        sine = cosine;
        cosine = swap;
        cosine.negative = !cosine.negative;
    }
    if (quarter & 2u) {
        sine.negative = !sine.negative;
        cosine.negative = !cosine.negative;
    }
    sine.odd = cosine.odd = angle.odd;
    const wide magnitude = wide_of_f64(p.magnitude);
    const ulong to = ulong(at.y) * 2 * p.pairs + at.x;
    out[to] = f64_of(times(rounded(cosine, false), magnitude));
    out[to + p.pairs] = f64_of(times(rounded(sine, false), magnitude));
}
