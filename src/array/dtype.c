/* Element types and conversions of single values. Half precision is converted
 * with integer arithmetic on bits, so that results are the same with every
 * compiler, processor and rounding mode. A NaN becomes a quiet NaN with the same
 * sign and the upper bits of its payload, like the conversion instructions of
 * x86 and Arm. */
#include "array/dtype.h"

_Static_assert(sizeof(bool) == 1, "bool arrays are handed out as bytes");
_Static_assert((int)MICA_F64 + 1 == (int)MICA__DTYPE_COUNT, "the last dtype");

static const struct {
    uint8_t size, kind;
    const char *name;
} dtype_table[MICA__DTYPE_COUNT] = {
    /* clang-format off */
#define DTYPE_ROW(id, value, bytes, text)                                                 \
    [id] = {bytes, value == MICA_BOOL ? MICA__KIND_BOOL : value >= MICA_F16 ? MICA__KIND_FLOAT \
                 : value % 2 ? MICA__KIND_UINT : MICA__KIND_INT, text},
    MICA_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
    /* clang-format on */
};

bool mica__dtype_valid(mica_dtype dtype) { return (unsigned)dtype < MICA__DTYPE_COUNT; }

size_t mica_dtype_size(mica_dtype dtype) { return mica__dtype_valid(dtype) ? dtype_table[dtype].size : 0; }

const char *mica_dtype_name(mica_dtype dtype)
{
    return mica__dtype_valid(dtype) ? dtype_table[dtype].name : "unknown dtype";
}

mica__kind mica__dtype_kind(mica_dtype dtype)
{
    return mica__dtype_valid(dtype) ? (mica__kind)dtype_table[dtype].kind : MICA__KIND_BOOL;
}

mica_dtype mica_dtype_promote(mica_dtype a, mica_dtype b)
{
    if (!mica__dtype_valid(a)) return mica__dtype_valid(b) ? b : MICA_F32;
    if (!mica__dtype_valid(b)) return a;
    /* The enum order is bool, integers by width, floats by width; unsigned before
     * signed of the same width. */
    const mica_dtype low = a < b ? a : b, high = a < b ? b : a;
    if (low == MICA_F16 && high == MICA_BF16) return MICA_F32;
    if (mica__is_float(high) || mica__is_bool(low)) return high;
    const mica__kind kind_low = mica__dtype_kind(low), kind_high = mica__dtype_kind(high);
    if (kind_low == kind_high) return high;
    const mica_dtype u = kind_low == MICA__KIND_UINT ? low : high, i = kind_low == MICA__KIND_UINT ? high : low;
    if (u == MICA_U64) return MICA_I64;
    const mica_dtype wider = (mica_dtype)(u + 3); /* the signed type of twice the width of u */
    return i > wider ? i : wider;
}

/* ------------------------------------------------------- half precision ---- */

static uint32_t bits_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float f32_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* n / 2^shift, to nearest, ties to even; 0 < shift < 64. */
static uint64_t shift_even(uint64_t n, unsigned shift)
{
    const uint64_t quotient = n >> shift, half = 1ull << (shift - 1), rest = n & (2 * half - 1);
    return quotient + (rest > half || (rest == half && (quotient & 1)));
}

uint16_t mica_f16_from_f32(float value)
{
    const uint32_t bits = bits_f32(value), x = bits & 0x7fffffffu;
    const uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t half;
    if (x > 0x7f800000u) { /* NaN */
        half = 0x7e00u | (x >> 13 & 0x1ffu);
    } else if (x >= 0x47800000u) { /* 65536 and more */
        half = 0x7c00u;
    } else if (x >= 0x38800000u) { /* normal; may carry to infinity */
        half = (uint32_t)shift_even(x - 0x38000000u, 13);
    } else if (x >= 0x33000000u) { /* from 2^-25 on, in units of 2^-24 */
        half = (uint32_t)shift_even((x & 0x7fffffu) | 0x800000u, 126 - (x >> 23));
    } else {
        half = 0;
    }
    return (uint16_t)(sign | half);
}

float mica_f16_to_f32(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, mantissa = bits & 0x3ffu;
    if (exponent == 31) return f32_bits(sign | 0x7f800000u | (mantissa ? 0x400000u | mantissa << 13 : 0));
    if (exponent) return f32_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    const float tiny = (float)mantissa * 0x1p-24f; /* exact: ten bits */
    return f32_bits(sign | bits_f32(tiny));
}

