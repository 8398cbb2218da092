/* mica__file: building it, looking up tensors and metadata, closing it. */
#include "io/model_build.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/text.h"

/* -------------------------------------------------------------- building --- */

mica_status mica__build_fail(const mica__file *file, const char *fmt, ...)
{
    char text[MICA__ERROR_TEXT];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return mica__fail(MICA_ERR_FORMAT, "%s: %s", file->path, text);
}

mica_status mica__build_fail_tensor(const mica__file *file, const char *name, const char *fmt, ...)
{
    char text[MICA__ERROR_TEXT], quoted[MICA__QUOTE_TEXT];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return mica__fail(MICA_ERR_FORMAT, "%s: tensor %s: %s", file->path, mica__quote(quoted, name, strlen(name)), text);
}

mica_status mica__build_name(mica__file *file, const char *what, const char *text, size_t length, const char **out)
{
    char quoted[MICA__QUOTE_TEXT];
    if (length > MICA__FILE_MAX_NAME)
        return mica__build_fail(file, "a %s of %zu bytes; at most %d are allowed", what, length, MICA__FILE_MAX_NAME);
    if (length && memchr(text, 0, length))
        return mica__build_fail(file, "the %s %s contains a zero byte", what, mica__quote(quoted, text, length));
    char *copy = mica__arena_alloc(&file->arena, length + 1);
    if (!copy) return mica__fail_memory("the names of a model file", length + 1);
    if (length) memcpy(copy, text, length);
    *out = copy;
    return MICA_OK;
}

/* Ensures room for one more item of `size` bytes. The capacity is doubled, so that memory grows with
 * what was read and not with the counts in a header. */
static mica_status grow_items(void **items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) return MICA_OK;
    const size_t more = *cap ? 2 * *cap : 16;
    void *grown = mica__realloc(*items, more * size);
    if (!grown) return mica__fail_memory("the table of a model file", more * size);
    *items = grown;
    *cap = more;
    return MICA_OK;
}

mica_status mica__build_tensor(mica__file *file, mica__stored **out)
{
    if (file->n_tensors >= MICA__FILE_MAX_TENSORS)
        return mica__build_fail(file, "more than %d tensors", MICA__FILE_MAX_TENSORS);
    void *items = file->tensors;
    const mica_status status = grow_items(&items, file->n_tensors, &file->cap_tensors, sizeof *file->tensors);
    file->tensors = items;
    if (status != MICA_OK) return status;
    *out = &file->tensors[file->n_tensors++];
    **out = (mica__stored){.name = ""};
    return MICA_OK;
}

mica_status mica__build_meta(mica__file *file, mica__meta **out)
{
    if (file->n_meta >= MICA__FILE_MAX_META)
        return mica__build_fail(file, "more than %d metadata entries", MICA__FILE_MAX_META);
    void *items = file->meta;
    const mica_status status = grow_items(&items, file->n_meta, &file->cap_meta, sizeof *file->meta);
    file->meta = items;
    if (status != MICA_OK) return status;
    *out = &file->meta[file->n_meta++];
    **out = (mica__meta){.key = "", .count = 1};
    return MICA_OK;
}

void mica__build_strides(mica__stored *t)
{
    uint64_t stride = 1; /* may wrap for an empty shape, whose strides are not used */
    for (int i = t->ndim; i-- > 0; stride *= (uint64_t)t->shape[i]) t->stride[i] = (int64_t)stride;
}

mica_status mica__build_nbytes(const mica__file *file, const mica__stored *t, size_t *out)
{
    char shape[MICA__SHAPE_TEXT];
    const mica__quant *q = mica__quant_get(t->type);
    switch (mica__quant_nbytes(t->type, t->ndim, t->shape, out)) {
    case MICA__FIT_OK: return MICA_OK;
    case MICA__FIT_ROW:
        return mica__build_fail_tensor(file, t->name, "shape %s does not fill blocks of %d %s",
                                       mica__shape_text(shape, t->ndim, t->shape), (int)q->block, q->name);
    default:
        return mica__build_fail_tensor(file, t->name, "shape %s of %s is too large",
                                       mica__shape_text(shape, t->ndim, t->shape), mica__quant_name(t->type));
    }
}

/* ---------------------------------------------------------------- tables --- */

