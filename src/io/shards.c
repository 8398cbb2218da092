/* A model in several safetensors files: model.safetensors.index.json names the file of each
 * tensor. File names must be plain names: one with a slash or that begins with a dot could
 * refer to a file outside of the folder. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "io/json.h"
#include "io/model_build.h"

enum { SHARDS_MAX = 1000, SHARD_SLOTS = 4096, INDEX_MAX = 1 << 30 };

/* A tensor of the index. */
typedef struct shard_entry {
    const char *name;
    int file;
} shard_entry;

typedef struct shard_index {
    mica__file *file;
    const char *folder;
    shard_entry *entries;
    size_t n_entries, cap_entries;
    const char *files[SHARDS_MAX]; /* names, in the order of their first use */
    int n_files;
    uint16_t slots[SHARD_SLOTS];   /* hash table of names: index in files + 1; 0: free */
} shard_index;

static bool safe_name(const char *name, size_t length)
{
    if (length == 0 || length > 255 || name[0] == '.') return false;
    for (size_t i = 0; i < length; i++)
        if (name[i] == '/' || name[i] == '\\' || (unsigned char)name[i] < 0x20) return false;
    return true;
}

static mica_status file_number(shard_index *x, const char *name, size_t length, int *out)
{
    char quoted[MICA__QUOTE_TEXT];
    if (!safe_name(name, length))
        return mica__build_fail(x->file, "%s is not a plain file name in the folder of the index",
                                mica__quote(quoted, name, length));
    size_t at = mica__hash(name, length, x->file->seed) % SHARD_SLOTS;
    for (; x->slots[at]; at = (at + 1) % SHARD_SLOTS) {
        const char *other = x->files[x->slots[at] - 1];
        if (strlen(other) == length && memcmp(other, name, length) == 0) {
            *out = x->slots[at] - 1;
            return MICA_OK;
        }
    }
    if (x->n_files >= SHARDS_MAX) return mica__build_fail(x->file, "more than %d files", SHARDS_MAX);
    MICA_TRY(mica__build_name(x->file, "file name", name, length, &x->files[x->n_files]));
    *out = x->n_files++;
    x->slots[at] = (uint16_t)x->n_files;
    return MICA_OK;
}

static mica_status read_weight_map(shard_index *x, mica__json *j)
{
    MICA_TRY(mica__json_expect(j, MICA__JSON_OBJECT, "weight_map must be an object"));
    while (mica__json_next(j) == MICA__JSON_KEY) {
        if (x->n_entries >= MICA__FILE_MAX_TENSORS)
            return mica__build_fail(x->file, "more than %d tensors", MICA__FILE_MAX_TENSORS);
        if (x->n_entries == x->cap_entries) {
            const size_t cap = x->cap_entries ? 2 * x->cap_entries : 64;
            shard_entry *grown = mica__realloc(x->entries, cap * sizeof *grown);
            if (!grown) return mica__fail_memory("the index of a model", cap * sizeof *grown);
            x->entries = grown;
            x->cap_entries = cap;
        }
        shard_entry *e = &x->entries[x->n_entries++];
        MICA_TRY(mica__build_name(x->file, "tensor name", j->string, j->length, &e->name));
        MICA_TRY(mica__json_expect(j, MICA__JSON_STRING, "a file name must be a string"));
        MICA_TRY(file_number(x, j->string, j->length, &e->file));
    }
    return mica__json_status(j);
}

/* Strings and numbers of "metadata", such as total_size, as strings. */
static mica_status read_index_metadata(shard_index *x, mica__json *j)
{
    const mica__json_token token = mica__json_next(j);
    if (token != MICA__JSON_OBJECT) return mica__json_status(j);
    while (mica__json_next(j) == MICA__JSON_KEY) {
        const char *key, *copy;
        MICA_TRY(mica__build_name(x->file, "metadata key", j->string, j->length, &key));
        const int depth = j->depth;
        const mica__json_token value = mica__json_next(j);
        if (value != MICA__JSON_STRING && value != MICA__JSON_NUMBER) {
            while (mica__json_status(j) == MICA_OK && j->depth > depth) (void)mica__json_next(j);
            continue;
        }
        mica__meta *m;
        MICA_TRY(mica__build_meta(x->file, &m));
        if (!(copy = mica__arena_copy(&x->file->arena, j->string, j->length)))
            return mica__fail_memory("metadata", j->length);
        *m = (mica__meta){.key = key, .type = MICA__META_STRING, .count = 1, .data = copy, .nbytes = j->length};
    }
    return mica__json_status(j);
}

