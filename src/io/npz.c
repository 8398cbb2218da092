/* Reader of npz: a zip of npy files, stored or deflated, also zip64.
 *
 * Stored entries are used without a copy. Deflated entries are decompressed when the file is
 * opened: first only the npy header, and the rest only if the array has the size that the
 * directory states. Entries must not overlap, so the decompressed data are at most about 1000
 * times the size of the archive, and never more than options.inflate_limit. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/inflate.h"
#include "io/model_build.h"

enum { EOCD_BYTES = 22, CENTRAL_BYTES = 46, LOCAL_BYTES = 30, ENTRY_MAX_NAME = 4096, PEEK_BYTES = 4096 };
static const uint64_t inflate_default = (uint64_t)4 << 30;

typedef struct zip_entry {
    const char *name;    /* points into the file */
    size_t name_length;
    unsigned flags, method;
    uint32_t crc;
    uint64_t packed, size, local;
    uint64_t begin;      /* of its data */
} zip_entry;

typedef struct zip_file {
    mica__file *file;
    int map;
    mica__span span;
    uint64_t directory, directory_size, count;
    zip_entry *entries;
} zip_file;

/* ------------------------------------------------------------- directory --- */

static mica_status find_directory64(zip_file *z, size_t end)
{
    const uint8_t *p = z->span.data;
    if (end < 20 || memcmp(p + end - 20, "PK\6\7", 4) != 0)
        return mica__build_fail(z->file, "the zip requires zip64 but has no zip64 directory");
    const uint64_t at = mica__load_u64(p + end - 12);
    if (at > end - 20 || end - 20 - at < 56 || memcmp(p + at, "PK\6\6", 4) != 0)
        return mica__build_fail(z->file, "there is no zip64 directory at byte %" PRIu64 " of the file", at);
    z->count = mica__load_u64(p + at + 32);
    z->directory_size = mica__load_u64(p + at + 40);
    z->directory = mica__load_u64(p + at + 48);
    return MICA_OK;
}

/* Finds the end record, which is followed by a comment of at most 64 KiB. */
static mica_status find_directory(zip_file *z)
{
    const uint8_t *p = z->span.data;
    const size_t size = z->span.size, lowest = size > 65535 + EOCD_BYTES ? size - 65535 - EOCD_BYTES : 0;
    size_t at = size >= EOCD_BYTES ? size - EOCD_BYTES + 1 : 0;
    bool found = false;
    while (!found && at-- > lowest)
        found = memcmp(p + at, "PK\5\6", 4) == 0 && at + EOCD_BYTES + mica__load_u16(p + at + 20) == size;
    if (!found) return mica__build_fail(z->file, "the zip has no directory at its end: is it complete?");
    if (mica__load_u16(p + at + 4) && mica__load_u16(p + at + 4) != 0xffff)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: a zip in several parts is not supported", z->file->path);
    z->count = mica__load_u16(p + at + 10);
    z->directory_size = mica__load_u32(p + at + 12);
    z->directory = mica__load_u32(p + at + 16);
    if (z->count == 0xffff || z->directory_size == UINT32_MAX || z->directory == UINT32_MAX)
        MICA_TRY(find_directory64(z, at));
    if (z->directory > at || z->directory_size > at - z->directory)
        return mica__build_fail(z->file, "the zip directory, %" PRIu64 " bytes at %" PRIu64 ", is not in the file",
                                z->directory_size, z->directory);
    if (z->count > z->directory_size / CENTRAL_BYTES || z->count > MICA__FILE_MAX_TENSORS)
        return mica__build_fail(z->file, "%" PRIu64 " entries in a zip directory of %" PRIu64 " bytes", z->count,
                                z->directory_size);
    return MICA_OK;
}

/* Reads the sizes that do not fit into 32 bits, in the order of the fields. */
static bool read_extra64(zip_entry *e, const uint8_t *p, size_t n)
{
    uint64_t *wanted[3];
    int n_wanted = 0;
    if (e->size == UINT32_MAX) wanted[n_wanted++] = &e->size;
    if (e->packed == UINT32_MAX) wanted[n_wanted++] = &e->packed;
    if (e->local == UINT32_MAX) wanted[n_wanted++] = &e->local;
    while (n_wanted && n >= 4) {
        const size_t length = mica__load_u16(p + 2);
        if (length > n - 4) return false;
        if (mica__load_u16(p) == 1) {
            if (length < (size_t)n_wanted * 8) return false;
            for (int i = 0; i < n_wanted; i++) *wanted[i] = mica__load_u64(p + 4 + 8 * i);
            return true;
        }
        p += 4 + length;
        n -= 4 + length;
    }
    return n_wanted == 0;
}

