/* Writers of npy and npz. Entries are stored, not compressed. Each array begins at a multiple
 * of 64 bytes (padded by an extra field that zip readers skip), so that mica and NumPy can map
 * it without a copy. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/inflate.h"
#include "io/model_write.h"

enum { NPY_TEXT = 1024, NPY_ALIGN = 64, ZIP_NAME = 4096 };

static const char *npy_descr(mica__quant_id type)
{
    switch (type) {
    case MICA__QUANT_BOOL: return "|b1";
    case MICA__QUANT_U8: return "|u1";
    case MICA__QUANT_I8: return "|i1";
    case MICA__QUANT_U16: return "<u2";
    case MICA__QUANT_I16: return "<i2";
    case MICA__QUANT_U32: return "<u4";
    case MICA__QUANT_I32: return "<i4";
    case MICA__QUANT_U64: return "<u8";
    case MICA__QUANT_I64: return "<i8";
    case MICA__QUANT_F16: return "<f2";
    case MICA__QUANT_F32: return "<f4";
    case MICA__QUANT_F64: return "<f8";
    case MICA__QUANT_C64: return "<c8";
    default: return NULL;
    }
}

/* Version 1: ten bytes, the dict, spaces, a newline; a multiple of 64 in all. */
static mica_status npy_head(const char *path, const mica__out_tensor *t, char out[NPY_TEXT], size_t *n)
{
    const char *descr = npy_descr(t->type);
    if (!descr)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: array '%s': npy has no type %s; store it as f32 or as safetensors",
                          path, t->name, mica__quant_name(t->type));
    mica__text text;
    mica__text_init(&text, out + 10, NPY_TEXT - 10);
    mica__text_add(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < t->ndim; i++)
        mica__text_add(&text,
                       i + 1 < t->ndim ? "%" PRId64 ", "
                       : t->ndim == 1  ? "%" PRId64 ","
                                       : "%" PRId64,
                       t->shape[i]);
    mica__text_add(&text, "), }");
    *n = (10 + text.length + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memset(out + 10 + text.length, ' ', *n - 10 - text.length);
    out[*n - 1] = '\n';
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (char)((*n - 10) & 255);
    out[9] = (char)((*n - 10) >> 8);
    return MICA_OK;
}

mica_status mica__npy_write(const char *path, const mica__out_tensor *tensor)
{
    char head[NPY_TEXT];
    size_t n, nbytes;
    mica__writer w;
    const mica__out_file out = {.tensors = tensor, .n_tensors = 1};
    MICA_TRY(mica__out_nbytes(path, tensor, &nbytes));
    MICA_TRY(npy_head(path, tensor, head, &n));
    MICA_TRY(mica__writer_open(&w, path));
    mica_status status = mica__writer_put(&w, head, n);
    if (status == MICA_OK) status = mica__out_data(&out, 0, nbytes, &w);
    if (status == MICA_OK) return mica__writer_finish(&w);
    mica__writer_abandon(&w);
    return status;
}

/* ------------------------------------------------------------------- zip --- */

/* Little-endian fields of the records. */
typedef struct zip_record {
    uint8_t data[128];
    size_t n;
} zip_record;

static void add_field(zip_record *r, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) r->data[r->n++] = (uint8_t)(v >> 8 * i);
}

typedef struct zip_member {
    uint64_t local, size;
    uint32_t crc;
} zip_member;

enum { ZIP_DATE = 33 }; /* 1980-01-01: the same arrays give the same file */

static void add_common(zip_record *r, bool wide, uint32_t crc, uint64_t size, size_t name)
{
    add_field(r, wide ? 45 : 20, 2);
    add_field(r, 0x800, 2); /* names are UTF-8 */
    add_field(r, 0, 2);     /* stored */
    add_field(r, 0, 2);
    add_field(r, ZIP_DATE, 2);
    add_field(r, crc, 4);
    add_field(r, wide ? UINT32_MAX : size, 4);
    add_field(r, wide ? UINT32_MAX : size, 4);
    add_field(r, name, 2);
}

/* Sizes are known before the data. The checksum is patched after them. */
static mica_status put_local(mica__writer *w, const char *name, uint64_t size)
{
    const bool wide = size >= UINT32_MAX;
    const size_t length = strlen(name), extra64 = wide ? 20 : 0;
    /* Padding is an extra field of unknown id with zeros; its header has four bytes. */
    size_t pad = (size_t)((w->total + 30 + length + extra64 + 4) % NPY_ALIGN);
    pad = 4 + (NPY_ALIGN - pad) % NPY_ALIGN;
    zip_record r = {.n = 0};
    add_field(&r, 0x04034b50, 4);
    add_common(&r, wide, 0, size, length);
    add_field(&r, extra64 + pad, 2);
    MICA_TRY(mica__writer_put(w, r.data, r.n));
    MICA_TRY(mica__writer_put(w, name, length));
    r.n = 0;
    if (wide) {
        add_field(&r, 1, 2);
        add_field(&r, 16, 2);
        add_field(&r, size, 8);
        add_field(&r, size, 8);
    }
    add_field(&r, 0x6d63, 2);
    add_field(&r, pad - 4, 2);
    MICA_TRY(mica__writer_put(w, r.data, r.n));
    return mica__writer_zeros(w, pad - 4);
}

