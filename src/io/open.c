/* Opens model files. The reader is chosen by the first bytes of the file, because names are
 * not reliable. Known formats that are not supported are refused by name. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "io/model_build.h"
#include "io/path.h"

typedef struct file_sign {
    const char *bytes;
    size_t n;
    const char *name; /* description of an unsupported format; NULL: kind is read */
    mica__file_kind kind;
} file_sign;

static const file_sign file_signs[] = {
    {"GGUF", 4, NULL, MICA__FILE_GGUF},
    {"\x93NUMPY", 6, NULL, MICA__FILE_NPY},
    {"PK\3\4", 4, NULL, MICA__FILE_NPZ},
    {"PK\5\6", 4, NULL, MICA__FILE_NPZ},
    {"tjgg", 4, "a GGJT file of llama.cpp before August 2023: convert the model again", 0},
    {"fmgg", 4, "a GGMF file of llama.cpp before August 2023: convert the model again", 0},
    {"lmgg", 4, "a GGML file of llama.cpp before August 2023: convert the model again", 0},
    {"algg", 4, "a GGLA adapter of llama.cpp before August 2023", 0},
    {"FUGG", 4, "GGUF in big-endian byte order", 0},
    {"version https://git-lfs", 23, "a Git LFS pointer: the model itself was not downloaded (git lfs pull)", 0},
    {"\x80\x02", 2, "a Python pickle, which is never read: convert it to safetensors", 0},
    {"\x89HDF\r\n", 6, "an HDF5 file", 0},
    {"<!DOCTYPE", 9, "a web page, perhaps saved instead of the model", 0},
    {"<html", 5, "a web page, perhaps saved instead of the model", 0},
};

static mica_status choose_kind(mica__file *file)
{
    const mica__span span = file->maps[0].span;
    for (size_t i = 0; i < sizeof file_signs / sizeof file_signs[0]; i++) {
        const file_sign *s = &file_signs[i];
        if (span.size < s->n || memcmp(span.data, s->bytes, s->n) != 0) continue;
        file->kind = s->kind;
        return s->name ? mica__fail(MICA_ERR_UNSUPPORTED, "%s: this is %s", file->path, s->name) : MICA_OK;
    }
    file->kind = MICA__FILE_SAFETENSORS;
    if (span.size > 8 && span.data[8] == '{') return MICA_OK;
    size_t at = 0;
    while (at < span.size && at < 64 && strchr(" \t\r\n", span.data[at]) && span.data[at]) at++;
    if (at < span.size && span.data[at] == '{') {
        file->kind = MICA__FILE_SHARDS;
        return MICA_OK;
    }
    return mica__build_fail(file, "%zu bytes that are not safetensors, GGUF, npy, npz or an index of safetensors",
                            span.size);
}

/* Checks all block scales and codes of the file. */
static mica_status check_blocks(const mica__file *file)
{
    for (size_t i = 0; i < file->n_tensors; i++) {
        const mica__stored *t = &file->tensors[i];
        const mica__quant *q = mica__quant_get(t->type);
        if (q->dtype >= 0 || q->safetensors) continue;
        const size_t n = (t->nbytes - q->tail) / q->bytes, bad = mica__quant_first_bad_block(t->type, t->data, n);
        if (bad < n)
            return mica__build_fail_tensor(file, t->name, "block %zu at byte %llu of the file is not a valid %s", bad,
                                           (unsigned long long)t->offset + bad * q->bytes, q->name);
        float scale = 0;
        if (q->tail) memcpy(&scale, (const char *)t->data + n * q->bytes, sizeof scale);
        if (!isfinite(scale))
            return mica__build_fail_tensor(file, t->name, "its scale at byte %llu of the file is %g",
                                           (unsigned long long)t->offset + n * q->bytes, (double)scale);
    }
    return MICA_OK;
}