uint16_t mica_bf16_from_f32(float value)
{
    const uint32_t bits = bits_f32(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

float mica_bf16_to_f32(uint16_t bits) { return f32_bits((uint32_t)bits << 16); }

/* Rounds a double to a 16-bit float with this many mantissa bits. */
static uint16_t narrow_f64(double value, int mantissa_bits)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int bias = (1 << (14 - mantissa_bits)) - 1;
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000u);
    const uint16_t infinity = (uint16_t)(0x7fffu >> mantissa_bits << mantissa_bits);
    const uint64_t mantissa = bits & 0xfffffffffffffull;
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent == 1024 && mantissa)
        return (uint16_t)(sign | infinity | 1u << (mantissa_bits - 1) | mantissa >> (52 - mantissa_bits));
    if (exponent > bias) return sign | infinity;
    /* Below the smallest normal number the unit in the last place is constant. */
    const int normal = exponent >= 1 - bias;
    const int shift = 52 - mantissa_bits + (normal ? 0 : 1 - bias - exponent);
    if (shift > 53) return sign; /* less than half of the smallest subnormal */
    const uint64_t rounded = shift_even(1ull << 52 | mantissa, (unsigned)shift);
    /* The leading 1 bit adds one to the exponent field, and so does a rounding carry. */
    return (uint16_t)(sign | (rounded + ((uint64_t)(normal ? exponent + bias - 1 : 0) << mantissa_bits)));
}

uint16_t mica__f16_from_f64(double value) { return narrow_f64(value, 10); }

uint16_t mica__bf16_from_f64(double value) { return narrow_f64(value, 7); }

/* ------------------------------------------------------ single elements ---- */

static int64_t load_bits(const void *data, int64_t index, size_t size, bool sign)
{
    const char *p = (const char *)data + index * (int64_t)size;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    int64_t i64;
    switch (size) {
    case 1: memcpy(&u8, p, 1); return sign ? (int8_t)u8 : u8;
    case 2: memcpy(&u16, p, 2); return sign ? (int16_t)u16 : u16;
    case 4: memcpy(&u32, p, 4); return sign ? (int32_t)u32 : (int64_t)u32;
    default: memcpy(&i64, p, 8); return i64;
    }
}

static void store_bits(void *data, int64_t index, size_t size, int64_t value)
{
    char *p = (char *)data + index * (int64_t)size;
    const uint8_t u8 = (uint8_t)value;
    const uint16_t u16 = (uint16_t)value;
    const uint32_t u32 = (uint32_t)value;
    switch (size) {
    case 1: memcpy(p, &u8, 1); break;
    case 2: memcpy(p, &u16, 2); break;
    case 4: memcpy(p, &u32, 4); break;
    default: memcpy(p, &value, 8); break;
    }
}

static double load_float(mica_dtype dtype, const void *data, int64_t index)
{
    const int64_t bits = load_bits(data, index, dtype_table[dtype].size, false);
    double f64;
    switch (dtype) {
    case MICA_F16: return (double)mica_f16_to_f32((uint16_t)bits);
    case MICA_BF16: return (double)mica_bf16_to_f32((uint16_t)bits);
    case MICA_F32: return (double)f32_bits((uint32_t)bits);
    default: memcpy(&f64, &bits, 8); return f64;
    }
}

static int64_t float_to_bits(mica_dtype dtype, double value)
{
    int64_t bits;
    switch (dtype) {
    case MICA_F16: return mica__f16_from_f64(value);
    case MICA_BF16: return mica__bf16_from_f64(value);
    case MICA_F32: return bits_f32((float)value);
    default: memcpy(&bits, &value, 8); return bits;
    }
}

int64_t mica__get_i64(mica_dtype dtype, const void *data, int64_t index)
{
    if (!mica__dtype_valid(dtype)) return 0;
    if (mica__is_float(dtype)) return mica__f64_to_int(MICA_I64, load_float(dtype, data, index));
    const int64_t bits = load_bits(data, index, dtype_table[dtype].size, mica__dtype_kind(dtype) == MICA__KIND_INT);
    return mica__is_bool(dtype) ? bits != 0 : bits;
}

