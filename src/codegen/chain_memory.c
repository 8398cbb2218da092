/* Between arrays and tiles: fill reads elements of any dtype and stride into a
 * tile, drain writes a tile back. Values in tiles are in the range of their
 * dtype already, so drain never rounds. */
#include <string.h>

#include "codegen/chain_ctx.h"

/* A move of elements that look the same on both sides. */
static void move_strided(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, size_t size)
{
    if (to_stride == (int64_t)size && from_stride == (int64_t)size) {
        memcpy(to, from, (size_t)n * size);
    } else if (size == 4) {
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_stride, from + i * from_stride, 4);
    } else {
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_stride, from + i * from_stride, 8);
    }
}

static void fill_32(char *tile, char *array, int64_t stride, int64_t n) { move_strided(tile, 4, array, stride, n, 4); }
static void fill_64(char *tile, char *array, int64_t stride, int64_t n) { move_strided(tile, 8, array, stride, n, 8); }
static void drain_32(char *tile, char *array, int64_t stride, int64_t n) { move_strided(array, stride, tile, 4, n, 4); }
static void drain_64(char *tile, char *array, int64_t stride, int64_t n) { move_strided(array, stride, tile, 8, n, 8); }

/* Conversions without branches, so that the loops below become vector code. */

static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The f16 as if its exponent had the bias of f32, then scaled by the difference;
 * that makes subnormal numbers right as well. */
static inline float half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu;
    const uint32_t number = float_bits(bits_float(rest << 13) * 0x1p112f);
    const uint32_t special = rest << 13 | 0x7f800000u | (rest > 0x7c00u ? 0x400000u : 0u);
    return bits_float(sign | (rest >= 0x7c00u ? special : number));
}

/* Of a float that is an f16. Subnormal ones are counted in the last place of a
 * float between 1/2 and 1, which is 2^-24 too. */
static inline uint16_t half_of_float(float x)
{
    const uint32_t bits = float_bits(x), rest = bits & 0x7fffffffu;
    const uint32_t tiny = float_bits(bits_float(rest) + 0.5f) - 0x3f000000u;
    const uint32_t special = 0x7c00u | (rest >> 13 & 0x3ffu);
    const uint32_t number = rest < 0x38800000u ? tiny : (rest - 0x38000000u) >> 13;
    return (uint16_t)((bits >> 16 & 0x8000u) | (rest >= 0x7f800000u ? special : number));
}

/* The rest differ in the type of the element and in one expression. Neighbours
 * are done eight at a time: a loop of fixed length is one that compilers turn
 * into vector code without being asked for more. */
#define CHAIN_FILL(name, element, tile_type, expression)                                                        \
    static inline tile_type name##_one(const char *from)                                                        \
    {                                                                                                           \
        element x;                                                                                              \
        memcpy(&x, from, sizeof x);                                                                             \
        return expression;                                                                                      \
    }                                                                                                           \
    static void name(char *restrict tile, char *restrict array, int64_t stride, int64_t n)                      \
    {                                                                                                           \
        tile_type *restrict to = (tile_type *)tile;                                                             \
        int64_t i = 0;                                                                                          \
        if (stride == (int64_t)sizeof(element))                                                                 \
            for (; i + 8 <= n; i += 8)                                                                          \
                for (int j = 0; j < 8; j++) to[i + j] = name##_one(array + (i + j) * (int64_t)sizeof(element)); \
        for (; i < n; i++) to[i] = name##_one(array + i * stride);                                              \
    }

#define CHAIN_DRAIN(name, element, tile_type, expression)                                                        \
    static inline void name##_one(char *to, tile_type x)                                                         \
    {                                                                                                            \
        const element y = (element)(expression);                                                                 \
        memcpy(to, &y, sizeof y);                                                                                \
    }                                                                                                            \
    static void name(char *restrict tile, char *restrict array, int64_t stride, int64_t n)                       \
    {                                                                                                            \
        const tile_type *restrict from = (const tile_type *)tile;                                                \
        int64_t i = 0;                                                                                           \
        if (stride == (int64_t)sizeof(element))                                                                  \
            for (; i + 8 <= n; i += 8)                                                                           \
                for (int j = 0; j < 8; j++) name##_one(array + (i + j) * (int64_t)sizeof(element), from[i + j]); \
        for (; i < n; i++) name##_one(array + i * stride, from[i]);                                              \
    }

