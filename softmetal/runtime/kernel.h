/* A loaded kernel. */
#ifndef SOFTMETAL_KERNEL_H
#define SOFTMETAL_KERNEL_H

#include "../core.h"
#include "../shim/abi.h"

struct sm_kernel {
    char *name, *path; /* path: of the shared library */
    void *handle;
    const sm_module *module;
    uintptr_t base, start, end; /* addresses at which it is loaded */
    size_t tls_index;           /* its threadgroup variables are thread-local */
    size_t statics_length;      /* their size in bytes */
    uint32_t used;              /* bit i: the code uses buffer i */
    bool checked;               /* built with SM_CHECK */
    bool lockstep;              /* calls the runtime for accesses to threadgroup memory (lockstep.c), as if checked */
    bool fuzzed;
    bool from_cache;
    const sm_cover *cover; /* built with SM_COVER: flags of the basic blocks that ran */
    sm_kernel *cover_next; /* next in the list of such kernels */
    const sm_count_module *count; /* built with SM_COUNT: what its blocks cost */
    uint32_t constants;           /* bit i: buffer i is of the address space constant */
    char *constants_text;         /* values of the function constants as JSON */
    sm_counts counts;             /* of the last dispatch */
    bool has_counts;
};

/* Takes ownership of path. NULL on failure. */
sm_kernel *sm_kernel_load(char *path, const char *name, bool checked, bool fuzzed, bool from_cache, char **message);

#endif