static mica_status read_index(shard_index *x, mica__json *j)
{
    bool found = false;
    MICA_TRY(mica__json_expect(j, MICA__JSON_OBJECT, "the index must be an object"));
    while (mica__json_next(j) == MICA__JSON_KEY) {
        if (mica__json_is(j, "weight_map")) {
            found = true;
            MICA_TRY(read_weight_map(x, j));
        } else if (mica__json_is(j, "metadata")) {
            MICA_TRY(read_index_metadata(x, j));
        } else {
            MICA_TRY(mica__json_skip(j));
        }
    }
    MICA_TRY(mica__json_expect(j, MICA__JSON_END, "something follows the index"));
    return found ? MICA_OK : mica__build_fail(x->file, "the index has no weight_map");
}

static mica_status open_shard(shard_index *x, int i)
{
    const size_t length = strlen(x->folder) + strlen(x->files[i]) + 2;
    char *path = mica__alloc(length);
    if (!path) return mica__fail_memory("a path", length);
    snprintf(path, length, "%s/%s", x->folder, x->files[i]);
    return mica__part_open(x->file, path, x->n_files);
}

/* Checks that each tensor of the index is in the file that the index names. Tensors that are not
 * in the index are removed. */
static mica_status match_index(shard_index *x)
{
    mica__file *file = x->file;
    uint8_t *wanted = mica__alloc_zero(file->n_tensors + 1, 1);
    if (!wanted) return mica__fail_memory("the index of a model", file->n_tensors);
    mica_status status = MICA_OK;
    for (size_t i = 0; i < x->n_entries && status == MICA_OK; i++) {
        const shard_entry *e = &x->entries[i];
        const mica__stored *t = mica__file_find(file, e->name);
        if (!t || t->map != e->file + 1)
            status = mica__build_fail_tensor(file, e->name, "is not in '%s', which the index names", x->files[e->file]);
        else wanted[t - file->tensors] = 1;
    }
    size_t kept = 0;
    for (size_t i = 0; i < file->n_tensors && status == MICA_OK; i++)
        if (wanted[i]) file->tensors[kept++] = file->tensors[i];
    if (status == MICA_OK) file->n_tensors = kept;
    mica__free(wanted);
    return status;
}

mica_status mica__shards_read(mica__file *file, const char *folder)
{
    const mica__span span = file->maps[0].span;
    if (span.size > INDEX_MAX)
        return mica__build_fail(file, "an index of %zu bytes; at most %d are allowed", span.size, INDEX_MAX);
    shard_index *x = mica__alloc_zero(1, sizeof *x);
    if (!x) return mica__fail_memory("the index of a model", sizeof *x);
    x->file = file;
    x->folder = folder;
    mica__json j;
    mica__json_begin(&j, file->path, span.data, span.size, 0, 8, 2 * (size_t)MICA__FILE_MAX_TENSORS);
    mica_status status = read_index(x, &j);
    mica__json_end(&j);
    if (status == MICA_OK) status = mica__parts_room(file, x->n_files + 1);
    for (int i = 0; i < x->n_files && status == MICA_OK; i++) status = open_shard(x, i);
    for (int i = 0; i < x->n_files && status == MICA_OK; i++)
        status = mica__part_read(file, i + 1, mica__safetensors_read, NULL, NULL);
    if (status == MICA_OK) status = mica__build_tables(file);
    if (status == MICA_OK) status = match_index(x);
    mica__free(x->entries);
    mica__free(x);
    return status;
}
