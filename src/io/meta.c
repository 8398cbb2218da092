/* Metadata values. A value is read only as its own kind of type. */
#include "io/model_build.h"

#include <string.h>

size_t mica__meta_size(mica__meta_type type)
{
    static const uint8_t size[MICA__META_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return (unsigned)type < MICA__META_COUNT ? size[type] : 0;
}

static const int8_t meta_dtypes[MICA__META_COUNT] = {
    [MICA__META_U8] = MICA_U8,     [MICA__META_I8] = MICA_I8,     [MICA__META_U16] = MICA_U16,
    [MICA__META_I16] = MICA_I16,   [MICA__META_U32] = MICA_U32,   [MICA__META_I32] = MICA_I32,
    [MICA__META_F32] = MICA_F32,   [MICA__META_BOOL] = MICA_BOOL, [MICA__META_STRING] = -1,
    [MICA__META_ARRAY] = INT8_MAX, [MICA__META_U64] = MICA_U64,   [MICA__META_I64] = MICA_I64,
    [MICA__META_F64] = MICA_F64,
};

int mica__meta_dtype(mica__meta_type type) { return meta_dtypes[type]; }

mica__meta_type mica__meta_of_dtype(int dtype)
{
    for (int i = 0; i < MICA__META_COUNT; i++)
        if (i != MICA__META_ARRAY && meta_dtypes[i] == dtype) return (mica__meta_type)i;
    return MICA__META_COUNT;
}

static bool get_i64(mica__meta_type type, const uint8_t *p, int64_t *out)
{
    uint64_t wide;
    switch (type) {
    case MICA__META_U8: *out = p[0]; return true;
    case MICA__META_I8: *out = (int8_t)p[0]; return true;
    case MICA__META_U16: *out = (int64_t)mica__load_u16(p); return true;
    case MICA__META_I16: *out = (int16_t)mica__load_u16(p); return true;
    case MICA__META_U32: *out = (int64_t)mica__load_u32(p); return true;
    case MICA__META_I32: *out = (int32_t)mica__load_u32(p); return true;
    case MICA__META_I64: *out = (int64_t)mica__load_u64(p); return true;
    case MICA__META_U64:
        wide = mica__load_u64(p);
        *out = (int64_t)wide;
        return wide <= INT64_MAX;
    default: return false;
    }
}

static bool get_f64(mica__meta_type type, const uint8_t *p, double *out)
{
    float narrow;
    if (type == MICA__META_F64) memcpy(out, p, 8);
    else if (type == MICA__META_F32) memcpy(&narrow, p, 4), *out = (double)narrow;
    return type == MICA__META_F64 || type == MICA__META_F32;
}

bool mica__meta_i64(const mica__file *file, const char *key, int64_t *out)
{
    const mica__meta *m = mica__file_meta_find(file, key);
    return m && get_i64(m->type, m->data, out);
}

bool mica__meta_f64(const mica__file *file, const char *key, double *out)
{
    const mica__meta *m = mica__file_meta_find(file, key);
    return m && get_f64(m->type, m->data, out);
}

bool mica__meta_bool(const mica__file *file, const char *key, bool *out)
{
    const mica__meta *m = mica__file_meta_find(file, key);
    if (!m || m->type != MICA__META_BOOL) return false;
    *out = *(const uint8_t *)m->data != 0;
    return true;
}

bool mica__meta_string(const mica__file *file, const char *key, const char **text, size_t *length)
{
    const mica__meta *m = mica__file_meta_find(file, key);
    if (!m || m->type != MICA__META_STRING) return false;
    *text = m->data;
    *length = m->nbytes;
    return true;
}

static const uint8_t *item_at(const mica__meta *array, uint64_t i)
{
    const size_t size = mica__meta_size(array->item);
    return array->type == MICA__META_ARRAY && size && i < array->count ? (const uint8_t *)array->data + i * size : NULL;
}

bool mica__meta_item_i64(const mica__meta *array, uint64_t i, int64_t *out)
{
    const uint8_t *p = item_at(array, i);
    return p && get_i64(array->item, p, out);
}

bool mica__meta_item_f64(const mica__meta *array, uint64_t i, double *out)
{
    const uint8_t *p = item_at(array, i);
    return p && get_f64(array->item, p, out);
}

bool mica__meta_next_string(const mica__meta *array, size_t *at, const char **text, size_t *length)
{
    if (array->type != MICA__META_ARRAY || array->item != MICA__META_STRING) return false;
    /* Lengths were checked when the file was read. They are checked again, because a mapped
     * file can change. */
    if (*at > array->nbytes || array->nbytes - *at < 8) return false;
    const uint8_t *p = (const uint8_t *)array->data + *at;
    const uint64_t n = mica__load_u64(p);
    if (n > array->nbytes - *at - 8) return false;
    *text = (const char *)p + 8;
    *length = (size_t)n;
    *at += 8 + (size_t)n;
    return true;
}
