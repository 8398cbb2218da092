/* mica_writer_*: collects metadata (copied into one arena) and tensors (data is borrowed), and
 * calls the writers of src/io in mica_writer_finish. The first failure is kept, so that a
 * caller may check only the last call. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/number.h"
#include "io/model_build.h"
#include "io/model_write.h"

typedef enum write_kind { WRITE_GGUF, WRITE_SAFETENSORS, WRITE_NPZ, WRITE_KINDS } write_kind;

static const char *const write_kinds[WRITE_KINDS] = {"gguf", "safetensors", "npz"};

struct mica_writer {
    char *path;
    write_kind kind;
    mica__arena arena;
    mica__out_tensor *tensors;
    size_t n_tensors, cap_tensors;
    mica__meta *meta;
    size_t n_meta, cap_meta;
    mica__error error;       /* the first failure         */
    /* set during mica_writer_finish */
    mica_produce_fn produce;
    void *user;
    mica__writer *now;       /* open while produce runs, else NULL */
    uint64_t left;           /* bytes of the tensor that are not written yet */
};

static mica_status store_error(mica_writer *w, mica_status status)
{
    if (status != MICA_OK && w->error.status == MICA_OK) mica__error_capture(&w->error, status);
    return status;
}

/* Checks that the writer is not NULL and has not failed before. */
static mica_status writer_check(mica_writer *w, const char *call)
{
    if (!w) return mica__fail(MICA_ERR_ARGUMENT, "%s: the writer is NULL", call);
    return w->error.status == MICA_OK ? MICA_OK : mica__error_raise(&w->error);
}

static mica_status find_write_kind(const char *path, const char *kind, write_kind *out)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    const char *name = kind ? kind : dot && (!slash || dot > slash) ? dot + 1 : "";
    for (*out = 0; *out < WRITE_KINDS; ++*out)
        if (strcmp(name, write_kinds[*out]) == 0) return MICA_OK;
    return mica__fail(MICA_ERR_ARGUMENT, "writer_open: %s: '%s' is not gguf, safetensors or npz", path, name);
}

mica_status mica_writer_open(const char *path, const char *kind, mica_writer **out)
{
    write_kind which;
    if (!out) return mica__fail(MICA_ERR_ARGUMENT, "writer_open: out is NULL");
    *out = NULL;
    if (!path || !*path) return mica__fail(MICA_ERR_ARGUMENT, "writer_open: path is NULL or empty");
    MICA_TRY(find_write_kind(path, kind, &which));
    mica_writer *w = mica__alloc_zero(1, sizeof *w);
    if (!w) return mica__fail_memory("a writer", sizeof *w);
    mica__arena_init(&w->arena);
    w->kind = which;
    if (!(w->path = mica__arena_copy(&w->arena, path, strlen(path) + 1))) {
        mica_writer_abandon(w);
        return mica__fail_memory("a writer", strlen(path));
    }
    *out = w;
    return MICA_OK;
}

void mica_writer_abandon(mica_writer *w)
{
    if (!w) return;
    mica__free(w->tensors);
    mica__free(w->meta);
    mica__arena_free(&w->arena);
    mica__free(w);
}

/* -------------------------------------------------------------- metadata --- */

static mica_status grow_list(void **items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) return MICA_OK;
    const size_t more = *cap ? 2 * *cap : 16;
    void *grown = mica__realloc(*items, more * size);
    if (!grown) return mica__fail_memory("a writer", more * size);
    *items = grown;
    *cap = more;
    return MICA_OK;
}

/* The entry with this key; adds it if there is none. */
static mica_status meta_slot(mica_writer *w, const char *key, mica__meta **out)
{
    for (size_t i = 0; i < w->n_meta; i++)
        if (strcmp(w->meta[i].key, key) == 0) {
            *out = &w->meta[i];
            return MICA_OK;
        }
    void *items = w->meta;
    const mica_status status = grow_list(&items, w->n_meta, &w->cap_meta, sizeof *w->meta);
    w->meta = items;
    if (status != MICA_OK) return status;
    char *copy = mica__arena_copy(&w->arena, key, strlen(key) + 1);
    if (!copy) return mica__fail_memory("metadata", strlen(key));
    *out = &w->meta[w->n_meta++];
    **out = (mica__meta){.key = copy, .type = MICA__META_STRING, .count = 1, .data = "", .nbytes = 0};
    return MICA_OK;
}

