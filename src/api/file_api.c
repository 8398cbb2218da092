/* mica_file_*: reading model files. An array uses the bytes of the mapped file without a
 * copy and holds a reference to it. Misaligned tensors and bools (which may be neither 0
 * nor 1 in a file) are copied. */
#include <string.h>

#include "array/scope.h"
#include "io/model_build.h"

void mica_file_options_init(mica_file_options *options)
{
    if (options) *options = (mica_file_options){.struct_size = sizeof *options};
}

static mica_status begin_open(const char *op, const mica_file_options *options, mica_file_options *o, mica_file **out)
{
    if (!out) return mica__fail(MICA_ERR_ARGUMENT, "%s: out is NULL", op);
    *out = NULL;
    mica_file_options_init(o);
    return mica_struct_read(op, o, sizeof *o, options);
}

mica_status mica_file_open(const char *path, const mica_file_options *options, mica_file **out)
{
    mica_file_options o;
    MICA_TRY(begin_open("file_open", options, &o, out));
    if (!path) return mica__fail(MICA_ERR_ARGUMENT, "file_open: path is NULL");
    return mica__file_open(path, &o, out);
}

mica_status mica_file_from_memory(const char *name, const void *data, size_t nbytes, const mica_file_options *options,
                                  mica_file **out)
{
    mica_file_options o;
    MICA_TRY(begin_open("file_from_memory", options, &o, out));
    if (!name || (!data && nbytes)) return mica__fail(MICA_ERR_ARGUMENT, "file_from_memory: name or data is NULL");
    return mica__file_from_memory(name, data, nbytes, &o, out);
}

void mica_file_close(mica_file *file) { mica__file_close(file); }

const char *mica_file_kind(const mica_file *file)
{
    static const char *const names[] = {[MICA__FILE_SAFETENSORS] = "safetensors",
                                        [MICA__FILE_SHARDS] = "safetensors",
                                        [MICA__FILE_GGUF] = "gguf",
                                        [MICA__FILE_NPY] = "npy",
                                        [MICA__FILE_NPZ] = "npz"};
    return file ? names[file->kind] : "";
}

mica_status mica_file_unchanged(const mica_file *file)
{
    return file ? mica__file_unchanged(file) : mica__fail(MICA_ERR_ARGUMENT, "file_unchanged: file is NULL");
}

/* --------------------------------------------------------------- tensors --- */

size_t mica_file_tensor_count(const mica_file *file) { return file ? mica__file_count(file) : 0; }

static bool stored_row_major(const mica__stored *t)
{
    mica__spec spec = {.ndim = t->ndim};
    memcpy(spec.shape, t->shape, sizeof spec.shape);
    return mica__is_row_major(&spec, t->stride);
}

static bool tensor_info(const mica_file *file, const mica__stored *t, mica_tensor_info *info)
{
    if (!t) return false;
    if (!info) return true;
    const mica__quant *q = mica__quant_get(t->type);
    mica_tensor_info full = {
        .name = t->name,
        .format = q->name,
        .dtype = q->dtype,
        .ndim = t->ndim,
        .nbytes = t->nbytes,
        .offset = t->offset,
        .path = file->map_paths[t->map],
        .data = t->data,
        .fortran = !stored_row_major(t),
    };
    memcpy(full.shape, t->shape, sizeof full.shape);
    return mica_struct_write("mica_tensor_info", info, &full, sizeof full) == MICA_OK;
}

bool mica_file_tensor(const mica_file *file, size_t i, mica_tensor_info *info)
{
    return file && tensor_info(file, mica__file_tensor(file, i), info);
}

bool mica_file_find(const mica_file *file, const char *name, mica_tensor_info *info)
{
    return file && name && tensor_info(file, mica__file_find(file, name), info);
}

static void release_file(void *data, void *user)
{
    (void)data;
    mica__file_close(user);
}

/* Fortran order is row-major order with the axes reversed. */
static mica_array *copy_stored(mica_scope *s, const mica__stored *t, mica_dtype dtype)
{
    int64_t turned[MICA_MAX_DIMS];
    int axes[MICA_MAX_DIMS];
    if (stored_row_major(t)) return mica_from_data(s, dtype, t->ndim, t->shape, t->data);
    for (int i = 0; i < t->ndim; i++) turned[i] = t->shape[axes[i] = t->ndim - 1 - i];
    return mica_permute(s, mica_from_data(s, dtype, t->ndim, turned, t->data), axes);
}

static mica_status check_file(const void *user) { return mica__file_unchanged(user); }

/* Describes the mapping to the buffer. Pages of a mapped file can be released when a kernel has a
 * packed copy; decompressed data and memory of the caller cannot. A device may wrap the whole file. */
