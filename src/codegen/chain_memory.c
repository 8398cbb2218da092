/* Filling tiles: elements gathered from an array or scattered to one, as bytes; one
 * number; copies of one number; an arithmetic sequence. */
#include "codegen/chain_ctx.h"

#include <string.h>

#define CHAIN_MOVE_EACH(size) \
    for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, size)

static void move_elements(size_t size, char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n)
{
    if (to_step == (int64_t)size && from_step == (int64_t)size) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: CHAIN_MOVE_EACH(1); break;
    case 2: CHAIN_MOVE_EACH(2); break;
    case 4: CHAIN_MOVE_EACH(4); break;
    default: CHAIN_MOVE_EACH(8); break;
    }
}

void mica__chain_fill(size_t size, char *tile, const char *array, int64_t stride, int64_t n)
{
    move_elements(size, tile, (int64_t)size, array, stride, n);
}

void mica__chain_drain(size_t size, const char *tile, char *array, int64_t stride, int64_t n)
{
    move_elements(size, array, stride, tile, (int64_t)size, n);
}

mica__number mica__chain_get(const char *tile, mica_dtype dtype, int64_t i)
{
    mica__number x = {0.0, 0};
    switch (chain_class_of(dtype)) {
    case CHAIN_LONG: x.i = ((const chain_i64 *)tile)[i]; break;
    case CHAIN_DOUBLE: x.f = ((const chain_f64 *)tile)[i]; break;
    case CHAIN_INT: {
        const uint32_t bits = ((const chain_u32 *)tile)[i];
        x.i = dtype == MICA_U32 ? (int64_t)bits : (int64_t)(int32_t)bits;
        break;
    }
    default:
        if (dtype == MICA_BOOL) x.i = ((const chain_f32 *)tile)[i] != 0.0f;
        else x.f = (double)((const chain_f32 *)tile)[i];
        break;
    }
    return x;
}

void mica__chain_put(char *tile, mica_dtype dtype, int64_t i, mica__number value)
{
    switch (chain_class_of(dtype)) {
    case CHAIN_LONG: ((chain_i64 *)tile)[i] = value.i; break;
    case CHAIN_DOUBLE: ((chain_f64 *)tile)[i] = value.f; break;
    case CHAIN_INT: ((chain_u32 *)tile)[i] = (uint32_t)value.i; break;
    default: ((chain_f32 *)tile)[i] = dtype == MICA_BOOL ? (float)(value.i != 0) : (float)value.f; break;
    }
}

void mica__chain_splat(char *tile, mica_dtype dtype, mica__number value, int64_t n)
{
    for (int64_t i = 0; i < n; i++) mica__chain_put(tile, dtype, i, value);
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
        mica__chain_put(tile, dtype, i, x);
    }
}