/* Writes the data and computes their checksum. Data must be in memory: a produce function is not supported. */
static mica_status checked_data(mica__writer *w, const mica__out_file *out, size_t i, size_t nbytes, uint32_t *crc)
{
    const mica__out_tensor *t = &out->tensors[i];
    if (nbytes && !t->data)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: array '%s': npz needs its data in memory", w->path, t->name);
    *crc = mica__crc32(*crc, t->data, nbytes);
    return mica__writer_put(w, t->data, nbytes);
}

static mica_status put_member(mica__writer *w, const char *path, const mica__out_file *out, size_t i, zip_member *m)
{
    char head[NPY_TEXT], name[ZIP_NAME];
    const mica__out_tensor *t = &out->tensors[i];
    size_t n, nbytes;
    MICA_TRY(mica__out_nbytes(path, t, &nbytes));
    MICA_TRY(npy_head(path, t, head, &n));
    if (strlen(t->name) + 5 > sizeof name || t->name[0] == '/' || strstr(t->name, "..") || strchr(t->name, '\\'))
        return mica__fail(MICA_ERR_ARGUMENT, "%s: array '%.80s' cannot have this name in a zip", path, t->name);
    snprintf(name, sizeof name, "%s.npy", t->name);
    *m = (zip_member){.local = w->total, .size = n + nbytes, .crc = mica__crc32(0, head, n)};
    MICA_TRY(put_local(w, name, m->size));
    MICA_TRY(mica__writer_put(w, head, n));
    MICA_TRY(checked_data(w, out, i, nbytes, &m->crc));
    zip_record r = {.n = 0};
    add_field(&r, m->crc, 4);
    return mica__writer_patch(w, m->local + 14, r.data, r.n);
}

static mica_status put_central(mica__writer *w, const char *name, const zip_member *m)
{
    const bool wide = m->size >= UINT32_MAX, far = m->local >= UINT32_MAX;
    const size_t length = strlen(name) + 4;
    zip_record r = {.n = 0};
    add_field(&r, 0x02014b50, 4);
    add_field(&r, 45, 2);
    add_common(&r, wide, m->crc, m->size, length);
    add_field(&r, wide || far ? 4 + (wide ? 16u : 0) + (far ? 8u : 0) : 0, 2);
    add_field(&r, 0, 6); /* comment, disk, inner attributes */
    add_field(&r, 0, 4); /* outer attributes */
    add_field(&r, far ? UINT32_MAX : m->local, 4);
    MICA_TRY(mica__writer_put(w, r.data, r.n));
    MICA_TRY(mica__writer_put(w, name, length - 4));
    MICA_TRY(mica__writer_put(w, ".npy", 4));
    r.n = 0;
    if (wide || far) add_field(&r, 1, 2), add_field(&r, (wide ? 16u : 0) + (far ? 8u : 0), 2);
    if (wide) add_field(&r, m->size, 8), add_field(&r, m->size, 8);
    if (far) add_field(&r, m->local, 8);
    return mica__writer_put(w, r.data, r.n);
}

static mica_status put_end(mica__writer *w, uint64_t directory, uint64_t count)
{
    const uint64_t end = w->total, size = end - directory;
    const bool wide = count >= 0xffff || directory >= UINT32_MAX || size >= UINT32_MAX;
    zip_record r = {.n = 0};
    if (wide) {
        add_field(&r, 0x06064b50, 4);
        add_field(&r, 44, 8);
        add_field(&r, 45, 2);
        add_field(&r, 45, 2);
        add_field(&r, 0, 8);
        add_field(&r, count, 8);
        add_field(&r, count, 8);
        add_field(&r, size, 8);
        add_field(&r, directory, 8);
        add_field(&r, 0x07064b50, 4);
        add_field(&r, 0, 4);
        add_field(&r, end, 8);
        add_field(&r, 1, 4);
    }
    add_field(&r, 0x06054b50, 4);
    add_field(&r, 0, 4);
    add_field(&r, wide ? 0xffff : count, 2);
    add_field(&r, wide ? 0xffff : count, 2);
    add_field(&r, wide ? UINT32_MAX : size, 4);
    add_field(&r, wide ? UINT32_MAX : directory, 4);
    add_field(&r, 0, 2);
    return mica__writer_put(w, r.data, r.n);
}

static mica_status write_npz(mica__writer *w, const char *path, const mica__out_file *out, zip_member *members)
{
    for (size_t i = 0; i < out->n_tensors; i++) MICA_TRY(put_member(w, path, out, i, &members[i]));
    const uint64_t directory = w->total;
    for (size_t i = 0; i < out->n_tensors; i++) MICA_TRY(put_central(w, out->tensors[i].name, &members[i]));
    return put_end(w, directory, out->n_tensors);
}

mica_status mica__npz_write(const char *path, const mica__out_file *out)
{
    if (out->n_meta) return mica__fail(MICA_ERR_UNSUPPORTED, "%s: npz has no metadata", path);
    MICA_TRY(mica__out_unique(path, out));
    zip_member *members = mica__alloc_zero(out->n_tensors, sizeof *members);
    if (!members) return mica__fail_memory("writing", out->n_tensors * sizeof *members);
    mica__writer w;
    mica_status status = mica__writer_open(&w, path);
    if (status == MICA_OK) {
        status = write_npz(&w, path, out, members);
        if (status == MICA_OK) status = mica__writer_finish(&w);
        else mica__writer_abandon(&w);
    }
    mica__free(members);
    return status;
}