static mica_array *from_map(mica_array *a, const mica_file *file, const mica__stored *t)
{
    const mica__map *map = &file->maps[t->map];
    const uint8_t *data = t->data;
    if (!a || data < map->span.data || data >= map->span.data + map->span.size) return a;
    a->buffer->file_pages = map->fd >= 0;
    if (map->fd >= 0) a->buffer->check = check_file;
    a->buffer->whole = map->span.data;
    a->buffer->whole_nbytes = map->span.size;
    return a;
}

mica_array *mica_file_array(mica_scope *s, mica_file *file, const char *name)
{
    char quoted[MICA__QUOTE_TEXT];
    if (mica__scope_check(s, "file_array") != MICA_OK) return NULL;
    if (!file || !name) return mica__scope_fail(s, MICA_ERR_ARGUMENT, "file_array: %s is NULL", file ? "name" : "file");
    const mica__stored *t = mica__file_find(file, name);
    if (!t)
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "file_array: %s has no tensor %s", file->path,
                                mica__quote(quoted, name, strlen(name)));
    const mica_status unchanged = mica__map_check(&file->maps[t->map], file->map_paths[t->map]);
    if (unchanged != MICA_OK) return mica__scope_failed(s, unchanged);
    const int dtype = mica__quant_get(t->type)->dtype;
    if (dtype < 0)
        return from_map(mica_wrap(s, MICA_U8, 1, (int64_t[]){(int64_t)t->nbytes}, NULL, t->data, release_file,
                                  mica__file_keep(file)),
                        file, t);
    if (dtype == MICA_BOOL || (uintptr_t)t->data % mica_dtype_size((mica_dtype)dtype))
        return copy_stored(s, t, (mica_dtype)dtype);
    return from_map(
        mica_wrap(s, (mica_dtype)dtype, t->ndim, t->shape, t->stride, t->data, release_file, mica__file_keep(file)),
        file, t);
}

/* -------------------------------------------------------------- metadata --- */

bool mica_file_i64(const mica_file *file, const char *key, int64_t *out)
{
    return file && key && out && mica__meta_i64(file, key, out);
}

bool mica_file_f64(const mica_file *file, const char *key, double *out)
{
    int64_t whole;
    if (!file || !key || !out) return false;
    if (mica__meta_f64(file, key, out)) return true;
    if (!mica__meta_i64(file, key, &whole)) return false;
    *out = (double)whole;
    return true;
}

bool mica_file_bool(const mica_file *file, const char *key, bool *out)
{
    return file && key && out && mica__meta_bool(file, key, out);
}

bool mica_file_string(const mica_file *file, const char *key, const char **text, size_t *length)
{
    return file && key && text && length && mica__meta_string(file, key, text, length);
}

static const mica__meta *array_of(const mica_file *file, const char *key)
{
    const mica__meta *m = file && key ? mica__file_meta_find(file, key) : NULL;
    return m && m->type == MICA__META_ARRAY ? m : NULL;
}

uint64_t mica_file_items(const mica_file *file, const char *key)
{
    const mica__meta *m = array_of(file, key);
    return m ? m->count : 0;
}

bool mica_file_item_i64(const mica_file *file, const char *key, uint64_t i, int64_t *out)
{
    const mica__meta *m = array_of(file, key);
    return m && out && mica__meta_item_i64(m, i, out);
}

bool mica_file_item_f64(const mica_file *file, const char *key, uint64_t i, double *out)
{
    int64_t whole;
    const mica__meta *m = array_of(file, key);
    if (!m || !out) return false;
    if (mica__meta_item_f64(m, i, out)) return true;
    if (!mica__meta_item_i64(m, i, &whole)) return false;
    *out = (double)whole;
    return true;
}

bool mica_file_next_string(const mica_file *file, const char *key, size_t *at, const char **text, size_t *length)
{
    const mica__meta *m = array_of(file, key);
    return m && at && text && length && mica__meta_next_string(m, at, text, length);
}

size_t mica_file_meta_count(const mica_file *file) { return file ? mica__file_meta_count(file) : 0; }

bool mica_file_meta(const mica_file *file, size_t i, mica_meta_info *info)
{
    const mica__meta *m = file ? mica__file_meta(file, i) : NULL;
    if (!m) return false;
    const bool array = m->type == MICA__META_ARRAY;
    const mica_meta_info full = {
        .key = m->key,
        .dtype = mica__meta_dtype(array ? m->item : m->type),
        .array = array,
        .count = m->count,
        .data = m->data,
        .nbytes = m->nbytes,
    };
    return mica_struct_write("mica_meta_info", info, &full, sizeof full) == MICA_OK;
}
