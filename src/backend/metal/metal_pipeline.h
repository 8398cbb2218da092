/* Compiled kernels (pipelines): one for each combination of text, name and constants. All plans
 * of the process share them and count references. Pipelines without a reference are kept up to
 * a limit, because a plan of another shape often needs the same ones. */
#ifndef MICA_BACKEND_METAL_PIPELINE_H
#define MICA_BACKEND_METAL_PIPELINE_H

#include "backend/metal/metal_device.h"

typedef struct mica__pipeline {
    mica__id state;
    uint32_t max_threads;       /* most threads of a threadgroup of this kernel          */
    const char *name;           /* of the kernel                                         */
    uint64_t compile_ns;        /* time to compile it from text, now or when it was stored */
    bool loaded;                /* loaded from the archive on disk                       */
    /* private to metal_pipeline.c */
    int users;
    uint64_t hash, used;
    char *key;
    size_t key_bytes;
    struct mica__pipeline *next;
} mica__pipeline;

/* The source of a pipeline. */
typedef struct mica__pipeline_source {
    const char *shader;         /* a file of shaders.def without .metal; NULL: text      */
    const char *text;           /* generated text after mica_msl.h: a kernel, or a prefix of the shader */
    const char *kernel;
    const char *label;          /* shown in GPU traces; NULL: the name of the kernel     */
    bool again;                 /* a repeated request: does not count as a hit           */
    const mica__gpu_constant *constant;
    uint32_t n_constant;
} mica__pipeline_source;

/* Finds or compiles a pipeline; the caller drops it. MICA_ERR_DEVICE has the compiler's message. */
mica_status mica__pipeline_get(const mica__metal_device *device, const mica__pipeline_source *source,
                               mica__pipeline **out);
void mica__pipeline_drop(mica__pipeline *pipeline);

typedef struct mica__pipeline_stats {
    uint64_t alive, compiles, hits, loaded; /* exist now; made, by compiling or from disk; found; from disk */
    uint64_t compile_ns, saved_ns; /* time to make them; compile time saved by hits and loads */
} mica__pipeline_stats;

void mica__pipeline_stats_get(mica__pipeline_stats *out);
/* For tests: frees all pipelines without a reference, and the libraries of shaders. */
void mica__pipeline_trim(void);

#endif
