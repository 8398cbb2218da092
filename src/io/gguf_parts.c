/* GGUF in parts, as gguf-split writes them. NAME-00001-of-00003.gguf has all metadata; the others
 * have only their part number (split.no, split.count). Each part has some of the tensors. The caller
 * opens the first part; the others are found by their names. The keys split.* are removed from the
 * metadata, because the open model is complete. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/model_build.h"

enum { PARTS_MOST = 1000, PART_ENDING = 20 }; /* the length of "-00001-of-00003.gguf" */

/* -1: the key is absent. */
static int64_t part_number(const mica__file *file, const char *key)
{
    int64_t value;
    return mica__meta_i64(file, key, &value) ? value : -1;
}

/* Linear search: the table of names does not exist yet. */
static bool was_split(const mica__file *file)
{
    for (size_t i = 0; i < file->n_meta; i++)
        if (strcmp(file->meta[i].key, "split.count") == 0) return true;
    return false;
}

static mica_status check_part(const mica__file *part, int map, const void *count)
{
    const int64_t no = part_number(part, "split.no"), of = part_number(part, "split.count"), want = *(const int *)count;
    if (no == map && of == want) return MICA_OK;
    return mica__build_fail(
        part, "part %" PRId64 " of %" PRId64 " by its metadata (split.no from 0), part %d of %" PRId64 " by its name",
        no, of, map, want);
}

/* The path of part i of n, from 0. */
static char *part_path(const mica__file *file, int i, int n)
{
    const size_t length = strlen(file->path) + 1;
    char *path = mica__alloc(length);
    if (!path) return NULL;
    memcpy(path, file->path, length);
    snprintf(path + length - 1 - PART_ENDING, PART_ENDING + 1, "-%05u-of-%05u.gguf", (unsigned)(i + 1) % 100000,
             (unsigned)n % 100000);
    return path;
}

mica_status mica__gguf_join(mica__file *file)
{
    if (!was_split(file)) return MICA_OK;
    MICA_TRY(mica__build_tables(file));
    const int64_t count = part_number(file, "split.count"), no = part_number(file, "split.no");
    const int64_t tensors = part_number(file, "split.tensors.count");
    char ending[2 * PART_ENDING]; /* enough for any two ints */
    if (count < 2) return MICA_OK;
    if (count > PARTS_MOST || no < 0 || no >= count)
        return mica__build_fail(file, "part %" PRId64 " of %" PRId64 " (split.no, split.count)", no, count);
    snprintf(ending, sizeof ending, "-%05d-of-%05d.gguf", (int)no + 1, (int)count);
    const size_t length = strlen(file->path);
    const bool named = length > PART_ENDING && strcmp(file->path + length - PART_ENDING, ending) == 0;
    if (!file->maps[0].from_file || !named || no != 0)
        return mica__fail(MICA_ERR_UNSUPPORTED,
                          "%s: part %" PRId64 " of %" PRId64
                          " of a model: open the first, *-00001-of-%05d.gguf, with the "
                          "others beside it",
                          file->path, no + 1, count, (int)count);
    const int n = (int)count;
    MICA_TRY(mica__parts_room(file, n));
    for (int i = 1; i < n; i++) {
        char *path = part_path(file, i, n);
        if (!path) return mica__fail_memory("a path", length);
        MICA_TRY(mica__part_open(file, path, n));
        MICA_TRY(mica__part_read(file, i, mica__gguf_read, check_part, &n));
    }
    if (tensors >= 0 && (uint64_t)tensors != file->n_tensors)
        return mica__build_fail(file, "its parts have %zu tensors, split.tensors.count is %" PRId64, file->n_tensors,
                                tensors);
    size_t kept = 0;
    for (size_t i = 0; i < file->n_meta; i++)
        if (strncmp(file->meta[i].key, "split.", 6) != 0) file->meta[kept++] = file->meta[i];
    file->n_meta = kept;
    return MICA_OK;
}