/* safetensors stores only strings: formats a number as its shortest exact text. */
static mica_status as_text(const mica_meta_info *info, char text[MICA_NUMBER_TEXT])
{
    const mica__meta one = {.type = MICA__META_ARRAY,
                            .item = mica__meta_of_dtype(info->dtype),
                            .count = 1,
                            .data = info->data,
                            .nbytes = info->nbytes};
    int64_t whole;
    double real;
    if (info->dtype == MICA_BOOL)
        snprintf(text, MICA_NUMBER_TEXT, "%s", *(const uint8_t *)info->data ? "true" : "false");
    else if (mica__meta_item_i64(&one, 0, &whole)) snprintf(text, MICA_NUMBER_TEXT, "%" PRId64, whole);
    else if (!mica__meta_item_f64(&one, 0, &real)) return mica__fail(MICA_ERR_UNSUPPORTED, "an integer above 2^63 - 1");
    else if (info->dtype == MICA_F32) mica__number_print_f32((float)real, text);
    else (void)mica_number_print(real, text, MICA_NUMBER_TEXT);
    return MICA_OK;
}

static mica_status add_meta(mica_writer *w, const mica_meta_info *info)
{
    char text[MICA_NUMBER_TEXT];
    const mica__meta_type type = mica__meta_of_dtype(info->dtype);
    const size_t size = mica__meta_size(type);
    size_t nbytes;
    if (type == MICA__META_COUNT || !info->key || (!info->data && info->nbytes) || (!info->array && info->count != 1))
        return mica__fail(MICA_ERR_ARGUMENT, "writer_meta: '%s' of dtype %d with %" PRIu64 " items cannot be written",
                          info->key ? info->key : "(NULL)", info->dtype, info->count);
    if (size && (!mica__mul_size(size, (size_t)info->count, &nbytes) || nbytes != info->nbytes))
        return mica__fail(MICA_ERR_ARGUMENT, "writer_meta: '%s': %" PRIu64 " items of %zu bytes are not %zu bytes",
                          info->key, info->count, size, info->nbytes);
    if (w->kind == WRITE_NPZ)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: npz has no metadata: cannot store '%s'", w->path, info->key);
    const bool plain_text = w->kind == WRITE_SAFETENSORS && size && !info->array;
    if (w->kind == WRITE_SAFETENSORS && info->array)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: safetensors cannot store arrays (metadata '%s')", w->path,
                          info->key);
    if (plain_text) MICA_TRY(as_text(info, text));
    const size_t length = plain_text ? strlen(text) : info->nbytes;
    mica__meta *m = NULL;
    void *copy = mica__arena_copy(&w->arena, plain_text ? text : info->data, length);
    if (!copy) return mica__fail_memory("metadata", length);
    MICA_TRY(meta_slot(w, info->key, &m));
    m->type = info->array ? MICA__META_ARRAY : plain_text ? MICA__META_STRING : type;
    m->item = info->array ? type : 0;
    m->count = info->count;
    m->data = copy;
    m->nbytes = length;
    return MICA_OK;
}

mica_status mica_writer_meta(mica_writer *w, const mica_meta_info *info)
{
    MICA_TRY(writer_check(w, "writer_meta"));
    if (!info) return store_error(w, mica__fail(MICA_ERR_ARGUMENT, "writer_meta: info is NULL"));
    mica_meta_info full = {.struct_size = sizeof full};
    const mica_status status = mica_struct_read("writer_meta: mica_meta_info", &full, sizeof full, info);
    return store_error(w, status == MICA_OK ? add_meta(w, &full) : status);
}

static mica_status put_value(mica_writer *w, const char *key, int dtype, bool array, uint64_t count, const void *data,
                             size_t nbytes)
{
    const mica_meta_info info = {sizeof info, key, dtype, array, count, data, nbytes};
    return store_error(w, add_meta(w, &info));
}

