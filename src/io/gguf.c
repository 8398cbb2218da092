/* Reader of GGUF versions 2 and 3, little-endian: metadata, tensor infos, data.
 *
 * A bounded cursor reads the header; every count and length is compared with the bytes that
 * are left before it is used. The offset of a tensor must be the sum of the sizes before it.
 * Forks gave some type ids two meanings with blocks of different size; the offsets decide
 * which one a file uses. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/text.h"
#include "io/model_build.h"

enum { GGUF_MAX_DIMS = 4, GGUF_MAX_TENSOR_NAME = 64, GGUF_MAX_ALIGNMENT = 1 << 20, GGUF_MAX_ITEMS = 1 << 30 };

typedef struct gguf_cursor {
    mica__file *file;
    mica__span span;
    size_t at;
    const char *key; /* not used */
    uint32_t *ids;   /* type ids of the tensors */
    uint64_t alignment;
} gguf_cursor;

/* ---------------------------------------------------------------- cursor --- */

static mica_status take(gguf_cursor *c, uint64_t n, const char *what, const uint8_t **out)
{
    if (n > c->span.size - c->at)
        return mica__build_fail(c->file, "%s at byte %zu needs %" PRIu64 " bytes, the file has %zu left", what, c->at,
                                n, c->span.size - c->at);
    *out = c->span.data + c->at;
    c->at += (size_t)n;
    return MICA_OK;
}

static mica_status take_u32(gguf_cursor *c, const char *what, uint32_t *out)
{
    const uint8_t *p = NULL;
    MICA_TRY(take(c, 4, what, &p));
    *out = mica__load_u32(p);
    return MICA_OK;
}

static mica_status take_u64(gguf_cursor *c, const char *what, uint64_t *out)
{
    const uint8_t *p = NULL;
    MICA_TRY(take(c, 8, what, &p));
    *out = mica__load_u64(p);
    return MICA_OK;
}

static mica_status take_string(gguf_cursor *c, const char *what, const char **text, size_t *length)
{
    uint64_t n;
    const uint8_t *p = NULL;
    MICA_TRY(take_u64(c, what, &n));
    MICA_TRY(take(c, n, what, &p));
    *text = (const char *)p;
    *length = (size_t)n;
    return MICA_OK;
}

/* -------------------------------------------------------------- metadata --- */

static mica_status read_array(gguf_cursor *c, mica__meta *m)
{
    uint32_t item;
    uint64_t count;
    MICA_TRY(take_u32(c, "the type of an array", &item));
    MICA_TRY(take_u64(c, "the length of an array", &count));
    if (item == MICA__META_ARRAY)
        return mica__build_fail(c->file, "metadata '%s': arrays of arrays are not supported", m->key);
    if (item >= MICA__META_COUNT)
        return mica__build_fail(c->file, "metadata '%s': array of unknown type %" PRIu32, m->key, item);
    if (count > GGUF_MAX_ITEMS)
        return mica__build_fail(c->file, "metadata '%s': array of %" PRIu64 " elements, at most %d", m->key, count,
                                GGUF_MAX_ITEMS);
    m->item = (mica__meta_type)item;
    m->count = count;
    m->data = c->span.data + c->at;
    const size_t from = c->at;
    if (item == MICA__META_STRING) {
        const char *text;
        size_t length;
        for (uint64_t i = 0; i < count; i++) MICA_TRY(take_string(c, "a string of an array", &text, &length));
    } else {
        const uint8_t *p = NULL;
        MICA_TRY(take(c, count * mica__meta_size(m->item), "an array", &p));
    }
    m->nbytes = c->at - from;
    return MICA_OK;
}

static mica_status read_pair(gguf_cursor *c)
{
    const char *key;
    size_t length;
    uint32_t type;
    mica__meta *m;
    const uint8_t *p = NULL;
    MICA_TRY(take_string(c, "a metadata key", &key, &length));
    if (length == 0) return mica__build_fail(c->file, "a metadata key before byte %zu is empty", c->at);
    MICA_TRY(mica__build_meta(c->file, &m));
    MICA_TRY(mica__build_name(c->file, "metadata key", key, length, &m->key));
    MICA_TRY(take_u32(c, "the type of a metadata value", &type));
    if (type >= MICA__META_COUNT)
        return mica__build_fail(c->file, "metadata '%s': unknown type %" PRIu32 " at byte %zu", m->key, type,
                                c->at - 4);
    m->type = (mica__meta_type)type;
    if (type == MICA__META_ARRAY) return read_array(c, m);
    if (type == MICA__META_STRING) {
        const char *text;
        MICA_TRY(take_string(c, "a metadata string", &text, &m->nbytes));
        m->data = text;
        return MICA_OK;
    }
    m->nbytes = mica__meta_size(m->type);
    MICA_TRY(take(c, m->nbytes, "a metadata value", &p));
    m->data = p;
    return MICA_OK;
}