static mica_status read_kind(mica__file *file)
{
    switch (file->kind) {
    case MICA__FILE_GGUF:
        MICA_TRY(mica__gguf_read(file, 0));
        MICA_TRY(mica__gguf_join(file));
        break;
    case MICA__FILE_NPY: MICA_TRY(mica__npy_read(file, 0)); break;
    case MICA__FILE_NPZ: MICA_TRY(mica__npz_read(file, 0)); break;
    case MICA__FILE_SAFETENSORS: MICA_TRY(mica__safetensors_read(file, 0)); break;
    case MICA__FILE_SHARDS: {
        char *folder;
        MICA_TRY(mica__path_folder(file->path, &folder));
        const mica_status status = file->maps[0].from_file ? mica__shards_read(file, folder)
                                                           : mica__build_fail(file, "an index in memory has no folder");
        mica__free(folder);
        if (status != MICA_OK) return status;
        break;
    }
    }
    MICA_TRY(mica__build_tables(file));
    return file->options.check ? check_blocks(file) : MICA_OK;
}

/* An empty file object with room for one map. */
static mica_status new_file(const char *path, const mica__file_options *options, mica__file **out)
{
    mica__file *file = mica__alloc_zero(1, sizeof *file);
    *out = file;
    if (!file) return mica__fail_memory("a model file", sizeof *file);
    atomic_init(&file->refs, 1);
    mica__arena_init(&file->arena);
    file->seed = mica__hash_u64(mica__now_ns()) ^ (uint64_t)(uintptr_t)file;
    if (options) file->options = *options;
    const size_t length = strlen(path) + 1;
    file->path = mica__alloc(length);
    file->maps = mica__alloc_zero(1, sizeof *file->maps);
    file->map_paths = mica__alloc_zero(1, sizeof *file->map_paths);
    if (!file->path || !file->maps || !file->map_paths || !(file->map_paths[0] = mica__alloc(length)))
        return mica__fail_memory("a model file", length);
    memcpy(file->path, path, length);
    memcpy(file->map_paths[0], path, length);
    mica__map_wrap(NULL, 0, &file->maps[0]);
    file->n_maps = 1;
    return MICA_OK;
}

/* Closes the file after a failure. Closing may overwrite the error message, so it is restored. */
static mica_status drop_file(mica_status status, mica__file **out)
{
    mica__error error;
    mica__error_capture(&error, status);
    mica__file_close(*out);
    *out = NULL;
    return mica__error_raise(&error);
}

static mica_status finish_open(mica__file *file, mica_status status, mica__file **out)
{
    if (status == MICA_OK) status = choose_kind(file);
    if (status == MICA_OK) status = read_kind(file);
    *out = file;
    return status == MICA_OK ? MICA_OK : drop_file(status, out);
}

/* Opens the model of a folder: an index, or one file with a usual name. */
static mica_status open_folder(const char *folder, const mica__file_options *options, mica__file **out)
{
    static const char *const names[] = {"model.safetensors.index.json", "model.safetensors", "weights.npz",
                                        "model.gguf"};
    char *path;
    MICA_TRY(mica__path_find(folder, names, sizeof names / sizeof names[0], &path));
    mica_status status =
        path ? mica__file_open(path, options, out)
             : mica__fail(MICA_ERR_FILE, "%s: the folder has no model.safetensors, its index, or model.gguf", folder);
    mica__free(path);
    if (status == MICA_OK) status = mica__folder_meta(*out, folder);
    return status == MICA_OK ? MICA_OK : drop_file(status, out);
}

mica_status mica__file_open(const char *path, const mica__file_options *options, mica__file **out)
{
    struct stat s;
    *out = NULL;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) return open_folder(path, options, out);
    mica__file *file;
    mica_status status = new_file(path, options, &file);
    if (status == MICA_OK) status = mica__file_map(file, path, &file->maps[0]);
    return finish_open(file, status, out);
}

mica_status mica__file_from_memory(const char *name, const void *data, size_t size, const mica__file_options *options,
                                   mica__file **out)
{
    *out = NULL;
    mica__file *file;
    const mica_status status = new_file(name, options, &file);
    if (status == MICA_OK) mica__map_wrap(data, size, &file->maps[0]);
    return finish_open(file, status, out);
}