static mica_status read_central(zip_file *z, uint64_t *at, zip_entry *e)
{
    const uint64_t end = z->directory + z->directory_size;
    const uint8_t *p = z->span.data + *at;
    if (end - *at < CENTRAL_BYTES || memcmp(p, "PK\1\2", 4) != 0)
        return mica__build_fail(z->file, "the zip directory is broken at byte %" PRIu64, *at);
    const size_t name = mica__load_u16(p + 28), extra = mica__load_u16(p + 30), comment = mica__load_u16(p + 32);
    if (name + extra + comment > end - *at - CENTRAL_BYTES)
        return mica__build_fail(z->file, "the zip directory is broken at byte %" PRIu64, *at);
    *e = (zip_entry){.name = (const char *)p + CENTRAL_BYTES,
                     .name_length = name,
                     .flags = mica__load_u16(p + 8),
                     .method = mica__load_u16(p + 10),
                     .crc = mica__load_u32(p + 16),
                     .packed = mica__load_u32(p + 20),
                     .size = mica__load_u32(p + 24),
                     .local = mica__load_u32(p + 42)};
    if (!read_extra64(e, p + CENTRAL_BYTES + name, extra))
        return mica__build_fail(z->file, "the zip directory has no 64-bit sizes at byte %" PRIu64, *at);
    *at += CENTRAL_BYTES + name + extra + comment;
    return MICA_OK;
}

/* ---------------------------------------------------------------- entries -- */

static mica_status zip_fail(const zip_file *z, const zip_entry *e, mica_status status, const char *why)
{
    char quoted[MICA__QUOTE_TEXT];
    return mica__fail(status, "%s: zip entry %s: %s", z->file->path, mica__quote(quoted, e->name, e->name_length), why);
}

static bool name_ends(const zip_entry *e, const char *text)
{
    const size_t n = strlen(text);
    return e->name_length >= n && memcmp(e->name + e->name_length - n, text, n) == 0;
}

static mica_status check_name(const zip_file *z, const zip_entry *e)
{
    if (name_ends(e, "data.pkl"))
        return zip_fail(z, e, MICA_ERR_UNSUPPORTED, "this is a PyTorch file; its pickle is never read");
    bool safe = e->name_length > 0 && e->name_length <= ENTRY_MAX_NAME && e->name[0] != '/';
    for (size_t i = 0; i < e->name_length && safe; i++) {
        const bool dots = e->name[i] == '.' && i + 1 < e->name_length && e->name[i + 1] == '.';
        safe = !dots && e->name[i] != '\\' && (unsigned char)e->name[i] >= 0x20;
    }
    return safe ? MICA_OK : zip_fail(z, e, MICA_ERR_FORMAT, "its name could lead out of a folder");
}

/* Finds the data after the local header, which must agree with the directory. */
static mica_status find_data(const zip_file *z, zip_entry *e)
{
    if (e->flags & 1) return zip_fail(z, e, MICA_ERR_UNSUPPORTED, "it is encrypted");
    if (e->method != 0 && e->method != 8)
        return zip_fail(z, e, MICA_ERR_UNSUPPORTED, "it is compressed by a method other than deflate");
    if (e->method == 0 && e->packed != e->size)
        return zip_fail(z, e, MICA_ERR_FORMAT, "it is stored, and its two sizes differ");
    if (e->local > z->directory || z->directory - e->local < LOCAL_BYTES)
        return zip_fail(z, e, MICA_ERR_FORMAT, "its offset is not in the file");
    const uint8_t *p = z->span.data + e->local;
    const size_t name = mica__load_u16(p + 26), extra = mica__load_u16(p + 28);
    e->begin = e->local + LOCAL_BYTES + name + extra;
    if (memcmp(p, "PK\3\4", 4) != 0 || mica__load_u16(p + 8) != e->method || name != e->name_length ||
        e->begin > z->directory || memcmp(p + LOCAL_BYTES, e->name, name) != 0)
        return zip_fail(z, e, MICA_ERR_FORMAT, "its local header differs from the directory");
    if (e->packed > z->directory - e->begin) return zip_fail(z, e, MICA_ERR_FORMAT, "its data are not in the file");
    return MICA_OK;
}

static int by_local(const void *a, const void *b)
{
    const zip_entry *x = a, *y = b;
    return x->local != y->local ? (x->local < y->local ? -1 : 1) : 0;
}

/* ---------------------------------------------------------------- arrays --- */

