/* What the readers fill in; only src/io sees it. */
#ifndef MICA_IO_MODEL_BUILD_H
#define MICA_IO_MODEL_BUILD_H

#include "io/model_file.h"

enum { MICA__FILE_MAX_TENSORS = 1000000, MICA__FILE_MAX_META = 1000000, MICA__FILE_MAX_NAME = 65535 };

typedef struct mica__inflated {
    struct mica__inflated *next;
    size_t nbytes;
    uint8_t *data;
} mica__inflated;

/* Names to positions: open addressing, 0 is free, i + 1 otherwise. */
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
    uint64_t seed;         /* of the hash: a file cannot make its names collide */
    mica__inflated *inflated;
    uint64_t inflate_left;
};

/* NUL-terminated, in the file's arena. NULL and a status if there is no memory;
 * names with a NUL inside are refused. */
mica_status mica__build_name(mica__file *file, const char *what, const char *text, size_t length, const char **out);
/* The next tensor or metadata entry, zeroed. */
mica_status mica__build_tensor(mica__file *file, mica__stored **out);
mica_status mica__build_meta(mica__file *file, mica__meta **out);
/* Row-major strides. */
void mica__build_strides(mica__stored *t);
/* The look-up tables, made or made again; MICA_ERR_FORMAT for a name that is there twice. */
mica_status mica__build_tables(mica__file *file);
/* The bytes of a tensor's shape and format; else a sentence that names it. */
mica_status mica__build_nbytes(const mica__file *file, const mica__stored *t, size_t *out);
/* MICA_ERR_FORMAT, "PATH: ..." */
mica_status mica__build_fail(const mica__file *file, const char *fmt, ...) MICA_PRINTF(2, 3);
/* The sentence "PATH: tensor 'NAME': ..." */
mica_status mica__build_fail_tensor(const mica__file *file, const char *name, const char *fmt, ...) MICA_PRINTF(3, 4);

/* Readers of one map into an empty file. */
mica_status mica__safetensors_read(mica__file *file, int map);
mica_status mica__gguf_read(mica__file *file, int map);
mica_status mica__npy_read(mica__file *file, int map);
mica_status mica__npz_read(mica__file *file, int map);
mica_status mica__shards_read(mica__file *file, const char *folder);
/* A GGUF in parts: those behind the first, which was read. */
mica_status mica__gguf_join(mica__file *file);

/* Maps or reads a file, as the options say. */
mica_status mica__file_map(const mica__file *file, const char *path, mica__map *out);

/* Files of one model, beside the first: room for so many maps in all; the next one, whose path it takes ("one of the n
 * files"); and the tensors of a map, behind those there are. look: at the part as it was read, its metadata too. */
typedef mica_status mica__part_look(const mica__file *part, int map, const void *user);
mica_status mica__parts_room(mica__file *file, int n);
mica_status mica__part_open(mica__file *file, char *path, int n);
mica_status mica__part_read(mica__file *file, int map, mica_status (*read)(mica__file *file, int map),
                            mica__part_look *look, const void *user);

/* The JSON files of a folder as metadata, into a file whose tables are made again. */
mica_status mica__folder_meta(mica__file *file, const char *folder);
/* One of them: what begins its messages, prefix its keys. The tables are not made. */
mica_status mica__json_meta(mica__file *file, const char *what, const char *prefix, const void *text, size_t size);

/* One npy array in a span: dtype, shape and strides of t, and where its data begin. */
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
