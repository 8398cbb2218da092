/* Queries of arrays, and reading their elements. */
#include <inttypes.h>

#include "array/array.h"
#include "base/text.h"

static bool given(const mica_array *a, const char *call)
{
    if (!a) mica__fail(MICA_ERR_ARGUMENT, "%s: the array is NULL", call);
    return a != NULL;
}

mica_dtype mica_array_dtype(const mica_array *a)
{
    return given(a, "mica_array_dtype") ? (mica_dtype)a->spec.dtype : (mica_dtype)0;
}

int mica_array_ndim(const mica_array *a) { return given(a, "mica_array_ndim") ? a->spec.ndim : 0; }

const int64_t *mica_array_shape(const mica_array *a) { return given(a, "mica_array_shape") ? a->spec.shape : NULL; }

const int64_t *mica_array_strides(const mica_array *a)
{
    if (!given(a, "mica_array_strides")) return NULL;
    if (mica__array_state(a) == MICA__READY) return a->strides;
    mica__fail(MICA_ERR_STATE, "mica_array_strides: the array is not evaluated");
    return NULL;
}

int64_t mica_array_size(const mica_array *a) { return given(a, "mica_array_size") ? mica__spec_size(&a->spec) : 0; }

size_t mica_array_nbytes(const mica_array *a)
{
    if (!given(a, "mica_array_nbytes")) return 0;
    return (size_t)mica__spec_size(&a->spec) * mica_dtype_size((mica_dtype)a->spec.dtype);
}

bool mica_array_is_ready(const mica_array *a)
{
    return given(a, "mica_array_is_ready") && mica__array_state(a) == MICA__READY;
}

/* Waits for a pending array; MICA_OK if its elements can be read. */
static mica_status need_elements(mica_array *a, const char *call)
{
    if (!given(a, call)) return MICA_ERR_ARGUMENT;
    const mica__state state = mica__array_state(a);
    if (state != MICA__READY && state != MICA__LAZY) MICA_TRY(mica__event_settle(a));
    if (mica__array_state(a) == MICA__READY)
        return a->buffer && a->buffer->check ? a->buffer->check(a->buffer->user) : MICA_OK;
    return mica__fail(MICA_ERR_STATE, "%s: the array is not evaluated", call);
}

static const void *hand_out(mica_array *a)
{
    if (a->data && a->engine) mica__count_conversion(a->engine, true);
    return a->data;
}

const void *mica_data(mica_array *a) { return need_elements(a, "mica_data") == MICA_OK ? hand_out(a) : NULL; }

static const void *data_typed(mica_array *a, mica_dtype dtype, const char *call)
{
    if (need_elements(a, call) != MICA_OK) return NULL;
    if (a->spec.dtype != (int32_t)dtype) {
        mica__fail(MICA_ERR_DTYPE, "%s: the array is %s", call, mica_dtype_name((mica_dtype)a->spec.dtype));
        return NULL;
    }
    if (!mica__is_row_major(&a->spec, a->strides)) {
        char shape[MICA__SHAPE_TEXT], strides[MICA__SHAPE_TEXT];
        mica__shape_text(shape, a->spec.ndim, a->spec.shape);
        mica__shape_text(strides, a->spec.ndim, a->strides);
        mica__fail(MICA_ERR_STATE, "%s: shape %s has strides %s, not row-major; use mica_copy_out", call, shape,
                   strides);
        return NULL;
    }
    return hand_out(a);
}

