/* A model to convert, independent of its input format: tensors with their output names and rows that can be read as
 * f32, and the metadata. Only the converters in models/ include this. */
#ifndef MICA_MODELS_SOURCE_H
#define MICA_MODELS_SOURCE_H

#include <mica.h>
#include <mica_convert.h>

enum { SOURCE_NAME = 128, SOURCE_PANEL = 16 }; /* bytes; rows that some formats store together */

typedef struct mica__source_tensor {
    char name[SOURCE_NAME];     /* in the output                                       */
    const char *from;           /* in the input, for messages and rules                */
    int ndim;
    int64_t shape[MICA_MAX_DIMS], rows, cols;
    const char *format;         /* of data; "HF_TERNARY": four rows a byte; "AFFINE": of MLX */
    int dtype;                  /* -1: a block format                                  */
    const uint8_t *data;
    uint64_t nbytes;
    float scale;                /* HF_TERNARY: factor of the codes                     */
    const uint8_t *scales, *biases; /* AFFINE: (rows, cols / group) of scale_format    */
    const char *scale_format;
    int bits, group;
    int64_t heads;              /* output rows pair the halves of each head (arch llama); 0: not */
} mica__source_tensor;

typedef struct mica__source {
    mica_file *file;            /* NULL: a checkpoint of llama2.c                      */
    const void *map;            /* that checkpoint, mapped                             */
    size_t map_size;
    int map_fd;                 /* valid if map is not NULL                            */
    mica__source_tensor *tensors;
    size_t n_tensors, cap_tensors;
    bool gguf;                  /* the output is GGUF                                  */
    bool hugging_face;          /* names and metadata were translated to GGUF's        */
    char arch[32];
    float *rope_freqs;          /* computed from rope_scaling; NULL: no factors        */
    const mica_quantize_options *options;
} mica__source;

/* gguf: translate known names of other formats to those of GGUF. */
mica_status mica__source_open(const char *path, const mica_quantize_options *options, bool gguf, mica__source *out);
void mica__source_close(mica__source *source);
/* Writes all metadata of the model at `in`, including its tokenizer; out is the path of the output. */
mica_status mica__source_meta(const mica__source *source, const char *in, const char *out, mica_writer *w);

/* MICA_ERR_FILE if a file of the model was truncated or changed; call it before reading tensors. */
mica_status mica__source_check(const mica__source *source);

/* Can its rows be read as f32? */
bool mica__source_readable(const mica__source_tensor *t);
/* Reads rows [first, first + n) as f32; first is a multiple of SOURCE_PANEL; scratch has room for a copy of their
 * blocks. */
mica_status mica__source_rows(const mica__source_tensor *t, int64_t first, int64_t n, float *out, void *scratch);
/* Bytes that mica__source_rows may need as scratch for n rows. */
size_t mica__source_scratch(const mica__source_tensor *t, int64_t n);

/* Bytes stored after the blocks of a whole tensor. Are its blocks SOURCE_PANEL rows high? */
size_t mica__source_tail(const char *format);
bool mica__source_panels(const char *format);

/* Adds a tensor; all fields but its name are zero. */
mica_status mica__source_add(mica__source *source, const char *name, mica__source_tensor **out);
void mica__source_note(const mica__source *source, const char *format, ...) MICA_PRINTF(2, 3);

/* The readers of each kind of source. */
mica_status mica__hf_tensors(mica__source *source);
mica_status mica__hf_meta(const mica__source *source, mica_writer *w);
bool mica__hf_known(const mica_file *file, char arch[32]);
bool mica__llama2c_looks_like(const void *data, size_t size);
mica_status mica__llama2c_tensors(mica__source *source, const char *path);
mica_status mica__llama2c_meta(const mica__source *source, const char *path, mica_writer *w);

#endif