mica_status mica_writer_i64(mica_writer *w, const char *key, mica_dtype dtype, int64_t value)
{
    MICA_TRY(writer_check(w, "writer_i64"));
    const unsigned bits = 8 * (unsigned)mica_dtype_size(dtype);
    const bool integer = dtype == MICA_I8 || dtype == MICA_I16 || dtype == MICA_I32 || dtype == MICA_I64;
    const bool natural = dtype == MICA_U8 || dtype == MICA_U16 || dtype == MICA_U32 || dtype == MICA_U64;
    const int64_t top = dtype == MICA_BOOL ? 1
                        : bits == 64       ? INT64_MAX
                                           : ((int64_t)1 << (bits - (integer ? 1 : 0))) - 1;
    if (!integer && !natural && dtype != MICA_BOOL)
        return store_error(w, mica__fail(MICA_ERR_ARGUMENT, "writer_i64: '%s': %s is not an integer type",
                                         key ? key : "(NULL)", mica_dtype_name(dtype)));
    if (value > top || value < (integer ? -top - 1 : 0))
        return store_error(w, mica__fail(MICA_ERR_ARGUMENT, "writer_i64: '%s': %" PRId64 " does not fit into %s",
                                         key ? key : "(NULL)", value, mica_dtype_name(dtype)));
    return put_value(w, key, (int)dtype, false, 1, &value, mica_dtype_size(dtype)); /* little-endian */
}

mica_status mica_writer_f64(mica_writer *w, const char *key, mica_dtype dtype, double value)
{
    MICA_TRY(writer_check(w, "writer_f64"));
    const float narrow = (float)value;
    if (dtype != MICA_F32 && dtype != MICA_F64)
        return store_error(w, mica__fail(MICA_ERR_ARGUMENT, "writer_f64: '%s' as %s, not f32 or f64",
                                         key ? key : "(NULL)", mica_dtype_name(dtype)));
    const void *data = dtype == MICA_F32 ? (const void *)&narrow : &value;
    return put_value(w, key, (int)dtype, false, 1, data, mica_dtype_size(dtype));
}

mica_status mica_writer_string(mica_writer *w, const char *key, const char *text, size_t length)
{
    MICA_TRY(writer_check(w, "writer_string"));
    return put_value(w, key, -1, false, 1, text, length);
}

mica_status mica_writer_array(mica_writer *w, const char *key, mica_dtype dtype, uint64_t count, const void *data)
{
    size_t nbytes;
    MICA_TRY(writer_check(w, "writer_array"));
    if (!mica__mul_size((size_t)count, mica_dtype_size(dtype), &nbytes))
        return store_error(w, mica__fail(MICA_ERR_SIZE, "writer_array: %" PRIu64 " items overflow size_t", count));
    return put_value(w, key, (int)dtype, true, count, data, nbytes);
}

mica_status mica_writer_strings(mica_writer *w, const char *key, uint64_t count, const char *const *texts,
                                const size_t *lengths)
{
    size_t nbytes = 0, at = 0;
    MICA_TRY(writer_check(w, "writer_strings"));
    for (uint64_t i = 0; i < count; i++) {
        const char *text = texts ? texts[i] : NULL;
        if (!text || !mica__add_size(nbytes, 8 + (lengths ? lengths[i] : strlen(text)), &nbytes))
            return store_error(w, mica__fail(MICA_ERR_ARGUMENT, "writer_strings: text %" PRIu64 " is NULL", i));
    }
    uint8_t *packed = mica__alloc(nbytes);
    if (!packed) return store_error(w, mica__fail_memory("metadata", nbytes));
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t length = lengths ? lengths[i] : strlen(texts[i]);
        for (int k = 0; k < 8; k++) packed[at++] = (uint8_t)(length >> 8 * k);
        memcpy(packed + at, texts[i], (size_t)length);
        at += (size_t)length;
    }
    const mica_status status = put_value(w, key, -1, true, count, packed, nbytes);
    mica__free(packed);
    return status;
}

/* --------------------------------------------------------------- tensors --- */