/* Linear search, once: the table of names does not exist yet. */
static const mica__meta *find_meta_linear(const mica__file *file, const char *key)
{
    for (size_t i = 0; i < file->n_meta; i++)
        if (strcmp(file->meta[i].key, key) == 0) return &file->meta[i];
    return NULL;
}

static mica_status read_alignment(gguf_cursor *c)
{
    const mica__meta *m = find_meta_linear(c->file, "general.alignment");
    c->alignment = 32;
    if (!m) return MICA_OK;
    if (m->type != MICA__META_U32)
        return mica__build_fail(c->file, "general.alignment has type %d, not u32", (int)m->type);
    c->alignment = mica__load_u32(m->data);
    if (c->alignment == 0 || (c->alignment & (c->alignment - 1)) || c->alignment > GGUF_MAX_ALIGNMENT)
        return mica__build_fail(c->file, "general.alignment is %" PRIu64 ", not a power of two up to %d", c->alignment,
                                GGUF_MAX_ALIGNMENT);
    return MICA_OK;
}

/* --------------------------------------------------------------- tensors --- */

static mica_status read_info(gguf_cursor *c, uint32_t *id)
{
    const char *name;
    size_t length;
    uint32_t ndim;
    mica__stored *t;
    char quoted[MICA__QUOTE_TEXT];
    MICA_TRY(take_string(c, "a tensor name", &name, &length));
    if (length == 0 || length > GGUF_MAX_TENSOR_NAME)
        return mica__build_fail(c->file, "the tensor name %s before byte %zu has %zu bytes; 1 to %d are allowed",
                                mica__quote(quoted, name, length), c->at, length, GGUF_MAX_TENSOR_NAME);
    MICA_TRY(mica__build_tensor(c->file, &t));
    MICA_TRY(mica__build_name(c->file, "tensor name", name, length, &t->name));
    MICA_TRY(take_u32(c, "the dimensions of a tensor", &ndim));
    if (ndim > GGUF_MAX_DIMS)
        return mica__build_fail_tensor(c->file, t->name, "%" PRIu32 " dimensions; at most %d are allowed", ndim,
                                       GGUF_MAX_DIMS);
    t->ndim = (int)ndim;
    for (int i = t->ndim; i-- > 0;) { /* GGUF stores the fastest axis first, mica last */
        uint64_t size;
        MICA_TRY(take_u64(c, "a tensor size", &size));
        if (size > INT64_MAX) return mica__build_fail_tensor(c->file, t->name, "size %" PRIu64 " is too large", size);
        t->shape[i] = (int64_t)size;
    }
    MICA_TRY(take_u32(c, "the type of a tensor", id));
    return take_u64(c, "the offset of a tensor", &t->offset);
}

/* Descriptions of type ids that are not supported; NULL: none. */
static const char *foreign_type(uint32_t id, bool bitnet)
{
    switch (id) {
    case 4: return "Q4_2, which was removed: convert the model again";
    case 5: return "Q4_3, which was removed: convert the model again";
    case 31:
    case 32:
    case 33: return "a repacked Q4_0, which was removed: convert the model again";
    case 37: return "a repacked IQ4_NL, which was removed: convert the model again";
    case 38:
        return bitnet ? "TL1 of bitnet.cpp, made for one kernel: convert the model to I2_S again"
                      : "a repacked IQ4_NL or TL1 of bitnet.cpp: convert the model again";
    case 39: return bitnet ? "TL2 of bitnet.cpp, made for one kernel: convert the model to I2_S again" : NULL;
    case 134: return "IQ1_BN of ik_llama.cpp";
    case 135: return "IQ2_BN of ik_llama.cpp";
    default: return id >= 97 && id < 400 ? "probably a type of ik_llama.cpp or another fork" : "unknown to us";
    }
}