const bool *mica_data_bool(mica_array *a) { return data_typed(a, MICA_BOOL, "mica_data_bool"); }
const uint8_t *mica_data_u8(mica_array *a) { return data_typed(a, MICA_U8, "mica_data_u8"); }
const int8_t *mica_data_i8(mica_array *a) { return data_typed(a, MICA_I8, "mica_data_i8"); }
const uint16_t *mica_data_u16(mica_array *a) { return data_typed(a, MICA_U16, "mica_data_u16"); }
const int16_t *mica_data_i16(mica_array *a) { return data_typed(a, MICA_I16, "mica_data_i16"); }
const uint32_t *mica_data_u32(mica_array *a) { return data_typed(a, MICA_U32, "mica_data_u32"); }
const int32_t *mica_data_i32(mica_array *a) { return data_typed(a, MICA_I32, "mica_data_i32"); }
const uint64_t *mica_data_u64(mica_array *a) { return data_typed(a, MICA_U64, "mica_data_u64"); }
const int64_t *mica_data_i64(mica_array *a) { return data_typed(a, MICA_I64, "mica_data_i64"); }
const uint16_t *mica_data_f16(mica_array *a) { return data_typed(a, MICA_F16, "mica_data_f16"); }
const uint16_t *mica_data_bf16(mica_array *a) { return data_typed(a, MICA_BF16, "mica_data_bf16"); }
const float *mica_data_f32(mica_array *a) { return data_typed(a, MICA_F32, "mica_data_f32"); }
const double *mica_data_f64(mica_array *a) { return data_typed(a, MICA_F64, "mica_data_f64"); }

/* Copies n elements that are stride bytes apart to contiguous memory. */
static void copy_row(char *out, const char *in, int64_t n, int64_t stride, size_t size)
{
    if (stride == (int64_t)size) {
        memcpy(out, in, (size_t)n * size);
        return;
    }
    /* The size is a constant in each loop: a load and a store, not a call. */
    switch (size) {
    case 1:
        for (; n; n--, out += 1, in += stride) memcpy(out, in, 1);
        break;
    case 2:
        for (; n; n--, out += 2, in += stride) memcpy(out, in, 2);
        break;
    case 4:
        for (; n; n--, out += 4, in += stride) memcpy(out, in, 4);
        break;
    default:
        for (; n; n--, out += 8, in += stride) memcpy(out, in, 8);
        break;
    }
}

static void copy_strided(char *out, const mica_array *a)
{
    const size_t size = mica_dtype_size((mica_dtype)a->spec.dtype);
    const int last = a->spec.ndim - 1;   /* ndim > 0: scalars are always row-major */
    const int64_t *shape = a->spec.shape, n = shape[last], step = a->strides[last] * (int64_t)size;
    int64_t index[MICA_MAX_DIMS] = {0};
    const char *in = a->data;
    for (int axis = last; axis >= 0;) {
        copy_row(out, in, n, step, size);
        out += (size_t)n * size;
        for (axis = last - 1; axis >= 0; axis--) {
            in += a->strides[axis] * (int64_t)size;
            if (++index[axis] < shape[axis]) break;
            in -= shape[axis] * a->strides[axis] * (int64_t)size;
            index[axis] = 0;
        }
    }
}

mica_status mica_copy_out(mica_array *a, void *out, size_t nbytes)
{
    MICA_TRY(need_elements(a, "mica_copy_out"));
    const size_t have = mica_array_nbytes(a);
    if (nbytes != have)
        return mica__fail(MICA_ERR_ARGUMENT, "mica_copy_out: room for %zu bytes, the array has %zu", nbytes, have);
    if (!out && nbytes) return mica__fail(MICA_ERR_ARGUMENT, "mica_copy_out: the memory to copy to is NULL");
    if (nbytes && mica__is_row_major(&a->spec, a->strides)) memcpy(out, a->data, nbytes);
    else if (nbytes) copy_strided(out, a);
    if (a->engine) {
        mica__count_conversion(a->engine, false);
        mica__count_copy(a->engine, nbytes);
    }
    return MICA_OK;
}

mica_status mica_item(mica_array *a, double *out)
{
    MICA_TRY(need_elements(a, "mica_item"));
    if (!out) return mica__fail(MICA_ERR_ARGUMENT, "mica_item: the place for the value is NULL");
    const int64_t n = mica__spec_size(&a->spec);
    if (n != 1) return mica__fail(MICA_ERR_SHAPE, "mica_item: the array has %" PRId64 " elements, not one", n);
    *out = mica__get_f64((mica_dtype)a->spec.dtype, a->data, 0);
    return MICA_OK;
}