static mica_status unpack_entry(const zip_file *z, const zip_entry *e, mica__span *out)
{
    mica__file *file = z->file;
    const mica__span packed = {z->span.data + e->begin, (size_t)e->packed};
    if (e->size > file->inflate_left)
        return mica__fail(MICA_ERR_MEMORY, "%s: its decompressed arrays exceed the limit of %" PRIu64 " bytes",
                          file->path, file->options.inflate_limit ? file->options.inflate_limit : inflate_default);
    mica__inflated *one = mica__alloc_zero(1, sizeof *one);
    if (!one) return mica__fail_memory("a compressed array", sizeof *one);
    one->nbytes = (size_t)e->size;
    one->data = mica__alloc_pages(one->nbytes);
    if (!one->data) {
        mica__free(one);
        return mica__fail_memory("a compressed array", (size_t)e->size);
    }
    one->next = file->inflated;
    file->inflated = one;
    file->inflate_left -= e->size;
    size_t written;
    if (mica__inflate(packed, one->data, one->nbytes, &written) != MICA__INFLATE_OK || written != one->nbytes)
        return zip_fail(z, e, MICA_ERR_FORMAT, "its data are not a deflate stream of the size in the directory");
    if (mica__crc32(0, one->data, one->nbytes) != e->crc)
        return zip_fail(z, e, MICA_ERR_FORMAT, "its checksum is wrong");
    *out = (mica__span){one->data, one->nbytes};
    return MICA_OK;
}

/* Reads the npy header of a deflated entry, before memory for the rest is allocated. */
static mica_status peek_header(const zip_file *z, const zip_entry *e, mica__stored *t, size_t *at)
{
    uint8_t peek[PEEK_BYTES];
    size_t n;
    if (e->packed > SIZE_MAX / 2 || e->size / 1032 > e->packed + 1)
        return zip_fail(z, e, MICA_ERR_FORMAT, "it cannot become as large as the directory states");
    if (mica__inflate((mica__span){z->span.data + e->begin, (size_t)e->packed}, peek, sizeof peek, &n) ==
        MICA__INFLATE_BAD)
        return zip_fail(z, e, MICA_ERR_FORMAT, "its data are not a deflate stream");
    return mica__npy_header(z->file, t->name, (mica__span){peek, n}, t, at);
}

static mica_status add_array(const zip_file *z, const zip_entry *e)
{
    mica__stored *t;
    size_t at = 0, nbytes;
    MICA_TRY(mica__build_tensor(z->file, &t));
    MICA_TRY(mica__build_name(z->file, "array name", e->name, e->name_length - 4, &t->name));
    mica__span span = {z->span.data + e->begin, (size_t)e->size};
    if (e->method == 0) MICA_TRY(mica__npy_header(z->file, t->name, span, t, &at));
    else MICA_TRY(peek_header(z, e, t, &at));
    MICA_TRY(mica__build_nbytes(z->file, t, &nbytes));
    char shape[MICA__SHAPE_TEXT];
    if (e->size < at || nbytes != e->size - at)
        return mica__build_fail_tensor(
            z->file, t->name, "shape %s of %s needs %zu bytes after the header of %zu, the entry has %" PRIu64,
            mica__shape_text(shape, t->ndim, t->shape), mica__quant_name(t->type), nbytes, at, e->size);
    if (e->method == 8) MICA_TRY(unpack_entry(z, e, &span));
    else if (z->file->options.check && mica__crc32(0, span.data, span.size) != e->crc)
        return zip_fail(z, e, MICA_ERR_FORMAT, "its checksum is wrong");
    t->map = z->map;
    t->data = span.data + at;
    t->nbytes = nbytes;
    t->offset = e->method == 0 ? e->begin + at : e->begin;
    return MICA_OK;
}

static mica_status read_entries(zip_file *z)
{
    uint64_t at = z->directory, end = 0;
    for (uint64_t i = 0; i < z->count; i++) {
        MICA_TRY(read_central(z, &at, &z->entries[i]));
        MICA_TRY(check_name(z, &z->entries[i]));
        MICA_TRY(find_data(z, &z->entries[i]));
    }
    if (z->count > 1) qsort(z->entries, (size_t)z->count, sizeof *z->entries, by_local);
    size_t arrays = 0;
    for (uint64_t i = 0; i < z->count; i++) {
        const zip_entry *e = &z->entries[i];
        if (e->local < end) return zip_fail(z, e, MICA_ERR_FORMAT, "it overlaps the entry before");
        end = e->begin + e->packed;
        arrays += name_ends(e, ".npy");
    }
    if (!arrays && z->count) return mica__fail(MICA_ERR_UNSUPPORTED, "%s: a zip without npy arrays", z->file->path);
    for (uint64_t i = 0; i < z->count; i++)
        if (name_ends(&z->entries[i], ".npy")) MICA_TRY(add_array(z, &z->entries[i]));
    return MICA_OK;
}

mica_status mica__npz_read(mica__file *file, int map)
{
    zip_file z = {.file = file, .map = map, .span = file->maps[map].span};
    file->inflate_left = file->options.inflate_limit ? file->options.inflate_limit : inflate_default;
    MICA_TRY(find_directory(&z));
    z.entries = mica__alloc_zero((size_t)z.count, sizeof *z.entries);
    if (!z.entries) return mica__fail_memory("the directory of a zip", (size_t)z.count * sizeof *z.entries);
    const mica_status status = read_entries(&z);
    mica__free(z.entries);
    return status;
}