CHAIN_FILL(fill_bool, uint8_t, chain_f32, x != 0 ? 1.0f : 0.0f)
CHAIN_FILL(fill_u8, uint8_t, chain_i64, x)
CHAIN_FILL(fill_i8, int8_t, chain_i64, x)
CHAIN_FILL(fill_u16, uint16_t, chain_i64, x)
CHAIN_FILL(fill_i16, int16_t, chain_i64, x)
CHAIN_FILL(fill_u32, uint32_t, chain_i64, x)
CHAIN_FILL(fill_i32, int32_t, chain_i64, x)
CHAIN_FILL(fill_f16, uint16_t, chain_f32, half_to_float(x))
CHAIN_FILL(fill_bf16, uint16_t, chain_f32, bits_float((uint32_t)x << 16))

CHAIN_DRAIN(drain_bool, uint8_t, chain_f32, x != 0.0f)
CHAIN_DRAIN(drain_8, uint8_t, chain_i64, x)
CHAIN_DRAIN(drain_16, uint16_t, chain_i64, x)
CHAIN_DRAIN(drain_int32, uint32_t, chain_i64, x)
CHAIN_DRAIN(drain_f16, uint16_t, chain_f32, half_of_float(x))
CHAIN_DRAIN(drain_bf16, uint16_t, chain_f32, float_bits(x) >> 16)

static const struct {
    chain_move_fn *fill, *drain;
} chain_moves[MICA__DTYPE_COUNT] = {
    [MICA_BOOL] = {fill_bool, drain_bool}, [MICA_U8] = {fill_u8, drain_8},        [MICA_I8] = {fill_i8, drain_8},
    [MICA_U16] = {fill_u16, drain_16},     [MICA_I16] = {fill_i16, drain_16},     [MICA_U32] = {fill_u32, drain_int32},
    [MICA_I32] = {fill_i32, drain_int32},  [MICA_U64] = {fill_64, drain_64},      [MICA_I64] = {fill_64, drain_64},
    [MICA_F16] = {fill_f16, drain_f16},    [MICA_BF16] = {fill_bf16, drain_bf16}, [MICA_F32] = {fill_32, drain_32},
    [MICA_F64] = {fill_64, drain_64},
};

chain_move_fn *mica__chain_fill(mica_dtype dtype) { return chain_moves[dtype].fill; }
chain_move_fn *mica__chain_drain(mica_dtype dtype) { return chain_moves[dtype].drain; }

/* ------------------------------------------------------- made on the fly --- */

static void put_number(char *tile, mica_dtype dtype, mica__number value, int64_t i)
{
    switch (chain_class_of(dtype)) {
    case CHAIN_INT: ((chain_i64 *)tile)[i] = value.i; break;
    case CHAIN_DOUBLE: ((chain_f64 *)tile)[i] = value.f; break;
    default: ((chain_f32 *)tile)[i] = dtype == MICA_BOOL ? (float)(value.i != 0) : (float)value.f; break;
    }
}

void mica__chain_splat(char *tile, mica_dtype dtype, mica__number value, int64_t n)
{
    for (int64_t i = 0; i < n; i++) put_number(tile, dtype, value, i);
}

void mica__chain_iota(char *tile, const mica__kinst *iota, int64_t at, int64_t stride, int64_t n)
{
    const mica_dtype dtype = iota->dtype;
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = at + i * stride;
        mica__number x = {0.0, 0};
        if (dtype == MICA_F32) x.f = (double)(float)(iota->value.f + (double)index * iota->step.f);
        else if (mica__is_float(dtype)) x.f = mica__round_f64(dtype, iota->value.f + (double)index * iota->step.f);
        else x.i = mica__wrap_i64(dtype, (int64_t)((uint64_t)iota->value.i + (uint64_t)index * (uint64_t)iota->step.i));
        put_number(tile, dtype, x, i);
    }
}