static mica_status refuse_type(const gguf_cursor *c, const mica__stored *t, uint32_t id, const char *why)
{
    char quoted[MICA__QUOTE_TEXT];
    return mica__fail(MICA_ERR_UNSUPPORTED, "%s: tensor %s: type id %" PRIu32 " is %s", c->file->path,
                      mica__quote(quoted, t->name, strlen(t->name)), id, why);
}

static bool bitnet_arch(const mica__file *file)
{
    const mica__meta *m = find_meta_linear(file, "general.architecture");
    return m && m->type == MICA__META_STRING && m->nbytes >= 6 && memcmp(m->data, "bitnet", 6) == 0;
}

/* Bytes up to the next tensor, or to the end of the file. */
static uint64_t room_of(const gguf_cursor *c, size_t i, uint64_t data_size)
{
    const mica__stored *t = &c->file->tensors[i];
    return (i + 1 < c->file->n_tensors ? t[1].offset : data_size) - t->offset;
}

/* Would this format give all tensors with this type id the sizes that the offsets imply? */
static bool type_matches_offsets(const gguf_cursor *c, uint32_t id, mica__quant_id type, uint64_t data_size)
{
    for (size_t i = 0; i < c->file->n_tensors; i++) {
        size_t nbytes, padded;
        const mica__stored *t = &c->file->tensors[i];
        if (c->ids[i] != id) continue;
        if (mica__quant_nbytes(type, t->ndim, t->shape, &nbytes) != MICA__FIT_OK ||
            !mica__add_size(nbytes, c->alignment - 1, &padded))
            return false;
        padded -= padded % c->alignment;
        const uint64_t room = room_of(c, i, data_size);
        const bool last = i + 1 == c->file->n_tensors; /* its padding may be missing */
        if (room != padded && !(last && room == nbytes)) return false;
    }
    return true;
}

static mica_status choose_type(const gguf_cursor *c, size_t i, uint64_t data_size, mica__quant_id *out)
{
    const uint32_t id = c->ids[i];
    const char *foreign = foreign_type(id, bitnet_arch(c->file));
    *out = mica__quant_find_ggml(id, 0);
    if (*out == MICA__QUANT_COUNT || (id == 39 && foreign)) return refuse_type(c, &c->file->tensors[i], id, foreign);
    if (*out == MICA__QUANT_I2_S && c->file->options.i2_s_arm) *out = MICA__QUANT_I2_S_ARM;
    else if (mica__quant_find_ggml(id, 1) != MICA__QUANT_COUNT && !type_matches_offsets(c, id, *out, data_size)) {
        mica__quant_id other;
        for (int n = 1; (other = mica__quant_find_ggml(id, n)) != MICA__QUANT_COUNT; n++)
            if (type_matches_offsets(c, id, other, data_size)) {
                *out = other;
                return MICA_OK;
            }
    }
    return MICA_OK;
}

/* Each type id is decided once. */
static mica_status choose_types(gguf_cursor *c, uint64_t data_size)
{
    struct {
        uint32_t id;
        mica__quant_id type;
    } known[64];
    int n_known = 0;
    for (size_t i = 0; i < c->file->n_tensors; i++) {
        mica__quant_id type = MICA__QUANT_COUNT;
        for (int k = 0; k < n_known; k++)
            if (known[k].id == c->ids[i]) type = known[k].type;
        if (type == MICA__QUANT_COUNT) {
            MICA_TRY(choose_type(c, i, data_size, &type));
            known[n_known].id = c->ids[i]; /* there are fewer known ids than entries */
            known[n_known++].type = type;
        }
        c->file->tensors[i].type = type;
    }
    return MICA_OK;
}