static mica_status add_out_tensor(mica_writer *w, const char *name, const char *format, int ndim, const int64_t *shape,
                                  const void *data)
{
    if (!name || !format || ndim < 0 || ndim > MICA_MAX_DIMS || (ndim && !shape))
        return mica__fail(MICA_ERR_ARGUMENT, "writer_tensor: '%s' of format %s with %d dimensions (0 to 8)",
                          name ? name : "(NULL)", format ? format : "(NULL)", ndim);
    mica__out_tensor t = {.type = mica__quant_find(format), .ndim = ndim, .data = data};
    if (t.type == MICA__QUANT_COUNT)
        return mica__fail(MICA_ERR_ARGUMENT, "writer_tensor: '%s': there is no format '%s'", name, format);
    if (ndim) memcpy(t.shape, shape, (size_t)ndim * sizeof *shape);
    void *items = w->tensors;
    const mica_status status = grow_list(&items, w->n_tensors, &w->cap_tensors, sizeof *w->tensors);
    w->tensors = items;
    if (status != MICA_OK) return status;
    if (!(t.name = mica__arena_copy(&w->arena, name, strlen(name) + 1)))
        return mica__fail_memory("a writer", strlen(name));
    size_t nbytes;
    MICA_TRY(mica__out_nbytes(w->path, &t, &nbytes));
    w->tensors[w->n_tensors++] = t;
    return MICA_OK;
}

mica_status mica_writer_tensor(mica_writer *w, const char *name, const char *format, int ndim, const int64_t *shape,
                               const void *data)
{
    MICA_TRY(writer_check(w, "writer_tensor"));
    return store_error(w, add_out_tensor(w, name, format, ndim, shape, data));
}

mica_status mica_writer_put(mica_writer *w, const void *data, size_t nbytes)
{
    MICA_TRY(writer_check(w, "writer_put"));
    if (!w->now || (!data && nbytes))
        return store_error(w, mica__fail(MICA_ERR_STATE, "writer_put: %s",
                                         w->now ? "data is NULL" : "only inside the function passed to writer_finish"));
    if (nbytes > w->left)
        return store_error(w, mica__fail(MICA_ERR_ARGUMENT,
                                         "writer_put: %s: %zu bytes for a tensor that has %" PRIu64 " left", w->path,
                                         nbytes, w->left));
    w->left -= nbytes;
    return store_error(w, mica__writer_put(w->now, data, nbytes));
}

static mica_status produce_tensor(void *user, size_t i, mica__writer *out)
{
    mica_writer *w = user;
    size_t nbytes;
    if (!w->produce) return mica__fail(MICA_ERR_ARGUMENT, "%s: tensor '%s' has no data", w->path, w->tensors[i].name);
    MICA_TRY(mica__out_nbytes(w->path, &w->tensors[i], &nbytes));
    w->now = out;
    w->left = nbytes;
    const mica_status status = w->produce(w, i, w->user);
    w->now = NULL;
    MICA_TRY(writer_check(w, "writer_put")); /* a failure that produce ignored */
    MICA_TRY(status);
    return w->left ? mica__fail(MICA_ERR_ARGUMENT, "%s: tensor '%s' has %zu bytes, %" PRIu64 " of them are missing",
                                w->path, w->tensors[i].name, nbytes, w->left)
                   : MICA_OK;
}

mica_status mica_writer_finish(mica_writer *w, mica_produce_fn produce, void *user)
{
    static mica_status (*const writers[WRITE_KINDS])(const char *, const mica__out_file *) = {
        mica__gguf_write, mica__safetensors_write, mica__npz_write};
    if (!w) return mica__fail(MICA_ERR_ARGUMENT, "writer_finish: the writer is NULL");
    const mica__out_file out = {w->tensors, w->n_tensors, w->meta, w->n_meta, produce_tensor, w};
    w->produce = produce;
    w->user = user;
    mica_status status = writer_check(w, "writer_finish");
    if (status == MICA_OK) status = store_error(w, writers[w->kind](w->path, &out));
    const mica__error error = w->error;
    mica_writer_abandon(w);
    return status == MICA_OK ? MICA_OK : mica__error_raise(&error);
}