double mica__get_f64(mica_dtype dtype, const void *data, int64_t index)
{
    if (mica__is_float(dtype) && mica__dtype_valid(dtype)) return load_float(dtype, data, index);
    const int64_t value = mica__get_i64(dtype, data, index);
    return dtype == MICA_U64 ? (double)(uint64_t)value : (double)value;
}

int64_t mica__f64_to_int(mica_dtype dtype, double value)
{
    if (mica__is_bool(dtype)) return value != 0;
    if (value != value) return 0;
    const int bits = mica__is_int(dtype) ? 8 * dtype_table[dtype].size : 64;
    if (mica__dtype_kind(dtype) == MICA__KIND_UINT) {
        if (value <= 0) return 0;
        if (bits == 64) return value >= 0x1p64 ? (int64_t)UINT64_MAX : (int64_t)(uint64_t)value;
        const int64_t max = ((int64_t)1 << bits) - 1;
        return value >= (double)max ? max : (int64_t)value;
    }
    const int64_t max = (int64_t)(UINT64_MAX >> (65 - bits));
    const double end = (double)((uint64_t)max + 1);
    return value >= end ? max : value < -end ? -max - 1 : (int64_t)value;
}

int64_t mica__wrap_i64(mica_dtype dtype, int64_t value)
{
    if (mica__is_bool(dtype)) return value != 0;
    if (!mica__is_int(dtype)) return value;
    int64_t bits;
    store_bits(&bits, 0, dtype_table[dtype].size, value);
    return load_bits(&bits, 0, dtype_table[dtype].size, mica__dtype_kind(dtype) == MICA__KIND_INT);
}

void mica__set_f64(mica_dtype dtype, void *data, int64_t index, double value)
{
    if (!mica__dtype_valid(dtype)) return;
    const int64_t bits = mica__is_float(dtype) ? float_to_bits(dtype, value) : mica__f64_to_int(dtype, value);
    store_bits(data, index, dtype_table[dtype].size, bits);
}

/* Rounds to odd: if bits of magnitude do not fit into the 53 bits of a double, its
 * last bit is set. So rounding the double to a narrower format gives the same
 * result as rounding the integer. */
static double round_to_odd(uint64_t magnitude)
{
    if (magnitude >> 53 == 0) return (double)magnitude;
    const uint64_t rest = magnitude & 0x7ff;
    return (double)((magnitude - rest) | (rest ? 0x800 : 0));
}

static void store_int(mica_dtype dtype, void *data, int64_t index, uint64_t magnitude, bool negative)
{
    const uint64_t value = negative ? 0 - magnitude : magnitude;
    int64_t bits;
    if (mica__is_bool(dtype)) {
        bits = magnitude != 0;
    } else if (dtype == MICA_F64) {
        /* f64 rounds directly; round_to_odd is only for narrower formats. */
        const double f64 = negative ? -(double)magnitude : (double)magnitude;
        memcpy(&bits, &f64, 8);
    } else if (mica__is_float(dtype)) {
        bits = float_to_bits(dtype, negative ? -round_to_odd(magnitude) : round_to_odd(magnitude));
    } else {
        bits = (int64_t)value;
    }
    store_bits(data, index, dtype_table[dtype].size, bits);
}

void mica__set_i64(mica_dtype dtype, void *data, int64_t index, int64_t value)
{
    if (!mica__dtype_valid(dtype)) return;
    store_int(dtype, data, index, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

void mica__convert_element(mica_dtype to, void *out, int64_t out_index, mica_dtype from, const void *in,
                           int64_t in_index)
{
    if (!mica__dtype_valid(to) || !mica__dtype_valid(from)) return;
    if (mica__is_float(from)) mica__set_f64(to, out, out_index, load_float(from, in, in_index));
    else if (from == MICA_U64) store_int(to, out, out_index, (uint64_t)load_bits(in, in_index, 8, false), false);
    else mica__set_i64(to, out, out_index, mica__get_i64(from, in, in_index));
}

double mica__round_f64(mica_dtype dtype, double value)
{
    char element[8] = {0};
    mica__set_f64(dtype, element, 0, value);
    return mica__get_f64(dtype, element, 0);
}