static mica_status place_tensors_gguf(gguf_cursor *c, int map)
{
    mica__file *file = c->file;
    size_t data_at;
    if (file->n_tensors == 0) return MICA_OK;
    data_at = mica__round_up(c->at, c->alignment); /* at most the file's size plus a megabyte */
    if (data_at > c->span.size)
        return mica__build_fail(file, "the data begin at byte %zu, the file has %zu", data_at, c->span.size);
    const uint64_t data_size = c->span.size - data_at;
    uint64_t at = 0;
    for (size_t i = 0; i < file->n_tensors; i++) {
        const mica__stored *t = &file->tensors[i];
        if (t->offset % c->alignment || t->offset < at || t->offset > data_size)
            return mica__build_fail_tensor(
                file, t->name, "offset %" PRIu64 " is not a multiple of %" PRIu64 " from %" PRIu64 " to %" PRIu64,
                t->offset, c->alignment, at, data_size);
        at = t->offset;
    }
    MICA_TRY(choose_types(c, data_size));
    at = 0;
    for (size_t i = 0; i < file->n_tensors; i++) {
        mica__stored *t = &file->tensors[i];
        char shape[MICA__SHAPE_TEXT];
        MICA_TRY(mica__build_nbytes(file, t, &t->nbytes));
        if (t->offset != at)
            return mica__build_fail_tensor(file, t->name, "offset %" PRIu64 "; the tensors before end at %" PRIu64,
                                           t->offset, at);
        if (t->nbytes > data_size - at)
            return mica__build_fail_tensor(
                file, t->name, "%s of type %s needs %zu bytes at offset %" PRIu64 ", the file has %" PRIu64,
                mica__shape_text(shape, t->ndim, t->shape), mica__quant_name(t->type), t->nbytes, at, data_size - at);
        t->map = map;
        t->data = c->span.data + data_at + at;
        t->offset = data_at + at;
        mica__build_strides(t);
        at += t->nbytes;
        at += (c->alignment - at % c->alignment) % c->alignment;
        if (at > data_size) at = data_size; /* the padding of the last tensor may be missing */
    }
    return MICA_OK;
}

/* ------------------------------------------------------------------ head --- */

static mica_status read_version(gguf_cursor *c)
{
    uint32_t version;
    c->at = 4;
    MICA_TRY(take_u32(c, "the version", &version));
    if (version == 2 || version == 3) return MICA_OK;
    if (version == 1)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: GGUF version 1, of August 2023: convert the model again",
                          c->file->path);
    if (version && (version & 0xffff) == 0)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: GGUF in big-endian byte order (version 0x%08" PRIx32 ")",
                          c->file->path, version);
    return mica__fail(MICA_ERR_UNSUPPORTED, "%s: GGUF version %" PRIu32 "; 2 and 3 are read", c->file->path, version);
}

static mica_status read_counts(gguf_cursor *c, uint64_t *n_tensors, uint64_t *n_meta)
{
    /* The smallest size of a tensor info and of a metadata entry. */
    enum { INFO_BYTES = 8 + 1 + 4 + 4 + 8, PAIR_BYTES = 8 + 1 + 4 + 1 };
    MICA_TRY(take_u64(c, "the number of tensors", n_tensors));
    MICA_TRY(take_u64(c, "the number of metadata entries", n_meta));
    const uint64_t left = c->span.size - c->at;
    if (*n_tensors > left / INFO_BYTES || *n_tensors > MICA__FILE_MAX_TENSORS)
        return mica__build_fail(c->file, "%" PRIu64 " tensors in a file of %zu bytes", *n_tensors, c->span.size);
    if (*n_meta > left / PAIR_BYTES || *n_meta > MICA__FILE_MAX_META)
        return mica__build_fail(c->file, "%" PRIu64 " metadata entries in a file of %zu bytes", *n_meta, c->span.size);
    return MICA_OK;
}

mica_status mica__gguf_read(mica__file *file, int map)
{
    gguf_cursor c = {.file = file, .span = file->maps[map].span};
    uint64_t n_tensors, n_meta;
    MICA_TRY(read_version(&c));
    MICA_TRY(read_counts(&c, &n_tensors, &n_meta));
    for (uint64_t i = 0; i < n_meta; i++) MICA_TRY(read_pair(&c));
    MICA_TRY(read_alignment(&c));
    c.ids = mica__alloc_zero((size_t)n_tensors, sizeof *c.ids);
    if (!c.ids) return mica__fail_memory("the tensors of a model file", (size_t)n_tensors * sizeof *c.ids);
    mica_status status = MICA_OK;
    for (uint64_t i = 0; i < n_tensors && status == MICA_OK; i++) status = read_info(&c, &c.ids[i]);
    if (status == MICA_OK) status = place_tensors_gguf(&c, map);
    mica__free(c.ids);
    return status;
}
