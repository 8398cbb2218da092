/* RANDOM (random.h): Philox and the arithmetic of random_math.h, with the same bits.
 *
 * grid: one thread for each block of four words: four elements, or two of 64 bits. */
#include "common.metal"
#include "random_params.h"
#include "polynomials.h"

constant uint dtype [[function_constant(MICA_RANDOM_DTYPE)]];
constant uint dist [[function_constant(MICA_RANDOM_DIST)]]; /* mica__dist */
constant bool seeded [[function_constant(MICA_RANDOM_SEEDED)]]; /* an operand is added to the seed */

enum : uint {
#define X(name, code) DIST_##name = code,
    MICA_RANDOM_DISTS(X)
#undef X
};

inline uint4 philox(ulong block, ulong seed)
{
    uint c0 = uint(block), c1 = uint(block >> 32), c2 = 0, c3 = 0, k0 = uint(seed), k1 = uint(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const ulong a = ulong(0xD2511F53u) * c0, b = ulong(0xCD9E8D57u) * c2;
        c0 = uint(b >> 32) ^ c1 ^ k0;
        c1 = uint(b);
        c2 = uint(a >> 32) ^ c3 ^ k1;
        c3 = uint(a);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return uint4(c0, c1, c2, c3);
}

/* ------------------------------------------- random_math.h, line by line --- */

/* The largest number below x; x finite. */
inline float below_of(float x)
{
    const uint bits = as_type<uint>(x);
    if ((bits & 0x7fffffffu) == 0) return as_type<float>(0x80000001u);
    return as_type<float>(bits >> 31 ? bits + 1 : bits - 1);
}

inline float uniform_of(uint bits, float a, float b)
{
    const float u = float(bits >> 8) * 0x1p-24f;
    const float width = b - a;
    float x = a + u * width;
    if (width > 3.4028234e38f) x = a * (1.0f - u) + b * u; /* b - a is infinite */
    return x >= b && a < b ? below_of(b) : x;
}

/* The distance from the nearer end of (0, 1), which is 1 if the top bit is set. */
inline float tail_of(uint bits) { return (float(bits >> 31 ? ~bits : bits) + 0.5f) * 0x1p-32f; }

inline float log_rest(float x)
{
    const float z = x * x;
    return POLY(9, POLY_MUL_ADD, POLY_SCALAR, x, POLY_LOG_CEPHES) * x * z - 0.5f * z;
}

inline float log_of(float x)
{
    const uint shifted = as_type<uint>(x) - 0x3f3504f3u;
    const int e = int(shifted & 0xff800000u) / 0x800000;
    const float m = as_type<float>((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const float n = float(e);
    const float low = log_rest(m) + n * POLY_CEPHES_LN2_LOW;
    return (m + low) + n * POLY_CEPHES_LN2_HIGH;
}

inline float normal_tail(float p)
{
    const float q = 0.5f - p;
    if (q <= 0.425f) {
        const float r = 0.180625f - q * q;
        const float a = POLY(4, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_MIDDLE_TOP);
        const float b = POLY(4, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_MIDDLE_BOTTOM);
        return q * a / b;
    }
    float r = precise::sqrt(-log_of(p));
    if (r <= 5.0f) {
        r = r - 1.6f;
        const float c = POLY(4, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_TAIL_TOP);
        const float d = POLY(3, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_TAIL_BOTTOM);
        return c / d;
    }
    r = r - 5.0f;
    const float e = POLY(4, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_END_TOP);
    const float f = POLY(3, POLY_MUL_ADD, POLY_SCALAR, r, POLY_NORMAL_END_BOTTOM);
    return e / f;
}

inline float normal_of(uint bits, constant mica_random_params &f)
{
    uint upper = bits >> 31;
    float p = tail_of(bits);
    if (f.side < 0) {
        if (upper) p = 1.0f - p;
        upper = 0;
    } else if (f.side > 0) {
        if (!upper) p = 1.0f - p;
        upper = 1;
    }
    float t = (upper ? f.above : f.below) + p * f.middle;
    if (t > 0.5f) {
        t = 1.0f - t;
        upper = 1 - upper;
    }
    if (t < 1.17549435e-38f) t = 1.17549435e-38f;
    const float magnitude = normal_tail(t);
    float x = upper ? magnitude : -magnitude;
    if (x < f.a) x = f.a;
    if (x > f.b) x = f.b;
    return x;
}

inline float far_log(float t) { return t * POLY(4, POLY_MUL_ADD, POLY_SCALAR, t, POLY_NORMAL_BEYOND); }

inline float normal_far_of(uint bits, constant mica_random_params &f)
{
    const bool upper = (bits >> 31 != 0) != (f.side < 0);
    const float p = tail_of(bits), w = (upper ? 1.0f - p : p) * f.far_inside;
    const float e = w < 0.25f ? w - log_rest(-w) : -log_of(f.far_beyond + (upper ? p : 1.0f - p) * f.far_inside);
    float rest = e, r = 0.0f;
    for (int i = 0; i < 4; i++) {
        const float c = f.far_square * rest;
        r = 2.0f * c / (1.0f + precise::sqrt(1.0f + 2.0f * c));
        const float ratio = 1.0f + r, t = f.far_square / (ratio * ratio);
        rest = (e - (r + log_rest(r))) + (far_log(t) - f.far_log_end);
    }
    const float magnitude = f.far_end + f.far_end * r;
    float x = f.side < 0 ? -magnitude : magnitude;
    if (x < f.a) x = f.a;
    if (x > f.b) x = f.b;
    return x;
}

inline float gumbel_of(uint bits)
{
    const float p = tail_of(bits);
    float e; /* -log(u) */
    if (bits >> 31 == 0) e = -log_of(p);
    else if (p < 0.25f) e = p - log_rest(-p);
    else e = -log_of(1.0f - p);
    return -log_of(e);
}

/* ------------------------------------------------------------- elements ---- */

inline ushort step_16(ushort bits, bool up)
{
    if ((bits & 0x7fff) == 0) return up ? 0x0001 : 0x8001;
    return ushort(up != (bits >> 15 != 0) ? bits + 1 : bits - 1);
}

/* Rounds, but not out of the bounds. */
inline ushort round_16(float value, constant mica_random_params &p)
{
    const ushort bits = dtype == F16 ? as_type<ushort>(half(value)) : bf16_of_float(value);
    const float rounded = dtype == F16 ? float(as_type<half>(bits)) : bf16_to_float(bits);
    if (rounded > p.most || (p.open && rounded == p.most)) return step_16(bits, false);
    return rounded < p.least ? step_16(bits, true) : bits;
}

inline void put_32(device uchar *out, uint i, uint bits, constant mica_random_params &p)
{
    if (i >= p.count) return;
    if (dist == DIST_BITS) {
        ((device uint *)out)[i] = bits;
        return;
    }
    const float value = dist == DIST_UNIFORM  ? uniform_of(bits, p.a, p.b)
                        : dist == DIST_GUMBEL ? gumbel_of(bits)
                        : p.far_end > 0.0f    ? normal_far_of(bits, p)
                                              : normal_of(bits, p);
    if (dtype == F32) ((device float *)out)[i] = value;
    else ((device ushort *)out)[i] = round_16(value, p);
}

inline void put_64(device uchar *out, uint i, ulong bits, constant mica_random_params &p)
{
    if (i >= p.count) return;
    store_long(dtype, out, i, dist == DIST_BITS ? long(bits) : long(ulong(p.low) + mulhi(bits, p.range)));
}

kernel void random_blocks(device const ulong *seed [[buffer(0)]], device uchar *out [[buffer(1)]],
                          constant mica_random_params &p [[buffer(2)]], uint at [[thread_position_in_grid]])
{
    const bool wide = dist == DIST_INTEGER || dtype == U64;
    if (at >= (p.count + (wide ? 1 : 3)) / (wide ? 2 : 4)) return;
    const uint4 w = philox(at, p.seed + (seeded ? seed[0] : 0ul));
    if (wide) {
        put_64(out, 2 * at, w.x | ulong(w.y) << 32, p);
        put_64(out, 2 * at + 1, w.z | ulong(w.w) << 32, p);
        return;
    }
    put_32(out, 4 * at, w.x, p);
    put_32(out, 4 * at + 1, w.y, p);
    put_32(out, 4 * at + 2, w.z, p);
    put_32(out, 4 * at + 3, w.w, p);
}