static const char *name_of(const mica__file *file, bool meta, size_t i)
{
    return meta ? file->meta[i].key : file->tensors[i].name;
}

/* The slot with this name, or the free slot for it. */
static size_t slot_of(const mica__file *file, const mica__name_table *table, bool meta, const char *name)
{
    size_t at = mica__hash(name, strlen(name), file->seed) & (table->cap - 1);
    while (table->slot[at] && strcmp(name_of(file, meta, table->slot[at] - 1), name) != 0)
        at = (at + 1) & (table->cap - 1);
    return at;
}

static mica_status build_table(mica__file *file, mica__name_table *table, bool meta)
{
    const size_t n = meta ? file->n_meta : file->n_tensors;
    mica__free(table->slot);
    for (table->cap = 8; table->cap < 2 * n;) table->cap *= 2;
    table->slot = mica__alloc_zero(table->cap, sizeof *table->slot);
    if (!table->slot) return mica__fail_memory("the names of a model file", table->cap * sizeof *table->slot);
    for (size_t i = 0; i < n; i++) {
        const char *name = name_of(file, meta, i);
        const size_t at = slot_of(file, table, meta, name);
        char quoted[MICA__QUOTE_TEXT];
        if (table->slot[at])
            return mica__build_fail(file, "two %s are named %s", meta ? "metadata entries" : "tensors",
                                    mica__quote(quoted, name, strlen(name)));
        table->slot[at] = (uint32_t)i + 1;
    }
    return MICA_OK;
}

mica_status mica__build_tables(mica__file *file)
{
    MICA_TRY(build_table(file, &file->meta_names, true));
    return build_table(file, &file->tensor_names, false);
}

/* --------------------------------------------------------------- looking --- */

mica__file *mica__file_keep(mica__file *file)
{
    if (file) atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
    return file;
}

void mica__file_close(mica__file *file)
{
    if (!file || atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) != 1) return;
    for (int i = 0; i < file->n_maps; i++) {
        mica__map_close(&file->maps[i]);
        mica__free(file->map_paths[i]);
    }
    for (mica__inflated *one = file->inflated, *next; one; one = next) {
        next = one->next;
        mica__free_pages(one->data, one->nbytes);
        mica__free(one);
    }
    mica__free(file->maps);
    mica__free(file->map_paths);
    mica__free(file->tensors);
    mica__free(file->meta);
    mica__free(file->tensor_names.slot);
    mica__free(file->meta_names.slot);
    mica__free(file->path);
    mica__arena_free(&file->arena);
    mica__free(file);
}

mica__file_kind mica__file_get_kind(const mica__file *file) { return file->kind; }
const char *mica__file_path(const mica__file *file) { return file->path; }
size_t mica__file_count(const mica__file *file) { return file->n_tensors; }
size_t mica__file_meta_count(const mica__file *file) { return file->n_meta; }

mica_status mica__file_map(const mica__file *file, const char *path, mica__map *out)
{
    MICA_TRY(mica__env_check(MICA__ENV_MMAP));
    const bool mapped = !file->options.no_mmap && mica__env_flag(MICA__ENV_MMAP, true);
    return mapped ? mica__map_open(path, out) : mica__map_read(path, out);
}

mica_status mica__file_unchanged(const mica__file *file)
{
    for (int i = 0; i < file->n_maps; i++) MICA_TRY(mica__map_check(&file->maps[i], file->map_paths[i]));
    return MICA_OK;
}

const mica__stored *mica__file_tensor(const mica__file *file, size_t i)
{
    return i < file->n_tensors ? &file->tensors[i] : NULL;
}

const mica__stored *mica__file_find(const mica__file *file, const char *name)
{
    const uint32_t i = file->tensor_names.slot[slot_of(file, &file->tensor_names, false, name)];
    return i ? &file->tensors[i - 1] : NULL;
}

const mica__meta *mica__file_meta(const mica__file *file, size_t i) { return i < file->n_meta ? &file->meta[i] : NULL; }

const mica__meta *mica__file_meta_find(const mica__file *file, const char *key)
{
    const uint32_t i = file->meta_names.slot[slot_of(file, &file->meta_names, true, key)];
    return i ? &file->meta[i - 1] : NULL;
}
