/* Writes model files. All tensors are declared first; then their data are written one
 * tensor after the other, from memory or by a function. So a model larger than memory
 * can be written. A file appears complete or not at all (writer.h). */
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

/* Writes exactly the bytes of tensor i; any other number is MICA_ERR_INTERNAL. */
typedef mica_status mica__produce_fn(void *user, size_t i, mica__writer *w);

typedef struct mica__out_file {
    const mica__out_tensor *tensors;
    size_t n_tensors;
    const mica__meta *meta; /* safetensors: strings only; npz: none */
    size_t n_meta;
    mica__produce_fn *produce;
    void *user;
} mica__out_file;

/* Tensors are sorted by dtype, the widest first, then by name, like the reference implementation. */
mica_status mica__safetensors_write(const char *path, const mica__out_file *out);
/* Version 3. Tensors are in the given order; the alignment is general.alignment of the metadata, or 32. */
mica_status mica__gguf_write(const char *path, const mica__out_file *out);
/* Not compressed; data at multiples of 64 bytes; zip64 if sizes need it. */
mica_status mica__npz_write(const char *path, const mica__out_file *out);
mica_status mica__npy_write(const char *path, const mica__out_tensor *tensor);

/* For the writers. unique: MICA_ERR_ARGUMENT for a duplicate name. nbytes: the size of
 * a tensor. data: writes the data of tensor i and checks their size. */
mica_status mica__out_unique(const char *path, const mica__out_file *out);
mica_status mica__out_nbytes(const char *path, const mica__out_tensor *t, size_t *nbytes);
mica_status mica__out_data(const mica__out_file *out, size_t i, size_t nbytes, mica__writer *w);

#endif
