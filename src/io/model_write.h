/* Writing model files: all tensors are declared first, then their data come, one
 * tensor after the other, from memory or from a function, so that a model larger
 * than memory can be written. A file appears whole or not at all (writer.h). */
#ifndef MICA_IO_MODEL_WRITE_H
#define MICA_IO_MODEL_WRITE_H

#include "io/model_file.h"
#include "io/writer.h"

typedef struct mica__out_tensor {
    const char *name;
    mica__quant_id type;
    int ndim;
    int64_t shape[MICA_MAX_DIMS];
    const void *data; /* NULL: out.produce writes it */
} mica__out_tensor;

/* Puts exactly the bytes of tensor i; anything else is MICA_ERR_INTERNAL. */
typedef mica_status mica__produce_fn(void *user, size_t i, mica__writer *w);

typedef struct mica__out_file {
    const mica__out_tensor *tensors;
    size_t n_tensors;
    const mica__meta *meta; /* safetensors: strings only; npz: none */
    size_t n_meta;
    mica__produce_fn *produce;
    void *user;
} mica__out_file;

/* Sorted by dtype, the widest first, then by name, as the reference does. */
mica_status mica__safetensors_write(const char *path, const mica__out_file *out);
/* Version 3; in the given order; general.alignment of the metadata, or 32. */
mica_status mica__gguf_write(const char *path, const mica__out_file *out);
/* Stored, data at multiples of 64; zip64 where sizes need it. */
mica_status mica__npz_write(const char *path, const mica__out_file *out);
mica_status mica__npy_write(const char *path, const mica__out_tensor *tensor);

/* For the writers: MICA_ERR_ARGUMENT for a name that is there twice; the bytes of
 * a tensor, or a sentence; its data, counted. */
mica_status mica__out_unique(const char *path, const mica__out_file *out);
mica_status mica__out_nbytes(const char *path, const mica__out_tensor *t, size_t *nbytes);
mica_status mica__out_data(const mica__out_file *out, size_t i, size_t nbytes, mica__writer *w);

#endif
