/* A model to convert, whatever it came from: tensors under the names they get,
 * whose rows can be asked for as f32, and the metadata that goes with them. Only
 * the converters in models/ see this. */
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
    float scale;                /* HF_TERNARY: times the codes                         */
    const uint8_t *scales, *biases; /* AFFINE: (rows, cols / group) of scale_format    */
    const char *scale_format;
    int bits, group;
    int64_t heads;              /* output rows pair the halves of each head, as arch llama
                                 * has them; 0: rows as they are                       */
} mica__source_tensor;

typedef struct mica__source {
    mica_file *file;            /* NULL: a checkpoint of llama2.c                      */
    const void *map;            /* that checkpoint, mapped                             */
    size_t map_size;
    int map_fd;                 /* valid if map is not NULL                            */
    mica__source_tensor *tensors;
    size_t n_tensors, cap_tensors;
    bool gguf;                  /* what it becomes                                     */
    bool hugging_face;          /* names and metadata were translated to GGUF's        */
    char arch[32];
    float *rope_freqs;          /* made up from rope_scaling; NULL: none               */
    const mica_quantize_options *options;
} mica__source;

/* gguf: translate names to those of GGUF where they are known to be others'. */
mica_status mica__source_open(const char *path, const mica_quantize_options *options, bool gguf, mica__source *out);
void mica__source_close(mica__source *source);
/* All metadata of the model at in, its tokenizer included; out is where it goes. */
mica_status mica__source_meta(const mica__source *source, const char *in, const char *out, mica_writer *w);

/* MICA_ERR_FILE if a file of the model became shorter or changed; before its tensors are read. */
mica_status mica__source_check(const mica__source *source);

/* Can its values be asked for? */
bool mica__source_readable(const mica__source_tensor *t);
/* Rows [first, first + n) as f32, first a multiple of SOURCE_PANEL; scratch has room for a copy of their blocks. */
mica_status mica__source_rows(const mica__source_tensor *t, int64_t first, int64_t n, float *out, void *scratch);
/* Bytes that mica__source_rows may need as scratch for n rows. */
size_t mica__source_scratch(const mica__source_tensor *t, int64_t n);

/* What lies behind the blocks of a whole tensor; are its blocks SOURCE_PANEL rows high? */
size_t mica__source_tail(const char *format);
bool mica__source_panels(const char *format);

/* One more tensor, zeroed but for its name. */
mica_status mica__source_add(mica__source *source, const char *name, mica__source_tensor **out);
void mica__source_note(const mica__source *source, const char *format, ...) MICA_PRINTF(2, 3);

/* The kinds of source. */
mica_status mica__hf_tensors(mica__source *source);
mica_status mica__hf_meta(const mica__source *source, mica_writer *w);
bool mica__hf_known(const mica_file *file, char arch[32]);
bool mica__llama2c_looks_like(const void *data, size_t size);
mica_status mica__llama2c_tensors(mica__source *source, const char *path);
mica_status mica__llama2c_meta(const mica__source *source, const char *path, mica_writer *w);

#endif
