/* An open model file of any format: its tensors and its metadata.
 *
 * mica__file_open validates everything: names are unique, and each tensor is inside
 * its file and has the size of its shape and format. Tensor data and metadata values
 * point into the mapped file and may be unaligned. A file is immutable and may be read
 * from many threads; it is reference-counted, so that arrays can keep it open. */
#ifndef MICA_IO_MODEL_FILE_H
#define MICA_IO_MODEL_FILE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "io/map.h"
#include "quant/quant.h"

typedef enum mica__file_kind {
    MICA__FILE_SAFETENSORS,
    MICA__FILE_SHARDS, /* model.safetensors.index.json and its files */
    MICA__FILE_GGUF,
    MICA__FILE_NPY,
    MICA__FILE_NPZ
} mica__file_kind;

typedef struct mica__stored {
    const char *name;                 /* npy: ""                                       */
    mica__quant_id type;
    int ndim;
    int64_t shape[MICA_MAX_DIMS];     /* the last axis is the fastest, in every format */
    int64_t stride[MICA_MAX_DIMS];    /* in elements; row-major except Fortran order   */
    const void *data;
    size_t nbytes;
    int map;                          /* index of its file                             */
    uint64_t offset;                  /* in that file; compressed: of the compressed bytes */
} mica__stored;

/* The values are those of GGUF. */
typedef enum mica__meta_type {
    MICA__META_U8,
    MICA__META_I8,
    MICA__META_U16,
    MICA__META_I16,
    MICA__META_U32,
    MICA__META_I32,
    MICA__META_F32,
    MICA__META_BOOL,
    MICA__META_STRING,
    MICA__META_ARRAY,
    MICA__META_U64,
    MICA__META_I64,
    MICA__META_F64,
    MICA__META_COUNT
} mica__meta_type;

typedef struct mica__meta {
    const char *key;
    mica__meta_type type, item; /* item: type of an array's elements                        */
    uint64_t count;             /* elements of an array, else 1                             */
    const void *data;           /* little-endian; a string's bytes; an array's contiguous
                                   elements, each string preceded by its u64 length         */
    size_t nbytes;
} mica__meta;

typedef struct mica_file mica__file; /* the handle of mica.h */

typedef mica_file_options mica__file_options;

/* Detects the format by the contents, not by the name. path may be a folder: opens the
 * model in it, with the folder's JSON files as metadata. options may be NULL.
 * MICA_ERR_FILE if it cannot be read, MICA_ERR_FORMAT if it is malformed,
 * MICA_ERR_UNSUPPORTED for known formats that are not supported. */
mica_status mica__file_open(const char *path, const mica__file_options *options, mica__file **out);
/* Opens a file in the caller's memory, which must live as long as the file. */
mica_status mica__file_from_memory(const char *name, const void *data, size_t size, const mica__file_options *options,
                                   mica__file **out);
mica__file *mica__file_keep(mica__file *file);
void mica__file_close(mica__file *file); /* NULL is allowed */

mica__file_kind mica__file_get_kind(const mica__file *file);
const char *mica__file_path(const mica__file *file);
/* MICA_ERR_FILE if any of its files has changed since it was opened. */
mica_status mica__file_unchanged(const mica__file *file);

/* In the order of the file. */
size_t mica__file_count(const mica__file *file);
const mica__stored *mica__file_tensor(const mica__file *file, size_t i);
/* NULL if there is no tensor of this name. */
const mica__stored *mica__file_find(const mica__file *file, const char *name);

size_t mica__file_meta_count(const mica__file *file);
const mica__meta *mica__file_meta(const mica__file *file, size_t i);
const mica__meta *mica__file_meta_find(const mica__file *file, const char *key);

/* Metadata values: false if the key is absent or has another kind of type.
 * mica__meta_i64 accepts any integer type, mica__meta_f64 accepts f32 and f64. */
bool mica__meta_i64(const mica__file *file, const char *key, int64_t *out);
bool mica__meta_f64(const mica__file *file, const char *key, double *out);
bool mica__meta_bool(const mica__file *file, const char *key, bool *out);
bool mica__meta_string(const mica__file *file, const char *key, const char **text, size_t *length);
/* Element i of an array of numbers; for strings use mica__meta_next_string. */
bool mica__meta_item_i64(const mica__meta *array, uint64_t i, int64_t *out);
bool mica__meta_item_f64(const mica__meta *array, uint64_t i, double *out);
/* The string at *at (start with 0); advances *at to the next string. false at the end. */
bool mica__meta_next_string(const mica__meta *array, size_t *at, const char **text, size_t *length);
size_t mica__meta_size(mica__meta_type type); /* 0 for strings and arrays */
/* The dtype of a type, -1 if there is none; and the type of a dtype, MICA__META_COUNT if there is none. */
int mica__meta_dtype(mica__meta_type type);
mica__meta_type mica__meta_of_dtype(int dtype);

#endif
