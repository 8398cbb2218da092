/* The struct of an open model file, and helpers for the readers that fill it. Internal to src/io. */
#ifndef MICA_IO_MODEL_BUILD_H
#define MICA_IO_MODEL_BUILD_H

#include "io/model_file.h"

enum { MICA__FILE_MAX_TENSORS = 1000000, MICA__FILE_MAX_META = 1000000, MICA__FILE_MAX_NAME = 65535 };

typedef struct mica__inflated {
    struct mica__inflated *next;
    size_t nbytes;
    uint8_t *data;
} mica__inflated;

/* Maps names to indices by open addressing. A slot holds index + 1; 0: free. */
typedef struct mica__name_table {
    uint32_t *slot;
    size_t cap;
} mica__name_table;

struct mica_file {
    atomic_int refs;
    mica__file_kind kind;
    mica__file_options options;
    char *path;
    mica__arena arena;     /* names, keys */
    mica__map *maps;
    char **map_paths;
    int n_maps;
    mica__stored *tensors;
    size_t n_tensors, cap_tensors;
    mica__meta *meta;
    size_t n_meta, cap_meta;
    mica__name_table tensor_names, meta_names;
    uint64_t seed;         /* random hash seed: a file cannot make its names collide */
    mica__inflated *inflated;
    uint64_t inflate_left;
};

/* Copies a name, NUL-terminated, into the file's arena. Fails if out of memory or if
 * the name contains a NUL; then *out is NULL. */
mica_status mica__build_name(mica__file *file, const char *what, const char *text, size_t length, const char **out);
/* Appends a zeroed tensor or metadata entry. */
mica_status mica__build_tensor(mica__file *file, mica__stored **out);
mica_status mica__build_meta(mica__file *file, mica__meta **out);
/* Sets row-major strides. */
void mica__build_strides(mica__stored *t);
/* Builds or rebuilds the look-up tables; MICA_ERR_FORMAT for a duplicate name. */
mica_status mica__build_tables(mica__file *file);
/* Computes the bytes of a tensor from its shape and format; the error message names the tensor. */
mica_status mica__build_nbytes(const mica__file *file, const mica__stored *t, size_t *out);
/* MICA_ERR_FORMAT, "PATH: ..." */
mica_status mica__build_fail(const mica__file *file, const char *fmt, ...) MICA_PRINTF(2, 3);
/* MICA_ERR_FORMAT, "PATH: tensor 'NAME': ..." */
mica_status mica__build_fail_tensor(const mica__file *file, const char *name, const char *fmt, ...) MICA_PRINTF(3, 4);

/* The readers: parse one map into an empty file. */
mica_status mica__safetensors_read(mica__file *file, int map);
mica_status mica__gguf_read(mica__file *file, int map);
mica_status mica__npy_read(mica__file *file, int map);
mica_status mica__npz_read(mica__file *file, int map);
mica_status mica__shards_read(mica__file *file, const char *folder);
/* A GGUF model in several files: reads the parts after the first, which was read already. */
mica_status mica__gguf_join(mica__file *file);

/* Maps or reads a file, depending on the options. */
mica_status mica__file_map(const mica__file *file, const char *path, mica__map *out);

/* Models in several files. parts_room reserves n maps in all. part_open opens the next file and takes ownership of path
 * (n is for the message "one of the n files"). part_read appends the tensors of a map; look checks the part after it
 * was read, including its metadata. */
typedef mica_status mica__part_check_fn(const mica__file *part, int map, const void *user);
mica_status mica__parts_room(mica__file *file, int n);
mica_status mica__part_open(mica__file *file, char *path, int n);
mica_status mica__part_read(mica__file *file, int map, mica_status (*read)(mica__file *file, int map),
                            mica__part_check_fn *look, const void *user);

/* Adds the JSON files of a folder as metadata and rebuilds the tables. */
mica_status mica__folder_meta(mica__file *file, const char *folder);
/* Adds one JSON text: what is the prefix of error messages, prefix that of keys. Does not rebuild the tables. */
mica_status mica__json_meta(mica__file *file, const char *what, const char *prefix, const void *text, size_t size);

/* Parses an npy header: sets dtype, shape and strides of t, and the offset of the data. */
mica_status mica__npy_header(const mica__file *file, const char *name, mica__span span, mica__stored *t,
                             size_t *data_at);

static inline uint32_t mica__load_u16(const uint8_t *p) { return (uint32_t)(p[0] | p[1] << 8); }
static inline uint32_t mica__load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t mica__load_u64(const uint8_t *p)
{
    return mica__load_u32(p) | (uint64_t)mica__load_u32(p + 4) << 32;
}

#endif
