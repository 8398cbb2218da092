/* Compiled kernels: one for each text, name and set of constants, shared by all plans of
 * the process and counted by them. Those that no plan has any more are kept for a
 * while, because the next plan of another shape wants the same. */
#ifndef MICA_BACKEND_METAL_PIPELINE_H
#define MICA_BACKEND_METAL_PIPELINE_H

#include "backend/metal/metal_device.h"

typedef struct mica__pipeline {
    mica__id state;
    uint32_t max_threads;       /* of a threadgroup of this kernel                       */
    const char *name;           /* of the kernel                                         */
    uint64_t compile_ns;        /* what making it from its text took, now or once        */
    bool loaded;                /* from the disk                                         */
    /* the table's */
    int users;
    uint64_t hash, used;
    char *key;
    size_t key_bytes;
    struct mica__pipeline *next;
} mica__pipeline;

/* What a pipeline is made of. */
typedef struct mica__pipeline_source {
    const char *shader;         /* a file of shaders.def without .metal; NULL: text      */
    const char *text;           /* generated, mica_msl.h goes before it: a kernel, or what goes before the shader */
    const char *kernel;
    const char *label;          /* for a person who looks at a trace; NULL: the kernel   */
    bool again;                 /* the caller has asked before: not a saving             */
    const mica__gpu_constant *constant;
    uint32_t n_constant;
} mica__pipeline_source;

/* Finds or compiles it; to be dropped. MICA_ERR_DEVICE with the compiler's words. */
mica_status mica__pipeline_get(const mica__metal_device *device, const mica__pipeline_source *source,
                               mica__pipeline **out);
void mica__pipeline_drop(mica__pipeline *pipeline);

typedef struct mica__pipeline_stats {
    uint64_t alive, compiles, hits, loaded; /* loaded: found in the archive on disk      */
    uint64_t compile_ns, saved_ns; /* saved: what those that were found took once        */
} mica__pipeline_stats;

void mica__pipeline_stats_get(mica__pipeline_stats *out);
/* Tests: forgets all that nobody uses. */
void mica__pipeline_trim(void);

#endif
