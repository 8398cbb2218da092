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

/* The rest differ in the type of the element and in one expression. */
#define CHAIN_FILL(name, element, tile_type, expression)                        \
    static void name(char *tile, char *array, int64_t stride, int64_t n)        \
    {                                                                           \
        for (int64_t i = 0; i < n; i++) {                                       \
            element x;                                                          \
            memcpy(&x, array + i * stride, sizeof x);                           \
            ((tile_type *)tile)[i] = expression;                                \
        }                                                                       \
    }

#define CHAIN_DRAIN(name, element, tile_type, expression)                       \
    static void name(char *tile, char *array, int64_t stride, int64_t n)        \
    {                                                                           \
        for (int64_t i = 0; i < n; i++) {                                       \
            const tile_type x = ((const tile_type *)tile)[i];                   \
            const element y = (element)(expression);                            \
            memcpy(array + i * stride, &y, sizeof y);                           \
        }                                                                       \
    }

CHAIN_FILL(fill_bool, uint8_t, chain_f32, x != 0 ? 1.0f : 0.0f)
CHAIN_FILL(fill_u8, uint8_t, chain_i64, x)
CHAIN_FILL(fill_i8, int8_t, chain_i64, x)
CHAIN_FILL(fill_u16, uint16_t, chain_i64, x)
CHAIN_FILL(fill_i16, int16_t, chain_i64, x)
CHAIN_FILL(fill_u32, uint32_t, chain_i64, x)
CHAIN_FILL(fill_i32, int32_t, chain_i64, x)
CHAIN_FILL(fill_f16, uint16_t, chain_f32, mica_f16_to_f32(x))
CHAIN_FILL(fill_bf16, uint16_t, chain_f32, mica_bf16_to_f32(x))

CHAIN_DRAIN(drain_bool, uint8_t, chain_f32, x != 0.0f)
CHAIN_DRAIN(drain_8, uint8_t, chain_i64, x)
CHAIN_DRAIN(drain_16, uint16_t, chain_i64, x)
CHAIN_DRAIN(drain_int32, uint32_t, chain_i64, x)
CHAIN_DRAIN(drain_f16, uint16_t, chain_f32, mica_f16_from_f32(x))
CHAIN_DRAIN(drain_bf16, uint16_t, chain_f32, mica_bf16_from_f32(x))

static const struct {
    chain_move_fn *fill, *drain;
} chain_moves[MICA__DTYPE_COUNT] = {
    [MICA_BOOL] = {fill_bool, drain_bool}, [MICA_U8] = {fill_u8, drain_8},    [MICA_I8] = {fill_i8, drain_8},
    [MICA_U16] = {fill_u16, drain_16},     [MICA_I16] = {fill_i16, drain_16}, [MICA_U32] = {fill_u32, drain_int32},
    [MICA_I32] = {fill_i32, drain_int32},  [MICA_U64] = {fill_64, drain_64},  [MICA_I64] = {fill_64, drain_64},
    [MICA_F16] = {fill_f16, drain_f16},    [MICA_BF16] = {fill_bf16, drain_bf16},
    [MICA_F32] = {fill_32, drain_32},      [MICA_F64] = {fill_64, drain_64},
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
